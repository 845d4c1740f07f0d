"""The sandbox's docstring, attacked line by line from inside a run."""

import os
from pathlib import Path

import pytest

import autotest_env.errors
from autotest_env.sandbox.confine import Isolation
from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.sandbox.suite import RunEnd, TestOutcome
from tests.sandbox.conftest import Run

OWN_FILE = autotest_env.errors.__file__
REFUSALS = {
    "socket": "import socket\nsocket.socket()",
    "unix socket": "import socket\nsocket.socket(socket.AF_UNIX)",
    "datagram to a path": "import socket\na, b = socket.socketpair(type=socket.SOCK_DGRAM)\na.sendto(b'x', '/tmp/x')",
    "fork": "import os\nos.fork()",
    "subprocess": "import subprocess\nsubprocess.run(['/bin/true'])",
    "posix_spawn": "import os\nos.posix_spawn('/bin/true', ['true'], {})",
    "exec": "import os\nos.execv('/bin/true', ['true'])",
    "kill the parent": "import os\nos.kill(os.getppid(), 9)",
    "kill everybody": "import os\nos.kill(-1, 9)",
    "kill a group": "import os\nos.killpg(os.getpgid(os.getppid()), 9)",
    "signals by the kernel": "import fcntl, os\nfcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
    "limits of the parent": "import resource, os\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    "priority of others": "import os\nos.setpriority(os.PRIO_PGRP, 0, 5)",
    "environment of the parent": "import os\nopen(f'/proc/{os.getppid()}/environ').read()",
    "memory of the parent": "import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')",
    "list of processes": "import os\nos.listdir('/proc')",
    "own descriptors": "import os\nos.listdir('/proc/self/fd')",
    "our package": f"open({OWN_FILE!r}).read()",
    "our programs": f"import os\nos.listdir({str(Path(OWN_FILE).parent / 'tasks' / 'programs')!r})",
    "passwords": "open('/etc/passwd').read()",
    "shared memory": "open('/dev/shm/x', 'w')",
    "the temporary folder": "open('/tmp/x', 'w')",
    "writing a library": "import json\nopen(json.__file__, 'a')",
    "a link out": "import os\nos.symlink('/etc/passwd', 'x')\nopen('x').read()",
    "extended attributes": "import json, os\nos.setxattr(os.path.dirname(json.__file__), 'user.x', b'1')",
    "System V queue": "import ctypes\nif ctypes.CDLL(None).msgget(1, 0o1600) < 0: raise OSError",
    "a namespace": "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise OSError",
    "tracing the parent": "import ctypes, os\nif ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0): raise OSError",
    "outliving the parent": "import ctypes\nif ctypes.CDLL(None).prctl(1, 0, 0, 0, 0): raise OSError",
    "a lower limit, to be killed": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 0))",
    "a lock that outlives the run": "import fcntl, struct\n"
    "fcntl.fcntl(0, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 1, 0))",
    "a lock on a library": "import fcntl, os\nfcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)",
    "a POSIX lock": "import fcntl, os\nfcntl.lockf(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)",
    "a hint on an inode": "import fcntl, os, struct\nfcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1036, struct.pack('Q', 2))",
    "flags of an inode": "import fcntl, os, struct\n"
    "fcntl.ioctl(os.open(os.__file__, os.O_RDONLY), 0x40086602, struct.pack('l', 0))",
    "cache advice": "import os\nos.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)",
    "cached or not": "import os\nos.preadv(os.open(os.__file__, os.O_RDONLY), [bytearray(1)], 0, os.RWF_NOWAIT)",
    "memory outside the limit": "import os\nos.memfd_create('x')",
    "truncating by path": f"import os\nos.truncate({OWN_FILE!r}, 0)",
    "truncating a library": "import os\nos.truncate(os.__file__, 0)",
    "raising the limits": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (99, 99))",
}


@pytest.mark.parametrize("attack", REFUSALS)
def test_an_attack_is_refused_by_the_system(run: Run, attack: str) -> None:
    body = "\n".join(f"    {line}" for line in REFUSALS[attack].splitlines())
    result = run(f"def test_it():\n{body}\n")
    assert result.end is RunEnd.COMPLETED, result
    test = result.tests[0]
    assert test.outcome is TestOutcome.FAILED, test
    assert test.message.startswith(("PermissionError", "OSError", "ValueError: not allowed to raise")), test


def test_modes_owners_and_times_of_files_cannot_carry_a_message(run: Run) -> None:
    library = Path(os.__file__)
    before = library.stat()
    tries = ("os.utime({0!r}, (1, 1))", "os.chmod({0!r}, 0o600)", "os.chown({0!r}, 1, 1)")
    for attempt in tries:
        run(f"import os\ndef test_it(): {attempt.format(str(library))}")
    after = library.stat()
    assert (after.st_mtime, after.st_mode, after.st_uid) == (before.st_mtime, before.st_mode, before.st_uid)


def test_all_layers_are_on_where_the_tests_run(sandbox: Sandbox) -> None:
    assert sandbox.layers == dict.fromkeys(("rlimits", "no_new_privs", "capabilities", "seccomp", "landlock"), "on")


def test_required_isolation_starts_where_all_layers_are_on() -> None:
    box = Sandbox(SandboxOptions(graders=1, isolation=Isolation.REQUIRED))
    box.start()
    box.close()


def test_the_source_of_the_program_is_nowhere_in_a_run(run: Run) -> None:
    source = """
import inspect, linecache, pytest, adder
def test_it():
    with pytest.raises(OSError): inspect.getsource(adder.add)
    assert linecache.getlines('adder.py') == []
    assert not hasattr(adder, '__file__')
    assert adder.__spec__.loader is None
"""
    assert run(source).tests[0].outcome is TestOutcome.PASSED
