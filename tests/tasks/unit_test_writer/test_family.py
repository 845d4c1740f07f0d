"""Contracts of the family: seeds, draws, secrets, the oracle, and what guessing earns."""

import hashlib
import statistics
from itertools import combinations

import pytest

from autotest_env.tasks.family import Task
from autotest_env.tasks.program import load_program
from autotest_env.tasks.registry import TaskRequest, Tasks

GOLDEN_DIGEST = "5c38378105f21589d79367256b7a6ea8f34e2aebfc5258ab8d09a247cc08ab83"
SEEDS = range(200)
GUESSING_SEEDS = range(50)


def make(tasks: Tasks, seed: int) -> Task:
    return tasks.generate(TaskRequest(seed=seed), fresh_seed=0)


def test_the_same_seed_gives_the_same_task(tasks: Tasks) -> None:
    assert make(tasks, 17) == make(tasks, 17)
    assert make(tasks, 17) != make(tasks, 18)


def test_a_tasks_own_id_recreates_it(tasks: Tasks) -> None:
    task = make(tasks, 17)
    assert task.id == "unit_test_writer-v1/classic/17"
    assert tasks.generate(TaskRequest(task_id=task.id), fresh_seed=99) == task


def test_every_draw_of_three_bugs_appears_among_200_seeds(tasks: Tasks) -> None:
    drawn = {make(tasks, seed).secret.bugs for seed in SEEDS}  # type: ignore[attr-defined]
    bugs = [bug.id for bug in load_program("order_total").bugs]
    assert len(bugs) >= 6
    assert drawn == set(combinations(bugs, 3))


def test_the_shown_code_holds_the_three_bugs_and_nothing_else_is_shown(tasks: Tasks) -> None:
    program = load_program("order_total")
    for seed in range(20):
        task = make(tasks, seed)
        shown = task.shown.files["order_module.py"]
        for bug in program.bugs:
            held = bug.id in task.secret.bugs  # type: ignore[attr-defined]
            assert (bug.original not in shown) is held
        public = repr(task) + task.shown.prompt
        for bug in program.bugs:
            assert bug.id not in public
            assert bug.summary not in public
        assert len(task.shown.prompt.encode()) + len(shown.encode()) < 20 << 10


def test_the_first_20_tasks_are_those_of_this_version(tasks: Tasks) -> None:
    """Changed bytes need a new version of the family."""
    made = [make(tasks, seed) for seed in range(20)]
    text = repr([(task.id, task.shown, task.secret.bugs) for task in made])  # type: ignore[attr-defined]
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN_DIGEST


@pytest.mark.heavy
def test_the_oracle_earns_exactly_1_on_every_seed(tasks: Tasks) -> None:
    family, oracle = tasks.family("unit_test_writer"), load_program("order_total").oracle_suite
    scores = {seed: family.judge(make(tasks, seed), oracle).score.total for seed in SEEDS}
    assert set(scores.values()) == {1.0}, {seed: score for seed, score in scores.items() if score != 1.0}


def test_the_oracle_earns_exactly_1_on_every_draw(tasks: Tasks) -> None:
    family, oracle = tasks.family("unit_test_writer"), load_program("order_total").oracle_suite
    by_draw = {make(tasks, seed).secret.bugs: seed for seed in SEEDS}  # type: ignore[attr-defined]
    scores = {seed: family.judge(make(tasks, seed), oracle).score.total for seed in by_draw.values()}
    assert set(scores.values()) == {1.0}, scores


def coins(count: int, modulus: int) -> str:
    """Return tests that pass by chance on what the program returns for one input each."""
    lines = ["import hashlib", "from order_module import calculate_order_total as total"]
    for i in range(count):
        items = f"[({3.37 * (i + 1):.2f}, {i % 5 + 1}), ({1.13 * (i + 2):.2f}, {i % 3 + 1})]"
        call = f"total({items}, {5 + 3 * i % 40}, {4 + 7 * i % 30})"
        lines.append(f"def test_{i}(): assert int(hashlib.md5(repr({call}).encode()).hexdigest(), 16) % {modulus} != 0")
    return "\n".join(lines)


def test_forty_coins_earn_at_most_a_fifth_on_average(tasks: Tasks) -> None:
    family, suite = tasks.family("unit_test_writer"), coins(40, 10)
    scores = [family.judge(make(tasks, seed), suite).score.total for seed in GUESSING_SEEDS]
    assert statistics.mean(scores) <= 0.20
