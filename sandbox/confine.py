"""Confinement of a run: what submitted code can reach, and what it cannot.

Covered, each by a layer that is applied in the child before any submitted code is loaded:

* rlimits: CPU seconds, address space, size of a file, open files, no core dumps.
* no_new_privs and capabilities: no privilege is gained, and root keeps none.
* seccomp (a list of what is refused): no sockets to anywhere, no new processes or programs (threads start), no signals
  to anybody, no ptrace, no memory of other processes, no mounts or namespaces, no io_uring, bpf, keyrings, System V or
  POSIX queues; no file locks, leases or cache advice, and modes, owners, times and extended attributes of files cannot
  be changed: all these outlive a run or reach another one.
* landlock: files are readable only in the standard library, in `READABLE_PACKAGES` and in shared libraries;
  writable only in this run's folder, which is emptied after the run. Nothing of this package, of installed
  libraries, of /proc or /tmp can be opened.
* namespaces, where the machine gives them; each is a layer of its own (see `sandbox.namespaces`). network: none but an
  empty one. ipc: queues and shared memory of others are not there. pid: no other process has a number, every run is
  process 1, and what it leaves running dies with it. mount: nothing has a name but what landlock lets it read, that is
  read-only, and the run's folder is a new file system in memory, so that nothing counted there (inodes, space) tells of
  earlier runs. user: what the others need, and no right over a process outside.

Not covered: timing and load of the machine can be observed, and so can names and sizes of files (stat): of those it may
read, without a mount namespace of all. The caches of the kernel remember which names and pages were asked for, and a
clock tells: a few bits can pass from one run to the next that way, namespaces or not, because all runs share the
standard library. Without a mount namespace inode numbers tell, too. So who judges must not make runs in an order that
can be known (see the families' evidence). Sleeping and working suites hold a grader for as long as the limits allow. A
kernel bug is a way out. A submission runs in the same process as the reporter, so it can write that process's report.
It gains nothing: the process holds one text and does not know which, so a forged report knows no more than a test.

A layer that the machine lacks is reported with the reason. `Isolation.REQUIRED` refuses to start without it, namespaces
excepted: `OPTIONAL_LAYERS`.
"""

import resource
import socket
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotest_env.sandbox import kernel, namespaces
from autotest_env.sandbox.jail import MARKER, Jail
from autotest_env.sandbox.syscalls import build_filter

READABLE_PACKAGES = (
    "_pytest",
    "pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "coverage",
    "hypothesis",
    "_hypothesis_globals",
    "sortedcontainers",
)
"""Top-level packages a run may read, besides the standard library."""

_SHARED = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", f"{sys.base_prefix}/lib")
_FILES = ("/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache", "/dev/urandom", "/dev/random", "/dev/zero")
_LAYERS = ("rlimits", "no_new_privs", "capabilities", "landlock", "seccomp")
_NEEDS = {
    "landlock": "Linux 5.13 or later and the package landlockpy",
    "seccomp": "the system library libseccomp and the package pyseccomp",
}
OPTIONAL_LAYERS = namespaces.LAYERS
"""What `Isolation.REQUIRED` does without: few containers give namespaces to an ordinary user."""


class Isolation(StrEnum):
    """What to do when a layer is missing."""

    REQUIRED = "required"
    BEST_EFFORT = "best-effort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one run."""

    cpu_s: float
    memory_bytes: int = 768 << 20
    file_bytes: int = 16 << 20
    open_files: int = 128


@dataclass(slots=True)
class Confinement:
    """The prepared layers; `layers` maps each name to "on" or to why it is off."""

    layers: dict[str, str]
    steps: dict[str, Callable[[Limits], None]]
    """What puts each layer on in a child, in this order; a layer that is off, or on already, has none."""
    spaces: namespaces.Namespaces

    def apply(self, limits: Limits) -> None:
        """Confine the calling process for good. Raises OSError when a layer cannot be put on."""
        for step in self.steps.values():
            step(limits)

    def believe(self, layers: dict[str, str]) -> None:
        """Take over what `prove` found: a layer that does not work is off from here on."""
        self.layers = layers
        self.steps = {name: step for name, step in self.steps.items() if layers[name] == "on"}


def prepare(folder: Path, spaces: namespaces.Namespaces, jail: Jail | None) -> Confinement:
    """Build every layer this machine has, once per fork server; `folder` is the only writable place of its runs."""
    layers = {**spaces.layers, **dict.fromkeys(_LAYERS, "on")}
    confinement = Confinement(layers=layers, steps={"rlimits": _set_rlimits}, spaces=spaces)
    if kernel.ABSENT:
        layers.update(dict.fromkeys(_LAYERS[1:], f"off: {kernel.ABSENT}"))
        return confinement
    if jail is not None:
        confinement.steps["mount_namespace"] = lambda _: jail.enter()  # it takes a capability
    builders: dict[str, Callable[[], Callable[[Limits], None]]] = {
        "no_new_privs": lambda: lambda _: kernel.gain_nothing(),
        "capabilities": lambda: lambda _: kernel.drop_capabilities(),
        "landlock": lambda: _landlock(folder),
        "seccomp": _seccomp,
    }
    for name, build in builders.items():
        try:
            confinement.steps[name] = build()
        except (ImportError, RuntimeError, OSError) as error:
            layers[name] = f"off: {error}; it needs {_NEEDS[name]}"
    return confinement


def prove(confinement: Confinement, forbidden: Path) -> dict[str, str]:
    """Put the layers on the calling process and try what they forbid; return the layers as they really are.

    `forbidden` is a readable file outside every allowed place. Call it in a child that does nothing else.
    """
    layers = dict(confinement.layers)
    holds = confinement.spaces.prove()
    for name, step in confinement.steps.items():
        try:
            step(Limits(cpu_s=5))
        except (OSError, ValueError) as error:
            layers[name] = f"off: {error}"
    jailed = "mount_namespace" in confinement.steps and layers["mount_namespace"] == "on"
    holds["seccomp"] = layers["seccomp"] == "on" and _is_refused(socket.socket)
    holds["landlock"] = _is_refused(lambda: (MARKER if jailed else forbidden).open("rb"))
    holds["mount_namespace"] = jailed and not forbidden.exists()
    for name, held in holds.items():
        if layers[name] == "on" and not held:
            layers[name] = "off: it was put on but does not hold on this kernel"
    return layers


@cache
def readable_trees() -> tuple[Path, ...]:
    """The standard library entry by entry (site-packages may lie inside it), named packages, shared libraries."""
    trees = [entry for entry in _entries(sysconfig.get_paths()["stdlib"]) if not entry.name.endswith("-packages")]
    for name in READABLE_PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            trees.append(origin.parent if origin.name == "__init__.py" else origin)
    for name in _SHARED:  # what is called python* there holds installed packages
        trees += [entry for entry in _entries(name) if not entry.name.startswith("python")]
    own = Path(__file__).resolve()
    trees += [Path(name) for name in _FILES]
    return tuple(tree for tree in dict.fromkeys(trees) if tree.exists() and not own.is_relative_to(tree.resolve()))


def _is_refused(attack: Callable[[], object]) -> bool:
    try:
        attack()
    except PermissionError:
        return True
    return False


def _set_rlimits(limits: Limits) -> None:
    cpu_s = int(limits.cpu_s) + 2  # the fork server stops the run earlier and exactly; this is the net below it
    for kind, value in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _seccomp() -> Callable[[Limits], None]:
    bpf = build_filter()
    return lambda _: kernel.filter_calls(bpf)


def _landlock(folder: Path) -> Callable[[Limits], None]:
    ruleset = _build_ruleset(folder)
    return lambda _: ruleset.restrict()


def _build_ruleset(folder: Path) -> Any:
    landlock = import_module("landlockpy")
    access = landlock.AccessFS
    read = access.READ_FILE | access.READ_DIR
    rules = landlock.Ruleset(scoped=landlock.Scope.SIGNAL | landlock.Scope.ABSTRACT_UNIX_SOCKET)
    for path in readable_trees():
        rules.allow_path(path, read | access.EXECUTE if path.is_dir() else access.READ_FILE | access.EXECUTE)
    rules.allow_path("/dev/null", access.READ_FILE | access.WRITE_FILE)
    everything = landlock.AccessFS(sum(flag for flag in access if flag not in _devices(access)))
    rules.allow_path(folder, everything)
    return rules


def _devices(access: type) -> tuple[object, ...]:
    return tuple(
        getattr(access, name) for name in ("EXECUTE", "MAKE_CHAR", "MAKE_BLOCK", "MAKE_SOCK", "MAKE_FIFO", "IOCTL_DEV")
    )


def _entries(folder: str) -> list[Path]:
    path = Path(folder)
    return list(path.iterdir()) if path.is_dir() else []
