"""The model behind an OpenAI-compatible chat-completions endpoint, and every way it can fail.

Time-outs, lost connections, 408, 409, 429 and 5xx are tried again by the `openai` library, a bounded number of times,
with growing pauses, and `Retry-After` honoured up to two minutes. Everything that is left becomes a ModelError whose
text never holds the key.
"""

from collections.abc import Sequence
from typing import Protocol, cast
from urllib.parse import urlsplit

import openai
from openai.types.chat import ChatCompletionMessageParam

from autotest_env.agents.options import ChatOptions

Message = dict[str, str]
"""`role` and `content`, as chat completions have them."""

_TEXT_CHARS = 160


class ModelError(Exception):
    """The model cannot be asked; the message is one sentence."""


class ChatModel(Protocol):
    """Answers a conversation."""

    def ask(self, messages: Sequence[Message], seed: int) -> str:
        """Return the answer's text, empty if there is none. Raises ModelError."""
        ...


class OpenAIModel:
    """A ChatModel over HTTP."""

    def __init__(self, options: ChatOptions) -> None:
        self._options = options
        self._client = openai.OpenAI(
            api_key=options.api_key or "none",
            base_url=options.base_url,
            timeout=options.timeout_s,
            max_retries=options.max_retries,
        )

    def ask(self, messages: Sequence[Message], seed: int) -> str:
        """Return the answer's text, empty if there is none. Raises ModelError."""
        options = self._options
        try:
            completion = self._client.chat.completions.create(
                model=options.model,
                messages=cast("list[ChatCompletionMessageParam]", list(messages)),
                temperature=options.temperature,
                max_tokens=options.max_tokens,
                seed=seed,
            )
            return completion.choices[0].message.content or ""
        except openai.OpenAIError as error:
            raise ModelError(self._described(error)) from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise ModelError("the model's answer is not a chat completion") from error

    def _described(self, error: openai.OpenAIError) -> str:
        match error:
            case openai.APITimeoutError():
                return f"the model did not answer within {self._options.timeout_s:g} s"
            case openai.APIConnectionError():
                where = urlsplit(self._options.base_url)
                return f"no connection to the model at {where.hostname}:{where.port or where.scheme}"
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return f"the model's endpoint refused the API key (HTTP {error.status_code})"
            case openai.APIStatusError():
                return f"the model's endpoint answered HTTP {error.status_code}: {self._scrubbed(error.message)}"
        return f"the model could not be asked: {type(error).__name__}"

    def _scrubbed(self, text: str) -> str:
        key = self._options.api_key
        return (text.replace(key, "***") if key else text)[:_TEXT_CHARS]
