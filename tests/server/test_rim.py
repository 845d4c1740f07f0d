"""The guard around small applications of its own, without a network."""

import asyncio
import json

import pytest

from autotest_env.errors import GraderBusyError, NoEpisodeError
from autotest_env.server.faults import PassingError, passing
from autotest_env.server.rim import Rim

ACCEPT = {"type": "websocket.accept"}


def serve(app, scope, *messages):
    """Run an application behind the guard; returns what it sent."""
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(Rim(app)(scope, receive, send))
    return sent


def http(app, *parts, method="POST", path="/reset"):
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.request", "body": b"", "more_body": False})
    return serve(app, {"type": "http", "method": method, "path": path}, *messages)


def websocket(app, *frames, path="/ws"):
    messages = [{"type": "websocket.receive", **frame} for frame in frames]
    sent = serve(app, {"type": "websocket", "path": path}, *messages, {"type": "websocket.disconnect", "code": 1000})
    return [json.loads(message["text"]) if "text" in message else message for message in sent]


async def echo(scope, receive, send):
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def raising(error):
    async def app(scope, receive, send):
        raise error

    return app


def sending_error(text):
    async def app(scope, receive, send):
        await send(ACCEPT)
        frame = {"type": "error", "data": {"message": text, "code": "EXECUTION_ERROR"}}
        await send({"type": "websocket.send", "text": json.dumps(frame, separators=(",", ":"))})

    return app


def test_a_body_in_parts_reaches_the_application_whole():
    assert http(echo, b'{"a"', b": 1}")[1]["body"] == b'{"a": 1}'


def test_a_body_cut_short_ends_quietly():
    scope = {"type": "http", "method": "POST", "path": "/reset"}
    assert (
        serve(echo, scope, {"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}) == []
    )


def test_a_refused_body_never_reaches_the_application():
    start, body = http(raising(AssertionError("reached")), b"[1]")
    assert (start["status"], json.loads(body["body"])["error"]["code"]) == (400, "INVALID_REQUEST")


def test_the_pages_own_posts_are_bounded_but_may_be_of_any_kind():
    assert http(echo, b"--boundary", path="/web/gradio_api/upload")[1]["body"] == b"--boundary"
    start, _ = http(echo, b"x" * (2 << 20), path="/web/gradio_api/upload")
    assert start["status"] == 413


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NoEpisodeError("reset first"), 409, "NO_EPISODE"),
        (GraderBusyError("later", retry_after_s=7), 503, "GRADER_BUSY"),
        (RuntimeError("marker"), 500, "INTERNAL"),
        (ValueError("marker"), 500, "INTERNAL"),
    ],
)
def test_an_exception_leaves_as_a_code(error, status, code):
    start, body = http(raising(error), b"{}")
    assert (start["status"], json.loads(body["body"])["error"]["code"]) == (status, code)
    assert b"marker" not in body["body"]
    assert dict(start["headers"]).get(b"retry-after") == (b"7" if status == 503 else None)


def test_after_an_answer_has_begun_nothing_is_added_to_it():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("marker")

    assert [message["type"] for message in http(app, b"{}")] == ["http.response.start"]


def test_an_exception_out_of_a_session_is_told_before_the_socket_closes():
    async def app(scope, receive, send):
        await send(ACCEPT)
        raise RuntimeError("marker")

    accepted, frame, close = websocket(app)
    assert "marker" not in json.dumps(frame)
    assert (accepted, close["code"]) == (ACCEPT, 1011)


@pytest.mark.parametrize(
    ("error", "code"), [(NoEpisodeError("call reset first"), "NO_EPISODE"), (RuntimeError("marker"), "INTERNAL")]
)
def test_an_environments_error_leaves_by_its_text_as_the_code_it_had(error, code):
    with pytest.raises(PassingError) as caught, passing():
        raise error
    frame = websocket(sending_error(str(caught.value)))[1]
    assert frame["data"]["code"] == code
    assert "marker" not in frame["data"]["message"]


def test_a_text_that_we_never_raised_is_internal():
    frame = websocket(sending_error("a text of somebody else"))[1]
    assert frame["data"]["code"] == "INTERNAL"
    assert "somebody" not in frame["data"]["message"]


def test_how_long_to_wait_is_in_the_frame():
    with pytest.raises(Exception, match="later") as caught, passing():
        raise GraderBusyError("come later", retry_after_s=7)
    assert websocket(sending_error(str(caught.value)))[1]["data"]["retry_after_s"] == 7


def test_other_scopes_pass_untouched():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    serve(app, {"type": "lifespan"})
    assert seen == ["lifespan"]
