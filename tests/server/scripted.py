"""A family that scores by marks in the text instead of running it, and a server that serves it.

score=0.5     this submission's score
wait=0.5      judging takes so many seconds
busy_first    the first time we are too busy
grader_fails  we fail            grader_breaks  an exception nobody expected, with the code in its text
"""

import argparse
import logging
import re
import sys
import time

from autotest_env.errors import GraderBusyError
from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.sandbox.suite import TestOutcome
from autotest_env.server.app import build_app
from autotest_env.server.listening import bind, serve
from autotest_env.server.settings import Settings
from autotest_env.tasks.family import Coverage, Feedback, Judgement, Shown, ShownTest, Task
from autotest_env.tasks.registry import Tasks
from autotest_env.tasks.score import Part, Score

SECRET = "the-secret-of-the-scripted-task"


class ScriptedFamily:
    """A complete family; counts what it judged."""

    name = "unit_test_writer"
    version = 1

    def __init__(self) -> None:
        self.judged: list[str] = []
        self._refused: set[str] = set()

    def generate(self, seed: int) -> Task:
        files = {"order_module.py": f"def answer():\n    return {seed}\n"}
        shown = Shown(prompt=f"Test order_module.answer, seed {seed}.", module_name="order_module", files=files)
        return Task(id=f"unit_test_writer-v1/classic/{seed}", family=self.name, seed=seed, shown=shown, secret=SECRET)

    def judge(self, task: Task, test_code: str) -> Judgement:
        assert task.secret == SECRET
        self._act(test_code)
        self.judged.append(test_code)
        value = float(_mark("score", test_code) or 0.0)
        return Judgement(score=Score((Part(name="scripted", value=value, weight=1.0),)), feedback=_feedback(test_code))

    def view_coverage(self, task: Task, test_code: str) -> Feedback:
        assert task.secret == SECRET
        self._act(test_code)
        return _feedback(test_code)

    def _act(self, test_code: str) -> None:
        time.sleep(float(_mark("wait", test_code) or 0.0))
        if "busy_first" in test_code and test_code not in self._refused:
            self._refused.add(test_code)
            raise GraderBusyError("no grader is free", retry_after_s=1)
        if "grader_fails" in test_code:
            raise GraderBusyError("all graders are busy", retry_after_s=1)
        if "grader_breaks" in test_code:
            raise RuntimeError(test_code)


class ScriptedTasks(Tasks):
    """The real way from a reset to a task, with the scripted family in the place of the real one."""

    def __init__(self, family: ScriptedFamily) -> None:
        super().__init__(Sandbox(SandboxOptions()), b"")
        self._loaded[family.name] = family


def _feedback(test_code: str) -> Feedback:
    size = len(test_code)
    return Feedback(
        status="judged",
        message=f"{size} characters were judged",
        tests=(ShownTest(name="test_scripted", outcome=TestOutcome.FAILED, message=test_code[:300], line=1),),
        false_alarms=1,
        bugs_caught=0,
        bugs_total=3,
        coverage=Coverage(percent=50.0, missing_lines=(2,)),
    )


def _mark(name: str, text: str) -> str | None:
    found = re.search(rf"{name}=([0-9.]+)", text)
    return found and found[1]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", type=int, default=1)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--sessions", type=int, default=16)
    options = parser.parse_args()
    logging.basicConfig(level="INFO")
    settings = Settings(ports=(0,) * options.ports, sessions=options.sessions)
    app = build_app(settings, ScriptedTasks(ScriptedFamily()))
    return serve(app, bind(settings.host, settings.ports), "info", ready_fd=options.ready_fd)


if __name__ == "__main__":
    sys.exit(main())
