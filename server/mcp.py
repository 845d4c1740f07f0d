"""JSON-RPC on `/mcp` and in `mcp` frames: there are no MCP tools here, and every request is told so.

OpenEnv's own answers repeat what was asked, and its `openenv/session/create` takes one of the sessions that episodes
need; so nothing of this gets there.
"""

import re
from collections.abc import Mapping
from typing import Any

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
NOT_A_REQUEST = "this must be a JSON-RPC 2.0 request: jsonrpc, method, and optionally params and id"
NO_TOOLS = "this environment offers no MCP methods; use reset, step and state"

_SHORT_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


def is_request(data: object) -> bool:
    """Tell whether this is a JSON-RPC 2.0 request."""
    return isinstance(data, Mapping) and data.get("jsonrpc") == "2.0" and isinstance(data.get("method"), str)


def answer(data: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request, or what should have been one. An id of a plain kind comes back, as callers need it."""
    if not is_request(data):
        return refusal(NOT_A_REQUEST)
    given = data.get("id")
    plain = type(given) is int or (isinstance(given, str) and _SHORT_ID.fullmatch(given) is not None)
    return refusal(NO_TOOLS, METHOD_NOT_FOUND, given if plain else None)


def refusal(message: str, code: int = INVALID_REQUEST, request_id: int | str | None = None) -> dict[str, Any]:
    """Write a JSON-RPC error."""
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": request_id}
