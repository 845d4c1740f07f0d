"""The score of coverage_audit: bugs caught, statements checked, and a bonus for doing all of it."""

from autotest_env.tasks.judging import Verdicts
from autotest_env.tasks.score import Part, Score

COVERAGE_WEIGHT = 0.25
BUGS_WEIGHT = 0.65
PERFECT_WEIGHT = 0.10
ENOUGH_CHECKED = 0.80
"""Share of the probes that counts as full coverage."""


def score(verdicts: Verdicts | None) -> Score:
    """Return precision^2 (0.25 min(coverage, recall) + 0.65 recall) + 0.10 perfect; None scores 0.

    recall is the mean credit over the buggy methods, or coverage where there are none;
    coverage = min(1, checked / 0.80); perfect means coverage 1, recall 1 and no false alarm.
    """
    factor = coverage = recall = perfect = 0.0
    if verdicts is not None:
        factor = verdicts.precision**2
        coverage = min(1.0, (verdicts.checked or 0.0) / ENOUGH_CHECKED)
        recall = verdicts.mean_credit if verdicts.credits else coverage
        perfect = float(coverage == 1.0 and recall == 1.0 and verdicts.false_alarms == 0)
    return Score(
        (
            Part(name="coverage", value=factor * min(coverage, recall), weight=COVERAGE_WEIGHT),
            Part(name="bugs", value=factor * recall, weight=BUGS_WEIGHT),
            Part(name="perfect", value=perfect, weight=PERFECT_WEIGHT),
        )
    )
