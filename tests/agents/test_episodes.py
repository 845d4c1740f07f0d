"""Whole episodes over real HTTP: a chat endpoint on one side, the environment's server on the other."""

import io
import socket
from typing import Any

import pytest
from openenv.core.client_types import StepResult

from autotest_env.agents.journal import EpisodeLog, Journal
from autotest_env.agents.loop import play
from autotest_env.agents.options import read_options
from autotest_env.agents.policies import policy_maker
from autotest_env.client import AutoTestEnvClient
from autotest_env.models import TestAction, TestObservation

HALF = "# score=0.5\ndef test_half():\n    assert 1\n"
FULL = "# score=1.0\ndef test_full():\n    assert 1\n"


def block(code: str) -> str:
    return f"```python\n{code}```\n"


def played(env_url: str, model_url: str, *argv: str) -> tuple[list[str], EpisodeLog]:
    """Play one episode and return its log lines."""
    options = read_options(list(argv), {"API_BASE_URL": model_url, "API_KEY": "sk-secret", "MODEL_NAME": "tiny"})
    out = io.StringIO()
    log = Journal(out, options.model).plan("unit_test_writer", 42)
    log.start()
    with AutoTestEnvClient(env_url) as env:
        play(env, policy_maker(options)(42), options.plan[0].params, log)
    log.end()
    assert "sk-secret" not in out.getvalue() + log.as_json()
    return out.getvalue().splitlines(), log


@pytest.mark.parametrize(
    "answer",
    [
        block(FULL),
        f"Here is the file.\n\n{block(FULL)}\nIt covers the documentation.",
        f"The code was:\n{block('def answer(): ...' + chr(10))}\nThe tests:\n{block(FULL)}",
        f"```python\n{FULL}",
        f"Certainly! The tests:\n\n{FULL}",
    ],
    ids=["good", "prose around", "several blocks", "unclosed block", "no block"],
)
def test_an_answer_with_code_is_submitted(scripted_server: Any, endpoint: Any, answer: str) -> None:
    endpoint.script(answer)
    lines, _ = played(scripted_server.url, endpoint.url)
    assert lines == [
        "[START] task=unit_test_writer env=autotest-env model=tiny",
        "[STEP] step=1 action=# score=1.0 def test_full(): assert 1 reward=1.00 done=true error=null",
        "[END] success=true steps=1 score=1.000 rewards=1.00",
    ]


def test_an_unclosed_block_that_breaks_off_is_cut_back(scripted_server: Any, endpoint: Any) -> None:
    endpoint.script(f"```python\n{FULL}\ndef test_cut(): assert (")
    _, log = played(scripted_server.url, endpoint.url)
    assert log.steps[0].test_code == FULL


def test_invalid_python_is_submitted_all_the_same(scripted_server: Any, endpoint: Any) -> None:
    endpoint.script(block("def test_broken(:\n"))
    lines, log = played(scripted_server.url, endpoint.url, "--max-attempts", "1")
    assert log.steps[0].test_code == "def test_broken(:\n"
    assert lines[-1] == "[END] success=false steps=1 score=0.000 rewards=0.00"


def test_the_next_attempt_is_made_from_the_feedback_and_pays_the_gain(scripted_server: Any, endpoint: Any) -> None:
    endpoint.script(block(HALF), block(FULL))
    lines, log = played(scripted_server.url, endpoint.url)
    assert lines[-1] == "[END] success=true steps=2 score=0.900 rewards=0.50,0.40"
    assert log.steps[0].feedback_text in endpoint.requests[1]["messages"][-1]["content"]
    assert [part["name"] for part in log.steps[0].reward_parts] == ["scripted"]


def test_an_empty_answer_is_hinted_at_once_per_attempt_and_then_done(scripted_server: Any, endpoint: Any) -> None:
    endpoint.script("")
    lines, _ = played(scripted_server.url, endpoint.url, "--max-attempts", "2")
    assert len(endpoint.requests) == 3
    assert lines[1:] == [
        "[STEP] step=1 action=done reward=0.00 done=true error=null",
        "[END] success=false steps=1 score=0.000 rewards=0.00",
    ]


@pytest.mark.parametrize("fault", [{"status": 429, "headers": {"Retry-After": "1"}}, {"status": 500}])
def test_a_passing_fault_of_the_endpoint_costs_nothing(
    scripted_server: Any, endpoint: Any, fault: dict[str, Any]
) -> None:
    endpoint.script(fault, block(FULL))
    lines, _ = played(scripted_server.url, endpoint.url)
    assert lines[-1] == "[END] success=true steps=1 score=1.000 rewards=1.00"


def test_a_bad_key_ends_the_episode_with_an_error(scripted_server: Any, endpoint: Any) -> None:
    endpoint.script({"status": 401})
    lines, _ = played(scripted_server.url, endpoint.url)
    assert lines[1:] == [
        "[STEP] step=1 action=done reward=0.00 done=true error=the model's endpoint refused the API key (HTTP 401)",
        "[END] success=false steps=1 score=0.000 rewards=0.00",
    ]


def test_a_model_lost_half_way_keeps_what_was_earned_but_is_no_success(scripted_server: Any, endpoint: Any) -> None:
    endpoint.script(block("# score=0.6\ndef test_a(): pass\n"), {"status": 401})
    lines, _ = played(scripted_server.url, endpoint.url)
    assert lines[-1] == "[END] success=false steps=2 score=0.600 rewards=0.60,0.00"


def test_a_refused_connection_ends_the_episode_with_an_error(scripted_server: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines, _ = played(scripted_server.url, f"http://127.0.0.1:{port}/v1")
    assert lines[1].endswith(f"done=true error=no connection to the model at 127.0.0.1:{port}")
    assert lines[2] == "[END] success=false steps=1 score=0.000 rewards=0.00"


class LostEnv:
    """An environment whose connection breaks at the first step."""

    def reset(self, **_: Any) -> StepResult[TestObservation]:
        return StepResult(observation=TestObservation(module_name="shop"))

    def step(self, _action: TestAction) -> StepResult[TestObservation]:
        raise ConnectionError("the server went away")


def test_a_lost_environment_is_logged_as_the_step_it_broke() -> None:
    out = io.StringIO()
    log = Journal(out, "embedded").plan("unit_test_writer", 42)
    with pytest.raises(ConnectionError):
        play(LostEnv(), policy_maker(read_options([], {}))(42), {}, log)
    assert out.getvalue().endswith(" reward=0.00 done=true error=the server went away\n")
