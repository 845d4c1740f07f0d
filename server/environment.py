"""OpenEnv's face of an episode: translates between the wire and `server.episodes`, decides nothing."""

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from autotest_env.errors import EpisodeExpiredError, NoEpisodeError
from autotest_env.models import TestAction, TestObservation, TestState
from autotest_env.server.calls import ResetCall, check_reset
from autotest_env.server.episodes import ActionKind, Episode
from autotest_env.server.faults import passing
from autotest_env.server.views import reset_view, state_view, step_view
from autotest_env.tasks.family import Family, Task
from autotest_env.tasks.registry import TaskRequest
from autotest_env.tasks.seeds import MAX_SEED

NAME = "autotest_env"
DISTRIBUTION = "openenv-autotest-env"

_NOTHING_RESET = "no episode yet; call reset first"


class TaskSource(Protocol):
    """Where tasks and their families come from."""

    def generate(self, request: TaskRequest, fresh_seed: int) -> Task:
        """Build the requested task."""
        ...

    def family(self, name: str) -> Family:
        """Load a family by name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What every environment of a server shares."""

    tasks: TaskSource
    layers: Mapping[str, str] = field(default_factory=dict)
    """Layers of isolation: "on", or why one is off."""


class ServerMetadata(EnvironmentMetadata):
    """OpenEnv's metadata, and which layers of isolation are on."""

    isolation: dict[str, str] = Field(
        default_factory=dict, description="Layers that confine submitted code: on, or why one is off."
    )


def open_episode(engine: Engine, call: ResetCall) -> Episode:
    """Build the task of a reset and an episode on it; nothing is kept of a refused one."""
    task = engine.tasks.generate(call.task, fresh_seed=secrets.randbelow(MAX_SEED + 1))
    family = engine.tasks.family(task.family)
    return Episode(call.episode_id or uuid.uuid4().hex, task, family, max_attempts=call.max_attempts)


def take_step(episode: Episode, action: TestAction, request_id: str | None = None) -> TestObservation:
    """Take one step of an episode."""
    outcome = episode.step(ActionKind(action.action_type), action.test_code, request_id)
    return step_view(outcome, episode.progress)


def describe_server(engine: Engine) -> ServerMetadata:
    """Describe the environment."""
    facts = metadata.metadata(DISTRIBUTION)
    return ServerMetadata(
        name=NAME,
        description=facts["Summary"],
        readme_content=_readme(),
        version=facts["Version"],
        author=facts["Author"],
        isolation=dict(engine.layers),
    )


class AutotestEnvironment(Environment[TestAction, TestObservation, TestState]):
    """One session. A session that OpenEnv closes for idleness is revived by its next reset."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._episode: Episode | None = None
        self._expired = False

    def reset(  # type: ignore[override]  # noqa: PLR0913, PLR0917  # OpenEnv drops keys that are not named here
        self,
        seed: object = None,
        episode_id: object = None,
        task_id: object = None,
        split: object = None,
        index: object = None,
        difficulty: object = None,
        max_attempts: object = None,
    ) -> TestObservation:
        """Open an episode; a refused reset leaves the current one as it was."""
        given = {
            "seed": seed,
            "episode_id": episode_id,
            "task_id": task_id,
            "split": split,
            "index": index,
            "difficulty": difficulty,
            "max_attempts": max_attempts,
        }
        with passing():
            episode = open_episode(self._engine, check_reset(given))
            observation = reset_view(episode)
            self._episode = episode
            return observation

    def step(self, action: TestAction, timeout_s: float | None = None, **_: Any) -> TestObservation:  # noqa: ARG002
        """Take one step."""
        with passing():
            return take_step(self._current(), action)

    @property
    def state(self) -> TestState:
        """How far the episode is."""
        with passing():
            return state_view(self._current().progress)

    def get_metadata(self) -> ServerMetadata:
        """Describe the environment."""
        return describe_server(self._engine)

    def close(self) -> None:
        """Let go of the episode."""
        self._expired = self._expired or self._episode is not None
        self._episode = None

    def _current(self) -> Episode:
        if self._episode is not None:
            return self._episode
        if self._expired:
            raise EpisodeExpiredError("this session was idle for too long and its episode is gone; reset opens another")
        raise NoEpisodeError(_NOTHING_RESET)


def _readme() -> str:
    beside = Path(__file__).resolve().parent.parent / "README.md"
    return beside.read_text(encoding="utf-8") if beside.is_file() else ""
