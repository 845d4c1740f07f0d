"""The process in which a policy tries out shown code: a script of its own, started by `agents.confined`.

It reads a job from stdin, confines itself, runs the job's programs one after another, and writes the answer to stdout,
both as JSON. It imports nothing of this package, and holds nothing worth taking. The code it runs comes from a server
that need not be trusted; what it answers is data that may be forged.

Confined means: rlimits everywhere; on Linux also no new privileges, death together with the parent, and, where
`landlockpy` and `pyseccomp` can be imported, no files outside the standard library, pytest and the job's own folder,
nothing written anywhere, no sockets, processes, programs or signals.
"""

import contextlib
import ctypes
import errno
import json
import os
import random
import resource
import signal
import sys
import sysconfig
import types
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

CPU_S = 30
CALL_CPU_S = 1.0
MEMORY_BYTES = 512 << 20
FILE_BYTES = 1 << 20
OPEN_FILES = 64
MAX_RESULT_CHARS = 400
MAX_RESULTS_CHARS = 1 << 20

_PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
_SHARED = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_THREAD = 0x00010000
_REFUSED = (
    "socket socketpair connect bind listen accept accept4 sendto sendmsg sendmmsg "
    "fork vfork execve execveat kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd "
    "pidfd_send_signal ptrace process_vm_readv process_vm_writev process_madvise kcmp setsid setpgid prlimit64 "
    "mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount mount_setattr "
    "io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl bpf perf_event_open userfaultfd "
    "shmget shmat msgget semget mq_open memfd_create name_to_handle_at open_by_handle_at "
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat "
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr flock setpriority ioprio_set "
    "sched_setaffinity sched_setscheduler sched_setattr setuid setgid setresuid setresgid setgroups "
    "init_module finit_module delete_module kexec_load reboot swapon swapoff acct quotactl syslog settimeofday"
).split()


class _CallTooLongError(BaseException):
    """A call took longer than CALL_CPU_S; no Exception, so that the called code does not catch it by accident."""


class _Outcomes:
    """Collects which test functions pass: each with all its parameter sets, in every phase."""

    def __init__(self) -> None:
        self.passed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a phase of a test case."""
        name = report.nodeid.rpartition("::")[2].partition("[")[0]
        self.passed[name] = self.passed.get(name, True) and report.outcome == "passed"


def main() -> None:
    """Do the job on stdin."""
    _limit(int(sys.argv[1]))
    job = json.load(sys.stdin)
    out = os.dup(1)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123  descriptors
        for number in range(3):
            os.dup2(nothing.fileno(), number)
    for number in range(len(job["programs"])):
        Path(f"test_{number}.py").write_text(job["tests"], encoding="utf-8")
    Path("pytest.ini").touch()
    _confine()
    answers = [_answers(job, number, program) for number, program in enumerate(job["programs"])]
    text = json.dumps(answers).encode()
    with open(out, "wb") as file:  # noqa: PTH123  a descriptor
        file.write(text)
        file.flush()
    os._exit(0)


def _limit(parent: int) -> None:
    limits = {
        resource.RLIMIT_CPU: CPU_S,
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in limits.items():
        _lower(kind, value)
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:  # it died before it could take us along
        os._exit(1)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (most, most))


def _confine() -> None:
    """Put on what this machine has; what it lacks stops nothing, for whoever plays runs this at home."""
    layers = []
    for build in (_file_rules, _call_rules):  # both before one of them keeps the other's library from loading
        with contextlib.suppress(ImportError, RuntimeError, OSError):
            layers.append(build())
    _lower(resource.RLIMIT_NPROC, 0)  # root is above it; only now, because libraries are looked for by a process
    for put_on in layers:
        with contextlib.suppress(RuntimeError, OSError):
            put_on()


def _file_rules() -> Callable[[], object]:
    landlock = import_module("landlockpy")
    access = landlock.AccessFS
    rules = landlock.Ruleset(scoped=landlock.Scope.SIGNAL | landlock.Scope.ABSTRACT_UNIX_SOCKET)
    for path in filter(Path.exists, _readable()):
        rules.allow_path(path, access.READ_FILE | access.READ_DIR if path.is_dir() else access.READ_FILE)
    rules.allow_path(os.devnull, access.READ_FILE | access.WRITE_FILE)  # pytest logs to it
    return cast("Callable[[], object]", rules.restrict)


def _call_rules() -> Callable[[], object]:
    seccomp = import_module("pyseccomp")
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in _REFUSED:
        if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0:
            rules.add_rule(seccomp.ERRNO(errno.EPERM), name)
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")  # libc falls back to clone, whose flags can be seen
    rules.add_rule(seccomp.ERRNO(errno.EPERM), "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
    return cast("Callable[[], object]", rules.load)


def _readable() -> list[Path]:
    """Return the standard library without what is installed beside it, pytest, shared libraries, our own folder."""
    found = [Path.cwd()]
    found += [entry for entry in _entries(sysconfig.get_path("stdlib")) if not entry.name.endswith("-packages")]
    for name in _SHARED:
        found += [entry for entry in _entries(name) if not entry.name.startswith("python")]
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            found.append(origin.parent if origin.name == "__init__.py" else origin)
    return found


def _entries(name: str) -> list[Path]:
    folder = Path(name)
    return list(folder.iterdir()) if folder.is_dir() else []


def _answers(job: dict[str, Any], number: int, program: str) -> dict[str, Any]:
    """Put a program in place; return which tests pass on it, and what each call gives."""
    module = types.ModuleType(job["module"])
    sys.modules[job["module"]] = module
    try:
        exec(compile(program, f"{job['module']}.py", "exec"), module.__dict__)  # noqa: S102  it is what this is for
        passed = _passed(Path(f"test_{number}.py").resolve()) if job["tests"] else {}
        return {"passed": passed, "results": _results(job["script"], job["calls"])}
    except BaseException:  # noqa: BLE001  border: whatever shown code raises while it is loaded
        return {"passed": {}, "results": [None] * len(job["calls"])}


def _passed(file: Path) -> dict[str, bool]:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    outcomes = _Outcomes()
    options = ["-q", "-s", "-p", "no:cacheprovider", "--assert=plain", "--tb=no", "--import-mode=importlib"]
    pytest.main([*options, "-c", str(file.with_name("pytest.ini")), str(file)], plugins=[outcomes])
    return outcomes.passed


def _results(script: str, calls: list[str]) -> list[str | None]:
    """Evaluate each call twice, the second time in reverse; None where the two differ, fail, or are too long."""
    namespace: dict[str, Any] = {"__name__": "script"}
    exec(compile(script, "<script>", "exec"), namespace)  # noqa: S102  it is what this is for
    once = [_result(call, namespace) for call in calls]
    again = [_result(call, namespace) for call in reversed(calls)]
    same = [left if left == right else None for left, right in zip(once, reversed(again), strict=True)]
    return same if sum(len(each or "") for each in same) <= MAX_RESULTS_CHARS else [None] * len(calls)


def _result(call: str, namespace: dict[str, Any]) -> str | None:
    random.seed(0)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, CALL_CPU_S)
        text = repr(eval(call, namespace))  # noqa: S307  it is what this is for
    except BaseException:  # noqa: BLE001  border: whatever the called code raises, to end the process too
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return text if len(text) <= MAX_RESULT_CHARS else None


def _stop_call(*_: object) -> None:
    raise _CallTooLongError


if __name__ == "__main__":
    signal.signal(signal.SIGVTALRM, _stop_call)
    main()
