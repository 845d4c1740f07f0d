"""The README is true: its blocks are executed, and its tables are the code's."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import requests
import yaml
from pydantic import BaseModel

from autotest_env import errors, models
from autotest_env.errors import SetupError
from autotest_env.server.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
URL = "http://127.0.0.1:7860"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [code.strip() for language, code in BLOCKS if language == "sh"]
FORMULAS = [code for language, code in BLOCKS if language == ""]
LINE = re.compile(r"\[(START|STEP|END)\] \w+=.*")
OPENENVS_OWN = {"metadata", "done", "reward"}


def _run(code: str, url: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code.replace(URL, url)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _script(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTEST_"))}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_no_block_is_left_out() -> None:
    assert {language for language, _ in BLOCKS} == {"python", "sh", ""}
    assert [command.split()[0] for command in SHELL] == ["scripts/demo", "scripts/test", ".venv/bin/server", "docker"]
    assert len(FORMULAS) == 7  # computed by tests/test_formulas.py


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_a_python_block_runs(code: str, real_server: Any, tmp_path: Path) -> None:
    assert _run(code, real_server.url, tmp_path).strip()


def test_the_seed_example_gives_the_same_twice(real_server: Any, tmp_path: Path) -> None:
    assert _run(PYTHON[0], real_server.url, tmp_path) == _run(PYTHON[0], real_server.url, tmp_path)


def test_the_demo_prints_the_standard_lines_only() -> None:
    done = _script(*SHELL[0].split())
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("[START] task=unit_test_writer env=autotest-env model=embedded")
    assert lines[-1].startswith("[END] success=")
    assert [line for line in lines if not LINE.fullmatch(line)] == []


def test_continuous_integration_runs_the_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines.index("set -euo pipefail") < lines.index(SHELL[1]) < lines.index('rm "$log"')
    assert 'wait "$compat" || { cat "$log"; exit 1; }' in lines


@pytest.mark.heavy
def test_the_test_command_sets_up_checks_and_reaches_pytest() -> None:
    """All of scripts/test but the run itself."""
    done = _script(*SHELL[1].split(), "--collect-only", "-q", "--no-cov", "tests/test_readme.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_the_test_command_sets_up_checks_and_reaches_pytest" in done.stdout


def test_the_server_command_serves(tmp_path: Path, start_server: Any) -> None:
    (command,) = SHELL[2].splitlines()
    script = Path(sys.executable).with_name(Path(command).name)
    with start_server([str(script), "--port", "0"], tmp_path / "log") as server:
        assert requests.post(f"{server.url}/reset", json={"seed": 42}, timeout=30).json()["observation"]["prompt"]


def test_the_docker_command_fits_the_image() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    published = re.findall(r"-p (\d+):(\d+)", SHELL[3])
    exposed = re.search(r"^EXPOSE (.*)$", image, flags=re.MULTILINE)
    assert exposed
    assert published
    assert {port for pair in published for port in pair} <= set(exposed[1].split())


def test_the_header_is_a_spaces() -> None:
    header = yaml.safe_load(README.split("---\n")[1])
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert header["sdk"] == "docker"
    assert header["base_path"] == "/web"
    assert "openenv" in header["tags"]
    assert f"AUTOTEST_PORTS={header['app_port']}," in image
    assert "ENABLE_WEB_INTERFACE=true" in image


@pytest.mark.parametrize(
    "model",
    [models.TestAction, models.TestObservation, models.FeedbackView, models.Limits, models.TestState],
)
def test_a_message_table_is_the_model(model: type[BaseModel]) -> None:
    rows = [
        f"| `{name}` | {_type(field.annotation)} | {field.description} |"
        for name, field in model.model_fields.items()
        if name not in OPENENVS_OWN
    ]
    assert "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" in README


def test_the_error_table_is_the_tree() -> None:
    rows = {
        error.code: f"| `{error.code}` | {error.status} | {(error.__doc__ or '').splitlines()[0]} |"
        for error in _descendants(errors.AutotestError)
        if issubclass(error, errors.CallerError | errors.GraderError)
    }
    table = _table("| code | HTTP | meaning |")
    assert table[:-1] == list(rows.values())
    assert table[-1].startswith("| `INTERNAL` | 500 |")


def _type(annotation: Any) -> str:
    """Return a type in the words of JSON."""
    names = {str: "text", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    if annotation in names:
        return names[annotation]
    parts = [_type(part) for part in get_args(annotation)]
    if get_origin(annotation) is list:
        return f"list of {parts[0]}"
    if get_origin(annotation) is dict:
        return f"{parts[0]} to {parts[1]}"
    if isinstance(annotation, type):
        return f"`{annotation.__name__}`"
    return " or ".join(parts) if parts else f"`{annotation}`"


def _descendants(error: type[errors.AutotestError]) -> Iterator[type[errors.AutotestError]]:
    """Yield the errors below one in the order of the file, without the two that only group."""
    for child in error.__subclasses__():
        if child not in {errors.CallerError, errors.GraderError}:
            yield child
        yield from _descendants(child)


def _table(header: str) -> list[str]:
    """Return the rows below a header."""
    after = README.split(header + "\n", 1)[1].splitlines()[1:]
    return after[: next(number for number, line in enumerate(after) if not line.startswith("|"))]


def test_the_settings_table_is_what_the_server_reads() -> None:
    with pytest.raises(SetupError) as refusal:
        Settings.from_environment({"AUTOTEST_QQQQQQQQQQQQQQQQ": "1"})
    rows = [row.split("|") for row in _table("| variable | default | meaning |")]
    assert {row[1].strip(" `") for row in rows} == set(
        re.findall(r"AUTOTEST_[A-Z_]+", str(refusal.value).partition("there are")[2])
    )
    stated = {row[1].strip(" `"): row[2].strip(" `") for row in rows if row[2].startswith(" `")}
    assert Settings.from_environment(stated) == Settings()
    assert set(stated) >= {"AUTOTEST_HOST", "AUTOTEST_PORTS", "AUTOTEST_ISOLATION"}


def test_the_exploit_table_names_tests_that_exist() -> None:
    rows = [row.split("|") for row in _table("| way | example | what happens | tried in |")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row[4])}
    assert [row[1] for row in rows if "`" not in row[4]] == []
    assert {name for name in named if not (ROOT / "tests" / f"{name}.py").is_file()} == set()


def test_every_endpoint_of_the_table_is_served(real_server: Any) -> None:
    document = requests.get(f"{real_server.url}/openapi.json", timeout=30).json()
    calls = [row.split("`")[1].split() for row in _table("| call | what it does |")]
    documented = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert {(method, path) for method, path in calls if method != "WS"} <= documented
    assert {call for call in documented if not call[1].startswith("/web")} <= {(method, path) for method, path in calls}
