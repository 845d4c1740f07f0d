"""The transforms on code unlike the order program: what they cannot prove safe they leave alone."""

import itertools
import random
import types

import pytest

from autotest_env.mutation.mutant import Site
from autotest_env.mutation.rendering import RENDERINGS, catalogue, render
from tests.mutation.conftest import KEY, load

STOCK = '''
"""Things in stock."""

from __future__ import annotations

from dataclasses import dataclass, field
import math

LIMIT = 100


class StockError(Exception):
    """Something is wrong with the stock."""

    def __init__(self, name: str, missing: int = 0) -> None:
        super().__init__(f"{name}: {missing} missing")
        self.missing = missing


@dataclass
class Entry:
    """One thing."""

    name: str
    count: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing is left."""
        return self.count <= 0


class Inventory:
    """All things."""

    shelves = 3

    def __init__(self, rate: float = 1.5) -> None:
        self.entries: dict[str, Entry] = {}
        self.__secret = rate
        self._log: list[tuple[str, int]] = []

    @property
    def rate(self) -> float:
        return self.__secret

    @rate.setter
    def rate(self, value: float) -> None:
        if value < 0:
            raise ValueError(f"rate is {value=!r}")
        self.__secret = value

    @staticmethod
    def normal(name: str) -> str:
        return name.strip().lower()

    @classmethod
    def of(cls, *pairs, **more):
        """Build from pairs."""
        made = cls()
        for name, count in itertools_chain(pairs, more.items()):
            made.add(name, count)
        return made

    def add(self, name: str, count: int, *, tags=(), **extra) -> Entry:
        if count <= 0:
            raise StockError(name, count)
        elif count > LIMIT:
            count = LIMIT
        else:
            pass
        key = self.normal(name)
        entry = self.entries.setdefault(key, Entry(key))
        entry.count += count
        entry.tags += [tag for tag in tags if tag not in entry.tags]
        self._log.append((key, count))
        return entry

    def remove(self, name: str, count: int = 1) -> int:
        try:
            entry = self.entries[self.normal(name)]
        except KeyError as error:
            raise StockError(name, count) from error
        else:
            left = entry.count - count
            if left < 0:
                raise StockError(name, -left)
        finally:
            self._log.append((name, -count))
        entry.count = left
        return left

    def total(self, weights: dict[str, float] | None = None) -> float:
        weights = weights or {}
        result = 0.0
        for name, entry in sorted(self.entries.items()):
            weight = weights.get(name, 1)
            if weight == 0:
                continue
            weighted = entry.count * weight
            result += weighted * self.rate
        return round(result, 2)

    def summary(self, width: int = 10) -> str:
        def line(entry):
            nonlocal lines
            lines += 1
            return f"{entry.name:<{width}}{entry.count:>4}{'!' if entry.empty else ''}"

        lines = 0
        text = "\\n".join(line(entry) for entry in self.entries.values())
        return f"{text}\\n{lines} of {len(self.entries)}"

    def __len__(self) -> int:
        return sum(entry.count for entry in self.entries.values())


def itertools_chain(*parts):
    for part in parts:
        yield from part


def classify(value, low: int = 0, high: int = 10) -> str:
    match value:
        case bool():
            return "flag"
        case int(number) if low <= number < high:
            return "low" if number - low < high - number else "high"
        case [first, *rest]:
            return f"{classify(first)}+{len(rest)}"
        case {"kind": kind, **others}:
            return f"{kind}/{sorted(others)}"
    return "other"


def countdown(start: int, step: int = 1) -> list[int]:
    seen = []
    while start > 0:
        start -= step
        if start % 7 == 3:
            continue
        if start > 90:
            break
        seen.append(start)
    else:
        seen.append(-1)
    return seen


def spread(values: list[float], scale: float = 2.0) -> float:
    if not values:
        return 0.0
    mean = sum(values) / len(values)
    squares = [(value - mean) ** scale for value in values]
    first = scale * 3
    second = scale - 1.5
    return math.sqrt(sum(squares) / len(values)) + first - second


def counter(start: int = 0):
    count = start

    def step(by: int = 1) -> int:
        nonlocal count
        count += by
        return count

    return step


def names(first, second=2):
    third = first
    return sorted(locals())


def lines(text, *, keep=lambda line: line):
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        if (kept := keep(line)) and not line.startswith("#"):
            out.append((number, kept))
    return out, {number: len(line) for number, line in out}


async def later(value: int) -> int:
    return value + 1
'''


def _play(module: types.ModuleType, seed: int) -> list[str]:
    """Call everything with drawn arguments; return all outcomes and the visible state."""
    rng = random.Random(seed)
    seen: list[str] = []

    def call(function, *arguments, **named):
        try:
            seen.append(repr(function(*arguments, **named)))
        except Exception as error:  # noqa: BLE001  whatever a program raises is an outcome
            seen.append(f"{type(error).__name__} {error} {error.args} {type(error.__cause__).__name__}")

    stock = module.Inventory.of((" Nail ", rng.randint(1, 200)), screw=3)
    for _ in range(12):
        name = rng.choice(("nail", "SCREW", "bolt", " pin "))
        call(stock.add, name, rng.randint(-2, 120), tags=rng.choice(((), ("a", "b"), ("b",))), extra=1)
        call(stock.remove, name, count=rng.randint(0, 150))
        call(stock.remove, name)
        call(setattr, stock, "rate", rng.uniform(-1, 3))
        call(stock.total, {"nail": rng.choice((0, 2, 0.1))} if rng.random() < 0.5 else None)
        call(stock.summary, rng.randint(1, 12))
        call(len, stock)
    seen.append(repr(sorted(vars(stock).items())))
    for value in (True, rng.randint(-3, 13), [rng.randint(0, 9), 1], {"kind": "x", "b": 1}, "text", [], 1.5):
        call(module.classify, value)
        call(module.classify, value, high=rng.randint(1, 20))
    call(module.countdown, rng.randint(0, 200), rng.randint(1, 9))
    call(module.spread, [rng.uniform(-5, 5) for _ in range(rng.randint(0, 5))], rng.choice((2, 2.0)))
    step = module.counter(rng.randint(0, 5))
    call(step)
    call(step, by=rng.randint(-3, 3))
    call(module.names, 1)
    call(module.lines, "a\n#b\n\nc", keep=lambda line: line.upper())
    call(module.lines, "a\n#b")
    call(step, "x")
    return seen


SITES = (
    ("total-weight", "entry.count * weight", "entry.count + weight", "entry.count"),
    ("remove-left", "left < 0", "left <= 0", "left > 0"),
    ("limit", "count > LIMIT", "count >= LIMIT", "count < LIMIT"),
    ("spread-first", "scale * 3", "scale + 3", "scale * 2"),
    ("low-high", "number - low < high - number", "number - low > high - number", "number < high"),
    ("default", "weights.get(name, 1)", "weights.get(name, 0)", "weights.get(name, 2)"),
)


def _sites() -> tuple[Site, ...]:
    return tuple(
        Site(name=name, start=(start := STOCK.index(texts[0])), end=start + len(texts[0]), alternatives=texts)
        for name, *rest in SITES
        for texts in [tuple(rest)]
    )


@pytest.fixture(scope="module")
def plain() -> types.ModuleType:
    return load(STOCK)


def test_a_program_of_many_kinds_behaves_the_same_in_every_rendering(rendering, plain):
    module = load(render(STOCK, _sites(), {}, rendering, KEY))
    for seed in range(40):
        assert _play(module, seed) == _play(plain, seed)


def test_each_alternative_behaves_as_its_plain_text(rendering):
    from autotest_env.mutation.mutant import substitute

    sites = _sites()
    for site, alternative in itertools.product(sites, (1, 2)):
        chosen = {site.name: alternative}
        module = load(render(STOCK, sites, chosen, rendering, KEY))
        plain = load(substitute(STOCK, sites, chosen))
        for seed in range(8):
            assert _play(module, seed) == _play(plain, seed), chosen


def test_what_others_can_see_keeps_its_name(rendering, plain):
    module = load(render(STOCK, _sites(), {}, rendering, KEY))
    public = {name for name in vars(plain) if not name.startswith("__")}
    assert {name for name in vars(module) if not name.startswith("_")} == {name for name in public if name[0] != "_"}
    assert module.names(1) == ["first", "second", "third"]
    assert module.Inventory.add.__qualname__ == "Inventory.add"
    assert module.Inventory.shelves == 3
    assert module.LIMIT == 100


def test_a_program_that_reads_docstrings_keeps_them(rendering):
    source = 'def usage():\n    """How to use it."""\n    return usage.__doc__\n'
    assert load(render(source, (), {}, rendering, KEY)).usage() == "How to use it."


def test_operators_of_unknown_operands_keep_their_order(rendering):
    source = "def joined(left, right):\n    text = left + right\n    text += left\n    return text\n"
    joined = load(render(source, (), {}, rendering, KEY)).joined
    assert joined("a", "b") == "aba"
    first = [1]
    assert joined(first, [2]) == [1, 2, 1]
    assert first == [1]


def test_a_list_is_still_extended_in_place(rendering):
    source = "def grow(items, more):\n    items += more\n    return None\n"
    items = [1]
    load(render(source, (), {}, rendering, KEY)).grow(items, [2])
    assert items == [1, 2]


def test_floats_keep_the_sign_of_zero_and_their_last_bit(rendering):
    source = "def change(a: float, b: float) -> float:\n    c = a - b\n    d = c / 7\n    return c * 0.1 + a / 3 - b + (a - d) + (b + d)\n"
    plain_change = load(source).change
    change = load(render(source, (), {}, rendering, KEY)).change
    values = (0.0, -0.0, 0, 1, 0.1, -0.3, 1e308, 5e-324, float("inf"))
    for a, b in itertools.product(values, values):
        assert repr(change(a, b)) == repr(plain_change(a, b))


def test_a_removed_statement_can_be_a_bug_without_chaff():
    source = "def close(door):\n    door.append('shut')\n    door.append('locked')\n    return door\n"
    text = "    door.append('locked')\n"
    site = Site(name="lock", start=source.index(text), end=source.index(text) + len(text), alternatives=(text, ""))
    for kind in catalogue():
        if not kind.chaff:
            assert load(render(source, (site,), {}, kind.number, KEY)).close([]) == ["shut", "locked"]
            assert load(render(source, (site,), {"lock": 1}, kind.number, KEY)).close([]) == ["shut"]


def test_sites_inside_one_another_are_refused():
    source = "def f(a, b, c):\n    return a + (b - c)\n"
    outer = Site(name="outer", start=source.index("+"), end=source.index("+") + 1, alternatives=("+", "*"))
    inner = Site(
        name="inner", start=source.index("b - c"), end=source.index("b - c") + 5, alternatives=("b - c", "c - b")
    )
    with pytest.raises(ValueError, match="overlap in the syntax tree"):
        render(source, (outer, inner), {}, 0, KEY)


def test_there_are_enough_renderings_of_any_program():
    texts = {render(STOCK, _sites(), {}, number, KEY) for number in range(RENDERINGS)}
    assert len(texts) == RENDERINGS
