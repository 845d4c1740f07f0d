"""One task, with everything that a policy may be given to write its answer from."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from autotest_env.benchmarks.calibration.calls import Outcome, Script, outcome, scripts
from autotest_env.mutation.mutant import substitute
from autotest_env.sandbox.run import Sandbox, compile_program
from autotest_env.sandbox.suite import CompiledSuite, FunctionId, RunJob, TestOutcome
from autotest_env.tasks.family import Family, Task
from autotest_env.tasks.judged import Chosen, Secret
from autotest_env.tasks.regression_audit.generate import names_of_tests, only_tests


@dataclass(frozen=True)
class Subject:
    """A task under measurement. Only some policies may look at `answer` and `secret`; each says so in its words."""

    family: Family
    task: Task
    sandbox: Sandbox
    rng: random.Random

    @property
    def secret(self) -> Secret:
        """What is judged."""
        assert isinstance(self.task.secret, Secret)
        return self.task.secret

    @property
    def module(self) -> str:
        """Name of the module under test."""
        return self.task.shown.module_name

    @property
    def shown(self) -> str:
        """The shown code, bugs and all."""
        return self.secret.shown_source

    @property
    def correct(self) -> str:
        """The correct code of this task."""
        return self._text(self.secret.correct)

    @property
    def head(self) -> str:
        """Imports of everything public."""
        return f"import pytest\nfrom {self.module} import {', '.join(self.secret.program.public_names)}\n\n\n"

    @cached_property
    def answer(self) -> str:
        """The oracle's answer."""
        return self.family.oracle(self.task)

    @property
    def labels(self) -> str:
        """The comments above the oracle's tests: the right labels, in the family that asks for them."""
        lines = self.answer.splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith(("# FAILING_TESTS:", "# CLASSIFICATION:")))

    def scripts(self, *, narrow: bool = False) -> Iterator[Script]:
        """Yield plausible calls, without end."""
        return scripts(self.module, self.rng, narrow=narrow)

    def run_shown(self, script: Script) -> Outcome:
        """Return what the shown code does."""
        return outcome(self.shown, script)

    def run_correct(self, script: Script) -> Outcome:
        """Return what the correct code does."""
        return outcome(self.correct, script)

    @property
    def names(self) -> list[FunctionId]:
        """The oracle's tests, in order."""
        return names_of_tests(self.answer)

    def exact_tests(self) -> list[FunctionId]:
        """Return, bug by bug, the oracle's first test that fails on the bug and on all of its siblings."""
        wrong = {
            bug: [self.secret.wrong(bug, number) for number in range(1 + self.secret.siblings(bug))]
            for bug in self.secret.bugs
        }
        texts = [text for texts in wrong.values() for text in texts]
        failing = dict(zip(map(_key, texts), self._failing(texts), strict=True))
        found = []
        for bug, chosen in wrong.items():
            exact = frozenset.intersection(*(failing[_key(each)] for each in chosen))
            assert exact, f"no single test of the oracle's notices all of {bug}"
            found.append(next(name for name in self.names if name in exact))
        return list(dict.fromkeys(found))

    def only(self, names: list[FunctionId]) -> str:
        """Return the oracle's tests of these names, without labels."""
        return only_tests(self.answer.removeprefix(self.labels), names)

    def _failing(self, chosen: list[Chosen]) -> list[frozenset[FunctionId]]:
        """Return which of the oracle's tests fail on each text."""
        with self.sandbox.open() as grading:
            suite = grading.compile(self.answer)
            assert isinstance(suite, CompiledSuite)
            jobs = [RunJob(program=compile_program(self.module, self._text(each)), suite=suite) for each in chosen]
            results = grading.run(jobs)
        return [
            frozenset(test.function for test in result.tests if test.outcome is TestOutcome.FAILED)
            for result in results
        ]

    def _text(self, chosen: Chosen) -> str:
        program = self.secret.program
        return substitute(program.source, program.sites, dict(chosen))


def _key(chosen: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(chosen.items()))
