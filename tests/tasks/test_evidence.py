"""Which runs are made and in which order: nobody can know a place that holds the correct program."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from autotest_env.mutation.probes import has_neutral
from autotest_env.mutation.rendering import catalogue
from autotest_env.sandbox.suite import CompiledSuite, RunEnd, RunJob, SuiteResult, TestOutcome, TestReport
from autotest_env.tasks.coverage_audit import generate as coverage_audit
from autotest_env.tasks.evidence import DECOYS, NEUTRALS, collect, draw
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.program import load_program
from autotest_env.tasks.texts import Texts
from autotest_env.tasks.unit_test_writer import generate

KEY = b"key"
PROGRAM = load_program("order_total")
TEXTS = Texts(PROGRAM, KEY)
SECRET = generate.generate(PROGRAM, KEY, 42).secret
assert isinstance(SECRET, Secret)
SUITE = CompiledSuite(code=b"", digest="")
CORRECT = {TEXTS.plain({}).code} | {TEXTS.rendered({}, each.number).code for each in catalogue()}
DRAWS = 200


class PerfectSuite:
    """Stands for the graders: one test that passes on correct programs and fails on all others; remembers the runs."""

    is_used_up = False

    def __init__(self, end: RunEnd = RunEnd.COMPLETED) -> None:
        self.steps: list[list[RunJob]] = []
        self._end = end

    def run(self, jobs: Sequence[RunJob]) -> list[SuiteResult]:
        self.steps.append(list(jobs))
        return [self._result(job) for job in jobs]

    def _result(self, job: RunJob) -> SuiteResult:
        outcome = TestOutcome.PASSED if job.program.code in CORRECT else TestOutcome.FAILED
        report = TestReport(id="test_it", outcome=outcome, asserted=outcome is TestOutcome.FAILED)
        return SuiteResult(end=self._end, tests=(report,), cpu_s=0.01)


def steps(seed: int, end: RunEnd = RunEnd.COMPLETED) -> list[list[RunJob]]:
    graders = PerfectSuite(end)
    collect(SECRET, SUITE, graders, TEXTS, random.Random(seed))  # type: ignore[arg-type]
    return graders.steps


def test_only_what_a_suite_can_recognise_runs_before_the_mixed_steps() -> None:
    shown, null = steps(0)[0]
    assert shown.represent
    assert null.program.code == TEXTS.null.code


def test_the_correct_program_may_be_any_of_the_first_seven() -> None:
    places = Counter[int]()
    for seed in range(DRAWS):
        step = steps(seed)[1]
        correct = [place for place, job in enumerate(step) if job.program.code in CORRECT]
        assert (len(step), len(correct)) == (7, 1)
        places[correct[0]] += 1
    assert set(places) == set(range(7))
    assert max(places.values()) < DRAWS / 7 * 1.7


def test_the_last_step_mixes_decoys_and_the_reference_with_wrong_programs() -> None:
    last_is_correct = 0
    for seed in range(DRAWS):
        step = steps(seed)[2]
        assert sum(job.program.code in CORRECT for job in step) == DECOYS + 1
        assert len(step) == DECOYS + 1 + 3 * 3
        last_is_correct += step[-1].program.code in CORRECT
    assert DRAWS * 0.2 < last_is_correct < DRAWS * 0.6


def test_runs_that_cannot_change_the_score_are_not_made() -> None:
    assert len(steps(0, RunEnd.CPU_LIMIT)) == 1
    assert len(steps(0, RunEnd.COLLECTION_ERROR)) == 2


def test_hidden_runs_are_alike_but_for_the_program() -> None:
    for step in steps(0)[1:]:
        assert len({(job.suite, job.cpu_s, job.represent, job.cover) for job in step}) == 1


@pytest.mark.parametrize("seed", range(30))
def test_every_draw_has_chaff_and_a_rendering_free_of_the_references_tokens(seed: int) -> None:
    drawn = draw(SECRET, random.Random(seed))
    kinds = {each.number: each for each in catalogue()}
    assert len(set(drawn.decoys)) == DECOYS
    assert any(kinds[number].chaff for number in drawn.decoys)
    assert any(kinds[number].token_free for number in drawn.decoys)
    for first, second in drawn.bugs.values():
        assert (kinds[first].chaff, kinds[second].chaff) == (False, True)


@pytest.mark.parametrize("seed", range(30))
def test_some_of_the_probes_also_run_in_neutral_form(seed: int) -> None:
    secret = coverage_audit.generate(load_program("inventory"), KEY, seed).secret
    assert isinstance(secret, Secret)
    drawn = draw(secret, random.Random(seed))
    assert len(set(drawn.neutrals)) == NEUTRALS
    assert set(drawn.neutrals) <= set(filter(has_neutral, drawn.probes))
