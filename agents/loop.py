"""One episode: observe, act, log, until it is done."""

from collections.abc import Mapping
from typing import Any, Protocol

from openenv.core.client_types import StepResult

from autotest_env.agents.journal import EpisodeLog, StepRecord
from autotest_env.agents.policies import Move, Policy
from autotest_env.models import TestAction, TestObservation


class Env(Protocol):
    """What the loop needs of an environment; AutoTestEnvClient is one."""

    def reset(self, **params: Any) -> StepResult[TestObservation]:
        """Begin an episode."""
        ...

    def step(self, action: TestAction) -> StepResult[TestObservation]:
        """Send one action."""
        ...


def play(env: Env, policy: Policy, params: Mapping[str, Any], log: EpisodeLog) -> None:
    """Play one episode and log each step right after it; whatever the environment raises goes through."""
    log.messages = policy.messages
    observation = env.reset(**params).observation
    log.task_id = observation.task_id
    while not observation.done:
        move = policy.act(observation)
        try:
            observation = env.step(TestAction(action_type=move.action_type, test_code=move.test_code)).observation
        except Exception as error:  # logged as this step, and raised again
            log.step(_lost(move, error))
            raise
        log.step(_made(move, observation))


def _made(move: Move, observation: TestObservation) -> StepRecord:
    return StepRecord(
        action_type=move.action_type,
        test_code=move.test_code,
        reward=float(observation.reward or 0.0),
        done=observation.done,
        error=move.error or observation.error,
        score=observation.score,
        reward_parts=tuple(part.model_dump() for part in observation.reward_parts),
        feedback_text=observation.feedback_text,
    )


def _lost(move: Move, error: Exception) -> StepRecord:
    text = move.error or str(error) or type(error).__name__
    return StepRecord(action_type=move.action_type, test_code=move.test_code, reward=0.0, done=True, error=text)
