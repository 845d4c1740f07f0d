"""Draws of the family, and what guessing earns; tests/tasks/test_families.py has what holds of all families."""

import statistics
from itertools import combinations

import pytest

from autotest_env.tasks.family import Task
from autotest_env.tasks.program import load_program
from autotest_env.tasks.registry import TaskRequest, Tasks

SEEDS = range(200)
GUESSING_SEEDS = range(50)


def make(tasks: Tasks, seed: int) -> Task:
    return tasks.generate(TaskRequest(seed=seed), fresh_seed=0)


def test_every_draw_of_three_bugs_appears_among_200_seeds(tasks: Tasks) -> None:
    drawn = {make(tasks, seed).secret.bugs for seed in SEEDS}  # type: ignore[attr-defined]
    bugs = [bug.id for bug in load_program("order_total").bugs]
    assert len(bugs) >= 6
    assert drawn == set(combinations(bugs, 3))


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_forty_coins_earn_at_most_a_fifth_on_average(tasks: Tasks) -> None:
    family, suite = tasks.family("unit_test_writer"), coins(40, 10)
    scores = [family.judge(make(tasks, seed), suite).score.total for seed in GUESSING_SEEDS]
    assert statistics.mean(scores) <= 0.20
