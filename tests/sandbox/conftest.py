"""Short ways to run a suite in the real sandbox."""

from collections.abc import Callable, Iterator

import pytest

from autotest_env.sandbox.run import Grading, Sandbox, compile_program
from autotest_env.sandbox.suite import CompiledSuite, Program, RunJob, SuiteResult

SOURCE = '''"""Adds."""


def add(left, right):
    """Return the sum."""
    if left < 0:
        raise ValueError("negative")
    total = left + right
    return total
'''


@pytest.fixture
def grading(sandbox: Sandbox) -> Iterator[Grading]:
    """A turn at the graders."""
    with sandbox.open() as turn:
        yield turn


@pytest.fixture(scope="session")
def program() -> Program:
    """The program under test."""
    return compile_program("adder", SOURCE)


Run = Callable[..., SuiteResult]


@pytest.fixture
def run(grading: Grading, program: Program) -> Run:
    """Run a suite's source against the program, with representations."""

    def run_source(source: str, **options: object) -> SuiteResult:
        suite = grading.compile(source)
        assert isinstance(suite, CompiledSuite), suite
        job = {"program": program, "suite": suite, "represent": True, **options}
        return grading.run([RunJob(**job)])[0]  # type: ignore[arg-type]

    return run_source
