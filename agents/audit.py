"""The embedded policy for a new version of a module: what broke, what was changed on purpose, and tests of both.

The edits between the two versions are made one at a time, which shows the edit behind each failing test; the changelog
tells which of them is the announced one. The old version with that edit alone is how the module should behave. Tests
are the existing ones with their numbers, texts and repetitions varied, where the versions differ. Nothing is known of
any module beforehand, and shown code runs in a confined process only.
"""

from collections.abc import Iterator, Mapping, Sequence

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
    findings = _findings(module, versions, existing, changelog)
    failing = {test: finding.label for finding in findings for test in finding.tests}
    labels = {test: failing[test] for test in tests.tests if test in failing}
    lines = [f"# FAILING_TESTS: {', '.join(labels)}"]
    lines += [f"# CLASSIFICATION: {test}={label}" for test, label in labels.items()]
    suite = write_checks(module, tests, findings) or write_suite(module, {f"{module}.py": new})
    return "\n".join([*lines, "", suite])


def _findings(module: str, versions: Versions, existing: str, changelog: str) -> list[Finding]:
    programs = [versions.old, versions.new, *(versions.with_edits(edit) for edit in versions.behaviour)]
    passed = [answer.passed for answer in run_confined(Job(module=module, programs=programs, tests=existing))]
    sound = [test for test, passes in passed[0].items() if passes]
    failing = [test for test in sound if not passed[1].get(test)]
    broken = {
        edit: tuple(test for test in failing if not on_edit.get(test))
        for edit, on_edit in zip(versions.behaviour, passed[2:], strict=True)
    }
    if len(broken) > 1 and set(failing) == {test for tests in broken.values() for test in tests}:
        return list(_by_edit(versions, broken, changelog))
    return list(_by_words(versions, failing, changelog))


def _by_edit(versions: Versions, broken: Mapping[Edit, tuple[str, ...]], changelog: str) -> Iterator[Finding]:
    """Yield a finding per edit that makes tests fail."""
    causes = {edit: tests for edit, tests in broken.items() if tests}
    meant = announced(versions, changelog, causes)
    harmless = [edit for edit in broken if edit not in causes]
    right = versions.with_edits(*harmless, *([meant] if meant else []))
    for edit, tests in causes.items():
        if edit == meant:
            wrong = versions.with_edits(*harmless)
            yield Finding(label=CHANGE, tests=tests, right=right, wrong=wrong)
        else:
            others = [edit, *harmless, *([meant] if meant else [])]
            yield Finding(label=REGRESSION, tests=tests, right=right, wrong=versions.with_edits(*others))


def _by_words(versions: Versions, failing: Sequence[str], changelog: str) -> Iterator[Finding]:
    """Yield the findings of versions whose edits cannot be told apart: the changelog names a test as well as it can."""
    meant = max(failing, key=lambda test: likeness(changelog, test), default=None)
    for test in failing:
        if test == meant:
            yield Finding(label=CHANGE, tests=(test,), right=versions.new, wrong=versions.old)
        else:
            yield Finding(label=REGRESSION, tests=(test,), right=versions.old, wrong=versions.new)
