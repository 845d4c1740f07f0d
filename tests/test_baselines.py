"""The table of baseline scores in the README."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.heavy
def test_the_readme_says_what_the_baselines_score() -> None:
    command = [sys.executable, str(ROOT / "scripts/baselines"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
