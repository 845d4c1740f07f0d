"""The HTTP side that keeps episodes: it replaces OpenEnv's stateless /reset, /step and /state.

/metadata and /schema are replaced too: OpenEnv's cannot say which layers of isolation are on, and older versions of it
publish no state but their own.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from openenv.core.env_server.serialization import serialize_observation
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from autotest_env.errors import InvalidValueError
from autotest_env.models import TestAction, TestObservation, TestState
from autotest_env.server.calls import ResetCall, check_id, check_reset, check_step, describe
from autotest_env.server.environment import Engine, ServerMetadata, describe_server, open_episode, take_step
from autotest_env.server.episodes import DEFAULT_ATTEMPTS, MAX_ATTEMPTS
from autotest_env.server.faults import fault_of, fault_of_status
from autotest_env.server.pool import Pool
from autotest_env.server.store import EpisodeStore
from autotest_env.server.views import reset_view, state_view
from autotest_env.tasks.seeds import MAX_SEED

REPLACED = frozenset({"/reset", "/step", "/state", "/metadata", "/schema", "/web/metadata"})

_RESET_THREADS = 8
_STEP_THREADS = 48
_WAITING_PER_SESSION = 4
_SEAT_WALL_S = 15.0
"""A step waits so long for a thread, then at most 25 s for a grader and 20 s for its runs: callers give up at 60 s."""


class ResetBody(BaseModel):
    """Parameters of a reset; other keys are ignored."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"task_id": "unit_test_writer", "seed": 42}, {}]})

    task_id: str | None = Field(default=None, description="A family, or a task's own id.")
    seed: int | None = Field(default=None, ge=0, le=MAX_SEED, description="Picks the task; the same seed, the same.")
    split: str | None = Field(default=None, description="Split the task comes from.")
    index: int | None = Field(default=None, ge=0, le=MAX_SEED, description="Index within the split.")
    difficulty: str | None = Field(default=None, description="Tier of the split.")
    max_attempts: int = Field(default=DEFAULT_ATTEMPTS, ge=1, le=MAX_ATTEMPTS, description="Submissions to be judged.")
    episode_id: str | None = Field(default=None, description="Own id of the episode; left out, the server draws one.")
    request_id: str | None = Field(default=None, description="A repeated one gets the episode it opened.")


class StepBody(TestAction):
    """An action, flat; {"action": {...}} with the ids beside it is taken as well."""

    model_config = ConfigDict(
        json_schema_extra={"required": ["test_code"], "examples": [{"test_code": "def test_it(): ..."}]}
    )

    episode_id: str | None = Field(default=None, description="Left out: this address's latest reset without an id.")
    request_id: str | None = Field(default=None, description="A repeated one gets the stored reply.")


class Reply(BaseModel):
    """What reset and step answer."""

    observation: TestObservation
    reward: float | None
    done: bool
    episode_id: str


class Schemas(BaseModel):
    """JSON schemas of the wire."""

    action: dict[str, Any]
    observation: dict[str, Any]
    state: dict[str, Any]


class ErrorBody(BaseModel):
    """What was wrong."""

    code: str = Field(description="Stable name of the error.")
    message: str = Field(description="What was found and what would be right.")


class ErrorReply(BaseModel):
    """Every answer that is not 2xx."""

    error: ErrorBody


def install(app: FastAPI, engine: Engine, store: EpisodeStore, sessions: int) -> None:
    """Put these routes in place of OpenEnv's; a production server has no /reset, /step and /state."""
    present = {route.path for route in app.router.routes if isinstance(route, APIRoute)}
    app.router.routes[:] = [
        route for route in app.router.routes if not (isinstance(route, APIRoute) and route.path in REPLACED)
    ]
    if "/reset" in present:
        for route in _control(engine, store, sessions).routes:
            app.router.routes.append(route)
    app.get("/metadata", tags=["Environment Info"], summary="Describe the environment")(_metadata_of(engine))
    app.get("/schema", tags=["Schema"], summary="Get all JSON schemas")(_get_schemas)
    if "/web/metadata" in present:
        app.get("/web/metadata", include_in_schema=False)(_metadata_of(engine))
        app.router.routes.insert(0, app.router.routes.pop())  # else the page mounted at /web would get it
    app.exception_handler(RequestValidationError)(_refuse_fields)
    app.exception_handler(HTTPException)(_refuse_plainly)


def _control(engine: Engine, store: EpisodeStore, sessions: int) -> APIRouter:
    router = APIRouter(responses={code: {"model": ErrorReply} for code in (400, 404, 409, 413, 422, 503)})
    waiting = sessions * _WAITING_PER_SESSION
    resets = Pool("reset", threads=_RESET_THREADS, most_waiting=waiting, wall_s=_SEAT_WALL_S)
    steps = Pool("step", threads=min(sessions, _STEP_THREADS), most_waiting=waiting, wall_s=_SEAT_WALL_S)

    @router.post(
        "/reset",
        tags=["Environment Control"],
        summary="Open an episode",
        response_model=Reply,
        openapi_extra=_documented(ResetBody, required=False),
    )
    async def reset(request: Request) -> JSONResponse:
        call, peer = check_reset(await _body(request)), _peer(request)
        return await resets.run(lambda: _opened(engine, store, call, peer))

    @router.post(
        "/step",
        tags=["Environment Control"],
        summary="Take one step of an episode",
        response_model=Reply,
        openapi_extra=_documented(StepBody, required=True),
    )
    async def step(request: Request) -> JSONResponse:
        call = check_step(await _body(request))
        episode = store.find(call.episode_id, _peer(request))
        taken = partial(take_step, episode, call.action, call.request_id)
        return await steps.run(lambda: _answer(taken(), episode.id), episode.id)

    @router.get("/state", tags=["State Management"], summary="Look at an episode")
    async def state(
        request: Request,
        episode_id: str | None = Query(default=None, description="Left out: this address's latest reset without one."),
    ) -> TestState:
        return state_view(store.find(check_id(episode_id, "episode_id"), _peer(request)).progress)

    return router


def _metadata_of(engine: Engine) -> Callable[[], Awaitable[ServerMetadata]]:
    async def get_metadata() -> ServerMetadata:
        return describe_server(engine)

    return get_metadata


async def _get_schemas() -> Schemas:
    return Schemas(
        action=TestAction.model_json_schema(),
        observation=TestObservation.model_json_schema(),
        state=TestState.model_json_schema(),
    )


def _opened(engine: Engine, store: EpisodeStore, call: ResetCall, peer: str) -> JSONResponse:
    episode = store.opened(call.episode_id, call.request_id, peer) or open_episode(engine, call)
    view = reset_view(episode)  # before it is kept: a task that cannot be shown is refused
    kept = store.add(episode, peer=peer if call.episode_id is None else None, request_id=call.request_id)
    return _answer(view if kept is episode else reset_view(kept), kept.id)


def _answer(observation: TestObservation, episode_id: str) -> JSONResponse:
    return JSONResponse({**serialize_observation(observation), "episode_id": episode_id})


def _peer(request: Request) -> str:
    return "" if request.client is None else request.client.host


async def _body(request: Request) -> dict[str, Any]:
    """Read what the rim has admitted, whatever its content type says."""
    raw = await request.body()
    data = json.loads(raw) if raw else {}
    assert isinstance(data, dict)
    return data


def _documented(model: type[BaseModel], *, required: bool) -> dict[str, Any]:
    schema = model.model_json_schema()
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


async def _refuse_fields(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    fault = fault_of(InvalidValueError(describe(error.errors(), "unknown field; /docs shows which there are")))
    return JSONResponse(fault.body(), status_code=fault.status)


async def _refuse_plainly(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    fault = fault_of_status(error.status_code, str(error.detail))
    return JSONResponse(fault.body(), status_code=fault.status, headers=error.headers)
