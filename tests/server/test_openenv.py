"""OpenEnv's own tools against the running server."""

import json
import subprocess
import sys
from pathlib import Path

from openenv.cli._validation import validate_running_environment

SCRIPTS = Path(sys.executable).parent


def test_openenv_validate_passes_every_criterion(scripted_server):
    done = subprocess.run(
        [str(SCRIPTS / "openenv"), "validate", scripted_server.url, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["passed"] is True
    assert [entry["id"] for entry in report["criteria"] if not entry["passed"]] == []
    assert len(report["criteria"]) == 6


def test_the_report_calls_it_a_simulation(scripted_server):
    assert validate_running_environment(scripted_server.url)["mode"] == "simulation"
