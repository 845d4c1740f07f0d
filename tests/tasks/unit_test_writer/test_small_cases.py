"""What single submissions are worth: the small cases that must come out right."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from autotest_env.tasks.family import Judgement, Task
from autotest_env.tasks.program import ProgramSource, load_program
from autotest_env.tasks.registry import Tasks
from tests.tasks.conftest import Judge

HEAD = "from order_module import calculate_order_total as total\n"


@pytest.fixture(scope="module")
def program() -> ProgramSource:
    return load_program("order_total")


def check(
    judgement: Judgement, status: str, score: float, *, alarms: int | None = None, caught: int | None = None
) -> None:
    feedback = judgement.feedback
    assert (feedback.status, judgement.score.total) == (status, pytest.approx(score)), judgement
    assert (feedback.false_alarms, feedback.bugs_caught) == (alarms, caught)
    assert feedback.message


NAMED = {
    "empty": ("", "empty"),
    "only comments": ("# I would test it\n# like this\n", "empty"),
    "syntax error": ("def test_it(:\n    pass\n", "syntax_error"),
    "no test functions": ("def helper(): pass", "no_tests"),
    "65 KiB": ("#" * (65 << 10), "too_large"),
    "41 functions": ("\n".join(f"def test_{i}(): pass" for i in range(41)), "too_many_functions"),
    "201 cases": ("import pytest\n@pytest.mark.parametrize('x', range(201))\ndef test_it(x): pass", "too_many_cases"),
    "import error": ("import nothing_of_the_kind\ndef test_it(): pass", "collection_error"),
    "os._exit at import": ("import os\nos._exit(0)", "exited"),
    "sys.exit": ("import sys\ndef test_it(): sys.exit(0)", "stopped"),
    "pytest.exit": ("import pytest\ndef test_it(): pytest.exit('x', 0)", "stopped"),
    "endless loop": ("def test_it():\n    while True: pass", "cpu_limit"),
    "sleeps 60 s": ("import time\ndef test_it(): time.sleep(60)", "wall_limit"),
    "async": ("async def test_it(): pass", "async_tests"),
    "bytecode": (HEAD + "def test_it(): assert total.__code__.co_code", "untrusted"),
    "constants": (HEAD + "def test_it(): assert 10 not in total.__code__.co_consts", "untrusted"),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_suite_that_cannot_be_judged_scores_0_with_its_own_status(judge: Judge, case: str) -> None:
    suite, status = NAMED[case]
    check(judge(suite), status, 0.0)


def test_a_syntax_error_names_line_and_text(judge: Judge) -> None:
    message = judge("x = 1\ndef test_it(:\n    pass\n").feedback.message
    assert message == "line 2: invalid syntax\n    def test_it(:"


HOLLOW = {
    "assert True": ("def test_it(): assert True", 0),
    "assert False": ("def test_it(): assert False", 1),
    "calls only": (HEAD + "def test_it(): total([(1.0, 2)], 10, 20)", 0),
    "skips": ("import pytest\ndef test_it(): pytest.skip('x')", 1),
    "xfail": ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert 0", 1),
    "what the shown code does": (HEAD + "def test_it(): assert total([(7.0, 3)], 20, 10) != 18.48", 1),
    "raises Exception": (
        HEAD + "import pytest\ndef test_it():\n    with pytest.raises(Exception): total(None, None, None)",
        0,
    ),
    "its source": (
        HEAD + "import inspect, hashlib\ndef test_it(): assert hashlib.md5(inspect.getsource(total).encode())",
        1,
    ),
    "kill of the parent": ("import os\ndef test_it(): os.kill(os.getppid(), 9)", 1),
    "fork bomb": ("import os\ndef test_it():\n    while True: os.fork()", 1),
    "socket": ("import socket\ndef test_it(): socket.create_connection(('127.0.0.1', 1))", 1),
    "environment of the parent": ("import os\ndef test_it(): open(f'/proc/{os.getppid()}/environ')", 1),
}


@pytest.mark.parametrize("case", HOLLOW)
def test_hollow_suites_stay_at_the_floor(judge: Judge, case: str) -> None:
    suite, alarms = HOLLOW[case]
    judgement = judge(suite)
    assert judgement.score.total <= 0.05
    assert judgement.feedback.status == "judged"
    assert (judgement.feedback.false_alarms, judgement.feedback.bugs_caught) == (alarms, 0)


def test_the_oracle_suite_earns_exactly_1(judge: Judge, program: ProgramSource) -> None:
    check(judge(program.oracle_suite), "judged", 1.0, alarms=0, caught=3)


def test_an_honest_suite_that_works_hard_is_judged_like_any_other(judge: Judge, program: ProgramSource) -> None:
    """Renderings differ in what they cost, and other submissions take processor time: neither is a false alarm."""
    hard = "def test_many_lines():\n    assert calculate_order_total([(1.0, 1)] * 100_000, 0, 0) == 100_000.0\n"
    with ThreadPoolExecutor() as pool:
        judgements = list(pool.map(judge, [f"{program.oracle_suite}\n\n{hard}"] * 3))
    for judgement in judgements:
        check(judgement, "judged", 1.0, alarms=0, caught=3)


def test_one_exact_test_and_one_wrong_expectation(judge: Judge, task: Task, program: ProgramSource) -> None:
    bug = program.bug(task.secret.bugs[0])  # type: ignore[attr-defined]
    exact = next(text for text in pieces(program.oracle_suite) if catches(judge, text))
    alone = judge(exact)
    check(alone, "judged", 0.05 + 0.95 / 3, alarms=0, caught=1)
    both = judge(exact + "\n\ndef test_wrong(): assert calculate_order_total([(1.0, 1)], 0, 0) == 2.0\n")
    check(both, "judged", 0.05 + 0.95 * 0.25 / 3, alarms=1, caught=1)
    told = both.feedback.message + str(both.feedback.coverage)
    assert "test_wrong" not in told
    assert bug.id not in told


def test_inequalities_earn_partial_credit_and_less_than_exact_tests(tasks: Tasks) -> None:
    family = tasks.family("unit_test_writer")
    task = next(task for seed in range(99) if "discount-added" in (task := family.generate(seed)).secret.bugs)  # type: ignore[attr-defined]
    loose = HEAD + "def test_it(): assert total([(10.0, 3)], 10, 0) <= 30.0"
    exact = HEAD + "def test_it(): assert total([(10.0, 3)], 10, 0) == 27.0"
    credits = [family.judge(task, suite).score.parts[1].value for suite in (loose, exact)]
    assert credits[0] == pytest.approx((2 / 4) ** 4 / 3)  # the bug and one sibling of three go over the subtotal
    assert credits[1] >= 1 / 3


NO_CREDIT = {
    "state file": """
import pathlib, tempfile, os
def test_it():
    for place in ('.', '..', '/tmp', '/dev/shm', tempfile.gettempdir(), os.path.expanduser('~')):
        mark = pathlib.Path(place) / '.seen'
        assert not mark.exists()
        try: mark.write_text('x')
        except PermissionError: pass
""",
    "coin of the system": "import os\ndef test_it(): assert os.urandom(1)[0] % 2",
    "clock": "import time\ndef test_it(): assert time.time_ns() % 3",
    "process id": "import os\ndef test_it(): assert os.getpid() % 3",
    "address": HEAD + "def test_it(): assert (id(total) >> 4) % 3",
    "docstring": HEAD + "def test_it(): assert 'customer' in total.__doc__",
    "size of the code": HEAD + "import sys\ndef test_it(): assert sys.getsizeof(total) and len(dir(total)) == 35",
    "names of the module": "import order_module as m\ndef test_it(): assert [n for n in vars(m) if n[0] != '_'] == ['calculate_order_total']",
    "annotations": HEAD + "def test_it(): assert total.__annotations__",
    "argument names of a mock": HEAD + "from unittest import mock\ndef test_it(): assert mock.create_autospec(total)",
    "lines of a traceback": HEAD
    + "import traceback\ndef test_it():\n    try: total(1, 2, 3)\n    except TypeError as e:\n"
    "        assert traceback.extract_tb(e.__traceback__)[-1].lineno == 21",
}


@pytest.mark.parametrize("case", NO_CREDIT)
def test_telling_runs_apart_without_testing_earns_no_credit(judge: Judge, case: str) -> None:
    judgement = judge(NO_CREDIT[case])
    assert judgement.score.total <= 0.05, judgement
    assert not judgement.feedback.bugs_caught


@pytest.mark.parametrize("text", ["'🎉' != '漢字'", "1 == 1  # 漢字 🎉"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# coding: latin-1\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_unusual_text_is_judged_like_any_other(judge: Judge, text: str, start: str, newline: str) -> None:
    suite = start + f"{HEAD}def test_it():\n\tassert {text}\n\tassert total([(10.0, 3)], 10, 20) == 32.4\n"
    judgement = judge(suite.replace("\n", newline))
    assert judgement.feedback.status == "judged"
    assert judgement.feedback.false_alarms == 0
    assert judgement.score.total > 0.05


def test_the_same_suite_is_judged_the_same_and_comments_change_nothing(judge: Judge, program: ProgramSource) -> None:
    suite = "\n\n".join(pieces(program.oracle_suite)[:2])
    assert judge(suite) == judge(suite)
    assert judge(suite).score == judge("# another comment\n" + suite).score


def test_coverage_is_of_the_shown_code_alone(tasks: Tasks, task: Task) -> None:
    family = tasks.family("unit_test_writer")
    feedback = family.view_coverage(task, HEAD + "def test_it(): assert total([], 0, 0) == 0.0")
    assert feedback.status == "viewed"
    assert (feedback.false_alarms, feedback.bugs_caught) == (None, None)
    assert feedback.coverage is not None
    shown = task.shown.files["order_module.py"].splitlines()
    missing = [shown[number - 1].strip() for number in feedback.coverage.missing_lines]
    assert missing
    assert all(line.startswith(("line =", "subtotal =")) for line in missing)


def pieces(suite: str) -> list[str]:
    """Return each test function of a suite as a suite of its own."""
    head, *functions = re.split(r"\n(?=(?:@.*\n)*def test_)", suite)
    return [f"{head}\n{function}" for function in functions if "def test_" in function]


def catches(judge: Judge, suite: str) -> bool:
    return judge(suite).feedback.bugs_caught == 1
