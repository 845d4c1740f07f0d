"""The score of unit_test_writer: 0.05 for any asserting test, 0.95 for bugs caught without false alarms."""

from autotest_env.tasks.judging import Verdicts
from autotest_env.tasks.score import Part, Score

TESTS_WEIGHT = 0.05
BUGS_WEIGHT = 0.95


def score(verdicts: Verdicts | None) -> Score:
    """Return 0.05 [U >= 1] + 0.95 precision^2 mean credit; None, a suite that failed as a whole, scores 0."""
    tests = float(verdicts is not None and verdicts.useful >= 1)
    bugs = 0.0 if verdicts is None else verdicts.precision**2 * verdicts.mean_credit
    return Score(
        (
            Part(name="tests", value=tests, weight=TESTS_WEIGHT),
            Part(name="bugs", value=bugs, weight=BUGS_WEIGHT),
        )
    )
