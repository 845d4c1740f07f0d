"""The baseline command as a process: real servers, real signals, and nothing but the log lines on stdout."""

import contextlib
import io
import json
import os
import queue
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from autotest_env.agents.journal import Journal
from autotest_env.agents.options import FAMILIES, read_options
from autotest_env.inference import Baseline, LocalServer

ROOT = Path(__file__).resolve().parent.parent
KEYS = {"HF_TOKEN", "API_KEY", "OPENAI_API_KEY", "API_BASE_URL", "MODEL_NAME"}
START = r"\[START\] task=[a-z_]+ env=autotest-env model=\S+"
STEP = r"\[STEP\] step=\d+ action=.{0,60} reward=\d\.\d\d done=(true|false) error=.+"
END = r"\[END\] success=(true|false) steps=\d+ score=\d\.\d{3} rewards=(\d\.\d\d(,\d\.\d\d)*)?"
ONE = "--task=unit_test_writer"
FAILED_END = "[END] success=false steps=0 score=0.000 rewards="


class Command:
    """`python inference.py` with a mark in its environment that its children inherit."""

    def __init__(self, *argv: str, **environ: str) -> None:
        self.mark = uuid.uuid4().hex
        clean = {
            name: text for name, text in os.environ.items() if name not in KEYS and not name.startswith("AUTOTEST_")
        }
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "inference.py"), *argv],
            env={**clean, "MARK": self.mark, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.read: list[str] = []

    def wait_for(self, text: str) -> None:
        """Read stdout up to a line with the text."""
        while text not in (self.read[-1] if self.read else ""):
            line = self.process.stdout.readline()
            assert line, "stdout ended"
            self.read.append(line)

    def finish(self) -> tuple[int, list[str], str]:
        """Wait for the end; exit code, lines of stdout, stderr."""
        rest, err = self.process.communicate(timeout=120)
        return self.process.returncode, ("".join(self.read) + rest).splitlines(), err

    def relatives(self) -> list[int]:
        """Processes that inherited the mark, the command itself included."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def trying_out(self) -> list[Path]:
        """Command lines, in /proc, of the processes in which it runs shown code; they inherit no mark."""
        task = f"/proc/{self.process.pid}/task"
        children = [pid for path in Path(task).glob("*/children") for pid in path.read_text().split()]
        return [path for pid in children if b"child.py" in (path := Path(f"/proc/{pid}/cmdline")).read_bytes()]


def run(*argv: str, **environ: str) -> tuple[int, list[str], str]:
    return Command(*argv, **environ).finish()


def assert_standard(lines: list[str]) -> None:
    """Every line is one of the three kinds, and every episode has one [START] and one [END]."""
    for line in lines:
        assert re.fullmatch(f"{START}|{STEP}|{END}", line), line
    kinds = " ".join(line.split()[0] for line in lines)
    assert re.fullmatch(r"(\[START\]( \[STEP\])* \[END\] ?)+", kinds), lines


def interrupted(command: Command, number: signal.Signals = signal.SIGINT) -> list[str]:
    """Send the signal, and return the lines; the command has to end soon, and leave nothing behind."""
    began = time.monotonic()
    command.process.send_signal(number)
    code, lines, err = command.finish()
    assert code == 128 + number
    assert time.monotonic() - began < 15
    assert "Traceback" not in err
    assert command.relatives() == []
    assert_standard(lines)
    return lines


class Silent(ThreadingHTTPServer):
    """Answers the paths it has answers for, and is silent about the others."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SilentHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: queue.SimpleQueue[str] = queue.SimpleQueue()

    def wait_for(self, path: str, count: int = 1) -> None:
        """Wait until a path was asked for so many times."""
        while count:
            count -= self.asked.get(timeout=90) == path


class SilentHandler(BaseHTTPRequestHandler):
    server: Silent

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.put(self.path)
        if self.path not in self.server.answers:
            time.sleep(90)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.answers[self.path]).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def silent() -> Iterator[Silent]:
    """A server that takes every request and answers none, unless given answers."""
    server = Silent()
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_against_a_given_server_only_the_standard_lines_are_printed_whatever_the_proxy(
    scripted_server: Any, tmp_path: Path
) -> None:
    suite = tmp_path / "suite.py"
    suite.write_text("# score=0.7\n\n\ndef test_it():\n    assert True\n")
    argv = (ONE, "--base-url", scripted_server.url, "--policy", f"file:{suite}", "--out", str(tmp_path / "o"))
    code, lines, err = run(*argv, HTTP_PROXY="http://127.0.0.1:1", NO_PROXY="example.org")
    assert lines == [
        "[START] task=unit_test_writer env=autotest-env model=file:suite.py",
        "[STEP] step=1 action=# score=0.7 def test_it(): assert True reward=0.70 done=true error=null",
        "[END] success=true steps=1 score=0.700 rewards=0.70",
    ]
    assert code == 0
    assert "Traceback" not in err
    assert (tmp_path / "o/episodes.jsonl").read_text().count("\n") == 1


def test_the_same_seed_prints_the_same_bytes_against_servers_of_its_own() -> None:
    first, second = (Command("--seed", "42") for _ in range(2))
    code, lines, err = first.finish()
    assert (code, lines) == second.finish()[:2]
    assert code == 0
    assert_standard(lines)
    starts = [line for line in lines if line.startswith("[START]")]
    assert starts == [f"[START] task={family} env=autotest-env model=embedded" for family in FAMILIES]
    scores = re.findall(r"score=(\d\.\d+)", "\n".join(lines))
    assert [float(score) > 0.2 for score in scores] == [True] * len(FAMILIES), lines
    assert "Traceback" not in err
    assert first.relatives() + second.relatives() == []


def test_episodes_played_at_once_print_the_same_bytes_as_one_by_one(scripted_server: Any) -> None:
    def printed(*argv: str) -> tuple[str, str]:
        common = (ONE, "--base-url", scripted_server.url, "--seeds", "42,123,456", "--episodes", "3")
        options = read_options([*common, *argv], {})
        out, records = io.StringIO(), io.StringIO()
        assert Baseline(options, Journal(out, options.model, records), LocalServer()).run()
        return out.getvalue(), records.getvalue()

    one_by_one = printed()
    assert printed("--concurrency", "4") == one_by_one
    assert_standard(one_by_one[0].splitlines())
    assert one_by_one[0].count("[END]") == one_by_one[1].count("\n") == 9


def test_a_server_that_does_not_start_ends_every_episode() -> None:
    code, lines, err = run(ONE, "--seeds", "1,2", AUTOTEST_NO_SUCH_SETTING="1")
    assert code == 1
    assert [line for line in lines if not line.startswith("[START]")] == [FAILED_END] * 2
    assert_standard(lines)
    assert "AUTOTEST_NO_SUCH_SETTING" in err
    assert "Traceback" not in err


@pytest.mark.heavy  # asked for half a minute
def test_a_server_that_is_not_there_ends_the_episode() -> None:
    code, lines, err = run(ONE, "--base-url", "http://127.0.0.1:1")
    assert (code, lines[1:]) == (1, [FAILED_END])
    assert "no answer" in err
    assert "Traceback" not in err


def test_a_task_the_server_refuses_ends_the_episode(scripted_server: Any) -> None:
    code, lines, err = run(ONE, "--base-url", scripted_server.url, "--split", "no_such_split")
    assert (code, lines[1:]) == (1, [FAILED_END])
    assert "unknown split" in err


def test_bad_options_print_nothing_on_stdout_and_exit_with_2(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for argv in (["--seed", "x"], ["--out", str(tmp_path / "file" / "below")]):
        code, lines, err = run(*argv)
        assert (code, lines) == (2, [])
        assert argv[0] in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("pause_s", [0.0, 1.5])
def test_a_signal_while_the_server_starts_still_ends_the_episode(number: signal.Signals, pause_s: float) -> None:
    command = Command(ONE)
    command.wait_for("[START]")
    time.sleep(pause_s)
    assert interrupted(command, number)[1:] == [FAILED_END]


def test_a_signal_in_the_first_moment_leaves_complete_lines() -> None:
    code = f"""
import os, runpy, signal, sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == "subprocess":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupter())
sys.argv = ["inference.py", {ONE!r}, "--base-url", "http://127.0.0.1:1"]
runpy.run_path({str(ROOT / "inference.py")!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert_standard(done.stdout.splitlines())
    assert done.stdout.splitlines()[1:] == [FAILED_END]


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_without_a_stderr_every_line_is_printed_all_the_same(scripted_server: Any, tmp_path: Path, closed: str) -> None:
    suite = tmp_path / "suite.py"
    suite.write_text("# score=0.7\n")
    command = [
        sys.executable,
        str(ROOT / "inference.py"),
        ONE,
        f"--base-url={scripted_server.url}",
        f"--policy=file:{suite}",
    ]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    done = subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert_standard(done.stdout.splitlines())
    assert done.stdout.endswith("[END] success=true steps=1 score=0.700 rewards=0.70\n")


def test_an_error_that_nobody_can_be_told_still_ends_the_episode(scripted_server: Any) -> None:
    refused = ("--base-url", scripted_server.url, "--split", "no_such_split")
    command = [sys.executable, str(ROOT / "inference.py"), ONE, *refused]
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    done = subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [FAILED_END]


def test_a_signal_during_a_reset_ends_the_episode(silent: Silent) -> None:
    command = Command(ONE, "--base-url", silent.url)
    silent.wait_for("/reset")
    assert interrupted(command)[1:] == [FAILED_END]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_step_ends_the_episode(silent: Silent, number: signal.Signals) -> None:
    silent.answers["/reset"] = {"observation": {}, "reward": None, "done": False, "episode_id": "one"}
    command = Command(ONE, "--base-url", silent.url)
    silent.wait_for("/step")
    assert interrupted(command, number)[1:] == [FAILED_END]


def test_a_signal_while_models_think_ends_the_episodes_that_began(scripted_server: Any, silent: Silent) -> None:
    common = (ONE, "--base-url", scripted_server.url, "--episodes", "10", "--concurrency", "3")
    command = Command(*common, API_BASE_URL=f"{silent.url}/v1")
    silent.wait_for("/v1/chat/completions", 3)
    lines = interrupted(command)
    assert [line for line in lines if not line.startswith("[START]")] == [FAILED_END] * 3


def test_a_signal_while_shown_code_runs_ends_its_process_too(silent: Silent, tmp_path: Path) -> None:
    shown = {"module_name": "m", "files": {"m.py": "x = 1", "m_v1.py": "x = 2"}, "existing_tests": "while True: pass"}
    silent.answers["/reset"] = {"observation": shown, "reward": None, "done": False, "episode_id": "one"}
    command = Command(ONE, "--base-url", silent.url, TMPDIR=str(tmp_path))
    while not (running := command.trying_out()):
        time.sleep(0.05)
    assert interrupted(command)[1:] == [FAILED_END]
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 10
    while any(b"child.py" in path.read_bytes() for path in running if path.exists()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_server_of_its_own_gets_no_key_and_is_stopped_by_a_signal(silent: Silent) -> None:
    command = Command(ONE, API_BASE_URL=f"{silent.url}/v1", HF_TOKEN="hf-secret-token")
    silent.wait_for("/v1/chat/completions")
    others = [pid for pid in command.relatives() if pid != command.process.pid]
    environs = [Path(f"/proc/{pid}/environ").read_bytes() for pid in others]
    assert others
    assert not any(b"hf-secret-token" in environ for environ in environs)
    assert interrupted(command)[1:] == [FAILED_END]


def test_a_reader_that_goes_away_ends_the_run_quietly(scripted_server: Any) -> None:
    command = Command(ONE, "--base-url", scripted_server.url, "--episodes", "500")
    command.wait_for("[START]")
    command.process.stdout.close()
    with command.process.stderr as stderr:
        err = stderr.read()
    assert command.process.wait(60) == 1
    assert "Traceback" not in err


def test_without_the_package_one_line_says_how_to_install_it() -> None:
    command = [sys.executable, "-S", str(ROOT / "inference.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env={})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "pip install" in done.stderr


def test_importing_the_command_imports_nothing_heavy() -> None:
    code = (
        "import sys, autotest_env.inference; print([m for m in ('openenv', 'openai', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
