"""The policies whose earnings are measured: hollow ones, guessers, and honest ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial

from autotest_env.agents.options import read_options
from autotest_env.agents.policies import policy_maker
from autotest_env.benchmarks.calibration import suites
from autotest_env.benchmarks.calibration.subject import Subject
from autotest_env.server.episodes import Episode
from autotest_env.server.views import reset_view

REGRESSION = "regression_audit"
COIN_COUNTS = (12, 20, 40)
COIN_ODDS = (Fraction(1, 8), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2))
"""How often a coin fails."""
PADDED = ((2, Fraction(2, 3)), (3, Fraction(2, 3)), (4, Fraction(2, 3)), (6, Fraction(1, 2)))
"""The coins that earn most beside tests that are right and say nothing."""

WEAK, EMBEDDED, ORACLE = "7 right, 3 wrong", "embedded", "oracle"

Writer = Callable[[Subject], str]


class Kind(StrEnum):
    """What a policy is meant to earn."""

    HOLLOW = "hollow"
    GUESSING = "guessing"
    HONEST = "honest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A way to write an answer; `family` where it makes sense in one family only."""

    name: str
    kind: Kind
    write: Writer
    family: str | None = None

    def plays(self, family: str) -> bool:
        """Whether it is measured in a family."""
        return self.family in (None, family)


def all_policies() -> tuple[Policy, ...]:
    """Return them in the order of the table."""
    found = []
    for kind, tables in (
        (Kind.HOLLOW, {None: _HOLLOW, REGRESSION: _HOLLOW_LABELS}),
        (Kind.GUESSING, {None: dict(_guessing()), REGRESSION: _GUESSING_LABELS}),
        (Kind.HONEST, {None: _HONEST}),
    ):
        for family, writers in tables.items():
            found += [Policy(name=name, kind=kind, write=write, family=family) for name, write in writers.items()]
    return tuple(found)


def with_labels(write: Writer, subject: Subject) -> str:
    """The right labels above what another policy writes."""
    return subject.labels + write(subject)


def one_label(subject: Subject) -> str:
    """Version 1's tests, and every one of them that fails called a regression."""
    return subject.labels.replace("=intentional_change", "=regression") + _existing_tests(subject)


def announced_change(subject: Subject) -> str:
    """The oracle's test of the intentional change, labels for the tests that contradict it, and nothing else."""
    lines = [line for line in subject.labels.splitlines() if line.endswith("=intentional_change")]
    named = ", ".join(line.split()[-1].partition("=")[0] for line in lines)
    labels = "\n".join([f"# FAILING_TESTS: {named}", *lines])
    return f"{labels}\n{subject.only([subject.exact_tests()[-1]])}"


def embedded(subject: Subject) -> str:
    """What `inference.py` sends first when it has no model."""
    episode = Episode("calibration", subject.task, subject.family)
    policy = policy_maker(read_options(["--policy", "embedded"], {}))(subject.task.seed)
    return policy.act(reset_view(episode)).test_code


def _guessing() -> Iterator[tuple[str, Writer]]:
    """Yield guesses with the right labels above them, in the family that asks for labels: less would earn less."""
    for count in COIN_COUNTS:
        for p in COIN_ODDS:
            yield f"{count} coins, p = {p}", partial(with_labels, partial(suites.coins, count=count, p=p))
    for count, p in PADDED:
        write = partial(suites.padded_coins, count=count, p=p)
        yield f"{suites.PADDING} trivial tests and {count} coins, p = {p}", partial(with_labels, write)
    yield "what the shown code does", partial(with_labels, suites.characterise)
    yield "not what the shown code does", partial(with_labels, suites.contradict)


def _existing_tests(subject: Subject) -> str:
    return subject.task.shown.existing_tests


_HOLLOW: dict[str, Writer] = {
    "empty": lambda _: "",
    "`assert True`": lambda _: "def test_it():\n    assert True\n",
    "`assert False`": lambda _: "def test_it():\n    assert False\n",
    "import only": lambda subject: f"import {subject.module}\n\n\ndef test_it():\n    assert {subject.module}\n",
    "skip all": lambda _: "import pytest\n\n\ndef test_it():\n    pytest.skip('later')\n",
    "calls only": suites.calls_only,
    "calls only, exceptions caught": partial(suites.calls_only, caught=True),
}
_HOLLOW_LABELS: dict[str, Writer] = {
    "right labels, no tests": lambda subject: subject.labels,
    "right labels, `assert True`": partial(with_labels, _HOLLOW["`assert True`"]),
    "right labels, calls only": partial(with_labels, suites.calls_only),
}
_GUESSING_LABELS: dict[str, Writer] = {
    "version 1's tests": _existing_tests,
    "version 1's tests, one label for all": one_label,
    "version 1's tests, right labels": partial(with_labels, _existing_tests),
    "the announced change alone": announced_change,
}
_HONEST: dict[str, Writer] = {
    WEAK: suites.weak,
    "imprecise assertions": suites.loose,
    EMBEDDED: embedded,
    ORACLE: lambda subject: subject.answer,
}
