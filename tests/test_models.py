import json
import subprocess
import sys
from pathlib import Path

import pytest

from autotest_env.models import TestAction, TestObservation, TestState

ROOT = Path(__file__).resolve().parent.parent


def test_the_published_action_requires_test_code_alone_but_none_is_needed():
    assert TestAction.model_json_schema()["required"] == ["test_code"]
    assert TestAction().action_type == "submit_tests"
    assert TestAction().test_code == ""


def test_test_code_of_any_size_is_an_action():
    assert len(TestAction(test_code="x" * (5 << 20)).test_code) == 5 << 20


@pytest.mark.parametrize("model", [TestAction, TestObservation, TestState])
def test_every_field_is_described_and_pytest_collects_no_model(model):
    assert model.__test__ is False
    assert all(field.description for field in model.model_fields.values())


def test_unknown_fields_are_refused_in_actions_and_observations():
    for model in (TestAction, TestObservation):
        with pytest.raises(ValueError, match="Extra inputs"):
            model.model_validate({"unknown": 1})


def test_an_observation_survives_the_wire():
    observation = TestObservation(task_id="t", score=0.5, reward=0.5, feedback_text="é 漢 😀")
    assert TestObservation.model_validate_json(observation.model_dump_json()) == observation


def run(code, *flags, cwd):
    return subprocess.run(
        [sys.executable, *flags, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_models_and_clients_are_imported_from_the_root_by_their_short_names():
    code = "from client import AutoTestEnvClient; from models import TestAction; print(TestAction().action_type)"
    done = run(code, cwd=ROOT)
    assert (done.stdout, done.returncode) == ("submit_tests\n", 0), done.stderr


@pytest.mark.parametrize("module", ["client", "models"])
def test_where_nothing_is_installed_one_line_says_how(module, tmp_path):
    (tmp_path / f"{module}.py").write_bytes((ROOT / f"{module}.py").read_bytes())
    done = run(f"import {module}", "-S", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "python -m pip install -e ." in done.stderr


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, json, autotest_env, autotest_env.tasks, autotest_env.sandbox, autotest_env.server.app, "
        "autotest_env.server.episodes, autotest_env.server.store, autotest_env.server.settings; "
        "print(json.dumps([name for name in ('openenv', 'pydantic', 'fastapi', 'uvicorn', 'requests', 'gradio') "
        "if name in sys.modules]))"
    )
    done = run(code, cwd="/")
    assert json.loads(done.stdout) == [], done.stderr


def test_the_package_gives_its_public_names():
    code = (
        "import autotest_env as a; "
        "print(sorted(a.__all__) == dir(a), all(getattr(a, name).__name__ == name for name in a.__all__))"
    )
    assert run(code, cwd="/").stdout == "True True\n"
