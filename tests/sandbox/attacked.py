"""Attack a sandbox of this process and print, as JSON, its layers and how each attack ended: ``-m tests.sandbox.attacked``.

Attacks that no layer refuses here are tried too, if they do no harm, so that one knows they would work.
"""

import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from autotest_env.errors import SetupError
from autotest_env.sandbox.confine import Isolation
from autotest_env.sandbox.run import Grading, Sandbox, SandboxOptions, compile_program
from autotest_env.sandbox.suite import CompiledSuite, RunEnd, RunJob, TestOutcome
from tests.sandbox.attacks import ATTACKS, outside, suite_of

AT_ONCE = 15
STAY = "import os, time\ndef test_it():\n    if os.fork() == 0: os.setsid(); time.sleep(2); os._exit(0)\n"


def main() -> None:
    """Start, attack, print."""
    box = Sandbox(SandboxOptions(graders=1, isolation=Isolation(sys.argv[1])))
    with tempfile.TemporaryDirectory() as folder, outside() as names:
        tempfile.tempdir = folder
        try:
            box.start()
        except SetupError as error:
            sys.exit(str(error))
        with box.open() as grading:
            ends = attack(grading, box.layers, names)
            before = processes(folder)
            messages(grading, STAY)
            stayed = len(processes(folder) - before)
        box.close()
        left = [path.name for path in Path(folder).iterdir()]
    sys.stdout.write(json.dumps({"layers": box.layers, "ends": ends, "stayed": stayed, "left": left}))


def attack(grading: Grading, layers: dict[str, str], names: dict[str, object]) -> dict[str, str]:
    """Return what each attack failed with, "" where it worked."""
    tried = [name for name, attack in ATTACKS.items() if attack.is_safe or attack.is_refused(layers)]
    ends: dict[str, str] = {}
    for start in range(0, len(tried), AT_ONCE):
        some = tried[start : start + AT_ONCE]
        ends |= zip(some, messages(grading, suite_of(some, names)), strict=True)
    return ends


def messages(grading: Grading, source: str) -> list[str]:
    """Run a suite; return what each test failed with, "" where it passed."""
    suite = grading.compile(source)
    assert isinstance(suite, CompiledSuite), suite
    (result,) = grading.run([RunJob(program=compile_program("m", "x = 1"), suite=suite, represent=True, cpu_s=5.0)])
    assert result.end is RunEnd.COMPLETED, result
    return ["" if test.outcome is TestOutcome.PASSED else test.message for test in result.tests]


def processes(mark: str) -> set[str]:
    """Process ids of everything that has a mark on its command line."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.add(path.parent.name)
    return found


if __name__ == "__main__":
    main()
