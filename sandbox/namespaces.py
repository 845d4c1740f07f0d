"""Namespaces around the runs, where the machine gives them to an ordinary process: a layer each, and none is needed.

A fork server enters user, network, IPC and mount namespaces once, and is the first process of a PID namespace. Each run
then has a PID namespace of its own, in which it is process 1 and alone: numbers tell it nothing, and whatever it leaves
running dies with it. A namespace that cannot be entered is off, with the reason, and everything goes on without it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from autotest_env.sandbox import kernel

_FLAGS = {"user": 0x10000000, "network": 0x40000000, "ipc": 0x08000000, "mount": 0x00020000, "pid": 0x20000000}
_IN_PROC = {"user": "user", "network": "net", "ipc": "ipc", "mount": "mnt", "pid": "pid"}
LAYERS = tuple(f"{kind}_namespace" for kind in _FLAGS)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of a fork server; `layers` maps each to "on" or to why it is off."""

    layers: dict[str, str]
    _before: dict[str, int]
    """Inodes of the namespaces that the fork server was started in."""
    _own_pid: int | None = None
    """Descriptor of the PID namespace that the fork server is the first process of."""

    def renew(self) -> None:
        """Have the next child be the first process of a new PID namespace. Raises OSError."""
        if self._own_pid is not None:
            kernel.join(self._own_pid, _FLAGS["pid"])
            kernel.unshare(_FLAGS["pid"])

    def folder_in_proc(self, pid: int) -> Path:
        """Return the folder of a child in /proc, which numbers processes as the server does. Raises OSError."""
        return Path("/proc", str(pid)) if self._own_pid is None else kernel.folder_in_proc(pid)

    def prove(self) -> dict[str, bool]:
        """Tell of each namespace whether the calling process, a child after `renew`, is in one; it must see /proc."""
        entered = {kind: kind in self._before and _inode(kind) != self._before[kind] for kind in _FLAGS}
        entered["pid"] = os.getpid() == 1
        return {f"{kind}_namespace": holds for kind, holds in entered.items()}


def enter() -> Namespaces:
    """Move the calling process, which has one thread, into every namespace it can have, and hide it from peers.

    With a PID namespace only a child returns: the caller waits for it and ends as it did, and kills it when killed.
    """
    if kernel.ABSENT:
        return Namespaces(dict.fromkeys(LAYERS, f"off: {kernel.ABSENT}"), {})
    layers = dict.fromkeys(LAYERS, "on")
    before = {}
    for kind in _FLAGS:
        try:
            before[kind] = _inode(kind)
            _enter(kind)
        except OSError as error:
            layers[f"{kind}_namespace"] = f"off: {error}"
    kernel.hide_from_peers()
    return Namespaces(layers, before, _continue_as_first() if layers["pid_namespace"] == "on" else None)


def _enter(kind: str) -> None:
    if kind == "user":
        kernel.try_in_child(_enter_user)  # where it fails half way, as AppArmor has it, there is no way back
        _enter_user()
    elif kind == "pid":
        kernel.try_in_child(_find_hidden)
        kernel.unshare(_FLAGS[kind])
    else:
        kernel.unshare(_FLAGS[kind])


def _enter_user() -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_FLAGS["user"])
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")


def _find_hidden() -> None:
    """Check that the fork server will find its children in /proc although they are numbered otherwise there."""
    kernel.hide_from_peers()
    kernel.folder_in_proc(os.getpid())


def _continue_as_first() -> int:
    """Return in the first process of the new PID namespace only, with a descriptor of that."""
    pid = os.fork()
    if pid == 0:
        kernel.die_with_parent()
        return os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # the server notices the child's end, not ours
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    finally:
        os._exit(1)


def _inode(kind: str) -> int:
    return Path("/proc/self/ns", _IN_PROC[kind]).stat().st_ino
