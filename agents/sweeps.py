"""Which values to try on the knobs of a scenario, and which of the tried ones make a good test. Pure."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from autotest_env.agents.scenarios import Scenario, Value

Evaluate = Callable[[Sequence[tuple[Scenario, Mapping[str, Value]]]], Sequence[tuple[str | None, ...]]]
"""Takes scenarios with the knobs that are turned; returns for each what was seen, program by program."""

MAX_POINTS = 100
_ROUNDS = 8
_PARTS = 16
_SMALL = 12
_LENGTHS = (16, 20, 32, 64, 72, 100, 128, 255)


@dataclass(slots=True, kw_only=True)
class Sweep:
    """One or more knobs of a scenario that have the same value, turned together."""

    scenario: Scenario
    knobs: tuple[str, ...]
    value: Value
    points: dict[Value, tuple[str | None, ...]] = field(default_factory=dict)
    """What each program shows at each value; None where that is not always the same."""

    def changed(self, value: Value) -> dict[str, Value]:
        """Return the knobs as turned to a value; none when it is their own."""
        return {} if value == self.value else dict.fromkeys(self.knobs, value)

    def edges(self, right: int, wrong: int) -> list[Value]:
        """Return the values on both sides of each change in what the right program shows and the wrong one does not.

        Similar wrong versions have that change elsewhere.
        """
        usable = [value for value in self._ordered() if self.points[value][right] is not None]
        return list(
            dict.fromkeys(
                value
                for low, high in itertools.pairwise(usable)
                if self.points[low][right] != self.points[high][right]
                and self.points[low][wrong] == self.points[high][wrong]
                for value in (low, high)
            )
        )

    def differences(self, right: int, wrong: int) -> list[Value]:
        """Return the values at which the wrong program shows something else than the right one."""
        points = ((value, self.points[value]) for value in self._ordered())
        return [value for value, seen in points if seen[right] not in (None, seen[wrong])]

    def _ordered(self) -> list[Value]:
        """Return the values in an order in which neighbours are alike."""
        value = self.value
        if not isinstance(value, str):
            return sorted(self.points)
        return sorted(self.points, key=lambda each: (each != resized(value, len(str(each))), len(str(each))))


def sweeps(scenario: Scenario) -> Iterator[Sweep]:
    """Yield a sweep of each knob, and of those that share a value together."""
    by_value: dict[tuple[type, Value], list[str]] = {}
    for name, value in scenario.knobs.items():
        yield Sweep(scenario=scenario, knobs=(name,), value=value)
        if not name.startswith("times_"):
            by_value.setdefault((type(value), value), []).append(name)
    for (_, value), names in by_value.items():
        if len(names) > 1:
            yield Sweep(scenario=scenario, knobs=tuple(names), value=value)


def explore(found: Iterable[Sweep], evaluate: Evaluate) -> list[Sweep]:
    """Fill in what is seen at many values; more closely where what is seen changes. Returns the filled ones.

    Only sweeps on which the programs differ somewhere are looked at more closely.
    """
    explored = list(found)
    todo = [(sweep, value) for sweep in explored for value in _first_values(sweep)]
    for _ in range(_ROUNDS):
        answers = evaluate([(sweep.scenario, sweep.changed(value)) for sweep, value in todo])
        for (sweep, value), seen in zip(todo, answers, strict=True):
            sweep.points[value] = seen
        todo = [(sweep, value) for sweep in explored if _differs(sweep) for value in _between(sweep)]
        if not todo:
            break
    return explored


def _differs(sweep: Sweep) -> bool:
    return any(len(set(seen)) > 1 for seen in sweep.points.values())


def _first_values(sweep: Sweep) -> list[Value]:
    value = sweep.value
    if isinstance(value, str):
        return list(dict.fromkeys((value, *_forms(value), *(resized(value, length) for length in _lengths(value)))))
    if sweep.knobs[0].startswith("times_"):
        return list(range(9))
    numbers: list[float] = [*range(value + 5)] if isinstance(value, int) and 0 <= value <= _SMALL else []
    numbers += [0, 1, value / 4, value / 2, value - 2, value - 1, value, value + 1, value + 2, value * 2, value * 4]
    kind = type(value)
    return sorted({kind(number) for number in numbers if value < 0 or number >= 0})


def _forms(text: str) -> Iterator[str]:
    """Yield a text in other shapes: cases, kinds of characters, blanks around it."""
    yield from (text.lower(), text.upper(), text.title(), text.swapcase(), f" {text}", f"{text} ", f"{text}x")
    for kind, other in ((str.isdigit, "7"), (str.isupper, "X"), (str.islower, "x"), (str.isalnum, "-")):
        without = "".join("." if kind(each) else each for each in text)
        yield "".join(each for each in text if not kind(each))
        yield from (without[: -count or None] + other * count for count in range(5))


def _lengths(text: str) -> Iterator[int]:
    size = len(text)
    yield from range(min(size, 2 * _SMALL) + 5)
    yield from (length + more for length in _LENGTHS for more in (-1, 0, 1))


def resized(text: str, length: int) -> str:
    """Return a text cut or filled up to a length, with its own last character."""
    return text[:length].ljust(length, text[-1:] or "x")


def _between(sweep: Sweep) -> list[Value]:
    """Return numbers to try next: between neighbours where a program does not show the same."""
    if isinstance(sweep.value, str) or len(sweep.points) >= MAX_POINTS:
        return []
    kind = type(sweep.value)
    found: set[Value] = set()
    for low, high in itertools.pairwise(sorted(map(float, sweep.points))):
        if sweep.points[kind(low)] != sweep.points[kind(high)]:
            steps = (low + (high - low) * part / _PARTS for part in range(1, _PARTS))
            found.update(kind(int(step)) for step in steps if low < int(step) < high)
    return sorted(found - set(sweep.points))
