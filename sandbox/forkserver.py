"""The fork server: a small single-threaded process that prepares pytest once and forks one confined child per job.

It never looks into a job: the child reads it from its own pipe and writes one report into another. The server learns
from here only how the child ended. Run as ``python -m autotest_env.sandbox.forkserver FOLDER FORBIDDEN`` with a Unix
socket as standard input; one request (`cpu_s`, `wall_s` and two descriptors) at a time, one answer each, until the
socket closes.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import coverage

from autotest_env.sandbox import audit, confine, folders, frames, recorder, rewrite, session
from autotest_env.sandbox.suite import RunEnd
from autotest_env.sandbox.worker import PROGRESS, RUN_FOLDER, STARTED

MAX_JOB_BYTES = 8 << 20
_POLL_S = 0.05
_PRELOADED = (
    "unittest.mock collections contextlib copy dataclasses datetime decimal enum fractions functools hashlib itertools "
    "json math operator random re statistics string textwrap threading typing uuid"
).split()
"""Modules that suites usually import; loading them once here keeps them out of every run."""


@dataclass(frozen=True, slots=True)
class _Tools:
    """What every child starts with."""

    folder: Path
    confinement: confine.Confinement
    prepared: session.Prepared


def main(folder: Path, forbidden: Path) -> None:
    """Serve until the socket on standard input closes; whatever happens, leave no folder behind."""
    sys.argv = ["pytest"]
    try:
        with socket.socket(fileno=os.dup(0)) as control:
            devnull = os.open(os.devnull, os.O_RDWR)
            os.dup2(devnull, 0)
            os.close(devnull)
            _serve_all(control, folder, forbidden)
    except (BrokenPipeError, ConnectionResetError):
        return  # the server is gone
    finally:
        os.chdir("/")
        folders.remove(folder)
        with suppress(OSError):  # other fork servers still have theirs in it
            folder.parent.rmdir()


def _serve_all(control: socket.socket, folder: Path, forbidden: Path) -> None:
    confine.hide_from_peers()
    confinement = confine.prepare(folder)
    _fresh(folder)
    prepared = _prepare(folder / RUN_FOLDER)
    confinement.believe(_prove(confinement, forbidden))
    control.sendall(_line({"layers": confinement.layers}))
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 4096, 2)
        if not data:
            return
        answer = _serve(json.loads(data), descriptors, control, _Tools(folder, confinement, prepared))
        if answer is None:
            return
        control.sendall(_line(answer))


def _prepare(run_folder: Path) -> session.Prepared:
    for name in _PRELOADED:
        import_module(name)
    _derandomise_hypothesis()
    os.chdir(run_folder)
    tempfile.tempdir = str(run_folder)
    prepared = session.prepare(run_folder)
    _warm_up(prepared)
    gc.collect()
    gc.freeze()
    return prepared


def _derandomise_hypothesis() -> None:
    """Where Hypothesis is installed, suites may use it: same examples in every run, nothing stored, no deadline."""
    if find_spec("hypothesis") is None:
        return
    settings = import_module("hypothesis").settings
    settings.register_profile("autotest", derandomize=True, database=None, deadline=None)
    settings.load_profile("autotest")


def _warm_up(prepared: session.Prepared) -> None:
    """Let lazy imports of the rewriter happen once, before any fork."""
    rewrite.compile_suite("def test():\n    assert 1 == 1\n", prepared.config)


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


def _serve(
    request: dict[str, Any],
    descriptors: list[int],
    control: socket.socket,
    tools: _Tools,
) -> dict[str, Any] | None:
    """Fork one child, watch it to its end, clean up after it; None when the server has gone meanwhile."""
    started = time.monotonic()
    job, report = descriptors
    pid = os.fork()
    if pid == 0:
        _child(job, report, confine.Limits(cpu_s=request["cpu_s"]), tools)
    os.close(job)
    os.close(report)
    watched = _watch(pid, control, request["cpu_s"], started + request["wall_s"])
    _kill(pid)
    _, status, usage = os.wait4(pid, 0)
    _fresh(tools.folder)
    if watched == "gone":
        return None
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"stopped": watched, "status": status, "cpu_s": cpu_s, "wall_s": time.monotonic() - started}


def _watch(pid: int, control: socket.socket, cpu_s: float, deadline: float) -> str:
    """Wait for the child's end ("") or for what ends it: "cpu", "wall", or "gone" when the server hung up."""
    clock = ((~pid) << 3) | 2  # the kernel's name for the CPU clock of a process
    descriptor = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.register(control, select.POLLIN | select.POLLHUP)
    try:
        while True:
            left_s = min(deadline - time.monotonic(), cpu_s - time.clock_gettime(clock) + 0.001)
            for ready, _ in poll.poll(max(1, min(left_s, _POLL_S) * 1000)):
                return "" if ready == descriptor else "gone"
            if time.clock_gettime(clock) >= cpu_s:
                return "cpu"
            if time.monotonic() >= deadline:
                return "wall"
    finally:
        os.close(descriptor)


def _kill(pid: int) -> None:
    """Kill the child's whole session before its leader is reaped; it may be dead already."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _fresh(folder: Path) -> None:
    """Empty the folder and make the run's own folder in it; every run finds the same."""
    folders.empty(folder)
    (folder / RUN_FOLDER).mkdir(mode=0o700)


def _child(job: int, report: int, limits: confine.Limits, tools: _Tools) -> None:
    """Do one job and die. Nothing returns from here."""
    try:
        confine.die_with_parent()
        os.setsid()
        os.chdir(tools.folder / RUN_FOLDER)
        for standard in (1, 2):
            os.dup2(0, standard)
        header, blobs = frames.unpack(frames.read_all(job, MAX_JOB_BYTES))
        tools.confinement.apply(limits)
        os.closerange(3, report)
        os.closerange(report + 1, limits.open_files)
        if header["kind"] == "compile":
            frames.write_all(report, STARTED)
            answer, code = rewrite.compile_suite(blobs[0].decode("utf-8", "surrogatepass"), tools.prepared.config)
            data = frames.pack(answer, [code])
        else:
            data = frames.pack(_run(header, blobs, report, tools.prepared))
        frames.write_all(report, data)
        audit.leave(0)
    finally:
        audit.leave(70)  # no report; before STARTED this is our own failure, after it the suite's


def _run(header: dict[str, Any], blobs: list[bytes], report: int, prepared: session.Prepared) -> dict[str, Any]:
    def distrust(what: str) -> None:
        detail = f"the suite looked into the program: {what}" if header["represent"] else ""
        frames.write_all(report, frames.pack({"end": RunEnd.UNTRUSTED, "detail": detail, "tests": {}, "lines": []}))
        audit.leave(0)

    suite = session.suite_module()
    lines = _Lines(header["module"]) if header["cover"] else None
    modules = recorder.Modules(suite, session.make_module(header["module"], blobs[0]))
    audit.watch(prepared.trusted, vars(modules.program), distrust)
    frames.write_all(report, STARTED)
    facts = session.run_suite(
        prepared, blobs[1], modules, represent=header["represent"], progress=lambda: frames.write_all(report, PROGRESS)
    )
    return {**asdict(facts), "lines": lines.stop() if lines else []}


class _Lines:
    """Executed lines of the program, as coverage.py counts them."""

    def __init__(self, module: str) -> None:
        self._file = str(Path.cwd() / f"{module}.py")
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=[self._file])
        self._coverage.start()

    def stop(self) -> list[int]:
        self._coverage.stop()
        return sorted(self._coverage.get_data().lines(self._file) or [])


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
