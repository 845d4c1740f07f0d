import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import requests
from openenv.core import GenericEnvClient

from autotest_env.client import AutotestEnv, AutoTestEnvClient, UnreachableError
from autotest_env.errors import (
    EpisodeInUseError,
    GraderBusyError,
    InvalidRequestError,
    InvalidValueError,
    NoEpisodeError,
    UnknownEpisodeError,
    UnknownTaskError,
)
from autotest_env.models import TestAction, TestObservation


@pytest.fixture
def client(scripted_server):
    with AutoTestEnvClient(scripted_server.url) as opened:
        yield opened


@contextmanager
def relay(url: str, faults: list[str]) -> Iterator[SimpleNamespace]:
    """A real HTTP server in front of another one that does the given faults first: `busy`, `page` or `drop`."""
    seen: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(json.loads(body))
            fault = faults.pop(0) if faults else None
            if fault == "busy":
                self._send(503, b'{"error": {"code": "GRADER_BUSY", "message": "busy"}}', {"Retry-After": "1"})
            elif fault == "page":
                self._send(502, b"<html>bad gateway</html>", {})
            else:
                answer = requests.post(url + self.path, data=body, timeout=30)
                if fault == "drop":
                    self.close_connection = True
                else:
                    self._send(answer.status_code, answer.content, {})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_address[1]}", seen=seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_episode_is_played_with_actions_of_any_make(client):
    reset = client.reset(task_id="unit_test_writer", seed=42)
    assert isinstance(reset.observation, TestObservation)
    assert (reset.reward, reset.done, reset.observation.task_id) == (None, False, "unit_test_writer-v1/classic/42")
    rewards = [
        client.step(TestAction(test_code="score=0.2")).reward,
        client.step(SimpleNamespace(test_code="score=0.5")).reward,
        client.step({"action_type": "view_coverage"}).reward,
    ]
    assert rewards == [0.2, 0.25, 0.0]
    state = client.state()
    assert (state.step_count, state.best_score, state.seed) == (3, 0.45, 42)
    end = client.step(action_type="done")
    assert (end.done, end.observation.done, end.observation.reward) == (True, True, 0.0)


def test_two_clients_behind_one_address_do_not_mix_up_their_episodes(client, scripted_server):
    with AutoTestEnvClient(scripted_server.url) as other:
        client.reset(seed=1)
        other.reset(seed=2)
        assert client.step(test_code="score=0.5").observation.task_id.endswith("/1")
        assert client.state().seed == 1


def test_a_string_is_the_test_file(client):
    client.reset(seed=1)
    assert client.step("score=0.5").reward == 0.5


@pytest.mark.parametrize("action", [5, b"score=0.5", SimpleNamespace(code="score=0.5"), {}, {"notes": "x"}, None])
def test_what_is_no_action_is_a_type_error_and_nothing_is_sent(client, action):
    client.reset(seed=1)
    with pytest.raises(TypeError, match="an action is a TestAction"):
        client.step(action)
    assert client.state().step_count == 0


def test_before_a_reset_there_is_no_episode_not_even_somebody_elses(client, scripted_server):
    requests.post(f"{scripted_server.url}/reset", json={"seed": 1}, timeout=30).raise_for_status()
    for look in (client.state, lambda: client.step("score=0.5")):
        with pytest.raises(NoEpisodeError, match="call reset first"):
            look()


def test_a_reset_of_the_client_leaves_the_addresss_latest_episode_alone(client, scripted_server):
    plain = requests.post(f"{scripted_server.url}/reset", json={"seed": 1}, timeout=30).json()
    client.reset(seed=2)
    state = requests.get(f"{scripted_server.url}/state", timeout=30).json()
    assert state["episode_id"] == plain["episode_id"]


@pytest.mark.parametrize("url", ["nonsense", "ws://127.0.0.1:7860", "http://", "http://host:port"])
def test_an_address_that_is_none_is_refused_at_once(url):
    with pytest.raises(ValueError, match="must be an http address"):
        AutoTestEnvClient(url)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"task_id": "unit_test_writter"}, UnknownTaskError),
        ({"seed": -1}, InvalidValueError),
        ({"seed": 10**30}, InvalidRequestError),
        ({"seed": float("nan")}, InvalidRequestError),
    ],
)
def test_errors_of_the_server_are_raised_as_their_classes(client, parameters, error):
    with pytest.raises(error):
        client.reset(**parameters)


def test_an_episode_in_use_or_unknown_is_its_own_error(client):
    client.reset(episode_id="taken")
    with pytest.raises(EpisodeInUseError):
        client.reset(episode_id="taken")
    client.step(action_type="done")
    with pytest.raises(UnknownEpisodeError):
        client.step(test_code="x", episode_id="nobody's")


def test_a_busy_server_is_asked_again_when_it_said(scripted_server):
    with relay(scripted_server.url, ["busy"]) as front, AutoTestEnvClient(front.url) as client:
        began = time.monotonic()
        client.reset(seed=1)
        assert time.monotonic() - began >= 1.0
        assert front.seen[0] == front.seen[1]


def test_a_server_that_stays_busy_is_given_up_after_the_tries(scripted_server):
    with AutoTestEnvClient(scripted_server.url, tries=2) as client:
        client.reset(seed=1)
        with pytest.raises(GraderBusyError) as caught:
            client.step(test_code="grader_fails")
        assert caught.value.retry_after_s == 1
        assert client.state().step_count == 0


def test_a_lost_reply_loses_no_reward(scripted_server):
    with relay(scripted_server.url, ["", "drop"]) as front, AutoTestEnvClient(front.url) as client:
        client.reset(seed=1)
        assert client.step(test_code="score=0.5").reward == 0.5
        assert len(front.seen) == 3
        assert front.seen[1] == front.seen[2]
        assert front.seen[1]["request_id"]
    with AutoTestEnvClient(scripted_server.url) as direct:
        direct.episode_id = client.episode_id
        assert direct.state().step_count == 1


def test_a_lost_reply_to_a_reset_with_an_own_id_is_no_conflict(scripted_server):
    with relay(scripted_server.url, ["drop"]) as front, AutoTestEnvClient(front.url) as client:
        client.reset(seed=1, episode_id="own-id-lost-reply")
        assert client.episode_id == "own-id-lost-reply"


def test_a_proxys_error_page_is_tried_again_and_named_in_the_end(scripted_server):
    with relay(scripted_server.url, ["page"] * 3) as front, AutoTestEnvClient(front.url, tries=2) as client:
        with pytest.raises(UnreachableError, match="answered 502"):
            client.reset(seed=1)
        assert client.reset(seed=1).observation.task_id.endswith("/1")


def test_where_nobody_listens_the_client_says_so():
    with AutoTestEnvClient("http://127.0.0.1:9", tries=1) as client:
        assert client.health() is False
        with pytest.raises(UnreachableError, match="gave no answer"):
            client.reset()


def test_the_address_comes_from_the_environment_when_not_given(scripted_server, monkeypatch):
    monkeypatch.setenv("AUTOTEST_URL", scripted_server.url + "/")
    with AutoTestEnvClient() as client:
        assert client.base_url == scripted_server.url
        assert client.health() is True


def test_many_are_graded_in_order_and_what_was_not_judged_has_no_score(scripted_server):
    items = [{"seed": seed, "test_code": f"score=0.{seed}"} for seed in range(1, 9)]
    items += [{"seed": 1, "test_code": "grader_fails"}, {"task_id": "nothing", "test_code": "score=1"}]
    with AutoTestEnvClient(scripted_server.url, tries=1) as client:
        graded = client.grade_many(items, concurrency=4)
    assert [entry.score for entry in graded] == [seed / 10 for seed in range(1, 9)] + [None, None]
    assert [type(entry.error) for entry in graded[-2:]] == [GraderBusyError, UnknownTaskError]
    assert all(entry.result.done for entry in graded[:8])


def test_nobody_cannot_grade_many(client):
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        client.grade_many([], concurrency=0)


def test_openenvs_client_plays_async(scripted_server):
    async def play():
        async with AutotestEnv(base_url=scripted_server.url) as env:
            reset = await env.reset(seed=42, episode_id="e")
            step = await env.step(TestAction(test_code="score=0.5"))
            return reset, step, await env.state()

    reset, step, state = asyncio.run(play())
    assert reset.observation.prompt
    assert (step.reward, step.observation.reward, step.observation.score) == (0.5, 0.5, 0.5)
    assert (state.episode_id, state.step_count) == ("e", 1)


def test_openenvs_client_plays_sync_and_goes_on_after_a_refusal(scripted_server):
    with AutotestEnv(base_url=scripted_server.url).sync() as env:
        env.reset(seed=42)
        with pytest.raises(RuntimeError, match=r"seed must be .*code: INVALID_VALUE"):
            env.reset(seed="x")
        assert env.step(SimpleNamespace(test_code="score=0.5")).reward == 0.5
        assert env.state().seed == 42


def test_openenvs_client_submits_again_what_a_busy_server_did_not_judge(scripted_server):
    with AutotestEnv(base_url=scripted_server.url).sync() as env:
        env.reset(seed=42)
        began = time.monotonic()
        assert env.step("score=0.5 busy_first over WebSocket").reward == 0.5
        assert time.monotonic() - began >= 1.0
        assert env.state().step_count == 1


def test_openenvs_client_gives_up_on_a_server_that_stays_busy(scripted_server):
    class Impatient(AutotestEnv):
        tries = 2

    with Impatient(base_url=scripted_server.url).sync() as env:
        env.reset(seed=42)
        with pytest.raises(RuntimeError, match="code: GRADER_BUSY"):
            env.step("grader_fails")
        assert env.state().step_count == 0


def test_openenvs_client_takes_a_string_and_refuses_what_is_no_action(scripted_server):
    with AutotestEnv(base_url=scripted_server.url).sync() as env:
        env.reset(seed=42)
        assert env.step("score=0.5").reward == 0.5
        with pytest.raises(TypeError, match="an action is a TestAction"):
            env.step(5)
        assert env.state().step_count == 1


def test_openenvs_generic_client_plays(scripted_server):
    with GenericEnvClient(base_url=scripted_server.url).sync() as env:
        assert env.reset(seed=42).observation["module_name"] == "order_module"
        result = env.step({"test_code": "score=1.0"})
        assert (result.reward, result.done) == (1.0, True)


@pytest.mark.openenv010("a client with new_session")
def test_the_clients_open_further_sessions(scripted_server):
    async def play():
        async with AutotestEnv(base_url=scripted_server.url) as env:
            other = await env.new_session()
            await env.reset(seed=1)
            await other.reset(seed=2)
            return (await env.state()).seed, (await other.state()).seed

    assert asyncio.run(play()) == (1, 2)
