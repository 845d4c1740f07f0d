import pytest

from autotest_env.errors import InvalidValueError
from autotest_env.server.calls import check_action, check_id, check_reset, check_step
from autotest_env.tasks.registry import TaskRequest

MAX_SEED = 2**63 - 1


def test_a_reset_may_be_empty():
    call = check_reset({})
    assert call.task == TaskRequest()
    assert (call.max_attempts, call.episode_id, call.request_id) == (3, None, None)


def test_a_reset_reads_its_parameters_and_ignores_other_columns():
    row = {"seed": 5, "split": "classic", "index": None, "max_attempts": 2, "prompt": ["x"], "reward": 1.5}
    call = check_reset(row)
    assert call.task == TaskRequest(seed=5, split="classic")
    assert call.max_attempts == 2


@pytest.mark.parametrize("name", ["seed", "index"])
@pytest.mark.parametrize("value", [-1, MAX_SEED + 1, "x", "5", 1.0, float("nan"), True, [1], {}])
def test_seed_and_index_are_integers_in_range(name, value):
    with pytest.raises(InvalidValueError, match=f"{name} must be an integer from 0 to {MAX_SEED}"):
        check_reset({name: value})


@pytest.mark.parametrize("value", [0, 6, "1", 1.5])
def test_attempts_are_one_to_five(value):
    with pytest.raises(InvalidValueError, match="max_attempts must be an integer from 1 to 5"):
        check_reset({"max_attempts": value})


@pytest.mark.parametrize("name", ["task_id", "split", "difficulty", "episode_id", "request_id"])
@pytest.mark.parametrize("value", [5, "", "x" * 256, "a\nb", "a\x00", ["x"], True])
def test_names_are_short_printable_strings(name, value):
    with pytest.raises(InvalidValueError, match=f"{name} must be a string of 1 to 255 printable"):
        check_reset({name: value})


def test_a_step_is_flat_or_nested():
    flat = check_step({"test_code": "x", "episode_id": "e", "request_id": "r"})
    nested = check_step({"action": {"test_code": "x"}, "episode_id": "e", "request_id": "r", "timeout_s": 3})
    assert flat == nested
    assert (flat.action.test_code, flat.episode_id, flat.request_id) == ("x", "e", "r")


@pytest.mark.parametrize("beside", [{"test_code": "x"}, {"action_type": "done"}, {"notes": ""}])
def test_a_step_in_both_forms_is_refused_instead_of_half_of_it_judged(beside):
    with pytest.raises(InvalidValueError, match="not in both places"):
        check_step({"action": {}, **beside})


def test_test_code_may_be_missing_and_has_no_length_limit():
    assert check_step({}).action.test_code == ""
    assert len(check_action({"test_code": "x" * 900_000}).test_code) == 900_000


@pytest.mark.parametrize(
    ("action", "right"),
    [
        ({"action_type": "submit"}, "action_type must be 'submit_tests', 'view_coverage' or 'done'"),
        ({"test_code": None}, "test_code must be a string"),
        ({"test_code": 5}, "test_code must be a string"),
        ({"notes": []}, "notes must be a string"),
        ({"metadata": 1}, "metadata must be an object"),
        ({"tset_code": "x"}, "unknown field; an action has metadata, action_type, test_code, notes"),
    ],
)
def test_a_bad_action_is_refused_with_what_would_be_right(action, right):
    with pytest.raises(InvalidValueError) as caught:
        check_step(action)
    assert str(caught.value) == right
    with pytest.raises(InvalidValueError):
        check_step({"action": action})


@pytest.mark.parametrize("action", ["submit_tests", None, [1], 5])
def test_a_nested_action_must_be_an_object(action):
    with pytest.raises(InvalidValueError, match="action must be an object"):
        check_step({"action": action})


@pytest.mark.parametrize("data", [{"marker-7f3": 1}, {"test_code": ["marker-7f3"]}, {"action_type": "marker-7f3"}])
def test_a_refusal_never_repeats_what_it_refuses(data):
    with pytest.raises(InvalidValueError) as caught:
        check_step(data)
    assert "marker" not in str(caught.value)


def test_an_id_may_be_left_out():
    assert check_id(None, "episode_id") is None
