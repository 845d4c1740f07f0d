"""The family on the real sandbox, and short ways to have a suite judged."""

from collections.abc import Callable

import pytest

from autotest_env.sandbox.run import Sandbox
from autotest_env.tasks.family import Judgement, Task
from autotest_env.tasks.registry import TaskRequest, Tasks

KEY = b"a secret of the tests"
SEED = 42


@pytest.fixture(scope="session")
def tasks(sandbox: Sandbox) -> Tasks:
    """All families."""
    return Tasks(sandbox, KEY)


@pytest.fixture(scope="session")
def task(tasks: Tasks) -> Task:
    """The task of one seed."""
    return tasks.generate(TaskRequest(task_id="unit_test_writer", seed=SEED), fresh_seed=0)


Judge = Callable[[str], Judgement]


@pytest.fixture
def judge(tasks: Tasks, task: Task) -> Judge:
    """Judge a suite on that task."""
    return lambda suite: tasks.family("unit_test_writer").judge(task, suite)
