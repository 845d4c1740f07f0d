import json
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

MARKER = "marker-7f3a"


@pytest.fixture
def call(scripted_server):
    """Send a request; returns the status and the JSON."""

    def send(method, path, data=None, **options):
        answer = requests.request(method, scripted_server.url + path, json=data, timeout=30, **options)
        return answer.status_code, answer.json()

    return send


def check_refused(answer, status, code):
    """Assert a refusal of exactly the documented shape, without echo or traceback."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert sorted(answer.json()["error"]) == ["code", "message"]
    assert answer.json()["error"]["code"] == code
    assert MARKER not in answer.text
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text


def test_an_episode_is_played_over_http(call):
    status, reset = call("POST", "/reset", {"task_id": "unit_test_writer", "seed": 42})
    assert status == 200
    assert sorted(reset) == ["done", "episode_id", "observation", "reward"]
    assert (reset["reward"], reset["done"]) == (None, False)
    assert reset["observation"]["task_id"] == "unit_test_writer-v1/classic/42"
    assert reset["observation"]["limits"]["max_attempts"] == 3

    status, step = call("POST", "/step", {"test_code": "score=0.5", "episode_id": reset["episode_id"]})
    assert (status, step["reward"], step["done"]) == (200, 0.5, False)
    assert step["observation"]["feedback"]["false_alarms"] == 1
    assert step["observation"]["reward_parts"] == [{"name": "scripted", "value": 0.5, "weight": 1.0}]
    assert len(step["observation"]["feedback_text"].encode()) <= 4096

    status, state = call("GET", f"/state?episode_id={reset['episode_id']}")
    assert status == 200
    assert (state["episode_id"], state["step_count"], state["best_score"]) == (reset["episode_id"], 1, 0.5)

    _, end = call("POST", "/step", {"action": {"action_type": "done"}, "episode_id": reset["episode_id"]})
    assert (end["done"], end["reward"]) == (True, 0.0)


def test_without_an_id_the_latest_reset_of_this_address_is_meant(call):
    for seed in (1, 2):
        call("POST", "/reset", {"seed": seed})
    _, step = call("POST", "/step", {"test_code": "score=0.25"})
    assert step["observation"]["task_id"].endswith("/2")
    assert call("GET", "/state")[1]["seed"] == 2


def test_an_empty_body_resets(scripted_server):
    answer = requests.post(f"{scripted_server.url}/reset", timeout=30)
    assert answer.status_code == 200


def test_a_body_without_a_content_type_is_read_all_the_same(scripted_server):
    answer = requests.post(f"{scripted_server.url}/reset", data=b'{"seed": 9}', timeout=30)
    assert answer.json()["observation"]["task_id"].endswith("/9")


def test_an_address_that_never_reset_is_told_to_reset(scripted_server):
    with socket.create_connection(
        ("127.0.0.1", int(scripted_server.url.rpartition(":")[2])), source_address=("127.9.9.9", 0)
    ) as own:
        own.sendall(b"POST /step HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        answer = b"".join(iter(lambda: own.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 409")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "NO_EPISODE"


def test_the_same_seed_and_actions_give_the_same_bytes(scripted_server):
    def play():
        reset = requests.post(f"{scripted_server.url}/reset", json={"seed": 11}, timeout=30)
        episode_id = reset.json()["episode_id"]
        bodies = [reset.content]
        for code in ("score=0.3", "score=0.6"):
            data = {"test_code": code, "episode_id": episode_id}
            bodies.append(requests.post(f"{scripted_server.url}/step", json=data, timeout=30).content)
        return [body.replace(episode_id.encode(), b"") for body in bodies]

    assert play() == play()


def test_the_same_suite_twice_pays_once(call):
    _, reset = call("POST", "/reset", {"seed": 3})
    step = {"test_code": "score=0.5", "episode_id": reset["episode_id"]}
    assert [call("POST", "/step", step)[1]["reward"] for _ in range(2)] == [0.5, 0.0]


def test_a_repeated_request_id_gets_the_stored_reply(call):
    _, reset = call("POST", "/reset", {"seed": 3})
    step = {"test_code": "score=0.5", "episode_id": reset["episode_id"], "request_id": "r1"}
    first, again = (call("POST", "/step", step)[1] for _ in range(2))
    assert first == again
    assert call("GET", f"/state?episode_id={reset['episode_id']}")[1]["step_count"] == 1


def test_a_repeated_request_is_judged_once_even_while_the_first_still_runs(call):
    _, reset = call("POST", "/reset", {"seed": 3})
    step = {"test_code": "score=0.5 wait=0.5", "episode_id": reset["episode_id"], "request_id": "r1"}
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: call("POST", "/step", step), range(4)))
    assert replies == [replies[0]] * 4
    assert replies[0][1]["reward"] == 0.5


def test_the_id_of_an_open_episode_is_refused_unless_the_request_is_repeated(scripted_server, call):
    own = {"episode_id": uuid.uuid4().hex, "request_id": "r", "seed": 4}
    first, again = (call("POST", "/reset", own) for _ in range(2))
    assert first == again
    answer = requests.post(f"{scripted_server.url}/reset", json={**own, "request_id": "s"}, timeout=30)
    check_refused(answer, 409, "EPISODE_IN_USE")


def test_a_repeated_reset_without_an_episode_id_gets_the_episode_that_it_opened(call):
    own = {"request_id": uuid.uuid4().hex}
    first, again = (call("POST", "/reset", own) for _ in range(2))
    assert first == again
    assert call("POST", "/reset", {"request_id": uuid.uuid4().hex})[1]["episode_id"] != first[1]["episode_id"]


def test_a_step_after_the_end_says_so_and_pays_nothing(call):
    _, reset = call("POST", "/reset", {"seed": 3})
    step = {"test_code": "score=1.0", "episode_id": reset["episode_id"]}
    assert call("POST", "/step", step)[1]["done"] is True
    status, after = call("POST", "/step", step)
    assert (status, after["reward"], after["done"]) == (200, 0.0, True)
    assert "ended (solved)" in after["observation"]["error"]


def test_a_refused_reset_leaves_the_current_episode_as_it_was(call):
    call("POST", "/reset", {"seed": 21})
    assert call("POST", "/reset", {"seed": -1})[0] == 422
    assert call("GET", "/state")[1]["seed"] == 21


@pytest.mark.parametrize(
    ("body", "status", "code", "right"),
    [
        (b'{"task_id": "unit_test_writter"}', 404, "UNKNOWN_TASK", "did you mean 'unit_test_writer'?"),
        (b'{"task_id": "marker-7f3a/x"}', 404, "UNKNOWN_TASK", "unit_test_writer"),
        (b'{"split": "marker-7f3a"}', 422, "INVALID_VALUE", "classic"),
        (b'{"seed": -1}', 422, "INVALID_VALUE", "0 to 9223372036854775807"),
        (b'{"seed": "marker-7f3a"}', 422, "INVALID_VALUE", "0 to 9223372036854775807"),
        (b'{"seed": NaN}', 400, "INVALID_REQUEST", "finite"),
        (b'{"seed": ' + b"9" * 5000 + b"}", 400, "INVALID_REQUEST", "integers"),
        (b'{"episode_id": "\\ud800"}', 400, "INVALID_REQUEST", "surrogate"),
        (b'{"max_attempts": 9}', 422, "INVALID_VALUE", "1 to 5"),
        (b"{marker-7f3a", 400, "INVALID_REQUEST", "not valid JSON"),
        (b'["marker-7f3a"]', 400, "INVALID_REQUEST", "JSON object"),
        (b'{"x": "\xff"}', 400, "INVALID_REQUEST", "UTF-8"),
        (b'{"a":' * 100_000, 400, "INVALID_REQUEST", "deep"),
        (b'{"x": "' + b"a" * (2 << 20) + b'"}', 413, "REQUEST_TOO_LARGE", "1048576"),
    ],
)
def test_a_bad_reset_is_refused_with_a_code_and_what_would_be_right(scripted_server, body, status, code, right):
    answer = requests.post(f"{scripted_server.url}/reset", data=body, timeout=30)
    check_refused(answer, status, code)
    assert right in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"test_code": "x", "episode_id": "marker-7f3a"}, 404, "UNKNOWN_EPISODE"),
        ({"test_code": "x", "episode_id": 5}, 422, "INVALID_VALUE"),
        ({"action": "marker-7f3a"}, 422, "INVALID_VALUE"),
        ({"action_type": "marker-7f3a"}, 422, "INVALID_VALUE"),
        ({"marker-7f3a": "x"}, 422, "INVALID_VALUE"),
        ({"test_code": None}, 422, "INVALID_VALUE"),
    ],
)
def test_a_bad_step_is_refused(scripted_server, body, status, code):
    check_refused(requests.post(f"{scripted_server.url}/step", json=body, timeout=30), status, code)


def test_an_unknown_state_path_or_method_is_refused_in_the_same_shape(scripted_server):
    url = scripted_server.url
    check_refused(requests.get(f"{url}/state?episode_id={MARKER}", timeout=30), 404, "UNKNOWN_EPISODE")
    check_refused(requests.get(f"{url}/{MARKER}", timeout=30), 404, "NOT_FOUND")
    check_refused(requests.get(f"{url}/reset", timeout=30), 405, "METHOD_NOT_ALLOWED")
    check_refused(requests.post(f"{url}/{MARKER}/task", json={"split": "x", "index": 1}, timeout=30), 404, "NOT_FOUND")


@pytest.mark.openenv010("the Task API")
def test_a_bad_field_of_openenvs_task_api_is_refused_in_the_same_shape(scripted_server):
    url = scripted_server.url
    bad = requests.post(f"{url}/autotest_env/task", json={"split": MARKER, "index": MARKER}, timeout=30)
    check_refused(bad, 422, "INVALID_VALUE")
    assert "action" not in bad.json()["error"]["message"]


def test_a_busy_grader_answers_503_with_retry_after_and_spends_nothing(scripted_server, call):
    _, reset = call("POST", "/reset", {"seed": 3})
    data = {"test_code": "grader_fails", "episode_id": reset["episode_id"]}
    answer = requests.post(f"{scripted_server.url}/step", json=data, timeout=30)
    check_refused(answer, 503, "GRADER_BUSY")
    assert answer.headers["Retry-After"] == "1"
    assert call("GET", f"/state?episode_id={reset['episode_id']}")[1]["attempts_left"] == 3


def test_an_unexpected_failure_is_internal_without_text_in_answer_or_log(scripted_server, call):
    _, reset = call("POST", "/reset", {"seed": 3})
    data = {"test_code": f"grader_breaks {MARKER}", "episode_id": reset["episode_id"]}
    answer = requests.post(f"{scripted_server.url}/step", json=data, timeout=30)
    check_refused(answer, 500, "INTERNAL")
    log = scripted_server.log.read_text()
    assert "RuntimeError at" in log
    assert MARKER not in log


def test_a_slow_step_does_not_hold_up_others(call):
    _, slow = call("POST", "/reset", {"seed": 1})
    step = {"test_code": "score=0.5 wait=3", "episode_id": slow["episode_id"]}
    thread = threading.Thread(target=call, args=("POST", "/step", step))
    thread.start()
    time.sleep(0.2)
    began = time.monotonic()
    assert call("GET", f"/state?episode_id={slow['episode_id']}")[1]["step_count"] == 0
    assert call("GET", "/health")[0] == 200
    _, other = call("POST", "/reset", {"seed": 2})
    assert call("POST", "/step", {"test_code": "score=0.5", "episode_id": other["episode_id"]})[0] == 200
    assert time.monotonic() - began < 2
    thread.join()


def test_both_sockets_serve_the_same_episodes(scripted_server):
    first, second = scripted_server.urls
    episode_id = requests.post(f"{first}/reset", json={"seed": 6}, timeout=30).json()["episode_id"]
    answer = requests.get(f"{second}/state", params={"episode_id": episode_id}, timeout=30)
    assert answer.json()["seed"] == 6


def test_the_openapi_document_has_each_route_once_with_its_body(scripted_server):
    document = requests.get(f"{scripted_server.url}/openapi.json", timeout=30).json()
    assert list(document["paths"]["/reset"]) == ["post"]
    body = document["paths"]["/step"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["test_code"]
    assert {"action_type", "test_code", "episode_id", "request_id"} <= set(body["properties"])
    identifiers = [entry["operationId"] for path in document["paths"].values() for entry in path.values()]
    assert len(identifiers) == len(set(identifiers))


def test_the_action_schema_requires_test_code_alone(call):
    _, schema = call("GET", "/schema")
    assert schema["action"]["required"] == ["test_code"]
    assert "best_score" in schema["state"]["properties"]
    assert "feedback_text" in schema["observation"]["properties"]


def test_metadata_describes_the_environment_and_its_isolation(call):
    status, metadata = call("GET", "/metadata")
    assert (status, metadata["name"]) == (200, "autotest_env")
    assert metadata["readme_content"].strip()
    assert metadata["isolation"] == {}


def test_the_secret_is_in_no_answer(scripted_server, scripted, call):
    _, reset = call("POST", "/reset", {"seed": 3})
    replies = [reset]
    replies += [
        call("POST", "/step", {"test_code": code, "episode_id": reset["episode_id"]})
        for code in ("score=0.5", "grader_breaks", "score=1.0")
    ]
    replies += [call("GET", path) for path in ("/state", "/metadata", "/schema", "/openapi.json")]
    assert scripted.SECRET not in json.dumps(replies) + scripted_server.log.read_text()
