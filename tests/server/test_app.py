"""The process: start, refusal to start, end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path

import pytest
import requests

from autotest_env.errors import SetupError
from autotest_env.server.listening import bind

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = "def test_it():\n    while True:\n        pass\n"
SCRIPTED = ROOT / "tests/server/scripted.py"
COLLECTIONS = """
import asyncio, gc, sys
from autotest_env.mutation.rendering import RENDERINGS, render
from autotest_env.server.app import build_app
from autotest_env.server.settings import Settings
from autotest_env.tasks.program import load_program

async def count():
    app = build_app(Settings(graders=1))
    async with app.router.lifespan_context(app):
        looks = []
        gc.callbacks.append(lambda phase, info: looks.append(info["generation"]))
        if sys.argv[1] == "default":
            gc.set_threshold(700, 10, 10)
        program = load_program("inventory")
        for number in range(RENDERINGS):
            render(program.source, program.sites, {}, number, b"key")
        print(max(looks, default=-1))

asyncio.run(count())
"""
SERVER = [sys.executable, "-m", "autotest_env.server.app"]


def start_refused(*arguments, **environment):
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AUTOTEST_")}
    done = subprocess.run(
        [*SERVER, *arguments], env={**clean, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def children(pid):
    listed = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    found = [int(text) for text in " ".join(listed).split()]
    return [*found, *(below for child in found for below in children(child))]


def alive(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_misspelt_variable_is_one_line():
    text = start_refused(AUTOTEST_PORT="1")
    assert text == "server: unknown environment variable AUTOTEST_PORT; did you mean AUTOTEST_PORTS?\n"


def test_both_distributions_of_openenv_stop_the_start_with_the_fix(tmp_path):
    """One is installed here; the other's metadata stands on the path as an installer would leave it."""
    other = "openenv-core" if any(distributions(name="openenv")) else "openenv"
    folder = tmp_path / f"{other.replace('-', '_')}-0.3.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {other}\nVersion: 0.3.0\n")
    text = start_refused("--port", "0", PYTHONPATH=str(tmp_path))
    assert text.startswith("server: both openenv and openenv-core are installed and overwrite each other; run: ")
    assert "pip uninstall -y openenv openenv-core && python -m pip install 'openenv>=0.10,<0.11'" in text
    assert text.count("\n") == 1


@pytest.mark.parametrize(("thresholds", "oldest"), [("server", {-1, 0, 1}), ("default", {2})])
def test_making_texts_does_not_have_all_objects_of_all_sessions_looked_through(thresholds, oldest):
    command = [sys.executable, "-c", COLLECTIONS, thresholds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) in oldest


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = start_refused("--port", "0", "--port", str(port))
    assert f"cannot listen on 127.0.0.1 port {port}" in text
    assert text.count("\n") == 1


def test_a_port_of_somebody_who_does_not_answer_yet_is_taken_all_the_same():
    with closing(bind("127.0.0.1", (0,))[0]) as first:
        port = first.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} .*another with --port"):
            bind("127.0.0.1", (port,))


def test_a_port_given_twice_is_listened_on_once():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sockets = bind("127.0.0.1", (port, 0, port, 0))
    for each in sockets:
        each.close()
    assert len(sockets) == 3


def test_callers_who_vanish_are_noticed():
    """The kernel asks silent peers; connections have it from the socket that accepted them."""
    with closing(bind("127.0.0.1", (0,))[0]) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 120


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])
def test_a_host_that_is_not_ours_is_told_apart_from_a_port(host):
    with pytest.raises(SetupError, match="choose another with --host"):
        bind(host, (0,))


def test_a_step_that_outlasts_the_stop_is_answered_all_the_same(tmp_path, start_server):
    with start_server([str(SCRIPTED)], tmp_path / "log") as server, ThreadPoolExecutor() as pool:
        requests.post(f"{server.url}/reset", json={"seed": 1}, timeout=30)
        answer = pool.submit(requests.post, f"{server.url}/step", json={"test_code": "wait=3"}, timeout=30)
        time.sleep(0.5)
        server.process.terminate()
        assert answer.result().status_code == 503
        assert answer.result().headers["Retry-After"] == "5"
        assert answer.result().json()["error"]["code"] == "GRADER_FAILED"
        server.process.wait(15)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("number", ["99", "x", "-1"])
def test_a_descriptor_that_is_not_open_is_refused(number):
    assert "must be the number of an open descriptor" in start_refused(f"--ready-fd={number}")


@pytest.mark.parametrize("port", ["http", "-1", "70000"])
def test_a_port_that_is_none_is_refused(port):
    assert "0 to 65535" in start_refused(f"--port={port}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_all_its_processes_even_while_a_suite_runs(number, tmp_path, start_server):
    with start_server(["-m", "autotest_env.server.app", "--port", "0"], tmp_path / "log") as server:
        requests.post(f"{server.url}/reset", json={"seed": 1}, timeout=30)
        post = "import sys, requests; print(requests.post(sys.argv[1], json={'test_code': sys.argv[2]}).text)"
        sender = subprocess.Popen(
            [sys.executable, "-c", post, f"{server.url}/step", ENDLESS], stdout=subprocess.PIPE, text=True
        )
        time.sleep(1.5)
        pids = children(server.pid)
        assert len(pids) >= 2
        server.process.send_signal(number)
        server.process.wait(15)
        said, _ = sender.communicate(timeout=15)
        refused = {"error": {"code": "GRADER_FAILED", "message": "the server is stopping"}}
        assert json.loads(said) == refused or json.loads(said)["reward"] == 0.0
        time.sleep(0.5)
        assert alive(pids) == []
        assert "Traceback" not in server.log.read_text()


def test_uvicorn_serves_the_module_and_the_page(tmp_path):
    """`openenv.yaml` names `server.app:app`, which the package's root makes importable."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path / "log"
    quiet = {"ENABLE_WEB_INTERFACE": "true", "HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "server.app:app", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, **quiet},
            stdout=output,
            stderr=output,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", process, log)
        assert "gradio" in requests.get(f"{url}/", timeout=30).text
        described = [requests.get(f"{url}{path}", timeout=30).json() for path in ("/metadata", "/web/metadata")]
        assert described[0] == described[1]
        assert requests.get(f"{url}/web/state", timeout=30).json()["error"]["code"] == "NO_EPISODE"
        assert requests.post(f"{url}/web/reset", json={"seed": "x"}, timeout=30).status_code == 422
        assert requests.post(f"{url}/web/reset", json={"seed": 5}, timeout=30).json()["done"] is False
        assert requests.post(f"{url}/web/step", json={"message": "hello"}, timeout=30).status_code == 422
        action = {"action": {"test_code": "def test_it():\n    assert False\n"}}
        assert requests.post(f"{url}/web/step", json=action, timeout=60).json()["reward"] == 0.0
    finally:
        pids = children(process.pid)
        process.terminate()
        process.wait(20)
    assert alive(pids) == []


def wait_for(url, process, log):
    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            if requests.get(url, timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.2)
    pytest.fail(log.read_text())
