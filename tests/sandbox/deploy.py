"""Become somebody, on a machine that lacks something, and run a program: ``deploy [--user UID] [--deny WHAT]... -- PROGRAM``.

All of it is real: users are changed, a seccomp filter takes system calls away, a limit takes namespaces away.
"""

import argparse
import ctypes
import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

import pyseccomp

NEW_USER, NEW_MOUNT = 0x10000000, 0x00020000
NEW_ANY = (NEW_USER, NEW_MOUNT, 0x40000000, 0x08000000, 0x20000000)
PRIVATE, BIND = 16384 | 1 << 18, 4096

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Do what the options say and become the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--user", type=int, default=os.geteuid())
    parser.add_argument("--deny", action="append", default=[], choices=DENIALS)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    if options.user != os.geteuid():
        become(options.user)
    for name in options.deny:
        DENIALS[name]()
    os.execv(options.program[0], options.program)


def become(user: int) -> None:
    """Change to an ordinary user who can reach what this process runs on, also where it lies in root's home."""
    for needed in {sys.base_prefix, sys.prefix, str(Path.cwd())}:
        open_way(Path(needed).resolve())
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    check(libc.prctl(4, 1, 0, 0, 0))  # changing users closes a process's own files in /proc; a login would open them


def map_user() -> None:
    """Have every capability in a user namespace of one's own, as the same user."""
    user, group = os.geteuid(), os.getegid()
    check(libc.unshare(NEW_USER))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)


def open_way(place: Path) -> None:
    """Lay, for this process alone, a folder that everybody may enter over each closed one above a place."""
    for closed in reversed(place.parents):
        if closed.stat().st_mode & 1:
            continue
        check(libc.unshare(NEW_MOUNT))
        check(libc.mount(None, b"/", None, PRIVATE, None))
        below = closed / place.relative_to(closed).parts[0]
        descriptor = os.open(below, os.O_PATH)
        check(libc.mount(b"tmpfs", os.fsencode(closed), b"tmpfs", 0, b"mode=755"))
        below.mkdir()
        check(libc.mount(f"/proc/self/fd/{descriptor}".encode(), os.fsencode(below), None, BIND, None))
        os.close(descriptor)


def deny_namespaces() -> None:
    """Refuse new namespaces as the default seccomp profile of Docker does."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in ("unshare", "setns", "mount"):
        rules.add_rule(pyseccomp.ERRNO(errno.EPERM), name)
    for flag in NEW_ANY:
        rules.add_rule(pyseccomp.ERRNO(errno.EPERM), "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    rules.load()


def limit_namespaces() -> None:
    """Allow no more user namespaces from here on, and give up what else would help."""
    with suppress(PermissionError):  # then this machine allows none as it is
        map_user()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    for capability in range(41):
        libc.prctl(24, capability, 0, 0, 0)
    check(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()))


def deny_mounts() -> None:
    """Give namespaces, but let nothing be mounted in them."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.add_rule(pyseccomp.ERRNO(errno.EPERM), "mount")
    rules.load()


def deny_maps() -> None:
    """Give a user namespace in which nobody is anybody, as AppArmor has it; the others are there for root."""
    with suppress(PermissionError):  # then this machine gives none as it is
        check(libc.unshare(NEW_MOUNT))
        check(libc.mount(None, b"/", None, PRIVATE, None))
        check(libc.mount(b"/proc", b"/proc", None, BIND, None))
        check(libc.mount(None, b"/proc", None, BIND | 32 | 1, None))


def deny_landlock() -> None:
    """Have a kernel without Landlock."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "landlock_create_ruleset")
    rules.load()


def deny_seccomp() -> None:
    """Have a kernel without seccomp filters."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.add_rule(pyseccomp.ERRNO(errno.EINVAL), "prctl", pyseccomp.Arg(0, pyseccomp.EQ, 22))
    rules.load()


DENIALS = {
    "namespaces": deny_namespaces,
    "user namespaces": limit_namespaces,
    "mounts": deny_mounts,
    "maps": deny_maps,
    "landlock": deny_landlock,
    "seccomp": deny_seccomp,
}


def check(result: int) -> None:
    """Raise what a system call failed with."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
