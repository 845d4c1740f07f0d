"""The same attacks where the server may have to live: as root, as an ordinary user, on machines that lack a layer.

Each deployment is a process of its own that really is what it says, see `tests.sandbox.deploy`. It must say which layers
are on, no more and no less, and what is on must refuse what it is there to refuse.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from autotest_env.sandbox.confine import OPTIONAL_LAYERS
from tests.sandbox.attacks import ATTACKS, REFUSALS

ROOT = Path(__file__).resolve().parent.parent.parent
ORDINARY = 1000 if os.geteuid() == 0 else os.geteuid()
USERS = list(dict.fromkeys([os.geteuid(), ORDINARY]))
LACKING: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "namespaces": ("namespaces",),
    "landlock": ("landlock",),
    "seccomp": ("seccomp",),
    "user namespaces": ("user namespaces",),
    "mounts": ("mounts",),
    "maps": ("maps",),
    "all of them": ("namespaces", "landlock", "seccomp"),
}
OF_OTHERS = [name for name in LACKING if name != "maps"]
OF_ROOT = ("nothing", "namespaces", "landlock", "maps", "all of them")
CASES = [(user, lacking) for user in USERS for lacking in (OF_ROOT if user == 0 else OF_OTHERS)]
TAKES = {"mounts": "mount_namespace", "maps": "user_namespace", "landlock": "landlock", "seccomp": "seccomp"}
"""What a lack takes whatever else there is."""
OWNERS_ONLY = {"writing a library", "a library, by its link"}
"""Attacks that permissions alone refuse an ordinary user."""
PROBE = "import ctypes; raise SystemExit(-ctypes.CDLL(None).unshare(0x78020000))"
"""Exit code 0 where a process may have every kind of namespace that the sandbox uses."""


@dataclass(frozen=True)
class Deployment:
    """Who the server is and what its machine lacks."""

    user: int
    lacks: tuple[str, ...]
    python: str = sys.executable

    def start(self, *program: str) -> "subprocess.CompletedProcess[str]":
        """Run a Python program there, to its end."""
        denied = [word for name in self.lacks for word in ("--deny", name)]
        command = [sys.executable, "-m", "tests.sandbox.deploy", "--user", str(self.user), *denied, "--"]
        return subprocess.run([*command, self.python, *program], cwd=ROOT, capture_output=True, text=True, check=False)


@cache
def has_namespaces(deployment: Deployment) -> bool:
    """Whether the kernel gives them there, found out without the sandbox."""
    return deployment.start("-c", PROBE).returncode == 0


def attack(deployment: Deployment, isolation: str = "best-effort") -> dict[str, dict[str, str]]:
    done = deployment.start("-m", "tests.sandbox.attacked", isolation)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("user", "lacking"), CASES)
def test_layers_are_what_they_are_said_to_be_and_hold(user: int, lacking: str) -> None:
    deployment = Deployment(user, LACKING[lacking])
    found = attack(deployment)
    layers, ends = found["layers"], found["ends"]
    off = {name for name, state in layers.items() if state != "on"}
    namespaces = set() if has_namespaces(deployment) else {*OPTIONAL_LAYERS}
    assert off == namespaces | {TAKES[name] for name in deployment.lacks if name in TAKES}
    assert all(layers[name].startswith("off: ") for name in off)
    refused = {name for name, message in ends.items() if message.startswith(REFUSALS)}
    assert refused >= {name for name, attack in ATTACKS.items() if attack.is_refused(layers)}
    if lacking == "all of them":  # that they are refused elsewhere says something only if they work here
        assert {name for name in refused if not ATTACKS[name].is_refused(layers)} <= (OWNERS_ONLY if user else set())
    assert found["stayed"] == 0 or {"seccomp", "pid_namespace"} <= off
    assert found["left"] == []


@pytest.mark.parametrize("lacking", ["namespaces", "landlock", "seccomp"])
def test_required_isolation_does_without_namespaces_and_without_nothing_else(lacking: str) -> None:
    done = Deployment(ORDINARY, LACKING[lacking]).start("-m", "tests.sandbox.attacked", "required")
    if lacking == "namespaces":
        assert done.returncode == 0, done.stderr
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert f"AUTOTEST_ISOLATION=required, but {lacking} is off: " in done.stderr


@contextmanager
def python(*lacking: str, **more: str) -> Iterator[str]:
    """Yield a Python with the packages of this one but those named, and with `more` modules; others may run it, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        venv.create(folder, symlinks=True)
        packages = next(Path(folder).glob("lib/python*/site-packages"))
        for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
            if not path.name.startswith(lacking) and not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)
        for name, source in more.items():
            (packages / f"{name}.py").write_text(source)
        yield f"{folder}/bin/python"


def test_without_the_binding_of_libseccomp_the_other_layers_hold() -> None:
    with python("pyseccomp") as other:
        found = attack(Deployment(ORDINARY, (), other))
    layers, ends = found["layers"], found["ends"]
    needs = "it needs the system library libseccomp and the package pyseccomp"
    assert layers["seccomp"] == f"off: No module named 'pyseccomp'; {needs}"
    assert layers["landlock"] == "on"
    refused = {name for name, message in ends.items() if message.startswith(REFUSALS)}
    assert refused >= {name for name, attack in ATTACKS.items() if attack.is_refused(layers)}


NOT_LINUX = """
import os, subprocess, sys, sysconfig
sysconfig.get_config_vars()
sys.platform = "darwin"
for name in {"sched_getaffinity", "pidfd_open", "waitid", "memfd_create", "setns", "unshare"} & {*dir(os)}:
    delattr(os, name)
"""
ELSEWHERE = """
import json, logging, sys
from autotest_env.errors import SetupError
from autotest_env.sandbox.confine import Isolation
from autotest_env.sandbox.run import Sandbox, SandboxOptions, compile_program
from autotest_env.sandbox.suite import RunJob
from autotest_env.server.settings import Settings
assert Settings.from_environment({}).graders >= 1
for isolation in (Isolation.REQUIRED, Isolation.BEST_EFFORT):
    box = Sandbox(SandboxOptions(graders=1, isolation=isolation))
    try:
        box.start()
    except SetupError as error:
        print(isolation, error, file=sys.stderr)
ends = []
with box.open() as turn:
    for body in ("pass", "assert 0", "import os; os._exit(0)", "import time; time.sleep(9)"):
        suite = turn.compile("def test_it(): " + body)
        (result,) = turn.run([RunJob(program=compile_program("m", "x = 1"), suite=suite, cpu_s=0.5)])
        ends.append([result.end, *(test.outcome for test in result.tests)])
box.close()
print(json.dumps({"layers": box.layers, "ends": ends}))
"""


def test_on_another_system_it_says_what_is_missing_and_grades_if_it_may() -> None:
    """As far as Linux can be made to look like it: the platform's name, packages and calls that are not there."""
    packages = ("pyseccomp", "landlockpy", "_landlock")
    with python(*packages, sitecustomize=NOT_LINUX, _scproxy="def _get_proxies(): return {}") as other:
        done = subprocess.run([other, "-c", ELSEWHERE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name for name, state in found["layers"].items() if state == "on"} == {"rlimits"}
    assert set(found["layers"].values()) == {"on", "off: darwin has no such layer, Linux has"}
    assert found["ends"] == [["completed", "passed"], ["completed", "failed"], ["exited"], ["wall_limit"]]
    assert "required AUTOTEST_ISOLATION=required, but no_new_privs is off: darwin has no such layer" in done.stderr
    assert "suites run without these layers; AUTOTEST_ISOLATION=required refuses to start instead" in done.stderr
    assert "Traceback" not in done.stderr
