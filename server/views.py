"""From what the engine knows to what the wire shows."""

from autotest_env.errors import GraderFailedError
from autotest_env.models import (
    CoverageView,
    FeedbackView,
    Limits,
    RewardPart,
    TestObservation,
    TestOutcomeView,
    TestState,
)
from autotest_env.sandbox.suite import (
    MAX_CASES,
    MAX_FUNCTIONS,
    MAX_SUITE_BYTES,
    RUN_CPU_S,
    STEP_OWN_S,
    STEP_WALL_S,
    TestOutcome,
)
from autotest_env.server.episodes import MAX_STEPS, Episode, Outcome, Progress
from autotest_env.tasks.family import Feedback, ShownTest

MAX_RESET_BYTES = 24 << 10
MAX_FEEDBACK_TEXT_BYTES = 4 << 10
MAX_FEEDBACK_BYTES = 64 << 10
MAX_MESSAGE_CHARACTERS = 600
_SHORTER = (MAX_MESSAGE_CHARACTERS, 200, 60)
"""Caps of a test's message and source, tried in turn until the feedback fits."""
MAX_NAME_CHARACTERS = 200

_CUT = "\n(cut: the rest is in feedback)"


def reset_view(episode: Episode) -> TestObservation:
    """Show an episode's task. Raises GraderFailedError when it is too large to be shown, which is our failure."""
    task, progress = episode.task, episode.opening
    observation = TestObservation(
        task_id=task.id,
        family=task.family,
        prompt=task.shown.prompt,
        module_name=task.shown.module_name,
        files=dict(task.shown.files),
        existing_tests=task.shown.existing_tests,
        limits=Limits(
            max_attempts=progress.attempts_left,
            max_steps=MAX_STEPS,
            max_bytes=MAX_SUITE_BYTES,
            max_test_functions=MAX_FUNCTIONS,
            max_test_cases=MAX_CASES,
            run_cpu_s=RUN_CPU_S,
            all_runs_s=STEP_OWN_S,
            step_wall_s=STEP_WALL_S,
        ),
        attempts_left=progress.attempts_left,
        steps_left=progress.steps_left,
        done=False,
        reward=None,
    )
    if len(observation.model_dump_json().encode()) > MAX_RESET_BYTES:
        raise GraderFailedError("this task is larger than an observation may be; choose another one")
    return observation


def step_view(outcome: Outcome, progress: Progress) -> TestObservation:
    """Show what a step gave."""
    score = outcome.score
    return TestObservation(
        task_id=progress.task_id,
        family=progress.family,
        attempts_left=outcome.attempts_left,
        steps_left=outcome.steps_left,
        score=None if score is None else score.total,
        reward_parts=[]
        if score is None
        else [RewardPart(name=part.name, value=part.value, weight=part.weight) for part in score.parts],
        feedback=None if outcome.feedback is None else _feedback_view(outcome.feedback),
        feedback_text=feedback_text(outcome),
        error=outcome.error,
        done=outcome.ended is not None,
        reward=outcome.reward,
    )


def state_view(progress: Progress) -> TestState:
    """Show how far an episode is."""
    return TestState(
        episode_id=progress.episode_id,
        step_count=progress.step_count,
        task_id=progress.task_id,
        family=progress.family,
        seed=progress.seed,
        best_score=progress.best_score,
        attempts_left=progress.attempts_left,
        steps_left=progress.steps_left,
        ended=None if progress.ended is None else progress.ended.value,
    )


def feedback_text(outcome: Outcome) -> str:
    """Write the feedback for a model; at most MAX_FEEDBACK_TEXT_BYTES of UTF-8."""
    lines = [] if outcome.feedback is None else _feedback_lines(outcome.feedback)
    if outcome.score is not None:
        lines.append(f"Score {outcome.score.total:.3f}; this step pays {outcome.reward:.3f}.")
    if outcome.error is not None:
        lines.append(f"Note: {outcome.error}.")
    if outcome.ended is not None:
        lines.append(f"The episode has ended ({outcome.ended}).")
    else:
        lines.append(f"Attempts left: {outcome.attempts_left}. Steps left: {outcome.steps_left}.")
    if outcome.feedback is not None and outcome.feedback.tests:
        lines.append("Tests on the shown code:")
        lines.extend(_test_line(test) for test in outcome.feedback.tests)
    return _fit("\n".join(lines))


def _feedback_lines(feedback: Feedback) -> list[str]:
    lines = [f"{feedback.status}: {_shown(feedback.message)}"]
    if feedback.false_alarms is not None:
        alarms = feedback.false_alarms
        lines.append(f"{alarms} false alarm{'' if alarms == 1 else 's'} (tests that correct code does not pass).")
    if feedback.bugs_caught is not None:
        lines.append(f"{feedback.bugs_caught} of {feedback.bugs_total} bugs caught.")
    if feedback.checked_percent is not None:
        lines.append(f"Checked coverage of the correct code: {feedback.checked_percent:.1f} %.")
    if feedback.coverage is not None:
        missing = ", ".join(map(str, feedback.coverage.missing_lines)) or "none"
        lines.append(f"Line coverage of the shown code: {feedback.coverage.percent:.1f} %; lines missing: {missing}.")
    return lines


def _test_line(test: ShownTest) -> str:
    name = _shown(test.name, MAX_NAME_CHARACTERS).replace("\n", "\\n")
    where = "" if test.line is None else f" (line {test.line}: {_shown(test.source).strip()})"
    message = "" if not test.message else f": {_shown(test.message)}"
    return f"- {name} {test.outcome}{where}{message}"


def _feedback_view(feedback: Feedback) -> FeedbackView:
    """Show feedback in at most MAX_FEEDBACK_BYTES: shortened first, then without passed tests, the last ones first."""
    for most in _SHORTER:
        view = _whole_view(feedback, most)
        surplus = len(view.model_dump_json().encode()) - MAX_FEEDBACK_BYTES
        if surplus <= 0:
            return view
    surplus += len(_left_out(len(view.tests)))
    last_first = list(enumerate(view.tests))[::-1]
    dropped: set[int] = set()
    for number, test in sorted(last_first, key=lambda entry: entry[1].outcome != TestOutcome.PASSED):
        if surplus > 0:
            surplus -= len(test.model_dump_json().encode()) + 1
            dropped.add(number)
    kept = [test for number, test in enumerate(view.tests) if number not in dropped]
    return view.model_copy(update={"tests": kept, "message": view.message + _left_out(len(dropped))})


def _left_out(count: int) -> str:
    return f" (too long to be shown whole: {count} tests are left out, passed ones first)"


def _whole_view(feedback: Feedback, most: int) -> FeedbackView:
    coverage = feedback.coverage
    return FeedbackView(
        status=feedback.status,
        message=_shown(feedback.message),
        tests=[_test_view(test, most) for test in feedback.tests],
        false_alarms=feedback.false_alarms,
        bugs_caught=feedback.bugs_caught,
        bugs_total=feedback.bugs_total,
        checked_percent=feedback.checked_percent,
        coverage=None
        if coverage is None
        else CoverageView(percent=coverage.percent, missing_lines=list(coverage.missing_lines)),
    )


def _test_view(test: ShownTest, most: int) -> TestOutcomeView:
    return TestOutcomeView(
        name=_shown(test.name, MAX_NAME_CHARACTERS),
        outcome=test.outcome.value,
        message=_shown(test.message, most),
        line=test.line,
        source=_shown(test.source, most),
    )


def _shown(text: str, most: int = MAX_MESSAGE_CHARACTERS) -> str:
    """Make text that a suite may have written fit for JSON: halves of surrogate pairs escaped, length capped."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def _fit(text: str) -> str:
    raw = text.encode()
    if len(raw) <= MAX_FEEDBACK_TEXT_BYTES:
        return text
    return raw[: MAX_FEEDBACK_TEXT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
