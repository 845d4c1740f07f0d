"""Every program proves its bugs, and its oracle suite catches each of them."""

import ast
import doctest
import itertools
import subprocess
import sys
import types
from functools import cache

import pytest

from autotest_env.mutation.mutant import substitute
from autotest_env.mutation.null import null_program
from autotest_env.mutation.rendering import RENDERINGS, render
from autotest_env.tasks.program import load_program, run_witness

PROGRAMS = {name: load_program(name) for name in ("order_total", "inventory")}
BUGS = tuple((name, bug.id) for name, program in PROGRAMS.items() for bug in program.bugs)


def _failing(program, text):
    """The oracle's tests that do not pass on a text."""
    module = types.ModuleType(program.module)
    exec(text, module.__dict__)
    suite: dict[str, object] = {}
    assert program.module not in sys.modules
    sys.modules[program.module] = module
    try:
        exec(_compiled(program.oracle_suite), suite)
    finally:
        del sys.modules[program.module]
    return {name for name, test in suite.items() if name.startswith("test_") and not _passes(test)}


@cache
def _compiled(suite):
    return compile(suite, "<suite>", "exec")


def _passes(test):
    parameters = [mark.args[1] for mark in getattr(test, "pytestmark", ())] or [[()]]
    try:
        for arguments in itertools.chain.from_iterable(parameters):
            test(*(arguments if isinstance(arguments, tuple) else (arguments,)))
    except (Exception, pytest.fail.Exception):  # noqa: BLE001  whatever a program raises fails its test
        return False
    return True


def _variant(program, bug, alternative):
    return substitute(program.source, program.sites, program.variant(bug, alternative))


def _seen(program, text, bug):
    return _failing(program, text), run_witness(text, bug.witness)


@cache
def _plainly_seen(name, bug, alternative):
    program = PROGRAMS[name]
    return _seen(program, _variant(program, bug, alternative), program.bug(bug))


def _alternatives(program, bug):
    return range(1, 2 + len(program.bug(bug).siblings))


@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_the_witness_tells_reference_bug_and_siblings_apart(name, bug):
    program = PROGRAMS[name]
    witness = program.bug(bug).witness
    outcomes = [run_witness(program.source, witness)]
    outcomes += [
        run_witness(_variant(program, bug, alternative), witness) for alternative in _alternatives(program, bug)
    ]
    assert len(set(outcomes)) == len(outcomes)
    raising = [any(outcome.startswith("raises") for outcome in lines) for lines in outcomes]
    assert raising[0] or sum(raising) <= 1


@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_one_oracle_test_fails_on_the_bug_and_on_all_its_siblings(name, bug):
    program = PROGRAMS[name]
    failing = [_failing(program, _variant(program, bug, number)) for number in _alternatives(program, bug)]
    assert set.intersection(*failing)


def _check_rendered(name, bug, alternative, number):
    program = PROGRAMS[name]
    text = render(program.source, program.sites, program.variant(bug, alternative), number, b"key")
    assert _seen(program, text, program.bug(bug)) == _plainly_seen(name, bug, alternative)


@pytest.mark.parametrize("number", range(RENDERINGS))
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_oracle_passes_on_every_rendering_and_catches_every_bug_in_it(name, number):
    program = PROGRAMS[name]
    assert _failing(program, render(program.source, program.sites, {}, number, b"key")) == set()
    for bug in program.bugs:
        _check_rendered(name, bug.id, 1, number)


@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_every_sibling_is_the_same_in_renderings_that_take_turns(name, bug):
    siblings = _alternatives(PROGRAMS[name], bug)[1:]
    for number in range(RENDERINGS):
        _check_rendered(name, bug, siblings[number % len(siblings)], number)


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_every_sibling_is_the_same_in_every_rendering(name, bug):
    for number in range(RENDERINGS):
        for alternative in _alternatives(PROGRAMS[name], bug):
            _check_rendered(name, bug, alternative, number)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_oracle_test_passes_on_the_null_program(name):
    program = PROGRAMS[name]
    tests = {node.name for node in ast.parse(program.oracle_suite).body if isinstance(node, ast.FunctionDef)}
    assert _failing(program, null_program(program.source)) == {test for test in tests if test.startswith("test_")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_oracle_is_a_real_pytest_file(name, tmp_path):
    program = PROGRAMS[name]
    (tmp_path / f"{program.module}.py").write_text(program.source)
    (tmp_path / "test_oracle.py").write_text(program.oracle_suite)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command += ["--rootdir", str(tmp_path), "test_oracle.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_documented_examples_are_right(name):
    program = PROGRAMS[name]
    module = types.ModuleType(program.module)
    exec(program.source, module.__dict__)
    found = doctest.DocTestFinder().find(module, program.module, module=False, globs=module.__dict__)
    examples = [group for group in found if group.examples]
    assert examples
    for group in examples:
        assert doctest.DocTestRunner().run(group).failed == 0
