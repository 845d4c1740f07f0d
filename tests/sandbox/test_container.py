"""Our image as it is deployed: an ordinary user, a read-only root, 256 processes, no network; with namespaces and without."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotest_env.sandbox.confine import OPTIONAL_LAYERS
from autotest_env.tasks.registry import FAMILIES
from tests.sandbox.test_deployments import ROOT, python

pytestmark = pytest.mark.heavy

USERS = [1000, 65532] if os.geteuid() == 0 else [os.geteuid()]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Python in which the built wheel is installed, and not this folder."""
    made = tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        ROOT, made / "source", ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    )
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made), str(made / "source")]
    subprocess.run(build, check=True, capture_output=True)
    with (
        python("__editable__", "openenv_autotest_env") as interpreter,
        zipfile.ZipFile(next(made.glob("*.whl"))) as wheel,
    ):
        wheel.extractall(next(Path(interpreter).parents[1].glob("lib/python*/site-packages")))
        yield Path(interpreter)


@pytest.mark.parametrize("denied", [(), ("namespaces",)])
@pytest.mark.parametrize("user", USERS)
def test_every_family_is_played_to_the_end(installed: Path, user: int, denied: tuple[str, ...]) -> None:
    shown = {installed.parents[1], Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parent}
    options = ["--user", str(user), *(word for place in shown for word in ("--show", str(place)))]
    options += [word for name in denied for word in ("--deny", name)]
    played = Path(__file__).with_name("played.py")
    command = [sys.executable, "-m", "tests.sandbox.container", *options, "--", str(installed), str(played)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["writable"], found["threads"]) == (["/tmp"], 256)
    assert found["scores"] == dict.fromkeys(FAMILIES, 1.0)
    assert (found["health"], found["web"], found["left"]) == (200, 200, [])
    assert found["code"] in (0, -signal.SIGTERM)
    layers = json.loads(found["metadata"])["isolation"]
    off = {name for name, state in layers.items() if state != "on"}
    assert off <= {*OPTIONAL_LAYERS}
    assert off == {*OPTIONAL_LAYERS} or not denied
