"""Policies: what is sent next, from what was observed. One policy object plays one episode."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from autotest_env.agents.answers import extract_code
from autotest_env.agents.audit import write_audit
from autotest_env.agents.confined import ConfinedRunError
from autotest_env.agents.embedded import write_suite
from autotest_env.agents.examples import UNREADABLE
from autotest_env.agents.model import ChatModel, Message, ModelError, OpenAIModel
from autotest_env.agents.options import Options
from autotest_env.agents.prompts import EMPTY_HINT, SYSTEM, feedback_prompt
from autotest_env.models import TestObservation

SuiteWriter = Callable[[TestObservation], str]
"""What the reset shows in, pytest file out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The next action."""

    action_type: Literal["submit_tests", "done"] = "submit_tests"
    test_code: str = ""
    error: str | None = None
    """Why the policy gives up, for the log."""


class Policy(Protocol):
    """Plays one episode."""

    messages: list[Message]
    """What was said to a model and by it; empty without one."""

    def act(self, observation: TestObservation) -> Move:
        """Return the move that answers an observation: the one of the reset, or of the last step."""
        ...


def policy_maker(options: Options) -> Callable[[int], Policy]:
    """Return what makes the policy of one episode from its seed."""
    if options.chat is not None:
        model = OpenAIModel(options.chat)
        return lambda seed: ChatPolicy(model, seed)
    if options.suite is not None:
        suite = options.suite
        return lambda _seed: OneSuitePolicy(lambda _observation: suite)
    return lambda _seed: OneSuitePolicy(embedded_suite)


def embedded_suite(observation: TestObservation) -> str:
    """Return the embedded policy's suite: of two versions what the comparison shows, else what is documented.

    Never raises, whatever is shown.
    """
    module, files = observation.module_name, observation.files
    shown, old = files.get(f"{module}.py"), files.get(f"{module}_v1.py")
    if shown and old and observation.existing_tests:
        with contextlib.suppress(*UNREADABLE, ConfinedRunError):
            return write_audit(module, old, shown, observation.existing_tests, files.get("CHANGELOG.md", ""))
    return write_suite(module, files)


class OneSuitePolicy:
    """Hands in one suite, then is done: trying again would tell it nothing."""

    def __init__(self, write: SuiteWriter) -> None:
        self.messages: list[Message] = []
        self._write = write
        self._sent = False

    def act(self, observation: TestObservation) -> Move:
        """Return the suite, then `done`."""
        if self._sent:
            return Move(action_type="done")
        self._sent = True
        return Move(test_code=self._write(observation))


class ChatPolicy:
    """Asks a model, and shows it the judge's feedback before the next attempt."""

    def __init__(self, model: ChatModel, seed: int) -> None:
        self.messages: list[Message] = [{"role": "system", "content": SYSTEM}]
        self._model = model
        self._seed = seed

    def act(self, observation: TestObservation) -> Move:
        """Return the model's suite; `done` when it has none after a hint per attempt left, or cannot be asked."""
        asked_before = len(self.messages) > 1
        question = (
            feedback_prompt(observation.feedback_text, observation.attempts_left)
            if asked_before
            else observation.prompt
        )
        try:
            code = self._ask(question)
            for _ in range(max(1, observation.attempts_left)):
                code = code or self._ask(EMPTY_HINT)
        except ModelError as error:
            return Move(action_type="done", error=str(error))
        return Move(test_code=code) if code else Move(action_type="done")

    def _ask(self, question: str) -> str:
        self.messages.append({"role": "user", "content": question})
        answer = self._model.ask(self.messages, self._seed)
        self.messages.append({"role": "assistant", "content": answer})
        return extract_code(answer)
