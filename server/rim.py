"""The guard in front of everything: what is admitted, and what leaves when something went wrong.

Promises, for HTTP bodies and for WebSocket text frames: only JSON objects within `server.bounds` reach the application;
anything else is answered here, and a WebSocket session goes on after it. Errors leave as a stable code and a message
which never holds input. It sits inside Starlette's own catch-all, so that no exception gets past it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autotest_env.errors import (
    CallerError,
    CapacityReachedError,
    GraderFailedError,
    InvalidRequestError,
    InvalidValueError,
    SessionError,
    UnknownTypeError,
)
from autotest_env.server import bounds, mcp
from autotest_env.server.calls import UNKNOWN_OF_ACTION, check_action, describe
from autotest_env.server.faults import INTERNAL_FAULT, Fault, fault_of, log_failure, passed

_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_DRAIN_BYTES = 32 * bounds.MAX_BYTES
"""Of a body that is too large, this much is read and thrown away so that the caller gets to read the answer."""

_RPC_PATH = "/mcp"
_SESSION_PATH = "/ws"
_PAGE_PREFIX = "/web/"
_ERROR_FRAME = '{"type":"error"'
_STOPPING = GraderFailedError("the server is stopping")
_RESTARTING = 1012

_UNKNOWN_OF_FRAME = {
    "reset": "unknown field; a reset frame has type and data",
    "state": "unknown field; a state frame has type only",
    "close": "unknown field; a close frame has type only",
    "step": f"{UNKNOWN_OF_ACTION}, and a step frame has type and data",
}


class Rim:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            await _Exchange(self._app, scope, receive, send).serve()
        elif scope["type"] == "websocket" and scope["path"] == _RPC_PATH:
            await _answer_rpc(receive, send)
        elif scope["type"] == "websocket":
            await _Session(self._app, scope, receive, send).serve()
        else:
            await self._app(scope, receive, send)


class _Exchange:
    """One HTTP request and its answer."""

    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._app, self._scope, self._receive, self._send = app, scope, receive, send
        self._started = False
        self._body: bytes | None = None

    async def serve(self) -> None:
        try:
            if self._scope["method"] in _WITH_BODY:
                self._body = await self._read_body()
                _check_body(self._scope["path"], self._body)
            if self._scope["path"] == _RPC_PATH and self._scope["method"] == "POST":
                await self._reply(200, mcp.answer(bounds.parse_object(self._body or b"{}")))
            else:
                await self._app(self._scope, self._replay, self._watch)
        except _GoneError:
            return
        except asyncio.CancelledError:  # the server stops, and that was all the time there was
            await self._refuse(fault_of(_STOPPING))
        except Exception as error:  # noqa: BLE001  # the border of the HTTP side
            log_failure(error)
            await self._refuse(fault_of(error))

    async def _read_body(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        more = True
        while more and size <= _DRAIN_BYTES:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            part: bytes = message.get("body", b"")
            size += len(part)
            if size <= bounds.MAX_BYTES:
                parts.append(part)
            more = message.get("more_body", False)
        bounds.check_size(size)
        return b"".join(parts)

    async def _replay(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _watch(self, message: Message) -> None:
        self._started = self._started or message["type"] == "http.response.start"
        await self._send(message)

    async def _refuse(self, fault: Fault) -> None:
        if self._started:
            return
        rpc = self._scope["path"] == _RPC_PATH
        await self._reply(fault.status, mcp.refusal(fault.message) if rpc else fault.body(), fault.headers())

    async def _reply(self, status: int, content: Mapping[str, Any], further: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **(further or {})}
        raw = [(name.lower().encode(), text.encode()) for name, text in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})
        await self._send({"type": "http.response.body", "body": body})


class _GoneError(Exception):
    """The caller went away before its request was complete."""


class _Session:
    """One WebSocket."""

    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        self._app, self._scope, self._receive, self._send = app, scope, receive, send
        self._open = False
        self._asked: str | None = None
        """Type of the frame that the application works on."""

    async def serve(self) -> None:
        running = asyncio.ensure_future(self._app(self._scope, self._admit, self._translate))
        try:
            await asyncio.wait({running})
            running.result()
        except asyncio.CancelledError:  # the server stops, and that was all the time there was
            if self._open and self._asked is not None:
                await self._answer(fault_of(_STOPPING))
            if self._open:
                await self._send({"type": "websocket.close", "code": _RESTARTING})
            running.cancel()
        except Exception as error:  # noqa: BLE001  # the border of the WebSocket side
            log_failure(error)
            if self._open:
                await self._answer(fault_of(error))
                await self._send({"type": "websocket.close", "code": 1011})

    async def _admit(self) -> Message:
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                self._open = self._open and message["type"] != "websocket.disconnect"
                return message
            try:
                data = _parse_frame(message)
                if self._scope["path"] != _SESSION_PATH or data.get("type") != "mcp":
                    self._asked = str(data.get("type"))
                    return message
                reply = {"type": "mcp", "data": _answer_of_frame(data)}
                await self._send({"type": "websocket.send", "text": json.dumps(reply)})
            except CallerError as error:
                await self._answer(fault_of(error))

    async def _answer(self, fault: Fault) -> None:
        await self._send({"type": "websocket.send", "text": json.dumps(fault.frame())})

    async def _translate(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self._open = True
        elif message["type"] == "websocket.close":
            self._open = False
        elif (message.get("text") or "").startswith(_ERROR_FRAME):
            frame = _translated(json.loads(message["text"])["data"], self._asked)
            message = {**message, "text": json.dumps(frame)}
        if message["type"] == "websocket.send":
            self._asked = None
        await self._send(message)


async def _answer_rpc(receive: Receive, send: Send) -> None:
    """Serve the WebSocket at /mcp without a session of OpenEnv's behind it."""
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
            continue
        try:
            reply = mcp.answer(_parse_frame(message))
        except CallerError as error:
            reply = mcp.refusal(str(error))
        await send({"type": "websocket.send", "text": json.dumps(reply)})


def _parse_frame(message: Message) -> dict[str, Any]:
    text = message.get("text")
    if text is None:
        raise InvalidRequestError("frames must be text holding a JSON object, not binary")
    return bounds.parse_object(text)


def _answer_of_frame(data: Mapping[str, Any]) -> dict[str, Any]:
    request = data.get("data")
    if not isinstance(request, Mapping) or not mcp.is_request(request):
        raise InvalidValueError(mcp.NOT_A_REQUEST)
    return mcp.answer(request)


def _translated(data: Mapping[str, Any], asked: str | None = None) -> dict[str, Any]:
    """Turn the data of an error frame of OpenEnv's, about a frame of the type asked, into a frame of ours."""
    code = data.get("code")
    if code == "EXECUTION_ERROR":
        return passed(str(data.get("message"))).frame()
    if code == "VALIDATION_ERROR":
        unknown = _UNKNOWN_OF_FRAME.get(asked or "", UNKNOWN_OF_ACTION)
        return fault_of(InvalidValueError(describe(data.get("errors", ()), unknown))).frame()
    if code == "UNKNOWN_TYPE":
        return fault_of(UnknownTypeError("type must be reset, step, state, close or mcp")).frame()
    if code == "CAPACITY_REACHED":
        message = f"all {data.get('max_sessions')} sessions are in use; close one or try again later"
        return fault_of(CapacityReachedError(message)).frame()
    if code == "SESSION_ERROR":
        return fault_of(SessionError("no such session, or it cannot go on; connect again")).frame()
    return INTERNAL_FAULT.frame()


def _check_body(path: str, body: bytes) -> None:
    if path.startswith(_PAGE_PREFIX) and path not in _BODY_CHECKS:
        return
    if body:
        data = bounds.parse_object(body)
        check = _BODY_CHECKS.get(path)
        if check is not None:
            check(data)


def _check_page_step(data: Mapping[str, Any]) -> None:
    action = {"message": ""} if "message" in data else data.get("action", {})
    if not isinstance(action, Mapping):
        raise InvalidValueError("action must be an object")
    check_action(action)


_BODY_CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "/web/step": _check_page_step,
    "/web/reset": lambda _: None,  # its values are checked where every reset's are
}
