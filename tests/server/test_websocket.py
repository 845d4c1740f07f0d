import json
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

MARKER = "marker-7f3a"
SCRIPTED = Path(__file__).with_name("scripted.py")


class Session:
    """One WebSocket session."""

    def __init__(self, socket):
        self._socket = socket

    def send(self, frame):
        with suppress(ConnectionClosed):  # a refusal may have been sent already, and is read below
            self._socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
        return json.loads(self._socket.recv(timeout=30))

    def reset(self, **data):
        return self.send({"type": "reset", "data": data})["data"]

    def step(self, **data):
        return self.send({"type": "step", "data": data})["data"]

    def state(self):
        return self.send({"type": "state"})["data"]


@pytest.fixture
def open_session(scripted_server):
    """Open sessions that close after the test."""
    with ExitStack() as stack:
        yield lambda: Session(stack.enter_context(connect(scripted_server.ws_url, max_size=None, open_timeout=30)))


@pytest.fixture
def session(open_session):
    return open_session()


def check_refused(reply, code):
    """Assert an error frame with a code, without echo or traceback."""
    assert reply["type"] == "error"
    assert sorted(reply) == ["data", "type"]
    assert reply["data"]["code"] == code
    assert reply["data"]["message"]
    text = json.dumps(reply)
    assert MARKER not in text
    assert "Traceback" not in text


def test_an_episode_is_played_in_a_session(session):
    reset = session.reset(seed=5, episode_id="mine")
    assert (reset["reward"], reset["done"]) == (None, False)
    assert reset["observation"]["task_id"] == "unit_test_writer-v1/classic/5"
    step = session.step(test_code="score=0.5")
    assert (step["reward"], step["done"]) == (0.5, False)
    state = session.state()
    assert (state["episode_id"], state["step_count"], state["best_score"]) == ("mine", 1, 0.5)
    assert session.step(action_type="done")["done"] is True
    after = session.step(test_code="score=1.0")
    assert (after["reward"], after["done"]) == (0.0, True)
    assert "ended (done)" in after["observation"]["error"]


def test_both_transports_show_the_same_observation(session, scripted_server):
    import requests

    over_ws = [session.reset(seed=5), session.step(test_code="score=0.5")]
    reset = requests.post(f"{scripted_server.url}/reset", json={"seed": 5}, timeout=30).json()
    data = {"test_code": "score=0.5", "episode_id": reset["episode_id"]}
    over_http = [reset, requests.post(f"{scripted_server.url}/step", json=data, timeout=30).json()]
    assert [reply["observation"] for reply in over_ws] == [reply["observation"] for reply in over_http]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("[1]", "INVALID_REQUEST"),
        ('"hi"', "INVALID_REQUEST"),
        ("marker-7f3a", "INVALID_REQUEST"),
        ("", "INVALID_REQUEST"),
        (b'{"type": "state"}', "INVALID_REQUEST"),
        (b"\x00\xff", "INVALID_REQUEST"),
        ('{"type":' * 100_000, "INVALID_REQUEST"),
        ('{"type": "step", "data": {"test_code": "' + "x" * (2 << 20) + '"}}', "REQUEST_TOO_LARGE"),
        ('{"type": "reset", "data": {"seed": NaN}}', "INVALID_REQUEST"),
        ('{"type": "reset", "data": {"seed": ' + "9" * 5000 + "}}", "INVALID_REQUEST"),
        (r'{"type": "reset", "data": {"task_id": "\ud800"}}', "INVALID_REQUEST"),
        ({"type": "reset", "data": {"seed": -1}}, "INVALID_VALUE"),
        ({"type": "reset", "data": {"seed": "marker-7f3a"}}, "INVALID_VALUE"),
        ({"type": "reset", "data": {"seed": True}}, "INVALID_VALUE"),
        ({"type": "reset", "data": {"max_attempts": 6}}, "INVALID_VALUE"),
        ({"type": "reset", "data": {"task_id": "marker-7f3a"}}, "UNKNOWN_TASK"),
        ({"type": "reset", "data": [1]}, "INVALID_VALUE"),
        ({"type": "reset", "marker-7f3a": 1}, "INVALID_VALUE"),
        ({"type": "marker-7f3a"}, "UNKNOWN_TYPE"),
        ({"type": ["marker-7f3a"]}, "UNKNOWN_TYPE"),
        ({}, "UNKNOWN_TYPE"),
        ({"type": "step"}, "INVALID_VALUE"),
        ({"type": "step", "data": None}, "INVALID_VALUE"),
        ({"type": "step", "data": {"test_code": ["marker-7f3a"]}}, "INVALID_VALUE"),
        ({"type": "step", "data": {"marker-7f3a": 1}}, "INVALID_VALUE"),
        ({"type": "step", "data": {"action_type": "marker-7f3a"}}, "INVALID_VALUE"),
        ({"type": "mcp", "data": {"marker-7f3a": 1}}, "INVALID_VALUE"),
        ({"type": "step", "data": {"test_code": "grader_fails"}}, "GRADER_BUSY"),
        ({"type": "step", "data": {"test_code": "grader_breaks marker-7f3a"}}, "INTERNAL"),
    ],
)
def test_a_bad_frame_is_answered_with_a_code_and_the_session_goes_on(session, frame, code):
    session.reset(seed=5)
    check_refused(session.send(frame), code)
    state = session.state()
    assert (state["seed"], state["step_count"], state["attempts_left"]) == (5, 0, 3)
    assert session.step(test_code="score=0.5")["reward"] == 0.5


@pytest.mark.parametrize("frame", [{"type": "step", "data": {"test_code": "x"}}, {"type": "state"}])
def test_before_the_first_reset_there_is_no_episode(session, frame):
    check_refused(session.send(frame), "NO_EPISODE")
    assert session.reset(seed=5)["done"] is False


def test_a_busy_grader_says_when_to_come_back(session):
    session.reset(seed=5)
    reply = session.send({"type": "step", "data": {"test_code": "grader_fails"}})
    assert reply["data"]["retry_after_s"] == 1


def test_text_from_elsewhere_cannot_pass_for_one_of_our_errors(session, scripted_server):
    session.reset(seed=5)
    reply = session.send({"type": "step", "data": {"test_code": "grader_breaks\x1fCODE\x1f200\x1f\x1fmarker-7f3a"}})
    check_refused(reply, "INTERNAL")
    assert MARKER not in scripted_server.log.read_text()


def test_an_id_of_a_session_is_private_to_it(session, open_session):
    other = open_session()
    for each in (session, other):
        each.reset(seed=5, episode_id="the same")
    session.step(test_code="score=0.5")
    assert (session.state()["step_count"], other.state()["step_count"]) == (1, 0)


def test_a_session_too_many_is_told_so_until_another_closes(scripted_server):
    with ExitStack() as stack:
        opened = [Session(stack.enter_context(connect(scripted_server.ws_url))) for _ in range(17)]
        *first, last = [session.send({"type": "reset"}) for session in opened]
        assert first[0]["type"] == "observation"
        check_refused(last, "CAPACITY_REACHED")
        assert "16 sessions" in last["data"]["message"]
    for _ in range(50):
        with connect(scripted_server.ws_url) as socket:
            if Session(socket).send({"type": "reset"})["type"] == "observation":
                return
        time.sleep(0.1)
    pytest.fail("closed sessions give no room")


@pytest.mark.openenv010("?session_id=")
def test_an_unknown_session_id_is_not_repeated(scripted_server):
    with connect(f"{scripted_server.ws_url}?session_id={MARKER}") as socket:
        check_refused(json.loads(socket.recv(timeout=30)), "SESSION_ERROR")


@pytest.mark.parametrize(
    ("frame", "right"),
    [
        ({"type": "reset", "x": 1}, "a reset frame has type and data"),
        ({"type": "state", "data": {}}, "a state frame has type only"),
        ({"type": "step", "data": {"x": 1}}, "an action has metadata, action_type, test_code, notes"),
    ],
)
def test_an_unknown_field_is_refused_with_those_of_its_frame(session, frame, right):
    session.reset(seed=5)
    assert right in session.send(frame)["data"]["message"]


def test_a_session_is_told_that_the_server_stops_before_it_closes(tmp_path, start_server):
    command = [str(SCRIPTED), "--sessions", "2"]
    with start_server(command, tmp_path / "log") as server, connect(server.ws_url) as socket:
        session = Session(socket)
        session.reset(seed=5)
        socket.send(json.dumps({"type": "step", "data": {"test_code": "wait=3"}}))
        time.sleep(0.5)
        server.process.terminate()
        reply = json.loads(socket.recv(timeout=10))
        check_refused(reply, "GRADER_FAILED")
        assert reply["data"]["message"] == "the server is stopping"
        server.process.wait(15)
        assert "Traceback" not in server.log.read_text()


def test_mcp_frames_are_refused_without_their_text(session):
    request = {"jsonrpc": "2.0", "method": f"openenv/{MARKER}", "id": 7, "params": {"session_id": MARKER}}
    reply = session.send({"type": "mcp", "data": request})
    assert (reply["type"], reply["data"]["id"], reply["data"]["error"]["code"]) == ("mcp", 7, -32601)
    assert MARKER not in json.dumps(reply)


def test_mcp_sockets_take_no_sessions(scripted_server):
    url = scripted_server.ws_url.removesuffix("/ws") + "/mcp"
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(url))
        session = Session(stack.enter_context(connect(scripted_server.ws_url)))
        assert session.send({"type": "reset"})["type"] == "observation"


def test_mcp_still_answers(scripted_server):
    url = scripted_server.ws_url.removesuffix("/ws") + "/mcp"
    with connect(url) as socket:
        for frame in ("[1]", b"\x00", "{}", '{"jsonrpc": "2.0", "method": "tools/list", "id": 1}'):
            socket.send(frame)
            reply = json.loads(socket.recv(timeout=30))
            assert reply["jsonrpc"] == "2.0"
            assert "error" in reply
        assert reply["id"] == 1
