"""The process that tries out shown code: what it answers, and attacks on it from inside."""

import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from autotest_env.agents.confined import Answer, ConfinedRunError, Job, run_confined

FIRST = "def f(x=0):\n    return x + 1\n"
TESTS = """
import pytest
from shop import f

@pytest.fixture
def one():
    return 1

@pytest.mark.parametrize("x", [1, 2])
def test_each(x, one):
    assert f(x) == x + one

def test_first(monkeypatch):
    assert f(1) == 2

class TestMore:
    def test_inside(self):
        assert f(0)
"""


def tried(program: str, call: str = "f()", wall_s: float = 60) -> str | None:
    """What a call on a program gives."""
    job = Job(module="shop", programs=[program], script="from shop import f", calls=[call])
    ((result,),) = (answer.results for answer in run_confined(job, wall_s))
    return result


def test_tests_are_run_on_every_program_by_pytest_itself() -> None:
    answers = run_confined(Job(module="shop", programs=[FIRST, FIRST.replace("+ 1", "* 2")], tests=TESTS))
    assert [answer.passed for answer in answers] == [
        {"test_each": True, "test_first": True, "test_inside": True},
        {"test_each": False, "test_first": True, "test_inside": False},
    ]


def test_calls_are_evaluated_on_every_program() -> None:
    programs = [FIRST, "f = dict", "raise SystemExit", "def f(:"]
    job = Job(module="shop", programs=programs, script="from shop import f", calls=["f()", "f(x=2)"])
    assert [answer.results for answer in run_confined(job)] == [
        ("1", "3"),
        ("{}", "{'x': 2}"),
        (None, None),
        (None, None),
    ]


@pytest.mark.parametrize(
    "program",
    [
        "import itertools\ncount = itertools.count()\ndef f():\n    return next(count)\n",
        "import secrets\ndef f():\n    return secrets.token_hex()\n",
        "def f():\n    return 'x' * 1000\n",
        "def f():\n    raise SystemExit\n",
        "def f():\n    return f()\n",
        "def f():\n    while True:\n        pass\n",
        "def f():\n    return bytearray(2 << 30)\n",
        "import threading\ndef f():\n    while True:\n        threading.Thread(target=threading.Event().wait).start()\n",
    ],
    ids=["stateful", "random", "long", "exit", "recursion", "endless", "memory", "threads"],
)
def test_a_call_without_one_short_result_has_none(program: str) -> None:
    assert tried(program) is None


def test_sets_and_seeds_are_the_same_in_every_process() -> None:
    program = "import random\ndef f():\n    return list({'a', 'b', 'c', 'd', 'e'}), random.random()\n"
    assert tried(program) == tried(program)


ATTACKS = {
    "socket": "import socket\ndef f():\n    socket.socket()\n",
    "connect": "import socket\ndef f():\n    socket.create_connection(('127.0.0.1', {port}), 5)\n",
    "fork": "import os\ndef f():\n    os.fork()\n",
    "program": "import subprocess\ndef f():\n    subprocess.run(['true'])\n",
    "kill": "import os\ndef f():\n    os.kill({pid}, 0)\n",
    "read": "def f():\n    open({secret!r}).read()\n",
    "read /etc": "def f():\n    open('/etc/passwd').read()\n",
    "read environ": "def f():\n    open('/proc/{pid}/environ').read()\n",
    "write outside": "def f():\n    open({secret!r} + '2', 'w')\n",
    "write inside": "def f():\n    open('more', 'w')\n",
    "installed": "def f():\n    import requests\n",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_it_need_not_reach_is_out_of_reach(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = {"port": server.getsockname()[1], "pid": os.getpid(), "secret": str(tmp_path / "secret")}
        attack = ATTACKS[name].format(**here)
        body = (
            attack.replace("\n    ", "\n    try:\n        ", 1)
            + "    except (OSError, ImportError):\n        return 'refused'\n"
        )
        assert tried(body) == "'refused'"
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_without_room_for_temporary_files_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    with pytest.raises(ConfinedRunError, match="could not be started"):
        tried(FIRST)


def test_the_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/secret")
    environment = tried("import os\ndef f():\n    return sorted(os.environ)\n")
    assert environment is not None
    assert "API_KEY" not in environment
    assert "PYTHONPATH" not in environment


BREAKING = {
    "exit": "import os\nos._exit(0)\n",
    "crash": "import ctypes\nctypes.string_at(0)\n",
    "sleep": "import time\ntime.sleep(1000)\n",
    "sleep on": "import time\nwhile True:\n    try:\n        time.sleep(1000)\n    except BaseException:\n        pass\n",
    "flood": "import os\nwhile True:\n    for number in range(3, 9):\n        try:\n            os.write(number, b'x' * 65536)\n        except OSError:\n            pass\n",
    "garbage": "import os\nfor number in range(3, 9):\n    try:\n        os.write(number, b'[1, {')\n    except OSError:\n        pass\n",
}


@pytest.mark.parametrize("name", BREAKING)
def test_a_process_that_is_broken_from_inside_gives_an_error_in_time(name: str) -> None:
    with pytest.raises(ConfinedRunError):
        tried(BREAKING[name], wall_s=5)
    assert not list(_children())


def _children() -> Iterator[str]:
    """Command lines of processes that we started and that are still there."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            command = (folder / "cmdline").read_text()
            if parent == str(os.getpid()) and "child.py" in command:
                yield command


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        [1],
        [{"passed": {}, "results": []}],
        [{"passed": [], "results": ["1"]}],
        [{"passed": {}, "results": "1"}],
        [{"passed": {}, "results": ["1"]}] * 2,
    ],
)
def test_a_forged_answer_of_another_shape_is_an_error(answer: object) -> None:
    with pytest.raises(ConfinedRunError):
        tried(forging(answer))


def test_a_forged_answer_of_the_right_shape_is_data_of_the_right_types() -> None:
    job = Job(module="shop", programs=[forging([{"passed": {"a\nb": True, "c": 1}, "results": [7]}])], calls=["f()"])
    assert run_confined(job) == (Answer(passed={"c": False}, results=(None,)),)


def forging(answer: object) -> str:
    """A program that answers in place of the process; its output is the only pipe it has."""
    return (
        "import os, stat\n"
        "for number in range(3, 9):\n"
        "    try:\n"
        "        if stat.S_ISFIFO(os.fstat(number).st_mode):\n"
        f"            os.write(number, {json.dumps(answer)!r}.encode())\n"
        "    except OSError:\n"
        "        pass\n"
        "os._exit(0)\n"
    )


def test_many_jobs_at_once_do_not_meet() -> None:
    results: dict[int, str | None] = {}

    def work(number: int) -> None:
        results[number] = tried(FIRST, f"f({number})")

    threads = [Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: "1", 1: "2", 2: "3"}
