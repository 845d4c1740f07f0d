"""Real servers for the learner's side: a chat-completions endpoint that follows a script, and an environment server."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Reply:
    """What the endpoint answers: a chat completion with `content`, or a bare status."""

    content: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    wait_s: float = 0.0

    def text(self) -> str:
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": f"status {self.status}", "type": "scripted"}})
        message = {"role": "assistant", "content": self.content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]})


class ChatEndpoint(ThreadingHTTPServer):
    """Answers `/v1/chat/completions` with the scripted replies in turn; the last one for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[Reply] = [Reply()]
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.times: list[float] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def script(self, *replies: Reply | str) -> None:
        self.replies = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]


class _Handler(BaseHTTPRequestHandler):
    server: ChatEndpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/chat/completions"
        self.server.requests.append(json.loads(body))
        self.server.keys.append(self.headers.get("Authorization", ""))
        self.server.times.append(time.monotonic())
        reply = self.server.replies[min(len(self.server.requests), len(self.server.replies)) - 1]
        time.sleep(reply.wait_s)
        text = reply.text().encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    """A chat endpoint; script its replies."""
    server = ChatEndpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def env_url() -> Iterator[str]:
    """The project's server with a family that scores by marks in the text: `score=0.5`, `wait=2`."""
    command = [sys.executable, str(ROOT / "tests/server/scripted.py")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", cwd=ROOT)
    try:
        lines = iter(process.stderr.readline, "")
        yield next(match[1] for match in (re.search(r"listening on (http://\S+)", line) for line in lines) if match)
    finally:
        process.terminate()
        process.stderr.close()
        process.wait()
