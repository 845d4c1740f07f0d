"""Start the server as our image does and have it judge the oracle's answer of each family; prints JSON."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from autotest_env.client import AutoTestEnvClient
from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.server.machine import thread_limit
from autotest_env.server.settings import PUBLIC_SECRET
from autotest_env.tasks.registry import FAMILIES, TaskRequest, Tasks

SEED = 42
IMAGE = {
    "HOME": "/tmp",
    "ENABLE_WEB_INTERFACE": "true",
    "GRADIO_TEMP_DIR": "/tmp/gradio",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def main() -> None:
    """Play, stop, and print what happened."""
    found: dict[str, object] = {"writable": writable(), "threads": thread_limit()}
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "autotest_env.server.app", "--port", "0", "--ready-fd", str(write_end)]
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AUTOTEST_")}
    with subprocess.Popen(command, pass_fds=[write_end], env={**clean, **IMAGE}) as server:
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            host, port = ready.readline().split()
        url = f"http://{host}:{port}"
        for path in ("health", "metadata", "web"):
            with urllib.request.urlopen(f"{url}/{path}", timeout=60) as answer:
                found[path] = answer.read().decode() if path == "metadata" else answer.status
        found["scores"] = {family: play(url, family) for family in FAMILIES}
        server.terminate()
    found |= {"code": server.returncode, "left": [path.name for path in Path("/tmp").glob("autotest-*")]}
    sys.stdout.write(json.dumps(found))


def play(url: str, family: str) -> float:
    """Play one episode of a family; return its score."""
    tasks = Tasks(Sandbox(SandboxOptions()), PUBLIC_SECRET)
    task = tasks.generate(TaskRequest(task_id=family, seed=SEED), 0)
    with AutoTestEnvClient(url) as client:
        client.reset(task_id=family, seed=SEED)
        return client.step(test_code=tasks.family(family).oracle(task)).observation.score


def writable() -> list[str]:
    """Return which of the usual places can be written to."""
    places = ("/", "/tmp", "/var/tmp", "/dev/shm", "/run", str(Path(sys.executable).parent))
    return [place for place in places if os.access(place, os.W_OK)]


if __name__ == "__main__":
    main()
