"""Be in a container as our image is deployed, without a container engine, and run a program there.

    container --user UID --show FOLDER... [--deny namespaces] -- PROGRAM

Its root is read-only and holds what this machine has; only /tmp can be written to, and nothing in it executed. No
capabilities, no network but a loopback device, 256 processes and threads, a /proc of its own whose settings are masked.
Root can be any user in it, others only themselves.
"""

import argparse
import ctypes
import fcntl
import os
import resource
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

from tests.sandbox.deploy import BIND, DENIALS, NEW_MOUNT, PRIVATE, check, libc, map_user, open_way

NEW_REST = NEW_MOUNT | 0x40000000 | 0x08000000 | 0x04000000 | 0x20000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, RECURSIVE = 1, 2, 4, 8, 32, 16384
MOUNT_SETATTR = 442
PIDS = 256


def main() -> None:
    """Enter, become the user, and wait for the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--user", type=int, required=True)
    parser.add_argument("--show", type=Path, action="append", required=True)
    parser.add_argument("--deny", action="append", default=[], choices=DENIALS)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    if os.geteuid():
        map_user()
    group = limit_processes(options.user)
    check(libc.unshare(NEW_REST))
    pid = os.fork()
    if pid == 0:
        check(libc.prctl(1, 9, 0, 0, 0))  # die with the parent
        mount_all(options.show)
        loopback_up()
        drop(options.user)
        for name in options.deny:
            DENIALS[name]()
        os.chdir("/tmp")
        os.execv(options.program[0], options.program)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        if group:
            (group.parent / "cgroup.procs").write_text(str(os.getpid()))
            group.rmdir()
    sys.exit(code)


def limit_processes(user: int) -> Path | None:
    """Limit processes and threads: by a control group where that can be, else by a limit of the user's."""
    group = Path(f"/sys/fs/cgroup/pids/autotest-{os.getpid()}")
    with suppress(OSError):
        group.mkdir()
        (group / "pids.max").write_text(str(PIDS))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        return group
    resource.setrlimit(resource.RLIMIT_NPROC, (PIDS, PIDS))
    return None


def mount_all(shown: list[Path]) -> None:
    """Make everything read-only, and /tmp and /proc new."""
    check(libc.mount(None, b"/", None, PRIVATE, None))
    for place in shown:
        open_way(place)
    kept = {place: os.open(place, os.O_PATH) for place in shown if place.is_relative_to("/tmp")}
    read_only = (ctypes.c_uint64 * 4)(RDONLY | NOSUID, 0, 0, 0)
    check(libc.syscall(MOUNT_SETATTR, -100, b"/", 0x8000, read_only, 32))
    check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", NOSUID | NODEV | NOEXEC, b"mode=1777,size=512m"))
    for place, descriptor in kept.items():
        place.mkdir(parents=True)
        check(libc.mount(f"/proc/self/fd/{descriptor}".encode(), os.fsencode(place), None, BIND, None))
        os.close(descriptor)
    check(libc.mount(b"proc", b"/proc", b"proc", NOSUID | NODEV | NOEXEC, None))
    check(libc.mount(b"/proc/sys", b"/proc/sys", None, BIND | RECURSIVE, None))
    check(libc.mount(None, b"/proc/sys", None, REMOUNT | BIND | RDONLY | NOSUID | NODEV | NOEXEC, None))
    for masked in filter(os.path.exists, (b"/proc/kcore", b"/proc/keys", b"/proc/timer_list")):
        check(libc.mount(b"/dev/null", masked, None, BIND, None))


def loopback_up() -> None:
    """Turn the loopback device on: the server and its caller are both inside."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1 | 0x40))


def drop(user: int) -> None:
    """Become the user, without capabilities, and without a way to more."""
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)
    if user != os.geteuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    check(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()))
    check(libc.prctl(38, 1, 0, 0, 0))
    check(libc.prctl(4, 1, 0, 0, 0))


if __name__ == "__main__":
    main()
