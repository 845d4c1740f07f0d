"""Whole episodes on the real engine, through every client."""

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from openenv.core import GenericEnvClient

from autotest_env.client import AutotestEnv, AutoTestEnvClient
from autotest_env.models import TestAction

ROOT = Path(__file__).resolve().parent.parent
ORACLE = (ROOT / "tasks/programs/order_total/oracle_suite.py").read_text()
WEAK = """\
from order_module import calculate_order_total


def test_a_discount_never_adds():
    assert calculate_order_total([(10.0, 2)], 10, 0) <= 20.0
"""
SCRIPT = """\
import sys
import requests

url, suite = sys.argv[1], open(sys.argv[2]).read()
reset = requests.post(f"{url}/reset", json={"task_id": "unit_test_writer", "seed": 42}).json()
print(reset["observation"]["task_id"], sorted(reset["observation"]["files"]))
for code in ("def broken(:", "def test_it():\\n    assert True\\n", suite):
    step = requests.post(f"{url}/step", json={"action_type": "submit_tests", "test_code": code}).json()
    print(step["observation"]["feedback"]["status"], step["observation"]["score"], step["reward"], step["done"])
state = requests.get(f"{url}/state").json()
print(state["step_count"], state["best_score"], state["ended"])
"""


def test_a_plain_script_run_twice_prints_the_same(real_server, tmp_path):
    suite = tmp_path / "suite.py"
    suite.write_text(ORACLE)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, real_server.url, str(suite)],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].splitlines() == [
        "unit_test_writer-v1/classic/42 ['order_module.py']",
        "syntax_error 0.0 0.0 False",
        "judged 0.0 0.0 False",
        "judged 1.0 0.81 True",
        "3 0.81 solved",
    ]


def test_the_http_client_plays(real_server):
    with AutoTestEnvClient(real_server.url) as env:
        reset = env.reset(seed=7)
        assert len(reset.observation.model_dump_json().encode()) <= 24 << 10
        weak = env.step(test_code=WEAK)
        assert 0.0 < weak.observation.score < 1.0
        assert env.step(test_code=WEAK).reward == 0.0
        best = env.step(TestAction(test_code=ORACLE))
        assert (best.observation.score, best.done) == (1.0, True)
        assert weak.reward + best.reward == pytest.approx(env.state().best_score)


def test_openenvs_clients_play(real_server):
    async def play():
        async with AutotestEnv(base_url=real_server.url) as env:
            await env.reset(seed=7)
            return await env.step(TestAction(test_code=ORACLE))

    results = [asyncio.run(play())]
    with AutotestEnv(base_url=real_server.url).sync() as env:
        env.reset(seed=7)
        results.append(env.step(TestAction(test_code=ORACLE)))
    assert [(result.reward, result.done) for result in results] == [(1.0, True)] * 2
    with GenericEnvClient(base_url=real_server.url).sync() as env:
        env.reset(seed=7)
        result = env.step({"test_code": ORACLE})
    assert (result.reward, result.done, result.observation["feedback"]["bugs_caught"]) == (1.0, True, 3)


def test_coverage_is_looked_at_without_an_attempt(real_server):
    with AutoTestEnvClient(real_server.url) as env:
        env.reset(seed=7)
        view = env.step(action_type="view_coverage", test_code=ORACLE)
        assert view.observation.feedback.coverage.percent == 100.0
        assert (view.reward, view.observation.attempts_left, view.observation.score) == (0.0, 3, None)


def test_many_suites_at_once_get_the_rewards_they_get_alone(real_server):
    suites = [ORACLE, WEAK, "", "def test_it():\n    assert False\n"] * 4

    def play(suite):
        with AutotestEnv(base_url=real_server.url).sync() as env:
            env.reset(seed=9)
            return env.step(TestAction(test_code=suite)).observation.model_dump_json()

    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(play, suites))
    assert together == [play(suite) for suite in suites[:4]] * 4


def test_nothing_secret_is_in_any_frame(real_server):
    def tell(path, data=None):
        answer = requests.request("POST" if data is not None else "GET", real_server.url + path, json=data, timeout=60)
        return answer.text

    texts = [tell("/reset", {"seed": 7}), tell("/step", {"test_code": WEAK}), tell("/step", {"test_code": ORACLE})]
    texts += [tell(path) for path in ("/state", "/metadata", "/schema", "/openapi.json")]
    oracle_names = [line.split("(")[0].removeprefix("def ") for line in ORACLE.splitlines() if line.startswith("def ")]
    assert not any(name in text for name in oracle_names for text in (texts[0], texts[1], *texts[3:]))
    keys = {key for text in texts for key in _keys(json.loads(text))}
    assert not keys & {"secret", "reference", "witness", "siblings", "oracle", "variants", "bugs"}


def _keys(value):
    if isinstance(value, dict):
        return {*value, *(key for item in value.values() for key in _keys(item))}
    if isinstance(value, list):
        return {key for item in value for key in _keys(item)}
    return set()


def test_the_layers_of_isolation_are_in_the_metadata(real_server):
    layers = requests.get(f"{real_server.url}/metadata", timeout=30).json()["isolation"]
    assert layers["rlimits"] == "on"
    assert {"seccomp", "landlock"} <= layers.keys()
