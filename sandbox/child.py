"""What a child of the fork server does with its one job: compile a suite, or run it against one program."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import coverage

from autotest_env.sandbox import audit, confine, frames, kernel, recorder, rewrite, session
from autotest_env.sandbox.suite import RunEnd
from autotest_env.sandbox.worker import MAX_JOB_BYTES, PROGRESS, STARTED, UNREPORTED


@dataclass(frozen=True, slots=True)
class Tools:
    """What every child starts with."""

    run_folder: Path
    confinement: confine.Confinement
    prepared: session.Prepared


def do_job(job: int, report: int, limits: confine.Limits, tools: Tools) -> None:
    """Confine this process, do one job, write the report and die. Nothing returns from here."""
    try:
        kernel.die_with_parent()
        os.setsid()
        os.chdir(tools.run_folder)
        os.close(0)  # an open file is shared by all who inherit it: each child opens its own
        os.open(os.devnull, os.O_RDWR)
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
        audit.leave(UNREPORTED)


def _run(header: dict[str, Any], blobs: list[bytes], report: int, prepared: session.Prepared) -> dict[str, Any]:
    write, leave, represent = os.write, os._exit, header["represent"]  # kept where a suite does not find them

    def distrust(what: str) -> None:
        try:
            detail = f"the suite looked into the program: {what}" if represent else ""
            write(report, frames.pack({"end": RunEnd.UNTRUSTED, "detail": detail, "tests": {}, "lines": []}))
        finally:
            leave(0)

    suite = session.suite_module()
    lines = _Lines(header["module"]) if header["cover"] else None
    modules = recorder.Modules(suite, session.make_module(header["module"], blobs[0]))
    audit.watch(prepared.trusted, vars(modules.program), distrust, tracing=lines is not None)
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
