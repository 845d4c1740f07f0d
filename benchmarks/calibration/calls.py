"""Plausible calls of the classic programs, by the hundred: what somebody who has read the shown code would try.

What a call gives is found by executing a program's text in this process, so only ever on texts of our own.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Statements over a program's public names, and an expression whose value is looked at after them."""

    setup: tuple[str, ...] = ()
    observed: str

    @property
    def body(self) -> str:
        """The script as the body of a function that returns what is looked at."""
        return "".join(f"    {line}\n" for line in (*self.setup, f"return {self.observed}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a script gave: the repr of a value, or the name of the exception that any of its lines raised."""

    value: str = ""
    raised: str = ""


def scripts(module: str, rng: random.Random) -> Iterator[Script]:
    """Yield different scripts for a module, without end."""
    seen: set[Script] = set()
    while True:
        script = _DRAWS[module](rng)
        if script not in seen:
            seen.add(script)
            yield script


def outcome(source: str, script: Script) -> Outcome:
    """Execute a trusted program text and a script on it, in this process."""
    namespace: dict[str, object] = {"__name__": __name__}  # dataclasses look their module up
    exec(_compiled(source), namespace)
    exec(f"def act():\n{script.body}", namespace)
    act = namespace["act"]
    assert callable(act)
    try:
        return Outcome(value=repr(act()))
    except Exception as error:  # noqa: BLE001  border: whatever the program raises is its outcome
        return Outcome(raised=type(error).__name__)


@lru_cache(maxsize=512)
def _compiled(source: str) -> CodeType:
    return compile(source, "<program>", "exec", dont_inherit=True)


def _order(rng: random.Random) -> Script:
    pairs = [
        (round(rng.uniform(0.5, 60), rng.choice((0, 1, 2, 4))), rng.randint(1, 9)) for _ in range(rng.randint(1, 4))
    ]
    discount, tax = (
        rng.choice((0, rng.randint(1, 60), rng.randint(1, 60), round(rng.uniform(1, 60), 1))) for _ in "dt"
    )
    return Script(observed=f"calculate_order_total({pairs}, {discount}, {tax})")


def _inventory(rng: random.Random) -> Script:
    low = rng.randint(1, 5)
    setup = [f"stock = Inventory({low})"]
    units: dict[str, int] = {}
    for _ in range(rng.randint(1, 5)):
        name, quantity = rng.choice("abc"), rng.randint(1, 6)
        setup.append(f"stock.add_item({name!r}, {round(rng.uniform(0.5, 40), rng.choice((0, 1, 2)))}, {quantity})")
        units[name] = units.get(name, 0) + quantity
    for _ in range(rng.randint(0, 2)):
        name = rng.choice(sorted(units))
        more = [f"stock.apply_discount({rng.randint(1, 90)}, {rng.randint(1, 6)})"]
        if units[name] > 1:
            more.append(f"stock.remove_item({name!r}, {rng.randint(1, units[name] - 1)})")
        setup.append(rng.choice(more))
    name = rng.choice(sorted(units))
    observed = (
        f"stock.calculate_total({rng.choice((0, rng.randint(1, 50)))})",
        "stock.get_summary()",
        f"stock.get_summary()[{rng.choice(('items', 'units', 'low', 'dearest'))!r}]",
        f"stock.remove_item({name!r}, {rng.randint(1, units[name])})",
        f"stock.add_item({name!r}, {rng.randint(1, 30)}, {rng.randint(1, 6)})",
        f"stock.apply_discount({rng.randint(1, 90)}, {rng.randint(1, 6)})",
        f"(stock.get_summary(), stock.calculate_total({rng.randint(1, 50)}))",
    )
    return Script(setup=tuple(setup), observed=rng.choice(observed))


_DRAWS: dict[str, Callable[[random.Random], Script]] = {
    "order_module": _order,
    "inventory_module": _inventory,
}
