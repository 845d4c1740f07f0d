import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autotest_env.errors import GraderBusyError
from autotest_env.server.episodes import ActionKind, Ended

SUBMIT, VIEW, DONE = ActionKind.SUBMIT_TESTS, ActionKind.VIEW_COVERAGE, ActionKind.DONE


def test_rewards_sum_to_the_best_discounted_score(open_episode):
    episode = open_episode(max_attempts=5)
    rewards = [episode.step(SUBMIT, f"score={score}").reward for score in (0.2, 0.9, 0.5, 0.95, 1.0)]
    assert rewards == [0.2, 0.61, 0.0, 0.0, 0.0]
    assert sum(rewards) == episode.progress.best_score == 0.81


def test_a_repeated_answer_pays_nothing(open_episode):
    episode = open_episode()
    assert [episode.step(SUBMIT, "score=0.5").reward for _ in range(2)] == [0.5, 0.0]


def test_a_full_score_ends_the_episode(open_episode):
    outcome = open_episode().step(SUBMIT, "score=1.0")
    assert (outcome.reward, outcome.ended) == (1.0, Ended.SOLVED)


def test_a_full_score_at_the_last_attempt_counts_as_solved(open_episode):
    assert open_episode(max_attempts=1).step(SUBMIT, "score=1.0").ended is Ended.SOLVED


def test_a_late_full_score_is_worth_less_but_still_ends_it(open_episode):
    episode = open_episode()
    episode.step(SUBMIT, "score=0.0")
    outcome = episode.step(SUBMIT, "score=1.0")
    assert (outcome.reward, outcome.ended) == (0.9, Ended.SOLVED)


def test_attempts_end_the_episode(open_episode):
    episode = open_episode(max_attempts=2)
    outcomes = [episode.step(SUBMIT, "score=0.1") for _ in range(2)]
    assert [outcome.ended for outcome in outcomes] == [None, Ended.ATTEMPTS]
    assert [outcome.attempts_left for outcome in outcomes] == [1, 0]


def test_twenty_steps_end_the_episode(open_episode):
    episode = open_episode()
    outcomes = [episode.step(VIEW, "") for _ in range(20)]
    assert [outcome.ended for outcome in outcomes] == [None] * 19 + [Ended.STEPS]
    assert [outcome.reward for outcome in outcomes] == [0.0] * 20
    assert episode.progress.attempts_left == 3


def test_done_ends_the_episode_and_says_that_its_code_was_not_judged(open_episode):
    outcome = open_episode().step(DONE, "score=1.0")
    assert (outcome.ended, outcome.reward, outcome.score) == (Ended.DONE, 0.0, None)
    assert "not judged" in outcome.error


def test_a_step_after_the_end_gives_the_final_observation_again_and_says_so(open_episode):
    episode = open_episode()
    final = episode.step(SUBMIT, "score=1.0")
    again = episode.step(SUBMIT, "score=0.7")
    assert (again.score, again.feedback, again.ended) == (final.score, final.feedback, Ended.SOLVED)
    assert again.reward == 0.0
    assert "ended" in again.error
    assert episode.progress.step_count == 1


def test_the_secret_is_let_go_at_the_end(open_episode):
    episode = open_episode()
    assert episode.task.secret is not None
    episode.step(DONE)
    assert episode.task.secret is None


def test_coverage_before_anything_was_submitted_says_what_to_send(open_episode):
    outcome = open_episode().step(VIEW, "")
    assert outcome.feedback is None
    assert outcome.error == "nothing was submitted yet; send test_code with view_coverage"
    assert open_episode().step(VIEW, "x").feedback.message == "1 characters were judged"


def test_coverage_without_code_looks_at_the_last_submission(open_episode, scripted):
    episode = open_episode()
    episode.step(SUBMIT, "score=0.5 and more")
    assert episode.step(VIEW, "").feedback.message == f"{len('score=0.5 and more')} characters were judged"
    assert episode.step(VIEW, "xyz").feedback.message == "3 characters were judged"


def test_when_the_grader_fails_nothing_is_spent(open_episode):
    episode = open_episode()
    before = episode.progress
    for kind in (SUBMIT, VIEW):
        with pytest.raises(GraderBusyError):
            episode.step(kind, "grader_fails", request_id="r")
    assert episode.progress == before
    assert episode.step(SUBMIT, "score=0.5", request_id="r").reward == 0.5


def test_a_repeated_request_gets_the_stored_reply_and_is_not_judged_again(open_episode, scripted):
    family = scripted.ScriptedFamily()
    episode = open_episode(family=family)
    first = episode.step(SUBMIT, "score=0.5", request_id="r")
    episode.step(SUBMIT, "score=0.8", request_id="s")
    assert episode.step(SUBMIT, "score=0.5", request_id="r") == first
    assert family.judged == ["score=0.5", "score=0.8"]


def test_the_last_reply_can_be_repeated_after_the_end(open_episode):
    episode = open_episode()
    final = episode.step(SUBMIT, "score=1.0", request_id="r")
    assert episode.step(SUBMIT, "score=1.0", request_id="r").reward == final.reward == 1.0


def test_a_repeated_request_waits_for_the_first_while_that_still_runs(open_episode, scripted):
    family = scripted.ScriptedFamily()
    episode = open_episode(family=family)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: episode.step(SUBMIT, "score=0.5 wait=0.2", request_id="r"), range(4)))
    assert outcomes == [outcomes[0]] * 4
    assert len(family.judged) == 1


def test_two_steps_at_once_are_taken_one_after_the_other(open_episode):
    episode = open_episode()
    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(lambda _: episode.step(SUBMIT, "score=0.5 wait=0.1"), range(3)))
    assert sorted(outcome.reward for outcome in outcomes) == [0.0, 0.0, 0.5]
    assert sorted(outcome.attempts_left for outcome in outcomes) == [0, 1, 2]


def test_more_steps_at_once_than_may_wait_are_sent_away_and_spend_nothing(open_episode):
    episode = open_episode()

    def step(number):
        try:
            return episode.step(VIEW, f"wait=0.1 {number}")
        except GraderBusyError:
            return None

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(step, range(12)))
    assert outcomes.count(None) == 4
    assert episode.progress.step_count == 8


def test_progress_does_not_wait_for_a_running_step(open_episode):
    episode = open_episode()
    thread = threading.Thread(target=episode.step, args=(SUBMIT, "score=0.5 wait=0.5"))
    thread.start()
    began = time.monotonic()
    assert episode.progress.step_count == 0
    assert time.monotonic() - began < 0.3
    thread.join()
    assert episode.progress.step_count == 1
