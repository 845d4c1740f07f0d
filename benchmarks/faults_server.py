"""The server of `faults.py` from outside: its processes, folder and descriptors, and what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
STOP_S = 20.0
"""SIGTERM ends a server within this time."""
WITH_FEW_DESCRIPTORS = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
WITHOUT_NAMESPACES = """
import errno, os, pyseccomp, sys
rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
rules.add_rule(pyseccomp.ERRNO(errno.EPERM), "unshare")
rules.load()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Server:
    """A real server in a process and a temporary folder of its own; a block that has not stopped it kills it."""

    def __init__(self, folder: Path, *prelude: str, **environment: str) -> None:
        """Start it in a folder; a prelude is a program, with arguments, that becomes the server."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        read_end, write_end = os.pipe()
        command = [sys.executable, *(["-c", *prelude] if prelude else [])]
        command += ["-m", "autotest_env.server.app", "--port", "0", "--ready-fd", str(write_end)]
        clean = {name: text for name, text in os.environ.items() if not name.startswith("AUTOTEST_")}
        self.log = Path(f"{folder}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, pass_fds=[write_end], env={**clean, "TMPDIR": str(folder), **environment}, stderr=log
            )
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            place = ready.readline().split()
        assert place, f"no server started: {self.log.read_text()}"
        self.host, port = place
        self.port = int(port)
        self.url = f"http://{self.host}:{self.port}"
        time.sleep(0.5)
        self._standing = generations(self.process.pid)
        self.descriptors = self.count_descriptors()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def fork_servers(self) -> list[int]:
        """Processes that stand while nothing runs: the fork servers, with any process between the server and them."""
        return [pid for level in generations(self.process.pid)[: len(self._standing)] for pid in level]

    def children(self) -> list[int]:
        """Processes that fork servers have started, each for one job."""
        return [pid for level in generations(self.process.pid)[len(self._standing) :] for pid in level]

    def missing(self, killed: Iterable[int] = ()) -> list[str]:
        """Say so when not as many fork servers stand as at the start, or when one of the killed ones still does."""
        now = generations(self.process.pid)[: len(self._standing)]
        whole = [len(level) for level in now] == [len(level) for level in self._standing]
        if whole and not {pid for level in now for pid in level}.intersection(killed):
            return []
        return [f"lost: fork servers {now}, at the start {self._standing}"]

    def count_descriptors(self) -> int:
        """Open descriptors of the server process."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def left_over(self) -> list[str]:
        """What an idle server should not have; waits a little for it to go."""
        return settled(self._left_over, 15.0)

    def stop(self) -> list[str]:
        """End the server with SIGTERM; return what is left behind."""
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            return [f"the server still ran {STOP_S:.0f} s after SIGTERM"]
        said = self.log.read_text(errors="replace")
        problems = [f"exit code {code} after SIGTERM"] if code not in (0, -signal.SIGTERM) else []
        if f'File "{ROOT}' in said:
            problems.append(f"a traceback through our code in the log: {said[-1000:]}")
        return problems + settled(self._remains, 5.0)

    def _left_over(self) -> list[str]:
        found = self.missing()
        found += [f"process {pid} still runs" for pid in self.children()]
        folders = [path for top in self.folder.glob("autotest-*") for path in top.iterdir()]
        if len(folders) != len(self._standing[0]):
            found.append(f"folders of fork servers: {[path.name for path in folders]}")
        found += [f"file {path}" for folder in folders for path in (folder / "run").glob("*")]
        if self.count_descriptors() > self.descriptors + 2:
            targets = Counter(str(path.readlink()) for path in Path(f"/proc/{self.process.pid}/fd").iterdir())
            found.append(f"{self.count_descriptors()} descriptors, {self.descriptors} at the start: {targets}")
        return found

    def _remains(self) -> list[str]:
        mark = str(self.folder).encode()
        pids = [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in _bytes_of(path)]
        return [f"process {path.parent.name} outlived the server" for path in pids] + [
            f"left in the folder: {path.name}" for path in self.folder.iterdir() if path.name != "lost+found"
        ]


def generations(pid: int) -> list[list[int]]:
    """Process ids below a process, one list for children, one for grandchildren and so on; the dead are left out."""
    levels: list[list[int]] = []
    level = [pid]
    while level := [child for parent in level for child in _children_of(parent)]:
        levels.append(level)
    return levels


def _children_of(pid: int) -> list[int]:
    words = b"".join(_bytes_of(path) for path in Path(f"/proc/{pid}/task").glob("*/children")).split()
    return [int(word) for word in words if b") Z " not in _bytes_of(Path(f"/proc/{int(word)}/stat"))]


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def cpu_s(pid: int) -> float:
    fields = _bytes_of(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def settled(look: Callable[[], list[str]], patience_s: float, pause_s: float = 0.2) -> list[str]:
    """Look until nothing is found, or patience ends; return what is found then."""
    deadline = time.monotonic() + patience_s
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(pause_s)
    return found
