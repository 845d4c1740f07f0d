import pytest

from autotest_env.errors import InvalidValueError, UnknownTaskError
from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.tasks.registry import TaskRequest, Tasks

ID = "unit_test_writer-v1/classic/17"


@pytest.fixture(scope="module")
def tasks():
    return Tasks(Sandbox(SandboxOptions()), b"")


@pytest.mark.parametrize("beside", [{}, {"seed": 17}, {"index": 17, "split": "classic"}])
def test_a_tasks_own_id_may_stand_beside_what_agrees_with_it(tasks, beside):
    assert tasks.generate(TaskRequest(task_id=ID, **beside), 0).id == ID


@pytest.mark.parametrize("beside", [{"seed": 18}, {"index": 0}, {"split": "train"}])
def test_a_tasks_own_id_is_not_contradicted(tasks, beside):
    with pytest.raises(InvalidValueError, match="task_id names one task"):
        tasks.generate(TaskRequest(task_id=ID, **beside), 0)


def test_a_seed_and_an_index_that_differ_name_no_task(tasks):
    assert tasks.generate(TaskRequest(seed=5, index=5), 0).seed == 5
    with pytest.raises(InvalidValueError, match="leave one of them out"):
        tasks.generate(TaskRequest(seed=5, index=6), 0)


def test_digits_of_other_scripts_are_in_no_id(tasks):
    with pytest.raises(UnknownTaskError, match="ids look like"):
        tasks.generate(TaskRequest(task_id="unit_test_writer-v1/classic/\uff11\uff17"), 0)
