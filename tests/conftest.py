"""One real server per test session and kind, because importing openenv takes seconds."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from autotest_env.sandbox.run import Sandbox, SandboxOptions

ROOT = Path(__file__).resolve().parent.parent
START_S = 90.0
STOP_S = 20.0


@dataclass(frozen=True)
class RunningServer:
    """A server in a process of its own."""

    urls: tuple[str, ...]
    pid: int
    log: Path
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        """The address of the first socket."""
        return self.urls[0]

    @property
    def ws_url(self) -> str:
        """The first socket's WebSocket for sessions."""
        return f"{self.url.replace('http', 'ws')}/ws"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what scripts/test-compat leaves out, and for want of what."""
    if "not openenv010" in config.option.markexpr:
        for item in terminalreporter.stats.get("deselected", ()):
            for mark in item.iter_markers("openenv010"):
                terminalreporter.write_line(f"left out, for openenv 0.10 alone has {mark.args[0]}: {item.nodeid}")


@contextmanager
def running(command: Sequence[str], log: Path, **environment: str) -> Iterator[RunningServer]:
    """Start a server and end it with SIGTERM; `command` takes --ready-fd."""
    read_end, write_end = os.pipe()
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("AUTOTEST_", "ENABLE_WEB"))}
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, *command, "--ready-fd", str(write_end)],
            pass_fds=(write_end,),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            env={**clean, **environment},
        )
    os.close(write_end)
    try:
        with os.fdopen(read_end) as ready:
            places = re.findall(r"^(\S+) (\d+)$", ready.read(), re.MULTILINE)
        assert places, log.read_text()
        yield RunningServer(tuple(f"http://{host}:{port}" for host, port in places), process.pid, log, process)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


@pytest.fixture(scope="session")
def scripted_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that scores by marks in the text, see tests/server/scripted.py; two sockets."""
    log = tmp_path_factory.mktemp("scripted") / "log"
    with running([str(ROOT / "tests/server/scripted.py"), "--ports", "2"], log) as server:
        yield server


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The server as the console script starts it, with the real engine."""
    log = tmp_path_factory.mktemp("real") / "log"
    with running(["-m", "autotest_env.server.app", "--port", "0"], log) as server:
        yield server


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A real sandbox with two graders."""
    box = Sandbox(SandboxOptions(graders=2))
    box.start()
    yield box
    box.close()


@pytest.fixture(scope="session")
def start_server() -> Callable[..., AbstractContextManager[RunningServer]]:
    """Start a server of one's own."""
    return running
