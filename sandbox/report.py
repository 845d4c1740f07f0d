"""Reading what a child left: the bytes of its report and the way it died become named facts.

The bytes come from a process that ran submitted code: nothing in them is believed beyond its shape.
"""

import os
import signal

from autotest_env.errors import GraderFailedError
from autotest_env.sandbox import frames
from autotest_env.sandbox.suite import (
    MAX_CASES,
    MAX_ID_CHARS,
    MAX_MESSAGE_CHARS,
    CompiledSuite,
    CompileStatus,
    RefusedSuite,
    RunEnd,
    SuiteResult,
    TestOutcome,
    TestReport,
)
from autotest_env.sandbox.watch import Stop
from autotest_env.sandbox.worker import PROGRESS, STARTED, UNREPORTED, ChildEnd

_STOPS = {
    Stop.CPU: (RunEnd.CPU_LIMIT, "a run took more CPU time than it may"),
    Stop.WALL: (RunEnd.WALL_LIMIT, "a run took more time than it may"),
    Stop.THREADS: (RunEnd.TOO_MANY_THREADS, "a run started more threads than it may"),
    Stop.DISK: (RunEnd.DISK_LIMIT, "a run wrote more files, or more into them, than it may"),
}


def read_compiled(end: ChildEnd) -> CompiledSuite | RefusedSuite:
    """Return the compiled suite, or why there is none."""
    try:
        header, (code,) = frames.unpack(end.report.removeprefix(STARTED))
        if "status" not in header:
            return CompiledSuite(code=code, digest=str(header["digest"]))
        status = CompileStatus(header["status"])
        line = header.get("line")
        return RefusedSuite(status=status, message=header["message"], line=line, text=header.get("text", ""))
    except (frames.FrameError, KeyError, ValueError) as error:
        if os.WIFEXITED(end.status) and os.WEXITSTATUS(end.status) == UNREPORTED:
            raise GraderFailedError("compiling the suite broke in the grader") from error
        if end.stopped or os.WIFSIGNALED(end.status):
            return RefusedSuite(
                status=CompileStatus.TOO_COMPLEX, message="compiling the file took too much time or memory"
            )
        raise GraderFailedError("the compile child left no readable report") from error


def read_result(end: ChildEnd) -> SuiteResult:
    """Return the facts of a run; whatever is not exactly one well-formed report gets its name instead."""
    if end.stopped:
        return _bare(end, *_STOPS[end.stopped])
    if os.WIFSIGNALED(end.status):
        name = signal.Signals(os.WTERMSIG(end.status)).name
        return _bare(end, RunEnd.CRASHED, f"the process running the tests died by {name}")
    if not end.report.strip(STARTED + PROGRESS):
        return _bare(end, RunEnd.EXITED, "the process running the tests was left without a report")
    try:
        return _parse(end)
    except (frames.FrameError, KeyError, ValueError, TypeError, AttributeError):
        return _bare(end, RunEnd.GARBLED, "something wrote over the report of the tests")


def _parse(end: ChildEnd) -> SuiteResult:
    header, blobs = frames.unpack(end.report.lstrip(STARTED + PROGRESS))
    tests, lines = header["tests"], header["lines"]
    if blobs or len(tests) > MAX_CASES or len(header) != len(("end", "detail", "tests", "lines")):
        raise ValueError("not a report of a run")
    return SuiteResult(
        end=RunEnd(header["end"]),
        tests=tuple(_read_test(name, record) for name, record in tests.items()),
        detail=_text(header["detail"], MAX_MESSAGE_CHARS),
        cpu_s=end.cpu_s,
        lines=frozenset(line for line in lines if type(line) is int),
    )


def _read_test(name: str, record: dict[str, object]) -> TestReport:
    line = record.get("line")
    return TestReport(
        id=_text(name, MAX_ID_CHARS),
        outcome=TestOutcome(str(record["outcome"])),
        asserted=record.get("asserted") is True,
        message=_text(record.get("message", ""), MAX_MESSAGE_CHARS),
        line=line if type(line) is int else None,
    )


def _text(value: object, most: int) -> str:
    """Cap a string; characters that no encoding can carry are replaced."""
    if not isinstance(value, str):
        raise TypeError("not text")
    return value[:most].encode("utf-8", "replace").decode()


def _bare(end: ChildEnd, name: RunEnd, detail: str) -> SuiteResult:
    started = end.report.count(PROGRESS) if end.stopped else 0
    return SuiteResult(end=name, detail=detail, started=started, cpu_s=end.cpu_s)
