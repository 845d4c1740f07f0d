"""Trying out shown code, in a process of its own that is confined (see `agents.child`), bounded and never trusted."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

WALL_S = 60.0
"""Far above what honest jobs take, so that the machine's load decides nothing."""

_CHILD = Path(__file__).with_name("child.py")
_MAX_ANSWER_BYTES = 4 << 20


class ConfinedRunError(Exception):
    """No proper answer: shown code broke the process, or its limits, or this machine has no room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Programs to put in place of `module`, one after another, and what to do with each."""

    module: str
    programs: Sequence[str]
    tests: str = ""
    """A pytest file that is run on each program."""
    script: str = ""
    """Executed once per program, after which the calls are evaluated."""
    calls: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one program gave."""

    passed: dict[str, bool]
    """Each test function that ran, and whether all of it passed."""
    results: tuple[str | None, ...]
    """The repr of each call's result; None where it has none that is always the same."""


def run_confined(job: Job, wall_s: float = WALL_S) -> tuple[Answer, ...]:
    """Return one answer per program. Raises ConfinedRunError when shown code broke the process or its limits."""
    deadline = time.monotonic() + wall_s
    try:
        own_folder = tempfile.TemporaryDirectory(prefix="autotest-", ignore_cleanup_errors=True)
        with own_folder as folder, tempfile.TemporaryFile() as stdin:
            stdin.write(json.dumps(asdict(job)).encode())
            stdin.seek(0)
            return _checked(_said(folder, stdin, deadline), job)
    except OSError as error:
        raise ConfinedRunError(f"the process could not be started: {error.strerror}") from error


def _said(folder: str, stdin: IO[bytes], deadline: float) -> bytes:
    """Run the process and return what it says until it closes its output, or says or takes too much."""
    process = subprocess.Popen(  # noqa: S603  our own script
        # With nothing else in the environment these isolate like -I, which would ignore the pinned hashes as well.
        [sys.executable, "-P", "-s", str(_CHILD), str(os.getpid())],
        cwd=folder,
        env={"PYTHONHASHSEED": "0"},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        with process.stdout as stdout:
            return _read(stdout.fileno(), deadline)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(descriptor: int, deadline: float) -> bytes:
    said = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(said) <= _MAX_ANSWER_BYTES:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise ConfinedRunError("the process took too long")
            part = os.read(descriptor, 1 << 16)
            if not part:
                return bytes(said)
            said += part
    raise ConfinedRunError("the process said too much")


def _checked(text: bytes, job: Job) -> tuple[Answer, ...]:
    """Read the answers; nothing about their shape is believed."""
    try:
        answers = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfinedRunError("the process ended without an answer") from error
    if not isinstance(answers, list) or len(answers) != len(job.programs):
        raise ConfinedRunError("the answer is not one per program")
    return tuple(_answer(each, len(job.calls)) for each in answers)


def _answer(answer: object, calls: int) -> Answer:
    match answer:
        case {"passed": dict(passed), "results": list(results)} if len(results) == calls:
            return Answer(
                passed={name: each is True for name, each in passed.items() if name.isidentifier()},
                results=tuple(each if isinstance(each, str) else None for each in results),
            )
    raise ConfinedRunError("the answer has another shape")
