"""What holds of every family in the registry."""

import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from autotest_env.mutation.mutant import substitute
from autotest_env.server.episodes import Episode
from autotest_env.server.views import MAX_RESET_BYTES, reset_view
from autotest_env.tasks.family import Task
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.registry import FAMILIES, TaskRequest, Tasks
from autotest_env.tasks.texts import Texts
from tests.tasks.conftest import KEY

SEEDS = range(200)
GOLDEN_DIGESTS = {
    "unit_test_writer": "5c38378105f21589d79367256b7a6ea8f34e2aebfc5258ab8d09a247cc08ab83",
    "coverage_audit": "b645d14525e7b7c87843741b605c2cfdb0826658750ebfcc51520b2de21c0175",
    "regression_audit": "93588ab589918b76a5f0c325c818caf7fd17964f83b120e24acf4d4587fd46e0",
}
"""Of the first 20 tasks; changed bytes need a new version of the family."""

each_family = pytest.mark.parametrize("family", FAMILIES)


def make(tasks: Tasks, family: str, seed: int) -> Task:
    return tasks.generate(TaskRequest(task_id=family, seed=seed), fresh_seed=0)


def secret_of(task: Task) -> Secret:
    assert isinstance(task.secret, Secret)
    return task.secret


def scores(tasks: Tasks, family: str, seeds: list[int]) -> dict[int, float]:
    """Score the oracle's answer on each seed."""
    judge = tasks.family(family)

    def score(seed: int) -> float:
        task = make(tasks, family, seed)
        return judge.judge(task, judge.oracle(task)).score.total

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(seeds, pool.map(score, seeds), strict=True))


@each_family
def test_the_same_seed_gives_the_same_task(tasks: Tasks, family: str) -> None:
    assert make(tasks, family, 17) == make(tasks, family, 17)
    assert make(tasks, family, 17) != make(tasks, family, 18)


@each_family
def test_a_tasks_own_id_recreates_it(tasks: Tasks, family: str) -> None:
    task = make(tasks, family, 17)
    assert task.id == f"{family}-v{tasks.family(family).version}/classic/17"
    assert tasks.generate(TaskRequest(task_id=task.id), fresh_seed=99) == task


@each_family
def test_the_first_20_tasks_are_those_of_this_version(tasks: Tasks, family: str) -> None:
    made = [make(tasks, family, seed) for seed in range(20)]
    text = repr([(task.id, task.shown, secret_of(task).bugs) for task in made])
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN_DIGESTS[family]


@each_family
def test_every_bug_appears_among_200_seeds_about_as_often(tasks: Tasks, family: str) -> None:
    drawn = list(itertools.chain.from_iterable(secret_of(make(tasks, family, seed)).bugs for seed in SEEDS))
    program = secret_of(make(tasks, family, 0)).program
    counts = {place.id: drawn.count(place.id) for place in (*program.bugs, *program.changes)}
    assert min(counts.values()) > len(drawn) / len(counts) / 3, counts


@each_family
def test_the_shown_code_holds_the_drawn_bugs_and_names_none(tasks: Tasks, family: str) -> None:
    for seed in range(20):
        task = make(tasks, family, seed)
        secret = secret_of(task)
        shown = task.shown.files[f"{task.shown.module_name}.py"]
        for bug in secret.program.bugs:
            assert (bug.original not in shown) is (bug.id in secret.bugs)
        everything = "\n".join((repr(task), task.shown.prompt, task.shown.existing_tests, *task.shown.files.values()))
        for place in (*secret.program.bugs, *secret.program.changes):
            assert place.id not in everything
            assert place.summary not in everything


@each_family
def test_what_is_shown_fits_into_a_reset(tasks: Tasks, family: str) -> None:
    for seed in SEEDS:
        observation = reset_view(Episode("an id", make(tasks, family, seed), tasks.family(family)))
        assert len(observation.model_dump_json().encode()) <= MAX_RESET_BYTES


@each_family
def test_the_prompt_is_complete(tasks: Tasks, family: str) -> None:
    shown = make(tasks, family, 42).shown
    for text in (shown.existing_tests, *shown.files.values()):
        assert text.strip() in shown.prompt


@each_family
def test_correct_and_wrong_programs_of_a_task_are_all_different(tasks: Tasks, family: str) -> None:
    for seed in range(20):
        secret = secret_of(make(tasks, family, seed))
        program = secret.program
        chosen = [secret.correct]
        chosen += [secret.wrong(bug, number) for bug in secret.bugs for number in range(1 + secret.siblings(bug))]
        texts = {substitute(program.source, program.sites, dict(each)) for each in chosen}
        assert len(texts) == len(chosen)


@each_family
def test_every_text_of_a_task_can_be_rendered(tasks: Tasks, family: str) -> None:
    secret = secret_of(make(tasks, family, 42))
    texts = Texts(secret.program, KEY)
    for bug in secret.bugs:
        codes = {texts.rendered(secret.wrong(bug, 0), number).code for number in range(0, 26, 5)}
        assert len(codes) == 6


@each_family
def test_the_oracle_earns_exactly_1_on_some_seeds(tasks: Tasks, family: str) -> None:
    found = scores(tasks, family, [0, 1, 2, 3, 42])
    assert set(found.values()) == {1.0}, found


@pytest.mark.heavy
@each_family
def test_the_oracle_earns_exactly_1_on_every_seed(tasks: Tasks, family: str) -> None:
    found = scores(tasks, family, list(SEEDS))
    assert set(found.values()) == {1.0}, {seed: score for seed, score in found.items() if score != 1.0}


HOLLOW = {
    "empty": "",
    "assert True": "def test_it(): assert True",
    "assert False": "def test_it(): assert False",
    "imports only": "import {module}\ndef test_it(): assert {module}",
    "skips": "import pytest\ndef test_it(): pytest.skip('x')",
    "crash": "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)",
    "exit": "import os\nos._exit(0)",
}


@each_family
@pytest.mark.parametrize("case", HOLLOW)
def test_a_hollow_suite_stays_at_the_floor(tasks: Tasks, family: str, case: str) -> None:
    task = make(tasks, family, 42)
    suite = HOLLOW[case].format(module=task.shown.module_name)
    assert tasks.family(family).judge(task, suite).score.total <= 0.05


@each_family
def test_scoring_is_deterministic(tasks: Tasks, family: str) -> None:
    task = make(tasks, family, 7)
    judge = tasks.family(family)
    suite = judge.oracle(task).replace("==", "<=", 3)
    assert judge.judge(task, suite) == judge.judge(task, suite)


@each_family
def test_a_look_at_coverage_tells_of_the_shown_code_alone(tasks: Tasks, family: str) -> None:
    task = make(tasks, family, 42)
    judge = tasks.family(family)
    seen = judge.view_coverage(task, judge.oracle(task))
    assert seen.status == "viewed"
    assert seen.coverage is not None
    assert seen.coverage.percent > 80
    assert (seen.false_alarms, seen.bugs_caught, seen.bugs_total) == (None, None, None)
    assert "passed" in {test.outcome for test in seen.tests}
    assert "failed" in {test.outcome for test in seen.tests}
