"""What callers ask for, checked once for both transports; refusals say what would be right and never echo input."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from autotest_env.errors import InvalidValueError
from autotest_env.models import TestAction
from autotest_env.server.episodes import DEFAULT_ATTEMPTS, MAX_ATTEMPTS
from autotest_env.tasks.registry import TaskRequest
from autotest_env.tasks.seeds import MAX_SEED

MAX_ID_CHARACTERS = 255

_ACTION_FIELDS = tuple(TestAction.model_fields)
_OWN_FIELDS = ("action_type", "test_code", "notes")
UNKNOWN_OF_ACTION = f"unknown field; an action has {', '.join(_ACTION_FIELDS)}"
_BESIDE_ACTION = ("episode_id", "request_id", "timeout_s")
_KNOWN_FIELDS = frozenset((*_ACTION_FIELDS, *_BESIDE_ACTION, "type", "data", "split", "index", "start", "stop"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetCall:
    """A checked reset."""

    task: TaskRequest
    max_attempts: int = DEFAULT_ATTEMPTS
    episode_id: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """A checked step."""

    action: TestAction
    episode_id: str | None = None
    request_id: str | None = None


def check_reset(data: Mapping[str, Any]) -> ResetCall:
    """Read the parameters of a reset; unknown keys are ignored, for trainers send whole dataset rows.

    Raises InvalidValueError.
    """
    attempts = _integer(data, "max_attempts", 1, MAX_ATTEMPTS)
    return ResetCall(
        task=TaskRequest(
            task_id=_text(data, "task_id"),
            seed=_integer(data, "seed", 0, MAX_SEED),
            split=_text(data, "split"),
            index=_integer(data, "index", 0, MAX_SEED),
            difficulty=_text(data, "difficulty"),
        ),
        max_attempts=DEFAULT_ATTEMPTS if attempts is None else attempts,
        episode_id=_text(data, "episode_id"),
        request_id=_text(data, "request_id"),
    )


def check_step(data: Mapping[str, Any]) -> StepCall:
    """Read a step: the action flat or under `action`, with `episode_id` and `request_id` beside it.

    Raises InvalidValueError.
    """
    beside = {name: data[name] for name in _BESIDE_ACTION if name in data}
    if "action" in data:
        action = data["action"]
        if any(name in data for name in _OWN_FIELDS):
            raise InvalidValueError("send the action flat or as action, not in both places")
        if not isinstance(action, Mapping):
            raise InvalidValueError("action must be an object such as {'test_code': '...'}")
    else:
        action = {name: value for name, value in data.items() if name not in beside}
    return StepCall(
        action=check_action(action),
        episode_id=_text(beside, "episode_id"),
        request_id=_text(beside, "request_id"),
    )


def check_action(data: Mapping[str, Any]) -> TestAction:
    """Read an action. Raises InvalidValueError."""
    try:
        return TestAction.model_validate(data)
    except ValidationError as error:
        raise InvalidValueError(describe(error.errors(include_url=False, include_input=False))) from None


def check_id(text: object, name: str) -> str | None:
    """Read an optional id. Raises InvalidValueError."""
    return _text({name: text}, name)


def describe(errors: Iterable[Mapping[str, Any]], unknown: str = UNKNOWN_OF_ACTION) -> str:
    """Put pydantic's errors into a sentence of known field names, without any input; `unknown` is for other fields."""
    sentences = dict.fromkeys(_sentence(error, unknown) for error in errors)
    return "; ".join(list(sentences)[:3]) or "a field has a value that is not allowed"


def _sentence(error: Mapping[str, Any], unknown: str) -> str:
    kind = str(error.get("type"))
    path = [str(part) for part in error.get("loc", ()) if part in _KNOWN_FIELDS]
    name = ".".join(path) or "a field"
    if kind == "extra_forbidden":
        return unknown
    if kind == "missing":
        return f"{name} is missing"
    if kind == "literal_error":
        expected = error.get("ctx", {}).get("expected", "another value")
        return f"{name} must be {expected}"
    known = {"string_type": "a string", "dict_type": "an object", "int_type": "an integer", "model_type": "an object"}
    return f"{name} must be {known[kind]}" if kind in known else f"{name} has a value that is not allowed"


def _integer(data: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidValueError(f"{name} must be an integer from {least} to {most}, or left out")
    return value


def _text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID_CHARACTERS or not value.isprintable():
        raise InvalidValueError(
            f"{name} must be a string of 1 to {MAX_ID_CHARACTERS} printable characters, or left out"
        )
    return value
