"""A real chat-completions endpoint that follows a script."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


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

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that gave up is part of the script."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def script(self, *replies: str | dict[str, Any]) -> None:
        """Take the next answers: a content, or the fields of a Reply."""
        self.replies = [Reply(reply) if isinstance(reply, str) else Reply(**reply) for reply in replies]
        self.requests.clear()


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
