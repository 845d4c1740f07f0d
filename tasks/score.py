"""The score of a submission: named, weighted parts. Only `Score.total` adds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a score; `value` and `weight` in [0, 1]."""

    name: str
    value: float
    weight: float

    def __post_init__(self) -> None:
        for label, number in (("value", self.value), ("weight", self.weight)):
            if not 0.0 <= number <= 1.0:
                raise ValueError(f"{label} of part {self.name!r} is {number!r}, not in [0, 1]")


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of one judged submission."""

    parts: tuple[Part, ...] = ()

    @property
    def total(self) -> float:
        """min(1, sum of value x weight, rounded to 9 digits)."""
        return min(1.0, round(sum(part.value * part.weight for part in self.parts), 9))
