"""The guard in front of everything: what is admitted, and what leaves when something went wrong.

Promises, for HTTP bodies and for WebSocket text frames: only JSON objects within `server.bounds` reach the application;
anything else is answered here, and a WebSocket session goes on after it. Errors leave as a stable code and a message
which never holds input. It sits inside Starlette's own catch-all, so that no exception gets past it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autotest_env.errors import (
    CallerError,
    CapacityReachedError,
    InvalidRequestError,
    InvalidValueError,
    SessionError,
    UnknownTypeError,
)
from autotest_env.server import bounds
from autotest_env.server.calls import check_action, describe
from autotest_env.server.faults import INTERNAL_FAULT, Fault, fault_of, log_failure, passed

_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_DRAIN_BYTES = 32 * bounds.MAX_BYTES
"""Of a body that is too large, this much is read and thrown away so that the caller gets to read the answer."""

_RPC_PATH = "/mcp"
_SESSION_PATH = "/ws"
_PAGE_PREFIX = "/web/"
_ERROR_FRAME = '{"type":"error"'
_INVALID_RPC = -32600


class Rim:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            await _Exchange(self._app, scope, receive, send).serve()
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
            await self._app(self._scope, self._replay, self._watch)
        except _GoneError:
            return
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
        body = json.dumps(_rpc_error(fault.message) if rpc else fault.body()).encode()
        status = 200 if rpc and fault.code == InvalidValueError.code else fault.status
        headers = {"content-type": "application/json", "content-length": str(len(body)), **fault.headers()}
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

    async def serve(self) -> None:
        try:
            await self._app(self._scope, self._admit, self._translate)
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
                self._check(message.get("text"))
            except CallerError as error:
                await self._answer(fault_of(error))
            else:
                return message

    def _check(self, text: str | None) -> None:
        if text is None:
            raise InvalidRequestError("frames must be text holding a JSON object, not binary")
        data = bounds.parse_object(text)
        if self._scope["path"] == _RPC_PATH:
            _check_rpc(data)
        elif self._scope["path"] == _SESSION_PATH and data.get("type") == "mcp":
            _check_rpc(data.get("data"))

    async def _answer(self, fault: Fault) -> None:
        rpc = self._scope["path"] == _RPC_PATH
        frame = _rpc_error(fault.message) if rpc else fault.frame()
        await self._send({"type": "websocket.send", "text": json.dumps(frame)})

    async def _translate(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self._open = True
        elif message["type"] == "websocket.close":
            self._open = False
        elif (message.get("text") or "").startswith(_ERROR_FRAME):
            message = {**message, "text": json.dumps(_translated(json.loads(message["text"])["data"]))}
        await self._send(message)


def _translated(data: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the data of an error frame of OpenEnv's into a frame of ours."""
    code = data.get("code")
    if code == "EXECUTION_ERROR":
        return passed(str(data.get("message"))).frame()
    if code == "VALIDATION_ERROR":
        return fault_of(InvalidValueError(describe(data.get("errors", ())))).frame()
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


def _check_rpc(data: object) -> None:
    if not isinstance(data, Mapping) or data.get("jsonrpc") != "2.0" or not isinstance(data.get("method"), str):
        raise InvalidValueError("this must be a JSON-RPC 2.0 request: jsonrpc, method, and optionally params and id")


def _check_page_step(data: Mapping[str, Any]) -> None:
    action = {"message": ""} if "message" in data else data.get("action", {})
    if not isinstance(action, Mapping):
        raise InvalidValueError("action must be an object")
    check_action(action)


_BODY_CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    _RPC_PATH: _check_rpc,
    "/web/step": _check_page_step,
    "/web/reset": lambda _: None,  # its values are checked where every reset's are
}


def _rpc_error(message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": _INVALID_RPC, "message": message}, "id": None}
