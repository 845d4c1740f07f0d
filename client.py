"""The two clients: `AutotestEnv` is OpenEnv's over WebSocket, `AutoTestEnvClient` is a plain one over HTTP.

    with AutoTestEnvClient("http://127.0.0.1:7860") as env:
        task = env.reset(task_id="unit_test_writer", seed=42)
        result = env.step(test_code="def test_it(): ...")

Neither asks which class an action is of: anything with the right fields, a mapping, or the test file as a string.
"""

import asyncio
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

if find_spec("autotest_env") is None:
    raise SystemExit("autotest-env is not installed in this Python; in its folder run: python -m pip install -e .")

import requests
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from autotest_env.errors import (
    AutotestError,
    CallerError,
    GraderBusyError,
    GraderError,
    GraderFailedError,
    InvalidRequestError,
    NoEpisodeError,
)
from autotest_env.models import TestAction, TestObservation, TestState

DEFAULT_URL = "http://127.0.0.1:7860"
URL_VARIABLE = "AUTOTEST_URL"

_ACTION_FIELDS = ("action_type", "test_code", "notes")
_TELLING_FIELDS = frozenset({"action_type", "test_code", "action"})
"""One of these makes a mapping an action; without any it would be judged as an empty suite."""
_NOT_JUDGED = frozenset({GraderBusyError.code, GraderFailedError.code})
_PROXY_FAULTS = frozenset({502, 504})
_TRIES = 20
"""Of a request; with 25 s in the queue and 5 s between them, a busy server has ten minutes for it."""
_LONGEST_PAUSE_S = 30.0
_LONGEST_PAUSE_UNREACHABLE_S = 2.0


class UnreachableError(AutotestError):
    """The server gave no answer, or none that is its own, however often it was asked."""

    code = "UNREACHABLE"
    status = 503


class _NotJudgedError(RuntimeError):
    """What OpenEnv's client raises for an error frame, with the pause that the frame asks for."""

    def __init__(self, fault: Mapping[str, Any]) -> None:
        super().__init__(f"Server error: {fault.get('message')} (code: {fault.get('code')})")
        self.pause_s = min(float(fault.get("retry_after_s", 0)), _LONGEST_PAUSE_S)


class AutotestEnv(EnvClient[TestAction, TestObservation, TestState]):
    """OpenEnv's client, async; `.sync()` makes it synchronous.

    What the server could not judge is sent again after the pause it asked for, several times before it is an error.
    """

    tries: int = _TRIES

    async def _send_and_receive(self, message: dict[str, Any]) -> dict[str, Any]:
        number = 1
        while True:
            try:
                return await super()._send_and_receive(message)
            except _NotJudgedError as error:
                if number >= self.tries:
                    raise
                await asyncio.sleep(error.pause_s)
            number += 1

    async def _receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = await super()._receive()
        fault = frame.get("data", {}) if frame.get("type") == "error" else {}
        if fault.get("code") in _NOT_JUDGED:
            raise _NotJudgedError(fault)
        return frame

    def _step_payload(self, action: Any) -> dict[str, Any]:
        return _action_fields(action)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TestObservation]:
        return _step_result(payload)

    def _parse_state(self, payload: dict[str, Any]) -> TestState:
        return TestState.model_validate(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """What became of one item of `grade_many`; without a result there is no score, not a score of 0."""

    result: StepResult[TestObservation] | None
    error: AutotestError | None = None

    @property
    def score(self) -> float | None:
        """The score in [0, 1], or None when it was not judged."""
        return None if self.result is None else self.result.observation.score


class AutoTestEnvClient:
    """One episode of its own at a time over HTTP; not for several threads at once (`grade_many` takes care of its own).

    A lost connection and a busy server are tried again, `Retry-After` honoured, under the same request id, so that no
    reward is lost and nothing is judged twice. Errors of the server are raised as the classes of `errors`.
    """

    def __init__(self, base_url: str | None = None, *, timeout_s: float = 75.0, tries: int = _TRIES) -> None:
        self.base_url = _checked_url(base_url or os.environ.get(URL_VARIABLE) or DEFAULT_URL)
        self.episode_id: str | None = None
        self._timeout_s = timeout_s
        self._tries = tries
        self._session = requests.Session()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the episode stays on the server."""
        self._session.close()

    def health(self) -> bool:
        """Tell whether the server answers, without a second try."""
        try:
            return self._session.get(f"{self.base_url}/health", timeout=5.0).ok
        except requests.RequestException:
            return False

    def reset(self, **parameters: Any) -> StepResult[TestObservation]:
        """Open an episode: `task_id`, `seed`, `split`, `index`, `difficulty`, `max_attempts`, `episode_id`."""
        if parameters.get("episode_id") is None:  # without an id it would share the address's episode with others
            parameters["episode_id"] = uuid.uuid4().hex
        reply = self._call("POST", "/reset", {"request_id": uuid.uuid4().hex, **parameters})
        self.episode_id = reply["episode_id"]
        return _step_result(reply)

    def step(self, action: object = None, **fields: Any) -> StepResult[TestObservation]:
        """Take one step: an action, or its fields such as `test_code=...`. Raises TypeError for anything else."""
        body = _action_fields(fields if action is None else action)
        call = {"request_id": uuid.uuid4().hex, "episode_id": self.episode_id, **body, **fields}
        return _step_result(self._call("POST", "/step", _of_episode(call)))

    def state(self) -> TestState:
        """Look at the episode."""
        return TestState.model_validate(self._call("GET", "/state", _of_episode({"episode_id": self.episode_id})))

    def grade_many(self, items: Iterable[Mapping[str, Any]], concurrency: int = 8) -> list[Graded]:
        """Grade each item, reset parameters with a `test_code`, in an episode of one attempt; in the order given."""
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        free: SimpleQueue[AutoTestEnvClient] = SimpleQueue()
        clients = [
            AutoTestEnvClient(self.base_url, timeout_s=self._timeout_s, tries=self._tries) for _ in range(concurrency)
        ]
        for client in clients:
            free.put(client)

        def grade(item: Mapping[str, Any]) -> Graded:
            client = free.get()
            try:
                return _grade(client, item)
            finally:
                free.put(client)

        try:
            with ThreadPoolExecutor(concurrency) as pool:
                return list(pool.map(grade, items))
        finally:
            for client in clients:
                client.close()

    def _call(self, method: str, path: str, data: Mapping[str, Any]) -> dict[str, Any]:
        error: AutotestError = UnreachableError(f"no try was made; tries is {self._tries}")
        for number in range(self._tries):
            if number:
                time.sleep(_pause_s(error, number))
            try:
                return self._once(method, path, data)
            except (GraderError, UnreachableError) as failure:
                error = failure
        raise error

    def _once(self, method: str, path: str, data: Mapping[str, Any]) -> dict[str, Any]:
        content: dict[str, Any] = {"params": data} if method == "GET" else {"json": data}
        try:
            answer = self._session.request(method, f"{self.base_url}{path}", timeout=self._timeout_s, **content)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise UnreachableError(f"{self.base_url} gave no answer ({type(error).__name__})") from error
        except requests.exceptions.InvalidJSONError as error:
            raise InvalidRequestError("only finite numbers can be sent") from error
        return _content(answer)


def _grade(client: AutoTestEnvClient, item: Mapping[str, Any]) -> Graded:
    parameters = {"max_attempts": 1, **{name: value for name, value in item.items() if name != "test_code"}}
    try:
        client.reset(**parameters)
        return Graded(result=client.step(test_code=item.get("test_code", "")))
    except AutotestError as error:
        return Graded(result=None, error=error)


def _content(answer: requests.Response) -> dict[str, Any]:
    try:
        content = answer.json()
    except requests.exceptions.JSONDecodeError:
        content = None
    if answer.ok and isinstance(content, dict):
        return content
    fault = content.get("error") if isinstance(content, dict) else None
    if isinstance(fault, dict):
        raise _error_of(str(fault.get("code")), str(fault.get("message")), answer)
    if answer.status_code in _PROXY_FAULTS or answer.status_code == GraderError.status:
        raise UnreachableError(f"{answer.url.partition('?')[0]} answered {answer.status_code}, not from the server")
    raise AutotestError(f"{answer.url.partition('?')[0]} answered {answer.status_code} without an error code")


def _error_of(code: str, message: str, answer: requests.Response) -> AutotestError:
    kind = {known.code: known for known in _tree(AutotestError)}.get(code)
    if kind is None:
        kind = CallerError if answer.status_code < 500 else AutotestError
    if issubclass(kind, GraderError):
        after = answer.headers.get("Retry-After", "")
        return kind(message, retry_after_s=int(after) if after.isascii() and after.isdigit() else 5)
    return kind(message)


def _tree(root: type[AutotestError]) -> list[type[AutotestError]]:
    return [root, *(kind for below in root.__subclasses__() for kind in _tree(below))]


def _pause_s(error: AutotestError, number: int) -> float:
    if isinstance(error, GraderError):
        return min(error.retry_after_s, _LONGEST_PAUSE_S)
    return min(0.25 * 2.0**number, _LONGEST_PAUSE_UNREACHABLE_S)


def _of_episode(call: dict[str, Any]) -> dict[str, Any]:
    if call["episode_id"] is None:
        raise NoEpisodeError("no episode yet; call reset first")
    return call


def _action_fields(action: object) -> dict[str, Any]:
    if isinstance(action, str):
        return {"test_code": action}
    if isinstance(action, Mapping):
        fields = dict(action)
    else:
        fields = {name: getattr(action, name) for name in _ACTION_FIELDS if hasattr(action, name)}
    if not _TELLING_FIELDS & fields.keys():
        raise TypeError(
            "an action is a TestAction, a mapping or an object with test_code or action_type, or the test file as a "
            f"string; this {type(action).__name__} has neither"
        )
    return fields


def _checked_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("base_url must be an http address such as http://127.0.0.1:7860")
    return text.rstrip("/")


def _step_result(payload: Mapping[str, Any]) -> StepResult[TestObservation]:
    reward, done = payload.get("reward"), bool(payload.get("done", False))
    observation = TestObservation.model_validate({**payload["observation"], "reward": reward, "done": done})
    return StepResult(observation=observation, reward=reward, done=done)
