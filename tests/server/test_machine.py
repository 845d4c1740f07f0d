"""Limits as control groups write them, in folders like those of the kernel."""

import os
from pathlib import Path

import pytest

from autotest_env.server.machine import available_cores, thread_limit

AFFINITY = len(os.sched_getaffinity(0))
ONE = "0::/a/b\n"
BOTH = "4:pids:/docker/x\n3:cpu,cpuacct:/docker/x\n0::/\n"


def machine(folder: Path, groups: str, **files: str) -> Path:
    """Build a root; files are named from the mount of the control groups on."""
    texts = {"proc/self/cgroup": groups} | {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("", {}, AFFINITY),
        (ONE, {"a/b/cpu.max": "max 100000\n"}, AFFINITY),
        (ONE, {"a/b/cpu.max": "100000 100000\n"}, 1),
        (ONE, {"a/b/cpu.max": "50000 100000\n"}, 1),
        (ONE, {"a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000\n"}, 1),
        (ONE, {"cpu.max": "9900000 100000\n"}, AFFINITY),
        (BOTH, {"cpu/docker/x/cpu.cfs_quota_us": "-1\n", "cpu/docker/x/cpu.cfs_period_us": "100000\n"}, AFFINITY),
        (BOTH, {"cpu/docker/x/cpu.cfs_quota_us": "150000\n", "cpu/docker/x/cpu.cfs_period_us": "100000\n"}, 1),
        (BOTH, {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        (BOTH, {"cpu/other/cpu.cfs_quota_us": "100000\n", "cpu/other/cpu.cfs_period_us": "100000\n"}, AFFINITY),
    ],
)
def test_a_quota_counts_like_cores(groups, files, cores, tmp_path):
    assert available_cores(machine(tmp_path, groups, **files)) == cores


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        (ONE, {"a/b/pids.max": "256\n"}, 256),
        (ONE, {"a/b/pids.max": "max\n", "a/pids.max": "100\n"}, 100),
        (BOTH, {"pids/pids.max": "256\n"}, 256),
        (BOTH, {"pids/docker/x/pids.max": "64\n", "pids/pids.max": "256\n"}, 64),
    ],
)
def test_the_tightest_limit_of_processes_counts(groups, files, limit, tmp_path):
    assert thread_limit(machine(tmp_path, groups, **files)) == limit


def test_a_control_group_without_a_limit_adds_none(tmp_path):
    unlimited = machine(tmp_path, ONE, **{"a/b/pids.max": "max\n"})
    assert thread_limit(unlimited) == thread_limit(tmp_path / "nothing here")


def test_this_machine_has_a_core():
    assert 1 <= available_cores() <= AFFINITY
