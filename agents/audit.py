"""The embedded policy for a new version of a module: what broke, what was changed on purpose, and tests of both.

The edits between the two versions are made one at a time, which shows the edit behind each failing test; the changelog
tells which of them is the announced one. The old version with that edit alone is how the module should behave. Tests
are the existing ones with their numbers, texts and repetitions varied, where the versions differ. Nothing is known of
any module beforehand, and shown code runs in a confined process only.
"""

import itertools
from collections.abc import Iterator, Mapping

from autotest_env.agents.checks import CHANGE, REGRESSION, Finding, write_checks
from autotest_env.agents.confined import Job, run_confined
from autotest_env.agents.embedded import write_suite
from autotest_env.agents.scenarios import take_apart
from autotest_env.agents.versions import Edit, Versions, announced, compare, likeness


def write_audit(module: str, old: str, new: str, existing: str, changelog: str) -> str:
    """Return a pytest file with the labels of the failing tests in comments, and new tests or what is documented.

    Raises one of UNREADABLE for texts that cannot be read, ConfinedRunError when they cannot be run.
    """
    versions = compare(old, new)
    tests = take_apart(existing)
    programs = [old, new, *(versions.with_edits(edit) for edit in versions.behaviour)]
    passed = [answer.passed for answer in run_confined(Job(module=module, programs=programs, tests=existing))]
    sound = [test for test in tests.tests if passed[0].get(test)]
    failing, *broken = (tuple(test for test in sound if not each.get(test)) for each in passed[1:])
    causes = {edit: broke for edit, broke in zip(versions.behaviour, broken, strict=True) if broke}
    if len(broken) > 1 and set(failing) == set(itertools.chain.from_iterable(broken)):
        findings = list(_by_edit(versions, causes, changelog))
    else:
        findings = list(_by_words(versions, {test: tests.tests[test] for test in failing}, changelog))
    labels = {test: finding.label for finding in findings for test in finding.tests}
    lines = [f"# FAILING_TESTS: {', '.join(failing)}"]
    lines += [f"# CLASSIFICATION: {test}={labels[test]}" for test in failing]
    suite = write_checks(module, tests, findings) or write_suite(module, {f"{module}.py": new})
    return "\n".join([*lines, "", suite])


def _by_edit(versions: Versions, causes: Mapping[Edit, tuple[str, ...]], changelog: str) -> Iterator[Finding]:
    """Yield a finding per edit that makes tests fail."""
    meant = announced(versions, changelog, causes)
    harmless = [edit for edit in versions.behaviour if edit not in causes]
    wanted = [edit for edit in versions.behaviour if edit not in causes or edit == meant]
    right = versions.with_edits(*wanted)
    for edit, tests in causes.items():
        if edit == meant:
            yield Finding(label=CHANGE, tests=tests, right=right, wrong=versions.with_edits(*harmless))
        else:
            yield Finding(label=REGRESSION, tests=tests, right=right, wrong=versions.with_edits(*wanted, edit))


def _by_words(versions: Versions, failing: Mapping[str, str], changelog: str) -> Iterator[Finding]:
    """Yield a finding per failing test where the edits cannot be told apart: the changelog names one as it can."""
    weights = likeness(changelog, failing)
    meant = max(weights, key=lambda test: weights[test], default=None)
    for test in failing:
        if test == meant:
            yield Finding(label=CHANGE, tests=(test,), right=versions.new, wrong=versions.old)
        else:
            yield Finding(label=REGRESSION, tests=(test,), right=versions.old, wrong=versions.new)
