"""What hollow, guessing and honest policies earn: the table of the README, and a small sample measured anew."""

import itertools
import re
import statistics
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from autotest_env.benchmarks.calibration.measure import Kept, Measurement, rendered, violations
from autotest_env.benchmarks.calibration.policies import EMBEDDED, ORACLE, WEAK, Kind, Policy, all_policies
from autotest_env.benchmarks.calibration.subject import Subject
from autotest_env.sandbox.run import Sandbox
from autotest_env.sandbox.suite import MAX_SUITE_BYTES
from autotest_env.server.settings import PUBLIC_SECRET
from autotest_env.tasks.registry import FAMILIES, TaskRequest, Tasks

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = [sys.executable, str(ROOT / "scripts/calibrate")]
POLICIES = {policy.name: policy for policy in all_policies()}
SAMPLED_GUESSERS = ("12 coins, p = 1/5", "20 coins, p = 1/3", "40 coins, p = 1/2")

each_family = pytest.mark.parametrize("family", FAMILIES)
quick_families = pytest.mark.parametrize(
    "family", [pytest.param(name, marks=[pytest.mark.heavy] * (name == "coverage_audit")) for name in FAMILIES]
)


@pytest.fixture(scope="module")
def place(sandbox: Sandbox) -> Measurement:
    return Measurement(tasks=Tasks(sandbox, PUBLIC_SECRET), sandbox=sandbox, kept=Kept(None), graders=2)


def table_of_the_readme() -> dict[str, list[str]]:
    """Return the cells of each policy, without its kind and name."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("<!-- calibration:start -->")[2].partition("<!-- calibration:end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if "|" in line]
    assert rows[0][2:] == [f"`{family}`" for family in FAMILIES]
    return {row[1]: row[2:] for row in rows[2:]}


def numbers(cells: list[str]) -> list[list[float]]:
    """Return the numbers of each cell: a mean, and for hollow policies the most."""
    return [[float(text) for text in re.findall(r"\d\.\d{3}", cell)] for cell in cells]


def test_the_readme_has_every_policy_and_family() -> None:
    cells = table_of_the_readme()
    assert list(cells) == list(POLICIES)
    for name, policy in POLICIES.items():
        assert [bool(found) for found in numbers(cells[name])] == [policy.plays(family) for family in FAMILIES]


def test_the_numbers_of_the_readme_keep_the_bounds() -> None:
    """Cells hold means; violations wants scores, and a mean is one."""
    cells = table_of_the_readme()
    scores = {
        (name, family): found
        for name in POLICIES
        for family, found in zip(FAMILIES, numbers(cells[name]), strict=True)
        if found
    }
    assert violations(all_policies(), tuple(FAMILIES), scores) == []


@each_family
def test_hollow_suites_stay_at_the_floor(place: Measurement, family: str) -> None:
    for policy in all_policies():
        if policy.kind is Kind.HOLLOW and policy.plays(family):
            assert place.scores(policy, family, range(1))[0] <= 0.05, policy.name


@quick_families
def test_a_few_right_tests_earn_more_than_guessing_and_the_oracle_all(place: Measurement, family: str) -> None:
    guessed = [place.scores(POLICIES[name], family, range(3)) for name in SAMPLED_GUESSERS]
    weak = place.scores(POLICIES[WEAK], family, range(1))
    assert 0.0 < statistics.mean(itertools.chain.from_iterable(guessed)) <= 0.20 < min(weak)
    assert max(weak) < 1.0
    assert place.scores(POLICIES[ORACLE], family, range(1)) == [1.0]


@each_family
def test_forty_coins_fit_into_a_submission(place: Measurement, family: str) -> None:
    for seed in range(50):
        task = place.tasks.generate(TaskRequest(task_id=family, seed=seed), 0)
        subject = Subject(place.tasks.family(family), task, place.sandbox, Random(seed))
        answer = POLICIES["40 coins, p = 1/8"].write(subject)
        assert answer.count("def test_") == 40
        assert len(answer.encode()) <= MAX_SUITE_BYTES, f"seed {seed}"


def test_a_guess_that_is_not_judged_is_an_error_and_no_score(place: Measurement) -> None:
    nonsense = Policy(name="nonsense", kind=Kind.GUESSING, write=lambda subject: "nonsense =")
    with pytest.raises(ValueError, match="was not judged"):
        place.scores(nonsense, "unit_test_writer", [0])


def test_an_answer_is_written_anew_the_same(place: Measurement) -> None:
    assert place.scores(POLICIES["12 coins, p = 1/3"], "unit_test_writer", [7]) == place.scores(
        POLICIES["12 coins, p = 1/3"], "unit_test_writer", [7]
    )


def test_kept_scores_are_not_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    assert Kept(path).score("a task", "an answer", lambda: 0.25) == 0.25
    again = Kept(path)
    assert again.score("a task", "an answer", lambda: 0.5) == 0.25
    assert again.score("a task", "another answer", lambda: 0.5) == 0.5
    assert again.score("another task", "an answer", lambda: 0.75) == 0.75


def named(name: str, kind: Kind) -> Policy:
    return Policy(name=name, kind=kind, write=lambda subject: "")


BOUNDS = {
    "a hollow suite on one seed": ([0.0, 0.06], [0.1], [0.4], [0.5], [1.0]),
    "guessing on average": ([0.0], [0.1, 0.4], [0.4], [0.5], [1.0]),
    "honest tests below guessing": ([0.0], [0.1], [0.05], [0.5], [1.0]),
    "the baseline below guessing": ([0.0], [0.1], [0.4], [0.1], [1.0]),
    "the baseline as good as the oracle": ([0.0], [0.1], [0.4], [1.0], [1.0]),
    "an oracle that misses a seed": ([0.0], [0.1], [0.4], [0.5], [1.0, 0.99]),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_a_broken_bound_is_named(case: str) -> None:
    policies = [
        named("nothing", Kind.HOLLOW),
        named("coins", Kind.GUESSING),
        *(named(name, Kind.HONEST) for name in (WEAK, EMBEDDED, ORACLE)),
    ]
    scores = {(policy.name, "a family"): found for policy, found in zip(policies, BOUNDS[case], strict=True)}
    assert len(violations(policies, ["a family"], scores)) == 1
    assert "| hollow | nothing |" in rendered(policies, ["a family"], scores)


def test_an_unknown_policy_is_refused() -> None:
    done = subprocess.run([*SCRIPT, "--policy", "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nonsense" in done.stderr


@pytest.mark.heavy
def test_the_readme_says_what_the_policies_earn() -> None:
    done = subprocess.run([*SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
