from dataclasses import fields

import pytest

from autotest_env.errors import GraderFailedError
from autotest_env.models import TestAction
from autotest_env.sandbox.run import SandboxOptions
from autotest_env.sandbox.suite import RunJob, TestOutcome
from autotest_env.server.environment import AutotestEnvironment, Engine
from autotest_env.server.episodes import Ended, Outcome
from autotest_env.server.faults import PassingError
from autotest_env.server.views import (
    MAX_FEEDBACK_BYTES,
    MAX_FEEDBACK_TEXT_BYTES,
    MAX_RESET_BYTES,
    feedback_text,
    reset_view,
    step_view,
)
from autotest_env.tasks.family import Feedback, ShownTest
from autotest_env.tasks.score import Part, Score


@pytest.fixture
def environment(scripted):
    engine = Engine(tasks=scripted.ScriptedTasks(scripted.ScriptedFamily()), layers={"seccomp": "on"})
    return AutotestEnvironment(engine)


def code_of(caught):
    return caught.value.fault.code


def test_the_same_seed_gives_the_same_observation(environment):
    assert environment.reset(seed=3) == environment.reset(seed=3)


def test_without_a_seed_another_task_is_drawn_each_time(environment):
    assert environment.reset().task_id != environment.reset().task_id


def test_a_tasks_own_id_recreates_it(environment):
    first = environment.reset(seed=17)
    assert environment.reset(task_id=first.task_id) == first


def test_a_session_that_was_closed_for_idleness_says_so_and_reset_revives_it(environment):
    environment.reset(seed=3)
    environment.close()
    for _ in range(2):
        with pytest.raises(PassingError, match="idle") as caught:
            environment.step(TestAction(test_code="score=0.5"))
        assert code_of(caught) == "EPISODE_EXPIRED"
        environment.close()
    environment.reset(seed=3)
    assert environment.step(TestAction(test_code="score=0.5")).reward == 0.5


def test_before_a_reset_there_is_no_episode_even_after_close(environment):
    environment.close()
    with pytest.raises(PassingError) as caught:
        environment.state  # noqa: B018
    assert code_of(caught) == "NO_EPISODE"


def test_a_refused_reset_leaves_the_episode_as_it_was(environment):
    environment.reset(seed=3)
    environment.step(TestAction(test_code="score=0.5"))
    before = environment.state
    for bad in ({"seed": -1}, {"task_id": "nothing"}, {"max_attempts": 0}, {"split": "nothing"}):
        with pytest.raises(PassingError):
            environment.reset(**bad)
    assert environment.state == before


def test_metadata_has_the_readme_and_the_layers(environment):
    metadata = environment.get_metadata()
    assert metadata.isolation == {"seccomp": "on"}
    assert metadata.readme_content
    assert metadata.version


def test_state_and_observations_hold_no_secret(environment, scripted):
    shown = [environment.reset(seed=3), environment.step(TestAction(test_code="score=0.5")), environment.state]
    assert not any(scripted.SECRET in part.model_dump_json() for part in shown)
    assert scripted.SECRET not in repr(environment.__dict__)


def outcome(tests=(), message="m", **values):
    feedback = Feedback(status="judged", message=message, tests=tests, false_alarms=1, bugs_caught=0, bugs_total=3)
    return Outcome(reward=0.0, attempts_left=2, steps_left=19, feedback=feedback, **values)


def test_the_feedback_text_counts_and_keeps_its_limit():
    score = Score((Part(name="p", value=0.25, weight=1.0),))
    tests = tuple(ShownTest(name=f"test_{n}", outcome=TestOutcome.FAILED, message="漢" * 900) for n in range(200))
    text = feedback_text(outcome(tests, score=score))
    assert len(text.encode()) <= MAX_FEEDBACK_TEXT_BYTES
    assert "1 false alarm (" in text
    assert "0 of 3 bugs caught." in text
    assert "Score 0.250" in text
    assert "Attempts left: 2. Steps left: 19." in text
    assert text.endswith("(cut: the rest is in feedback)")


@pytest.mark.parametrize("passed", [0, 150, 200])
def test_the_feedback_as_a_whole_has_a_bound_and_keeps_what_did_not_pass(environment, passed):
    environment.reset(seed=3)
    ends = [TestOutcome.PASSED] * passed + [TestOutcome.FAILED] * (200 - passed)
    tests = tuple(
        ShownTest(name=f"test_{n}{'漢' * 300}", outcome=end, message="漢" * 900, line=n, source="é" * 900)
        for n, end in enumerate(ends)
    )
    feedback = step_view(outcome(tests), environment._episode.progress).feedback
    assert 60_000 < len(feedback.model_dump_json().encode()) <= MAX_FEEDBACK_BYTES
    kept = [test.line for test in feedback.tests]
    assert f"{200 - len(kept)} tests are left out" in feedback.message
    failed = list(range(passed, 200))
    first_passed = list(range(len(kept) - len(failed)))
    assert kept == ([*first_passed, *failed] if passed else list(range(len(kept))))


def test_long_messages_are_shortened_before_a_test_is_left_out(environment):
    environment.reset(seed=3)
    tests = tuple(ShownTest(name=f"test_{n}", outcome=TestOutcome.FAILED, message="x" * 600) for n in range(150))
    feedback = step_view(outcome(tests), environment._episode.progress).feedback
    assert (len(feedback.tests), len(feedback.tests[0].message)) == (150, 200)
    assert "left out" not in feedback.message


def test_the_feedback_text_says_that_the_episode_has_ended():
    assert "ended (solved)" in feedback_text(outcome(ended=Ended.SOLVED))


def test_text_written_by_a_suite_cannot_break_the_reply(environment):
    environment.reset(seed=3)
    test = ShownTest(name="test_\ud800\n::x", outcome=TestOutcome.ERROR, message="\udfff" * 5000, line=1, source="\x00")
    view = step_view(outcome((test,), message="\ud83d"), environment._episode.progress)
    assert type(view).model_validate_json(view.model_dump_json()) == view
    assert len(view.feedback.tests[0].message) <= 600


def test_the_published_limits_are_the_engines(environment):
    limits = environment.reset(seed=3, max_attempts=2).limits
    defaults = {field.name: field.default for made in (RunJob, SandboxOptions) for field in fields(made)}
    assert (limits.run_cpu_s, limits.step_wall_s) == (defaults["cpu_s"], defaults["step_wall_s"])
    assert (limits.max_attempts, limits.max_steps) == (2, 20)
    assert (limits.max_bytes, limits.max_test_functions, limits.max_test_cases) == (65536, 40, 200)


def test_a_task_too_large_to_be_shown_is_our_failure(open_episode, scripted):
    class LongWindedFamily(scripted.ScriptedFamily):
        def generate(self, seed):
            task = super().generate(seed)
            object.__setattr__(task.shown, "prompt", "x" * MAX_RESET_BYTES)
            return task

    with pytest.raises(GraderFailedError):
        reset_view(open_episode(family=LongWindedFamily()))
