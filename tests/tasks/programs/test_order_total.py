"""The classic program proves its bugs, and its oracle suite catches every one of them."""

import ast
import doctest
import itertools
import subprocess
import sys
import types

import pytest

from autotest_env.mutation.mutant import substitute
from autotest_env.mutation.null import null_program
from autotest_env.mutation.rendering import RENDERINGS, render
from autotest_env.tasks.program import load_program, run_witness

PROGRAM = load_program("order_total")
BUGS = tuple(bug.id for bug in PROGRAM.bugs)
RUN = 1 + len(PROGRAM.bugs[0].siblings)


def _failing(text):
    """The oracle's tests that do not pass on a text."""
    module = types.ModuleType("order_module")
    exec(text, module.__dict__)
    suite: dict[str, object] = {}
    before = sys.modules.get("order_module")
    sys.modules["order_module"] = module
    try:
        exec(PROGRAM.oracle_suite, suite)
    finally:
        del sys.modules["order_module"]
    assert before is None
    return {name for name, test in suite.items() if name.startswith("test_") and not _passes(test)}


def _passes(test):
    parameters = [mark.args[1] for mark in getattr(test, "pytestmark", ())] or [[()]]
    try:
        for arguments in itertools.chain.from_iterable(parameters):
            test(*arguments)
    except AssertionError:
        return False
    return True


def _variant(bug, alternative):
    return substitute(PROGRAM.source, PROGRAM.sites, PROGRAM.variant(bug, alternative))


def test_there_are_six_bugs_with_three_run_siblings_each():
    assert len(PROGRAM.bugs) == 6
    assert all(len(bug.siblings) == 3 for bug in PROGRAM.bugs)


@pytest.mark.parametrize("bug", BUGS)
def test_the_witness_tells_reference_bug_and_siblings_apart(bug):
    witness = PROGRAM.bug(bug).witness
    outcomes = [run_witness(PROGRAM.source, witness)]
    outcomes += [run_witness(_variant(bug, alternative), witness) for alternative in range(1, RUN + 1)]
    assert len(set(outcomes)) == len(outcomes) == 5
    assert not any(outcome.startswith("raises") for line in outcomes for outcome in line)


@pytest.mark.parametrize("bug", BUGS)
def test_one_oracle_test_fails_on_the_bug_and_on_all_its_siblings(bug):
    assert set.intersection(*(_failing(_variant(bug, alternative)) for alternative in range(1, RUN + 1)))


@pytest.mark.parametrize("number", range(RENDERINGS))
def test_the_oracle_passes_on_every_rendering_and_catches_every_bug_in_it(number):
    def text(chosen):
        return render(PROGRAM.source, PROGRAM.sites, chosen, number, b"key")

    assert _failing(text({})) == set()
    for bug in BUGS:
        plain = [_failing(_variant(bug, alternative)) for alternative in range(1, RUN + 1)]
        assert [_failing(text(PROGRAM.variant(bug, alternative))) for alternative in range(1, RUN + 1)] == plain


def test_no_oracle_test_passes_on_the_null_program():
    tests = [node.name for node in ast.walk(ast.parse(PROGRAM.oracle_suite)) if isinstance(node, ast.FunctionDef)]
    assert 6 <= len(tests) <= 9
    assert _failing(null_program(PROGRAM.source)) == set(tests)


def test_the_oracle_is_a_real_pytest_file(tmp_path):
    (tmp_path / "order_module.py").write_text(PROGRAM.source)
    (tmp_path / "test_oracle.py").write_text(PROGRAM.oracle_suite)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
        "test_oracle.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("bugs", tuple(itertools.combinations(BUGS, 3)))
def test_every_choice_of_three_bugs_is_seen_by_the_oracle_and_keeps_the_documentation(bugs):
    text = PROGRAM.shown(bugs)
    assert _failing(text)
    documentation = ast.get_docstring(ast.parse(PROGRAM.source).body[1])
    assert ast.get_docstring(ast.parse(text).body[1]) == documentation


def test_the_documented_examples_are_right():
    namespace: dict[str, object] = {}
    exec(PROGRAM.source, namespace)
    examples = doctest.DocTestFinder().find(namespace["calculate_order_total"], "order", globs=namespace)
    result = doctest.DocTestRunner().run(examples[0])
    assert (result.failed, result.attempted) == (0, 2)
