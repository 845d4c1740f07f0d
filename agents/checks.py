"""New tests for what a version changed: the steps of existing tests, varied, and what they should show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotest_env.agents.confined import ConfinedRunError, Job, run_confined
from autotest_env.agents.examples import literal
from autotest_env.agents.scenarios import HELPERS, ExistingTests, Scenario, Value
from autotest_env.agents.sweeps import Sweep, explore, sweeps

_MAX_SCENARIOS = 24
_MAX_ROWS = 24
_MAX_VALUES = 4
REGRESSION, CHANGE = "regression", "intentional_change"
"""The labels of failing tests, as the answer spells them."""

_CHECK = """\
@pytest.mark.parametrize(
    ("steps", "changed", "expected"),
    [
{rows}
    ],
)
def test_{name}(steps, changed, expected):
    assert observed(steps, **changed) == expected"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Tests that fail for one reason, the right program, and the wrong one that is like it but for this reason."""

    label: str
    tests: tuple[str, ...]
    right: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One case of a new test."""

    scenario: str
    changed: tuple[tuple[str, Value], ...]
    expected: str


def write_checks(module: str, tests: ExistingTests, findings: Sequence[Finding]) -> str:
    """Return a pytest file with one test per finding, empty when there is nothing to write.

    Where no variation shows a regression, the existing tests that found it are taken over.
    """
    concerned = {test for finding in findings for test in finding.tests}
    scenarios = [scenario for scenario in tests.scenarios if scenario.test in concerned][:_MAX_SCENARIOS]
    programs = list(dict.fromkeys(program for finding in findings for program in (finding.right, finding.wrong)))
    explored = _explored(module, tests.prelude, programs, scenarios)
    new: list[str] = []
    turned: dict[str, set[str]] = {}
    for number, finding in enumerate(findings, start=1):
        mine = [sweep for sweep in explored if sweep.scenario.test in finding.tests]
        rows = _rows(mine, programs.index(finding.right), programs.index(finding.wrong))
        for row in rows:
            turned.setdefault(row.scenario, set()).update(knob for knob, _ in row.changed)
        if rows:
            new.append(_check(f"{finding.label}_{number}", rows))
        elif finding.label == REGRESSION:
            new += [tests.tests[test] for test in finding.tests if test in tests.tests]
    steps = [scenario.code(turned[scenario.name]) for scenario in scenarios if scenario.name in turned]
    prelude = tests.prelude if "import pytest" in tests.prelude else f"import pytest\n{tests.prelude}"
    return "\n\n\n".join([prelude, HELPERS.strip(), *steps, *new]) + "\n" if new else ""


def _explored(module: str, prelude: str, programs: Sequence[str], scenarios: Sequence[Scenario]) -> list[Sweep]:
    """Vary the scenarios on all programs; nothing is found where that breaks the process or its limits."""
    script = "\n\n".join((prelude, HELPERS, *(scenario.code(scenario.knobs) for scenario in scenarios)))

    def evaluate(points: Sequence[tuple[Scenario, Mapping[str, Value]]]) -> list[tuple[str | None, ...]]:
        calls = [f"observed({scenario.name}, **{dict(changed)!r})" for scenario, changed in points]
        answers = run_confined(Job(module=module, programs=programs, script=script, calls=calls))
        return [tuple(map(_literal, seen)) for seen in zip(*(answer.results for answer in answers), strict=True)]

    try:
        return explore([sweep for scenario in scenarios for sweep in sweeps(scenario)], evaluate) if scenarios else []
    except ConfinedRunError:
        return []


def _literal(text: str | None) -> str | None:
    """Return a result as it can be written into a file; None when it is no plain data."""
    try:
        return None if text is None else repr(literal(text))
    except ValueError:
        return None


def _rows(found: Sequence[Sweep], right: int, wrong: int) -> list[_Row]:
    """Choose the cases: the edges that the wrong program lacks where there are some, else where it differs at all."""
    edges = [(sweep, sweep.edges(right, wrong)) for sweep in found]
    differences = [(sweep, spread(sweep.differences(right, wrong))) for sweep in found]
    rows: dict[_Row, None] = {}
    for sweep, values in [each for each in edges if each[1]] or differences:
        for value in values[:_MAX_VALUES]:
            expected = sweep.points[value][right]
            if expected is not None:
                changed = tuple(sweep.changed(value).items())
                rows[_Row(scenario=sweep.scenario.name, changed=changed, expected=expected)] = None
    return list(rows)[:_MAX_ROWS]


def spread(values: Sequence[Value]) -> list[Value]:
    """Return a few values from all along the way, the first and the last among them."""
    step = max(1.0, (len(values) - 1) / (_MAX_VALUES - 1))
    return [values[round(number * step)] for number in range(min(len(values), _MAX_VALUES))]


def _check(name: str, rows: Sequence[_Row]) -> str:
    lines = [f"        ({row.scenario}, {dict(row.changed)!r}, {row.expected})," for row in rows]
    return _CHECK.format(name=name, rows="\n".join(lines))
