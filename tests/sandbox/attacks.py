"""What a run may not do, line by line of the confinement's docstring, and the layers of which each alone refuses it.

What stands in `<...>` belongs to the server's side: see `outside`. An attack is refused by an error of the system.
"""

import ctypes
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import autotest_env.errors

OWN_FILE = autotest_env.errors.__file__
PROGRAMS = str(Path(OWN_FILE).parent / "tasks" / "programs")
REFUSALS = ("PermissionError", "OSError", "FileNotFoundError", "ProcessLookupError", "MemoryError")
REFUSALS += ("ConnectionRefusedError", "ValueError: not allowed to raise", "ValueError: current limit exceeds")
ALWAYS = "rlimits"
"""On everywhere; named where the server's own care refuses, too (it is hidden from its peers)."""

_C = "import ctypes\nlibc = ctypes.CDLL(None)\n"


@dataclass(frozen=True)
class Attack:
    """A few lines of a test, and what refuses them."""

    source: str
    by: tuple[str, ...]
    is_safe: bool = True
    """Whether it does no harm where it succeeds."""

    def is_refused(self, layers: Mapping[str, str]) -> bool:
        """Whether a layer that is on has to refuse it."""
        return any(layers[name] == "on" for name in self.by)


def _seccomp(source: str, *others: str) -> Attack:
    return Attack(source, ("seccomp", *others))


def _files(source: str, *others: str) -> Attack:
    return Attack(source, ("landlock", "mount_namespace", *others))


ATTACKS = {
    "a socket": _seccomp("import socket\nsocket.socket()"),
    "a unix socket": _seccomp("import socket\nsocket.socket(socket.AF_UNIX)"),
    "the server's port": _seccomp(
        "import socket\nsocket.create_connection(('127.0.0.1', <PORT>))", "network_namespace"
    ),
    "the server's abstract socket": _seccomp(
        "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0autotest-<SERVER>')", "network_namespace", "landlock"
    ),
    "a datagram to a path": _seccomp(
        "import socket\na, b = socket.socketpair(type=socket.SOCK_DGRAM)\na.sendto(b'x', '<PATH>')", "mount_namespace"
    ),
    "fork": _seccomp("import os\npid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)"),
    "a subprocess": _seccomp("import subprocess\nsubprocess.run(['/bin/true'])", "landlock", "mount_namespace"),
    "posix_spawn": _seccomp("import os\nos.posix_spawn('/bin/true', ['true'], {})", "landlock", "mount_namespace"),
    "exec": Attack(
        "import os\nos.execv('/bin/true', ['true'])", ("seccomp", "landlock", "mount_namespace"), is_safe=False
    ),
    "a signal to the server": _seccomp("import os\nos.kill(<SERVER>, 0)", "pid_namespace"),
    "a signal to everybody": _seccomp("import os\nos.kill(-1, 0)", "pid_namespace"),
    "a signal to the server's group": _seccomp("import os\nos.killpg(<GROUP>, 0)", "pid_namespace"),
    "signals by the kernel": _seccomp("import fcntl\nfcntl.fcntl(0, fcntl.F_SETOWN, <SERVER>)", "pid_namespace"),
    "limits of the server": _seccomp(
        "import resource\nresource.prlimit(<SERVER>, resource.RLIMIT_CORE, (0, 0))", "pid_namespace"
    ),
    "priority of others": Attack(
        "import os\nos.setpriority(os.PRIO_PROCESS, <SERVER>, 1)", ("seccomp", "pid_namespace"), is_safe=False
    ),
    "the server's environment": _files("open('/proc/<SERVER>/environ').read()", ALWAYS),
    "the server's memory": _files("open('/proc/<SERVER>/mem', 'rb')", ALWAYS),
    "tracing the server": _seccomp(_C + "if libc.ptrace(16, <SERVER>, 0, 0): raise OSError", ALWAYS),
    "reading the server": _seccomp(
        _C + "data = (ctypes.c_uint64 * 2)(id(libc), 8)\n"
        "if libc.process_vm_readv(<SERVER>, data, 1, data, 1, 0) < 0: raise OSError",
        ALWAYS,
    ),
    "the list of processes": _files("import os\nos.listdir('/proc')"),
    "own descriptors": _files("import os\nos.listdir('/proc/self/fd')"),
    "our package": _files(f"open({OWN_FILE!r}).read()"),
    "our programs": _files(f"import os\nos.listdir({PROGRAMS!r})"),
    "passwords": _files("open('/etc/passwd').read()"),
    "names of files elsewhere": Attack(f"import os\nos.stat({OWN_FILE!r})", ("mount_namespace",)),
    "whether a process runs": Attack("import os\nos.stat('/proc/<SERVER>')", ("mount_namespace",)),
    "shared memory": _files(
        "import os\nopen('/dev/shm/autotest-attack', 'w').close()\nos.remove('/dev/shm/autotest-attack')"
    ),
    "the temporary folder": _files(
        "import os\nopen('/tmp/autotest-attack', 'w').close()\nos.remove('/tmp/autotest-attack')"
    ),
    "writing a library": _files("import json\nopen(json.__file__, 'a')"),
    "a library, by its link": _files("import json, os\nos.link(json.__file__, 'linked')\nopen('linked', 'a')"),
    "a link out": _files("import os\nos.symlink('/etc/passwd', 'link')\nopen('link').read()"),
    "truncating a library": Attack(
        "import os\nos.truncate(os.__file__, os.path.getsize(os.__file__))",
        ("seccomp", "mount_namespace"),
        is_safe=False,
    ),
    "extended attributes": Attack(
        "import json, os\nos.setxattr(os.path.dirname(json.__file__), 'user.x', b'1')",
        ("seccomp", "mount_namespace"),
        is_safe=False,
    ),
    "a device": Attack(
        "import os, stat\nos.mknod('device', stat.S_IFBLK | 0o600, os.makedev(7, 0))", ("landlock", "capabilities")
    ),
    "a mount": _seccomp(_C + "if libc.mount(b'x', b'.', b'tmpfs', 0, None): raise OSError", "capabilities"),
    "another root": _seccomp("import os\nos.chroot('.')", "capabilities"),
    "another group": _seccomp("import os\nos.setgroups([0])", "capabilities"),
    "capabilities again": Attack(
        _C + "head = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
        "if libc.capset(head, (ctypes.c_uint32 * 6)(1 << 21, 1 << 21, 0)): raise OSError",
        ("capabilities",),
    ),
    "new privileges": Attack(_C + "if libc.prctl(39, 0, 0, 0, 0): raise OSError", ("no_new_privs",)),
    "a namespace": Attack(
        _C + "if libc.unshare(0x10000000): raise OSError", ("seccomp", "mount_namespace"), is_safe=False
    ),
    "a System V queue": _seccomp(
        _C + "queue = libc.msgget(0, 0o600)\nif queue < 0: raise OSError\nlibc.msgctl(queue, 0, None)"
    ),
    "a queue of the server's user": _seccomp(_C + "if libc.msgget(<QUEUE>, 0) < 0: raise OSError", "ipc_namespace"),
    "outliving the fork server": _seccomp(_C + "if libc.prctl(1, 0, 0, 0, 0): raise OSError"),
    "a lower limit, to be killed": Attack(
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 0))", ("seccomp",), is_safe=False
    ),
    "a lock that outlives the run": _seccomp(
        "import fcntl, struct\nfcntl.fcntl(0, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 1, 0))"
    ),
    "a lock on a library": _seccomp("import fcntl, os\nfcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)"),
    "a POSIX lock": _seccomp("import fcntl, os\nfcntl.lockf(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)"),
    "a hint on an inode": Attack(
        "import fcntl, os, struct\nfcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1036, struct.pack('Q', 2))",
        ("seccomp",),
        is_safe=False,
    ),
    "flags of an inode": Attack(
        "import fcntl, os, struct\nfcntl.ioctl(os.open(os.__file__, os.O_RDONLY), 0x40086602, struct.pack('l', 0))",
        ("seccomp", "mount_namespace"),
        is_safe=False,
    ),
    "cache advice": _seccomp(
        "import os\nos.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)"
    ),
    "cached or not": _seccomp(
        "import os\nos.preadv(os.open(os.__file__, os.O_RDONLY), [bytearray(1)], 0, os.RWF_NOWAIT)"
    ),
    "memory outside the limit": _seccomp("import os\nos.memfd_create('x')"),
    "memory": Attack("x = bytearray(5 << 30)", ("rlimits",)),
    "a big file": Attack("open('big', 'wb').write(bytes(17 << 20))", ("rlimits",)),
    "many files at once": Attack(
        "import os\nheld = []\ntry:\n    for _ in range(300): held.append(os.dup(1))\n"
        "finally:\n    for number in held: os.close(number)",
        ("rlimits",),
    ),
    "raising the limits": Attack("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (99, 99))", ("rlimits",)),
}


@contextmanager
def outside() -> Iterator[dict[str, object]]:
    """Have things that an attack may be after, made by the process that is to be the server; yields their names."""
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.create_server(("127.0.0.1", 0)) as server:
        path = f"{folder}/socket"
        datagrams, abstract = (socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM))
        queue = libc.msgget(key := os.getpid() << 8, 0o1600)
        try:
            datagrams.bind(path)
            abstract.bind(f"\0autotest-{os.getpid()}")
            abstract.listen()
            port = server.getsockname()[1]
            yield {"SERVER": os.getpid(), "GROUP": os.getpgrp(), "PORT": port, "QUEUE": key, "PATH": path}
        finally:
            libc.msgctl(queue, 0, None)
            datagrams.close()
            abstract.close()


def suite_of(attacks: Iterable[str], names: Mapping[str, object]) -> str:
    """Return a suite with one test per attack."""
    tests = []
    for number, attack in enumerate(attacks):
        source = ATTACKS[attack].source
        for name, value in names.items():
            source = source.replace(f"<{name}>", str(value))
        tests.append(f"def test_{number}():\n" + "".join(f"    {line}\n" for line in source.splitlines()))
    return "\n".join(tests)
