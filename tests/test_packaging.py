"""The wheel holds the whole tree, works where nothing else of the repository is, and OpenEnv accepts the package."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_PACKAGED = {"benchmarks", "build", "dist", "docs", "outputs", "scripts", "tests", "validation"}


def _visible(folder: Path) -> Iterator[Path]:
    """Yield the files of the package's tree that are not caches, environments or repository matters."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__pycache__")) or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            if folder != ROOT or path.name not in NOT_PACKAGED:
                yield from _visible(path)
        else:
            yield path


def _tree() -> set[str]:
    """Return what must be in the wheel: modules, everything of a program, and the data that is read at run time."""
    files = [path.relative_to(ROOT).as_posix() for path in _visible(ROOT)]
    data = {"py.typed", "openenv.yaml", "README.md"}
    return {name for name in files if name.endswith(".py") or name.startswith("tasks/programs/") or name in data}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy: a build writes into its source folder."""
    source = tmp_path_factory.mktemp("source") / "anywhere"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist"))
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel as an installer would."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _run(installed: Path, code: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_holds_exactly_the_tree(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name.removeprefix("autotest_env/") for name in names if name.startswith("autotest_env/")}
    assert packaged == _tree()
    assert {name.partition("/")[0] for name in names} == {
        "autotest_env",
        f"openenv_autotest_env-{PROJECT['project']['version']}.dist-info",
    }


def test_every_folder_with_an_init_is_a_listed_package() -> None:
    found = {path.relative_to(ROOT).parent for path in _visible(ROOT) if path.name == "__init__.py"}
    assert {".".join(("autotest_env", *path.parts)) for path in found} == set(PROJECT["tool"]["setuptools"]["packages"])


def test_the_installed_package_is_the_wheels_own(installed: Path, tmp_path: Path) -> None:
    assert _run(installed, "import autotest_env; print(autotest_env.__file__)", tmp_path) == str(
        installed / "autotest_env" / "__init__.py"
    )


def test_the_public_names_load_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import autotest_env; print([getattr(autotest_env, name).__name__ for name in autotest_env.__all__])"
    assert _run(installed, code, tmp_path) == str(
        ["AutoTestEnvClient", "AutotestEnv", "TestAction", "TestObservation", "TestState"]
    )


@pytest.mark.parametrize("module", ["autotest_env", "autotest_env.tasks.registry", "autotest_env.sandbox.run"])
def test_judging_imports_neither_openenv_nor_a_web_framework(module: str, installed: Path, tmp_path: Path) -> None:
    code = f"import sys, {module}; print({{'openenv', 'gradio', 'fastapi', 'pydantic'}} & set(sys.modules))"
    assert _run(installed, code, tmp_path) == "set()"


def test_the_version_is_written_once() -> None:
    version = PROJECT["project"]["version"]
    stated = {
        path.name for path in _visible(ROOT) if path.suffix in {".py", ".toml", ".yaml"} and version in path.read_text()
    }
    assert stated == {"pyproject.toml"}


def test_every_imported_distribution_is_declared() -> None:
    """What comes along with openenv today need not tomorrow: each import has its own line in pyproject.toml."""
    declared = {_name(line) for line in PROJECT["project"]["dependencies"]}
    homes = packages_distributions()
    imported = {top for path in _visible(ROOT) if path.suffix == ".py" for top in _imports(path)}
    foreign = imported - sys.stdlib_module_names - {"autotest_env"} - _programs()
    missing = {top for top in foreign if not declared & {_name(home) for home in homes.get(top, [top])}}
    assert missing == set()


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "docs" / "decisions" / "dependencies.md").read_text(encoding="utf-8")
    groups = PROJECT["dependency-groups"]
    wanted = {_name(line) for line in (*PROJECT["project"]["dependencies"], *groups["build"], *groups["dev"])}
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == wanted


def _name(requirement: str) -> str:
    head = requirement.partition(";")[0]
    return "".join(c if c.isalnum() or c in "-_." else " " for c in head).split()[0].replace("_", "-").lower()


def _programs() -> set[str]:
    """Return the names under which programs are imported by their own suites."""
    return {path.stem for path in (ROOT / "tasks" / "programs").rglob("*.py")} | {
        path.name for path in (ROOT / "tasks" / "programs").iterdir()
    }


def _imports(path: Path) -> Iterator[str]:
    if path.is_relative_to(ROOT / "tasks" / "programs"):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-compat.lock"])
def test_locks_pin_every_file_by_hash_and_name_no_place(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = text.replace("\\\n", " ").splitlines()
    assert entries
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert "://" not in text
    assert " @ " not in text


@pytest.mark.parametrize(
    ("lock", "groups"), [("requirements.lock", ["build"]), ("requirements-dev.lock", ["build", "dev"])]
)
def test_locks_cover_what_pyproject_asks_for(lock: str, groups: list[str]) -> None:
    locked = {_name(line.partition("==")[0]) for line in (ROOT / lock).read_text().splitlines() if "==" in line}
    wanted = [*PROJECT["project"]["dependencies"]]
    for group in groups:
        wanted += PROJECT["dependency-groups"][group]
    assert {_name(line) for line in wanted} <= locked


def test_locks_name_the_extras_that_packages_ask_of_each_other() -> None:
    """A pip older than 23.3 does not see that "coverage==7" pins "coverage[toml]", and fails when there is a newer one."""
    text = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    pinned = [Requirement(line.rstrip(" \\")) for line in text.splitlines() if "==" in line]
    extras = {canonicalize_name(pin.name): pin.extras for pin in pinned if pin.marker is None or pin.marker.evaluate()}
    asked: dict[str, set[str]] = {}
    for name, own in extras.items():
        for wanted in map(Requirement, requires(name) or []):
            if any(wanted.marker is None or wanted.marker.evaluate({"extra": extra}) for extra in ("", *own)):
                asked.setdefault(canonicalize_name(wanted.name), set()).update(wanted.extras)
    assert {"coverage", "pydantic"} <= {name for name in asked if asked[name]}
    assert {name: some - extras[name] for name, some in asked.items() if some - extras.get(name, set())} == {}


def test_the_lock_with_openenvs_old_name_differs_in_that_alone() -> None:
    ours, old = ((ROOT / f"requirements{kind}.lock").read_text().splitlines() for kind in ("", "-compat"))
    changed = {line.partition("==")[0] for line in set(ours) ^ set(old) if "--hash" not in line}
    assert changed == {"openenv", "openenv-core"}


def test_openenv_validates_the_package(tmp_path: Path) -> None:
    copy = tmp_path / "autotest_env"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info"))
    command = [str(Path(sys.executable).with_name("openenv")), "validate", str(copy), "--level", "static"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict: PASS" in done.stdout


def test_openenv_finds_the_installed_environment(tmp_path: Path) -> None:
    code = "from openenv import AutoAction, AutoEnv; print(AutoEnv.get_env_class(NAME), AutoAction.from_env(NAME))"
    done = subprocess.run(
        [sys.executable, "-c", code.replace("NAME", "'autotest'")],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "<class 'autotest_env.client.AutotestEnv'> <class 'autotest_env.models.TestAction'>\n"


def test_the_manifest_the_image_and_the_project_agree() -> None:
    manifest = yaml.safe_load((ROOT / "openenv.yaml").read_text(encoding="utf-8"))
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert manifest["name"] == "autotest_env"
    assert f"EXPOSE 7860 {manifest['port']}" in image
    assert f"AUTOTEST_PORTS=7860,{manifest['port']}" in image
    assert (ROOT / manifest["validation"]["execution"]["probe_path"]).is_file()


def test_no_file_name_looks_like_a_credential() -> None:
    """OpenEnv leaves such files out of the image it builds."""
    suspicious = (".env", "secret", "credential")
    assert [
        path for path in _visible(ROOT) if path.name.startswith(suspicious) or path.suffix in {".pem", ".key"}
    ] == []
