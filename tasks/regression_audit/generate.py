"""From a seed to a task: which regressions version 2 holds, which change is announced, which old tests are shown."""

import ast
import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product

from autotest_env.errors import SetupError
from autotest_env.mutation.mutant import substitute
from autotest_env.syntax import parse
from autotest_env.tasks.family import Shown, Task
from autotest_env.tasks.judged import Chosen, Secret
from autotest_env.tasks.program import Change, ProgramSource
from autotest_env.tasks.prompt import ANSWER_RULE, LIMITS_RULE, code_block, import_rule
from autotest_env.tasks.regression_audit.answer import Label
from autotest_env.tasks.seeds import CLASSIC, secret_rng

NAME = "regression_audit"
VERSION = 1
REGRESSIONS = 2
SHOWN_TESTS = 8

_PROMPT = """\
You audit a new version with tests. Below are version 1 of the Python module `{module}`, its tests, which all pass on \
it, and version 2, which your tests import. One behaviour was changed on purpose, as the changelog says. Two others \
were broken by accident: regressions.

{docs}

Changelog of version 2:

{changelog}

Write one pytest file. Begin it with comments, each alone on its line: which of version 1's tests fail on version 2, \
and for each of them whether it found a regression or contradicts the intentional change.

# FAILING_TESTS: test_one, test_two
# CLASSIFICATION: test_one=regression
# CLASSIFICATION: test_two=intentional_change

Then write new tests:

* For each regression one of exactly what is documented. Version 1's tests check it roughly: similar wrong versions \
pass them, and should fail yours.
* For the intentional change one of the new behaviour.
{import_rule}
* Your tests also run on version 2 with the regressions repaired. A test that fails there, e.g. one of the old \
behaviour, is a false alarm and lowers the whole score.
* Labels count only together with tests that show what they say.
{limits_rule}

{version_1}

{tests}

{version_2}

{answer_rule}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionSecret(Secret):
    """Also: why which of the shown tests fails. `bugs` are the regressions and, last, the change."""

    labels: Mapping[str, Label] = field(repr=False)


def generate(program: ProgramSource, key: bytes, seed: int) -> Task:
    """Build the task of a seed. Raises SetupError when the program's tests tell no two regressions from a change."""
    rng = secret_rng(key, NAME, VERSION, program.name, seed)
    pool = list(draws(program))
    if not pool:
        raise SetupError(f"program {program.name!r}: no change and two regressions make different tests fail")
    change, regressions = rng.choice(pool)
    labels = _draw_tests(program, change.id, regressions, rng)
    tests = only_tests(program.existing_tests, labels)
    correct = {change.id: 1}
    source = substitute(program.source, program.sites, {**correct, **dict.fromkeys(regressions, 1)})
    for old, new in change.documented:
        source = source.replace(old, new)
    module = program.module
    changelog = f"* {change.entry}\n"
    prompt = _PROMPT.format(
        module=module,
        docs=program.docs,
        changelog=changelog.strip(),
        import_rule=import_rule(program),
        limits_rule=LIMITS_RULE,
        version_1=code_block(f"{module}.py, version 1", program.source),
        tests=code_block(f"test_{module}.py, version 1", tests),
        version_2=code_block(f"{module}.py, version 2", source),
        answer_rule=ANSWER_RULE,
    )
    files = {f"{module}.py": source, f"{module}_v1.py": program.source, "CHANGELOG.md": changelog}
    return Task(
        id=f"{NAME}-v{VERSION}/{CLASSIC}/{seed}",
        family=NAME,
        seed=seed,
        shown=Shown(prompt=prompt, module_name=module, files=files, existing_tests=tests),
        secret=RegressionSecret(
            program=program, shown_source=source, bugs=(*regressions, change.id), correct=correct, labels=labels
        ),
    )


def draws(program: ProgramSource) -> Iterator[tuple[Change, tuple[str, ...]]]:
    """Return every change with two regressions of which each makes a test fail, and no test fails for both reasons."""
    fails = program.measured.fails
    pairs = combinations([bug.id for bug in program.bugs], REGRESSIONS)
    for change, regressions in product(program.changes, pairs):
        broken = [fails.get(regression, frozenset()) for regression in regressions]
        contradicting = fails.get(change.id, frozenset())
        if contradicting and all(broken) and contradicting.isdisjoint(frozenset().union(*broken)):
            yield change, regressions


def _draw_tests(
    program: ProgramSource, change: str, regressions: tuple[str, ...], rng: random.Random
) -> dict[str, Label]:
    """Draw the shown tests: one for each reason to fail, one that passes, others; in the order of the file."""
    fails = program.measured.fails
    names = names_of_tests(program.existing_tests)
    broken = frozenset().union(*(fails[regression] for regression in regressions))
    truth = {
        name: Label.REGRESSION
        if name in broken
        else Label.INTENTIONAL_CHANGE
        if name in fails[change]
        else Label.PASSES
        for name in names
    }
    chosen: set[str] = set()
    for group in (*(fails[each] for each in (*regressions, change)), {n for n in names if truth[n] is Label.PASSES}):
        chosen.add(rng.choice([name for name in names if name in group]))
    others = [name for name in names if name not in chosen]
    chosen.update(rng.sample(others, SHOWN_TESTS - len(chosen)))
    return {name: truth[name] for name in names if name in chosen}


def oracle(program: ProgramSource, correct: Chosen, labels: Mapping[str, Label]) -> str:
    """Return the right labels above the oracle's tests, without those of changes that were not made."""
    failing = {name: label for name, label in labels.items() if label is not Label.PASSES}
    lines = [f"# FAILING_TESTS: {', '.join(failing)}"]
    lines += [f"# CLASSIFICATION: {name}={label.value}" for name, label in failing.items()]
    absent = {_test_of(change.id) for change in program.changes if change.id not in correct}
    tests = [name for name in names_of_tests(program.oracle_suite) if name not in absent]
    return "\n".join(lines) + "\n" + only_tests(program.oracle_suite, tests)


def _test_of(place: str) -> str:
    return f"test_{place.replace('-', '_')}"


def names_of_tests(suite: str) -> list[str]:
    """Return the names of a suite's test functions, in order."""
    return [name for name, _, _ in _tests(suite)]


def only_tests(suite: str, names: Collection[str]) -> str:
    """Return a suite without its other test functions; all else stays as it is."""
    lines = suite.splitlines(keepends=True)
    for name, first, last in reversed(_tests(suite)):
        if name not in names:
            del lines[first - 1 : last]
            while first <= len(lines) and first > 1 and not lines[first - 1].strip() and not lines[first - 2].strip():
                del lines[first - 1]
    return "".join(lines).rstrip() + "\n"


@lru_cache(maxsize=256)  # asked for by every task
def _tests(suite: str) -> tuple[tuple[str, int, int], ...]:
    """Return the name of each test function, its first line with its decorators, and its last."""
    return tuple(
        (node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in parse(suite).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
