"""The log lines."""

import io
import json
import threading
from typing import Any

import pytest

from autotest_env.agents.journal import Journal, StepRecord, one_line


def step(**changes: Any) -> StepRecord:
    return StepRecord(**{"action_type": "submit_tests", "test_code": "x", "reward": 0.5, "done": True, **changes})


def test_an_episode_is_logged_in_the_standard_lines() -> None:
    out = io.StringIO()
    log = Journal(out, "embedded").plan("unit_test_writer", 42)
    log.start()
    log.step(step(test_code="import pytest\n\n\ndef test_a():\n    assert 1", reward=0.4567, done=False))
    log.step(step(action_type="done", reward=0.1))
    log.end()
    assert out.getvalue() == (
        "[START] task=unit_test_writer env=autotest-env model=embedded\n"
        "[STEP] step=1 action=import pytest def test_a(): assert 1 reward=0.46 done=false error=null\n"
        "[STEP] step=2 action=done reward=0.10 done=true error=null\n"
        "[END] success=true steps=2 score=0.557 rewards=0.46,0.10\n"
    )


@pytest.mark.parametrize(
    ("rewards", "error", "success"),
    [
        ([0.5], None, True),
        ([0.2, 0.3], None, True),
        ([0.1] * 5, None, True),
        ([0.499], None, False),
        ([], None, False),
        ([1.0], "it broke", False),
    ],
)
def test_success_is_half_the_score_and_no_error(rewards: list[float], error: str | None, success: bool) -> None:
    log = Journal(io.StringIO(), "m").plan("f", 1)
    log.start()
    for reward in rewards:
        log.step(step(reward=reward))
    log.end(error)
    assert log.success is success


def test_an_error_of_a_step_is_one_line_and_fails_the_episode() -> None:
    out = io.StringIO()
    log = Journal(out, "m").plan("f", 1)
    log.start()
    log.step(step(reward=1.0, error="first\nsecond\x1b[31m"))
    log.end()
    assert out.getvalue().splitlines()[1:] == [
        "[STEP] step=1 action=x reward=1.00 done=true error=first second\\x1b[31m",
        "[END] success=false steps=1 score=1.000 rewards=1.00",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\r\n\t b\u2028c", "a b c"),
        ("a\x00b\x07", "a\\x00b\\x07"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("é漢", "é漢"),
        ("y" * 61, "y" * 60),
        ("\x00" * 60, "\\x00" * 15),
    ],
)
def test_text_becomes_one_printable_line(text: str, line: str) -> None:
    assert one_line(text, 60) == line


def test_episodes_played_at_once_are_printed_in_the_planned_order() -> None:
    out = io.StringIO()
    journal = Journal(out, "m")
    first, second = journal.plan("first", 1), journal.plan("second", 2)
    second.start()
    second.step(step())
    first.start()
    assert out.getvalue().count("\n") == 1
    second.end()
    first.end()
    starts = [line.split()[1] for line in out.getvalue().splitlines() if line.startswith("[START]")]
    assert starts == ["task=first", "task=second"]
    assert out.getvalue().count("[END]") == 2


def test_closing_ends_what_was_begun_and_lets_nothing_more_through() -> None:
    out = io.StringIO()
    journal = Journal(out, "m")
    first, second, third = (journal.plan(name, 1) for name in ("first", "second", "third"))
    first.start()
    second.start()
    second.step(step())
    journal.close("interrupted")
    printed = out.getvalue()
    for log in (first, second, third):
        log.start()
        log.step(step())
        log.end()
    assert out.getvalue() == printed
    assert [line.split()[:2] for line in printed.splitlines()] == [
        ["[START]", "task=first"],
        ["[END]", "success=false"],
        ["[START]", "task=second"],
        ["[STEP]", "step=1"],
        ["[END]", "success=false"],
    ]


def test_closing_before_the_first_start_still_prints_both_lines() -> None:
    out = io.StringIO()
    journal = Journal(out, "m")
    journal.plan("first", 1)
    journal.plan("second", 2)
    journal.close("interrupted")
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["[START]", "[END]"]


def test_each_line_is_whole_whatever_the_threads_do() -> None:
    out = io.StringIO()
    journal = Journal(out, "m")
    logs = [journal.plan(f"family{number}", number) for number in range(8)]

    def play(number: int) -> None:
        logs[number].start()
        for _ in range(20):
            logs[number].step(step(test_code=f"code{number}"))
        logs[number].end()

    threads = [threading.Thread(target=play, args=(number,)) for number in reversed(range(8))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = out.getvalue().splitlines()
    assert len(lines) == 8 * 22
    for number in range(8):
        own = lines[number * 22 : (number + 1) * 22]
        assert own[0] == f"[START] task=family{number} env=autotest-env model=m"
        assert all(f"action=code{number} " in line for line in own[1:-1])


def test_a_reader_that_went_away_is_noticed() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    journal = Journal(Closed(), "m")
    journal.plan("f", 1).start()
    assert journal.broken


def test_the_record_of_an_episode_is_one_line_of_json() -> None:
    records = io.StringIO()
    log = Journal(io.StringIO(), "m", records).plan("f", 7)
    log.messages = [{"role": "user", "content": "a\nb"}]
    log.start()
    log.step(step(reward=0.75, score=0.75, reward_parts=({"name": "bugs", "value": 1.0, "weight": 0.75},)))
    log.end()
    assert records.getvalue().count("\n") == 1
    record = json.loads(records.getvalue())
    assert (record["family"], record["seed"], record["score"], record["success"]) == ("f", 7, 0.75, True)
    assert record["messages"] == log.messages
    assert record["steps"][0]["reward_parts"] == [{"name": "bugs", "value": 1.0, "weight": 0.75}]
