"""The score of regression_audit: regressions caught, the changed rule tested, and failing tests told apart."""

from statistics import mean

from autotest_env.tasks.judging import Verdicts
from autotest_env.tasks.score import Part, Score

REGRESSIONS_WEIGHT = 0.40
UPDATED_WEIGHT = 0.20
TRIAGE_WEIGHT = 0.40


def score(verdicts: Verdicts | None, triage: float) -> Score:
    """Return precision^2 (0.40 regressions + 0.20 updated + 0.40 triage g); None scores 0.

    The last credit is that of the intentional change, the others those of the regressions;
    g = (2 regressions + updated) / 3, so that labels without tests are worth nothing.
    """
    factor = regressions = updated = 0.0
    if verdicts is not None:
        factor = verdicts.precision**2
        regressions, updated = mean(verdicts.credits[:-1]), verdicts.credits[-1]
    shown_by_tests = (2 * regressions + updated) / 3
    return Score(
        (
            Part(name="regressions", value=factor * regressions, weight=REGRESSIONS_WEIGHT),
            Part(name="updated", value=factor * updated, weight=UPDATED_WEIGHT),
            Part(name="triage", value=factor * triage * shown_by_tests, weight=TRIAGE_WEIGHT),
        )
    )
