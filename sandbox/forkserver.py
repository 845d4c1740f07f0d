"""The fork server: a small single-threaded process that prepares pytest once and forks one confined child per job.

It never looks into a job: the child reads it from its own pipe and writes one report into another. The server learns
from here only how the child ended. Run as ``python -m autotest_env.sandbox.forkserver FOLDER FORBIDDEN`` with a Unix
socket as standard input; one request (an `Allowance` and two descriptors) at a time, one answer each, until the socket
closes.
"""

import gc
import json
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotest_env.sandbox import confine, folders, frames, imports, session
from autotest_env.sandbox.child import Tools, do_job
from autotest_env.sandbox.watch import Allowance, Stop, Watch
from autotest_env.sandbox.worker import RUN_FOLDER

_FORK_AGAIN_S = 0.05
_PRELOADED = (
    "unittest.mock collections contextlib copy dataclasses datetime decimal enum fractions functools hashlib itertools "
    "json math operator random re statistics string textwrap threading typing uuid"
).split()
"""Modules that suites usually import; loading them once here keeps them out of every run."""


def main(folder: Path, forbidden: Path) -> None:
    """Serve until the socket on standard input closes; whatever happens, leave no folder behind."""
    sys.argv = ["pytest"]
    server_gone = False
    try:
        with socket.socket(fileno=os.dup(0)) as control:
            devnull = os.open(os.devnull, os.O_RDWR)
            os.dup2(devnull, 0)
            os.close(devnull)
            _serve_all(control, folder, forbidden)
            server_gone = True
    except (BrokenPipeError, ConnectionResetError):
        server_gone = True
    finally:
        os.chdir("/")
        folders.remove(folder)
    if server_gone:
        with suppress(OSError):  # the last fork server to leave removes the folder that held all of theirs
            folder.parent.rmdir()


def _serve_all(control: socket.socket, folder: Path, forbidden: Path) -> None:
    confine.hide_from_peers()
    confinement = confine.prepare(folder)
    _fresh(folder)
    prepared = _prepare(folder / RUN_FOLDER)
    confinement.believe(_prove(confinement, forbidden))
    tools = Tools(folder / RUN_FOLDER, confinement, prepared)
    control.sendall(_line({"layers": confinement.layers}))
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 4096, 2)
        if not data:
            return
        answer = _serve(Allowance(**json.loads(data)), descriptors, control, tools)
        if answer is None:
            return
        control.sendall(_line(answer))
        _fresh(folder)


def _prepare(run_folder: Path) -> session.Prepared:
    for name in _PRELOADED:
        import_module(name)
    _derandomise_hypothesis()
    os.chdir(run_folder)
    tempfile.tempdir = str(run_folder)
    session.warm_up(run_folder)
    prepared = session.prepare(run_folder)
    imports.restrict()
    gc.collect()
    gc.freeze()
    return prepared


def _derandomise_hypothesis() -> None:
    """Where Hypothesis is installed, suites may use it: same examples in every run, nothing stored, no deadline."""
    if find_spec("hypothesis") is None:
        return
    settings = import_module("hypothesis").settings
    phases = [phase for phase in import_module("hypothesis").Phase if phase.name != "explain"]  # it sets a tracer
    settings.register_profile("autotest", derandomize=True, database=None, deadline=None, phases=phases)
    settings.load_profile("autotest")


def _prove(confinement: confine.Confinement, forbidden: Path) -> dict[str, str]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            frames.write_all(write, json.dumps(confine.prove(confinement, forbidden)).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    layers: dict[str, str] = json.loads(frames.read_all(read, 1 << 16))
    os.close(read)
    os.waitpid(pid, 0)
    return layers


def _serve(allowance: Allowance, descriptors: list[int], control: socket.socket, tools: Tools) -> dict[str, Any] | None:
    """Fork one child and watch it to its end; None when the server has gone meanwhile."""
    job, report = descriptors
    pid = _fork(time.monotonic() + allowance.late_s)
    if pid == 0:
        do_job(job, report, confine.Limits(cpu_s=allowance.cpu_s), tools)
    os.close(job)
    os.close(report)
    if pid is None:
        return {"stopped": Stop.LATE, "status": 0, "cpu_s": 0.0, "own_s": 0.0}
    watch = Watch(pid, tools.run_folder, allowance)
    stopped = watch.wait(control)
    _kill(pid)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    own_s = watch.own_s()
    _, status, usage = os.wait4(pid, 0)
    if stopped is Stop.GONE:
        return None
    spent = {"cpu_s": usage.ru_utime + usage.ru_stime, "own_s": own_s, "peak_bytes": usage.ru_maxrss << 10}
    return {"stopped": stopped, "status": status, **spent}


def _fork(deadline: float) -> int | None:
    """Fork, trying again while the system has no process to give; None when it has none until the deadline."""
    while True:
        try:
            return os.fork()
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return None
            time.sleep(_FORK_AGAIN_S)


def _kill(pid: int) -> None:
    """Kill the child's whole session before its leader is reaped; it may be dead already."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _fresh(folder: Path) -> None:
    """Empty the folder and make the run's own folder in it; every run finds the same."""
    folders.empty(folder)
    (folder / RUN_FOLDER).mkdir(mode=0o700)


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
