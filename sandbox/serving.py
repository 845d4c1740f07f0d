"""What a fork server does: prepare pytest once, then fork one confined child per job.

It never looks into a job: the child reads it from its own pipe and writes one report into another. The server learns
from here only how the child ended.
"""

import errno
import gc
import json
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotest_env.sandbox import confine, folders, frames, imports, kernel, session
from autotest_env.sandbox.child import Tools, do_job
from autotest_env.sandbox.jail import Jail
from autotest_env.sandbox.namespaces import Namespaces
from autotest_env.sandbox.watch import Allowance, PlainWatch, Stop, Used, Watch
from autotest_env.sandbox.worker import RUN_FOLDER

_FORK_AGAIN_S = 0.05
_FOR_NOW = (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC)
"""Errors of a fork, or of making its namespace, that pass: the system is full."""
_LATE = {"stopped": Stop.LATE, **asdict(Used(status=0, cpu_s=0.0, own_s=0.0, peak_bytes=0))}
_PRELOADED = (
    "unittest.mock collections contextlib copy dataclasses datetime decimal enum fractions functools hashlib itertools "
    "json math operator random re statistics string textwrap threading typing uuid"
).split()
"""Modules that suites usually import; loading them once here keeps them out of every run."""


class Place:
    """Where a fork server makes its runs: a folder, in a jail where there can be one."""

    def __init__(self, folder: Path, spaces: Namespaces) -> None:
        self._folder = folder
        self.spaces = spaces
        self.run_folder = folder / RUN_FOLDER
        """The working folder by the name that runs know it by."""
        self._empty()
        self.jail: Jail | None = None
        if spaces.layers["mount_namespace"] == "on":
            try:
                self.jail = Jail(folder, RUN_FOLDER, [*confine.readable_trees(), Path(os.devnull)])
            except OSError as error:
                spaces.layers["mount_namespace"] = f"off: {error}"
        self.writable = self.jail.folder.parent if self.jail else folder
        """What stays where it is and holds nothing but the working folders."""
        self.seen = self.jail.folder / RUN_FOLDER if self.jail else self.run_folder
        """The working folder as this process sees it."""

    def renew(self) -> None:
        """Put an empty working folder in the place of the last one; every run finds the same."""
        if self.jail:
            self.jail.renew()
        else:
            self._empty()

    def close(self) -> None:
        """Remove it with everything in it."""
        os.chdir("/")
        if self.jail:
            self.jail.close()
        folders.remove(self._folder)

    def _empty(self) -> None:
        folders.empty(self._folder)
        self.run_folder.mkdir(mode=0o700)


def serve(control: socket.socket, folder: Path, forbidden: Path, spaces: Namespaces) -> None:
    """Serve until the socket closes; whatever happens, leave no folder behind."""
    sys.argv = ["pytest"]
    server_gone = False
    place = Place(folder, spaces)
    try:
        _serve_all(control, place, forbidden)
        server_gone = True
    except (BrokenPipeError, ConnectionResetError):
        server_gone = True
    finally:
        place.close()
    if server_gone:
        with suppress(OSError):  # the last fork server to leave removes the folder that held all of theirs
            folder.parent.rmdir()


def _serve_all(control: socket.socket, place: Place, forbidden: Path) -> None:
    confinement = confine.prepare(place.writable, place.spaces, place.jail)
    prepared = _prepare(place.run_folder)
    confinement.believe(_prove(confinement, forbidden))
    tools = Tools(place.run_folder, confinement, prepared)
    control.sendall(_line({"layers": confinement.layers}))
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 4096, 2)
        if not data:
            return
        allowance = Allowance(**json.loads(data))
        pid = _fork(place.spaces, time.monotonic() + allowance.late_s)
        if pid == 0:
            do_job(descriptors[0], descriptors[1], confine.Limits(cpu_s=allowance.cpu_s), tools)
        for descriptor in descriptors:
            os.close(descriptor)
        end = _LATE if pid is None else _await(pid, control, allowance, place)
        if end is None:
            return
        control.sendall(_line(end))
        place.renew()


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
    confinement.spaces.renew()
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


def _fork(spaces: Namespaces, deadline: float) -> int | None:
    """Fork, trying again while the system has no process to give; None when it has none until the deadline."""
    while True:
        try:
            spaces.renew()
            return os.fork()
        except OSError as error:
            if error.errno not in _FOR_NOW:
                raise
            if time.monotonic() >= deadline:
                return None
            time.sleep(_FORK_AGAIN_S)


def _await(pid: int, control: socket.socket, allowance: Allowance, place: Place) -> dict[str, Any] | None:
    """Watch a child to its end; None when the server has gone meanwhile."""
    kind = PlainWatch if kernel.ABSENT else Watch
    watch = kind(pid, place.seen, allowance, place.spaces.folder_in_proc(pid))
    stopped = watch.wait(control)
    _kill(pid)
    used = watch.reap()
    return None if stopped is Stop.GONE else {"stopped": stopped, **asdict(used)}


def _kill(pid: int) -> None:
    """Kill the child's whole session before its leader is reaped; it may be dead already."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
