"""MCP is not offered: every way in says so, repeats nothing and takes no session."""

import json

import pytest
import requests

from autotest_env.server import mcp

MARKER = "marker-7f3a"


@pytest.mark.parametrize(
    "request_",
    [
        {"jsonrpc": "2.0", "method": f"<script>{MARKER}</script>", "id": MARKER + "<b>"},
        {"jsonrpc": "2.0", "method": "tools/list", "id": 1, "params": {"session_id": MARKER}},
        {"jsonrpc": "2.0", "method": "tools/call", "id": 1, "params": {"name": MARKER}},
        {"jsonrpc": MARKER},
        {"jsonrpc": "2.0", "method": [MARKER]},
        {},
    ],
)
def test_every_request_is_a_json_rpc_error_without_its_text(scripted_server, request_):
    answer = requests.post(f"{scripted_server.url}/mcp", json=request_, timeout=30)
    assert (answer.status_code, answer.json()["jsonrpc"]) == (200, "2.0")
    assert answer.json()["error"]["message"] in {mcp.NO_TOOLS, mcp.NOT_A_REQUEST}
    assert MARKER not in answer.text


def test_no_session_is_created(scripted_server):
    request = {"jsonrpc": "2.0", "method": "openenv/session/create", "id": "a-1"}
    for _ in range(20):
        answer = requests.post(f"{scripted_server.url}/mcp", json=request, timeout=30).json()
        assert (answer["error"]["code"], answer["id"]) == (-32601, "a-1")


@pytest.mark.parametrize("given", [1.5, True, ["x"], {}, "x" * 65, "a b", "<b>", None])
def test_an_id_that_is_not_plain_does_not_come_back(given):
    assert mcp.answer({"jsonrpc": "2.0", "method": "x", "id": given})["id"] is None


def test_what_is_not_json_is_refused_as_json_rpc(scripted_server):
    answer = requests.post(f"{scripted_server.url}/mcp", data=MARKER, timeout=30)
    assert (answer.status_code, answer.json()["jsonrpc"]) == (400, "2.0")
    assert MARKER not in json.dumps(answer.json())
