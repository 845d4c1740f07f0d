"""The model behind a real chat-completions endpoint, and every way it can fail."""

import socket
from typing import Any

import pytest

from autotest_env.agents.model import ModelError, OpenAIModel
from autotest_env.agents.options import ChatOptions

KEY = "sk-very-secret-key"
QUESTION = [{"role": "user", "content": "Write tests."}]


def ask(url: str, **options: float) -> str:
    chat = ChatOptions(base_url=url, model="tiny", api_key=KEY, **options)
    return OpenAIModel(chat).ask(QUESTION, seed=7)


def failure(url: str, **options: float) -> str:
    with pytest.raises(ModelError) as raised:
        ask(url, **options)
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_question_is_asked_with_the_key_the_seed_and_temperature_0(endpoint: Any) -> None:
    endpoint.script("an answer")
    assert ask(endpoint.url) == "an answer"
    assert endpoint.keys == [f"Bearer {KEY}"]
    (request,) = endpoint.requests
    assert request == {"model": "tiny", "messages": QUESTION, "temperature": 0.0, "max_tokens": 4096, "seed": 7}


@pytest.mark.parametrize("content", ["", None])
def test_no_content_is_an_empty_answer(endpoint: Any, content: str | None) -> None:
    endpoint.script({"content": content})
    assert ask(endpoint.url) == ""


def test_429_waits_as_long_as_retry_after_says(endpoint: Any) -> None:
    endpoint.script({"status": 429, "headers": {"Retry-After": "2"}}, "later")
    assert ask(endpoint.url) == "later"
    assert endpoint.times[1] - endpoint.times[0] >= 2.0


def test_500_is_tried_again_a_bounded_number_of_times(endpoint: Any) -> None:
    endpoint.script({"status": 500}, "better")
    assert ask(endpoint.url) == "better"
    endpoint.script({"status": 500})
    assert failure(endpoint.url, max_retries=2).startswith("the model's endpoint answered HTTP 500")
    assert len(endpoint.requests) == 3


def test_a_bad_key_is_said_once_and_not_tried_again(endpoint: Any) -> None:
    endpoint.script({"status": 401, "body": f'{{"error": {{"message": "Incorrect API key: {KEY}"}}}}'})
    assert failure(endpoint.url) == "the model's endpoint refused the API key (HTTP 401)"
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_repeats_the_key_does_not_get_it_into_the_message(endpoint: Any) -> None:
    endpoint.script({"status": 404, "body": f'{{"error": {{"message": "no model for {KEY}"}}}}'})
    assert "no model for ***" in failure(endpoint.url)


def test_a_refused_connection_names_the_place() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert failure(f"http://127.0.0.1:{port}/v1", max_retries=1) == f"no connection to the model at 127.0.0.1:{port}"


def test_a_slow_model_is_given_up(endpoint: Any) -> None:
    endpoint.script({"content": "too late", "wait_s": 1.5})
    assert failure(endpoint.url, timeout_s=0.3, max_retries=0) == "the model did not answer within 0.3 s"


@pytest.mark.parametrize("body", ["<html>hello</html>", "{}", '{"choices": []}', '{"choices": [{}]}', "[1]", ""])
def test_an_answer_that_is_no_chat_completion_is_said_to_be_none(endpoint: Any, body: str) -> None:
    endpoint.script({"body": body})
    assert failure(endpoint.url, max_retries=0) == "the model's answer is not a chat completion"
