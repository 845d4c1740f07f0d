"""Which codes can leave: those of the tree of errors, which the README lists, and INTERNAL."""

import json
import re
from pathlib import Path

import pytest
from openenv.core.env_server.types import WSErrorCode

from autotest_env.errors import AutotestError
from autotest_env.server import rim
from autotest_env.server.faults import fault_of_status

ROOT = Path(__file__).resolve().parents[2]


def codes(error=AutotestError):
    return {error.code}.union(*map(codes, error.__subclasses__()))


@pytest.mark.parametrize("status", range(400, 600))
def test_a_refusal_of_the_framework_keeps_its_status_and_has_a_known_code(status):
    fault = fault_of_status(status, "why")
    assert fault.status == status
    assert fault.code in codes()
    assert (fault.code == "INTERNAL") == (status >= 500 and status != 501)


@pytest.mark.parametrize("code", [*WSErrorCode, "A_NEW_ONE"])
def test_an_error_frame_of_openenv_leaves_with_a_known_code(code):
    assert rim._translated(json.loads(json.dumps({"code": code, "message": "x"})))["data"]["code"] in codes()


def test_no_code_is_written_outside_of_the_tree():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "server").glob("*.py")]
    assert [found for text in texts for found in re.findall(r"Fault\(code=[\"'].*", text)] == []
