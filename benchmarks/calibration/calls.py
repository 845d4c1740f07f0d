"""Plausible calls of the classic programs, by the hundred: what somebody who has read the shown code would try.

What a call gives is found by executing a program's text in this process, so only ever on texts of our own.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

NARROW_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Statements over a program's public names, and an expression whose value is looked at after them."""

    setup: tuple[str, ...] = ()
    observed: str

    @property
    def body(self) -> str:
        """The script as the body of a function that returns what is looked at."""
        return "".join(f" {line}\n" for line in (*self.setup, f"return {self.observed}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a script gave: the repr of a value, or the name of the exception that any of its lines raised."""

    value: str = ""
    raised: str = ""


def scripts(module: str, rng: random.Random, *, narrow: bool) -> Iterator[Script]:
    """Yield different scripts for a module, without end: narrow ones look at one thing, most others at everything."""
    seen: set[Script] = set()
    while True:
        script = _DRAWS[module](rng, narrow or rng.random() < NARROW_SHARE)
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


def _order(rng: random.Random, narrow: bool) -> Script:  # noqa: ARG001  one call shows everything there is
    pairs = [
        (round(rng.uniform(0.5, 60), rng.choice((0, 1, 2, 4))), rng.randint(1, 9)) for _ in range(rng.randint(1, 4))
    ]
    discount, tax = (
        rng.choice((0, rng.randint(1, 60), rng.randint(1, 60), round(rng.uniform(1, 60), 1))) for _ in "dt"
    )
    return Script(observed=f"calculate_order_total({pairs}, {discount}, {tax})")


def _inventory(rng: random.Random, narrow: bool) -> Script:
    """Fill a stock, change it, look at everything: limits are often met exactly, prices are often equal."""
    units: dict[str, int] = {}
    prices = [round(rng.uniform(0.5, 40), rng.choice((0, 1, 2))) for _ in range(2)]
    added = [(rng.choice("abc"), rng.choice(prices), rng.randint(1, 6)) for _ in range(rng.randint(2, 5))]
    for name, _, quantity in added:
        units[name] = units.get(name, 0) + quantity
    name = rng.choice(sorted(units))
    taken = rng.choice((units[name], rng.randint(1, units[name])))
    limit = rng.choice(list(units.values()))
    changes = [f"stock.apply_discount({rng.randint(1, 90)}, {limit})", f"stock.remove_item({name!r}, {taken})"]
    calls = [f"stock.add_item({name!r}, {price}, {quantity})" for name, price, quantity in added]
    calls += rng.sample(changes, rng.randint(1, 2))
    setup = [f"stock = Inventory({rng.choice((limit, 5))})", "seen = []", *(f"seen.append({call})" for call in calls)]
    total = f"stock.calculate_total({rng.choice((0, rng.randint(1, 50), rng.randint(1, 50)))})"
    fact = f"stock.get_summary()[{rng.choice(('units', 'low', 'dearest'))!r}]"
    everything = f"(seen, {total}, stock.get_summary())"
    return Script(setup=tuple(setup), observed=rng.choice((total, fact)) if narrow else everything)


def _auth(rng: random.Random, narrow: bool) -> Script:
    """Try values around the documented limits: of one rule, or of all of them one after the other."""
    setup = list(_START)
    for number, rule in enumerate(rng.sample(_RULES, 1 if narrow else len(_RULES))):
        lines, values = rule
        chosen = sorted(rng.sample(values, rng.randint(2 if narrow else len(values) - 2, len(values))))
        given = {"name": repr(f"u{number}"), "values": chosen, "value": chosen[-1]}
        setup += [line.format(**given) for line in lines]
    return Script(setup=tuple(setup), observed="seen")


_START = (
    "now = [0.0]",
    "it = AuthService(lambda: now[0])",
    "put, log, pw = it.set_password, it.login, 'a-password-0123'",
    "seen = []",
    "def do(f, *a):",
    " try: seen.append(f(*a))",
    " except Exception as e: seen.append(type(e).__name__)",
)
_ACCOUNT = "put({name}, pw)"
_RULES: list[tuple[tuple[str, ...], list[float]]] = [
    (
        ("for n in {values}: do(put, {name}, '1' * n)",),
        [7, 8, 11, 12, 13, 60, 62, 64, 65, 70, 99],
    ),
    (("for n in {values}: do(put, {name}, 'a-long-password-' + '1' * n)",), [0, 1, 2, 3, 4, 5]),
    (
        (
            "for n in range(10, 20): put({name}, f'a-password-{{n}}')",
            "for n in {values}: do(put, {name}, f'a-password-{{20 - n}}')",
        ),
        [1, 2, 3, 4, 5, 6],
    ),
    (
        (
            _ACCOUNT,
            "for n in {values}:",
            " for _ in range(n): do(log, {name}, 'wrong')",
            " do(log, {name}, pw)",
            " now[0] += 86400",
        ),
        [1, 2, 3, 4, 5, 6],
    ),
    (
        (
            _ACCOUNT,
            "for n in {values}:",
            " for _ in range(3): do(log, {name}, 'wrong')",
            " now[0] += n",
            " do(log, {name}, pw)",
            " now[0] += 86400",
        ),
        [60, 599, 600, 899, 900, 901, 1199, 1200, 5000, 9000],
    ),
    (
        (
            _ACCOUNT,
            "for n in {values}:",
            " s = log({name}, pw)",
            " now[0] += n",
            " do(it.whose_session, s)",
        ),
        [60, 1200, 1201, 1799, 1800, 1801, 2700, 2701, 9000, 18000, 18001],
    ),
    (
        (
            _ACCOUNT,
            "for n in {values}:",
            " s = log({name}, pw, True)",
            " now[0] += n * 86400",
            " do(it.whose_session, s)",
        ),
        [1, 13, 13.9, 14, 14.1, 20, 29, 30, 30.1, 31],
    ),
    (
        (
            _ACCOUNT,
            "ss = [log({name}, pw) for _ in range({value})]",
            "for s in ss[:5]: do(it.whose_session, s)",
        ),
        [3, 4, 5, 6, 7, 8],
    ),
    (
        (
            "for n in {values}:",
            " t = it.issue_token({name}, n)",
            " for w in (n * 86400 - 60, 60, n * 86400):",
            "  now[0] += w",
            "  do(it.whose_token, t)",
        ),
        [1, 2, 3, 10, 29, 30],
    ),
    (("for n in {values}: do(it.issue_token, {name}, n)",), [0, 1, 29, 30, 31, 45, 60, 89, 90, 91]),
    (
        (
            _ACCOUNT,
            "start = now[0]",
            "for n in {values}:",
            " now[0] = start + n * 86400",
            " do(it.must_change, {name})",
        ),
        [1, 60, 89, 90, 90.1, 91, 100, 120, 179, 180, 181],
    ),
]
_DRAWS: dict[str, Callable[[random.Random, bool], Script]] = {
    "order_module": _order,
    "inventory_module": _inventory,
    "auth_module": _auth,
}
