"""What the machine leaves to this process: cores and threads, control groups of both versions respected.

A container's limits are files below `/sys/fs/cgroup`: of the process's own group, and of every group above it.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from autotest_env.sandbox.kernel import count_cores

ROOT = Path("/")

_GROUPS = "proc/self/cgroup"
_MOUNT = "sys/fs/cgroup"


def available_cores(root: Path = ROOT) -> int:
    """Count the cores this process may keep busy, at least one: its affinity, or less where a quota says less."""
    quotas = [float(count_cores())]
    for folder in _folders("cpu", root):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        quotas += _share(quota, period)
        quotas += _share(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
    return max(1, int(min(quotas)))


def thread_limit(root: Path = ROOT) -> int | None:
    """Return how many processes and threads there may be, ours and our children's together; None: no limit known."""
    texts = [_read(folder / "pids.max") for folder in _folders("pids", root)]
    limits = [int(text) for text in texts if text.isdigit()]
    if os.geteuid() != 0:  # the kernel counts the user's threads against this one, but not root's
        soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
        limits += [soft] if soft != resource.RLIM_INFINITY else []
    return min(limits, default=None)


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """Yield the folders that may hold limits of this process: version 2's, and version 1's for one controller."""
    for line in _read(root / _GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = root / _MOUNT / (controller if controllers else "")
        group = mount / path.lstrip("/")
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(mount))


def _share(quota: str, period: str) -> list[float]:
    return [int(quota) / int(period)] if quota.isdigit() and period.isdigit() and int(period) else []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
