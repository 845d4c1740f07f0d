"""The wire: what an agent sends, what it gets back, what anyone may know of an episode.

Nothing here raises in a validator and `test_code` has no length constraint: a bad submission is judged, scores 0 with a
named status, and the rollout goes on.
"""

from importlib.util import find_spec
from typing import Literal

if find_spec("openenv") is None:
    raise SystemExit("autotest-env is not installed in this Python; in its folder run: python -m pip install -e .")

from openenv.core.env_server.types import Action, Observation, State
from pydantic import BaseModel, ConfigDict, Field

ActionType = Literal["submit_tests", "view_coverage", "done"]


class WireModel(BaseModel):
    """A part of a message; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class TestAction(Action):
    """One action of the agent: hand in a pytest file, look at coverage, or end the episode."""

    __test__ = False

    model_config = ConfigDict(json_schema_extra={"required": ["test_code"]})

    action_type: ActionType = Field(
        default="submit_tests",
        description="submit_tests: run and score test_code, costs an attempt. view_coverage: line coverage of the "
        "shown code by test_code, or by the last submission if empty; costs a step. done: end the episode.",
    )
    test_code: str = Field(
        default="", description="Complete source of one pytest file, at most 64 KiB of UTF-8; more is judged 0."
    )
    notes: str = Field(default="", description="Free text of the agent; ignored by the judge.")


class Limits(WireModel):
    """What a submission and an episode may use."""

    max_attempts: int = Field(description="Submissions that are judged; attempt k is worth 0.9^(k-1) of its score.")
    max_steps: int = Field(description="Steps of any kind before the episode ends.")
    max_bytes: int = Field(description="Largest test_code, in bytes of UTF-8.")
    max_test_functions: int = Field(description="Most test functions in a suite.")
    max_test_cases: int = Field(description="Most test cases, parameter sets counted one by one.")
    run_cpu_s: float = Field(description="CPU seconds the suite may use in one run.")
    all_runs_s: float = Field(
        description="Seconds all runs of a submission may take together, up to 57 of them: CPU time and waiting."
    )
    step_wall_s: float = Field(description="Wall seconds after which judging is given up as our failure.")


class TestOutcomeView(WireModel):
    """One test on the shown code."""

    __test__ = False

    name: str = Field(description="pytest node id without the file.")
    outcome: str = Field(description="passed, failed, error, skipped, xfailed or xpassed.")
    message: str = Field(default="", description="Why it did not pass.")
    line: int | None = Field(default=None, description="1-based line of the submitted file that failed.")
    source: str = Field(default="", description="Text of that line.")


class CoverageView(WireModel):
    """Line coverage of the shown code, as coverage.py counts it."""

    percent: float = Field(description="Covered statements in per cent, 0 to 100.")
    missing_lines: list[int] = Field(description="1-based lines of the shown file that no test executed.")


class FeedbackView(WireModel):
    """What the judge tells. False alarms and caught bugs are counted, never named."""

    status: str = Field(description="judged, or what was wrong with the suite, e.g. syntax_error.")
    message: str = Field(description="The status in a sentence.")
    tests: list[TestOutcomeView] = Field(default_factory=list, description="Each test on the shown code.")
    false_alarms: int | None = Field(
        default=None, description="Test functions that fail, or do not reliably pass, on correct code."
    )
    bugs_caught: int | None = Field(default=None, description="Bugs with full credit.")
    bugs_total: int | None = Field(
        default=None, description="Bugs to catch; testing an intentional change counts as one."
    )
    checked_percent: float | None = Field(
        default=None,
        description="Checked coverage in per cent, 0 to 100: statements whose effect assertions check; where paid.",
    )
    coverage: CoverageView | None = Field(default=None, description="Line coverage of the shown code.")


class RewardPart(WireModel):
    """One term of the score: value times weight."""

    name: str = Field(description="Name of the part, as in the formula of the family.")
    value: float = Field(description="Value in [0, 1].")
    weight: float = Field(description="Weight in [0, 1].")


class TestObservation(Observation):
    """What the agent sees. The task's fields are filled at reset, the judge's fields at a step."""

    __test__ = False

    task_id: str = Field(default="", description="Id of the task; reset(task_id=...) recreates exactly it.")
    family: str = Field(default="", description="Task family, e.g. unit_test_writer.")
    prompt: str = Field(default="", description="The complete task for a model; filled at reset.")
    module_name: str = Field(default="", description="Name under which tests import the code.")
    files: dict[str, str] = Field(default_factory=dict, description="Shown files, name to source; filled at reset.")
    existing_tests: str = Field(default="", description="Tests that come with the code, if any; filled at reset.")
    limits: Limits | None = Field(default=None, description="Attempts, steps, bytes, seconds; filled at reset.")
    attempts_left: int = Field(default=0, description="Submissions that will still be judged.")
    steps_left: int = Field(default=0, description="Steps left in this episode.")
    score: float | None = Field(default=None, description="Score of this submission in [0, 1], before the discount.")
    reward_parts: list[RewardPart] = Field(default_factory=list, description="The terms that add up to the score.")
    feedback: FeedbackView | None = Field(default=None, description="What the judge found; null at reset.")
    feedback_text: str = Field(default="", description="The feedback as text for a model, at most 4 KiB.")
    error: str | None = Field(default=None, description="What was wrong with the action, or null.")


class TestState(State):
    """What anyone may know of an episode."""

    __test__ = False

    task_id: str | None = Field(default=None, description="Id of the task.")
    family: str | None = Field(default=None, description="Task family.")
    seed: int | None = Field(default=None, description="Seed that picked the task.")
    best_score: float = Field(default=0.0, description="Best discounted score so far: the sum of all rewards paid.")
    attempts_left: int = Field(default=0, description="Submissions that will still be judged.")
    steps_left: int = Field(default=0, description="Steps left in this episode.")
    ended: str | None = Field(
        default=None, description="Why the episode ended: solved, attempts, steps, done; null while it runs."
    )
