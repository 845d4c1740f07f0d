"""Callers of a server under faults: they send a step and wait for it, leave in the middle of it, or fall silent."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
import websockets.sync.client
from faults_play import FAMILY, ORACLE, PATIENCE_S, SEEDS
from faults_server import Server
from websockets.exceptions import WebSocketException

from autotest_env.client import AutoTestEnvClient


def step_over_http(server: Server, ready: threading.Barrier) -> dict[str, Any]:
    """Send the oracle suite when all are ready; return the answer."""
    body = {"task_id": FAMILY, "seed": SEEDS[0]}
    episode_id = requests.post(f"{server.url}/reset", json=body, timeout=PATIENCE_S).json()["episode_id"]
    ready.wait(PATIENCE_S)
    step = {"episode_id": episode_id, "test_code": ORACLE}
    answer: dict[str, Any] = requests.post(f"{server.url}/step", json=step, timeout=PATIENCE_S).json()
    return answer


def step_over_websocket(server: Server, ready: threading.Barrier) -> dict[str, Any]:
    """Send the oracle suite when all are ready; return the answer as HTTP would give it."""
    with websockets.sync.client.connect(f"{server.url.replace('http', 'ws')}/ws") as session:
        session.send(json.dumps({"type": "reset", "data": {"task_id": FAMILY, "seed": SEEDS[0]}}))
        session.recv(PATIENCE_S)
        ready.wait(PATIENCE_S)
        session.send(json.dumps({"type": "step", "data": {"test_code": ORACLE}}))
        frame = json.loads(session.recv(PATIENCE_S))
        return {"error": frame["data"]} if frame["type"] == "error" else dict(frame["data"])


@contextmanager
def half_open(server: Server, said: bytes) -> Iterator[socket.socket]:
    """Hold a connection that says this and then nothing."""
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(said)
        yield connection


@contextmanager
def silent_session(server: Server) -> Iterator[None]:
    """Hold a WebSocket that has sent a step and does not even answer pings."""
    upgrade = (
        "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with half_open(server, upgrade.encode()) as connection:
        connection.recv(1 << 16)
        for frame in ({"type": "reset", "data": {"task_id": FAMILY}}, {"type": "step", "data": {"test_code": ORACLE}}):
            text = json.dumps(frame).encode()  # masked with zeros, which changes nothing
            connection.sendall(b"\x81\xfe" + struct.pack(">HI", len(text), 0) + text)
        yield


def leave_over_websocket(server: Server) -> None:
    """Reset, send a step and break the connection. Raises RuntimeError when there is no room for a session."""
    with open_session(server) as session:
        session.send(json.dumps({"type": "step", "data": {"test_code": ORACLE}}))
        time.sleep(0.2)
        break_connection(session.socket)


def leave_over_http(server: Server) -> dict[str, Any]:
    """Reset, send a step and break the connection; return the step."""
    with AutoTestEnvClient(server.url) as client:
        client.reset(task_id=FAMILY, seed=SEEDS[0])
        step = {"test_code": ORACLE, "episode_id": client.episode_id, "request_id": "left"}
    body = json.dumps(step).encode()
    with half_open(server, b"POST /step HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body) as sent:
        time.sleep(0.2)
        break_connection(sent)
    return step


def break_connection(connection: socket.socket) -> None:
    """Close without a goodbye: the other side gets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextmanager
def open_session(server: Server) -> Iterator[websockets.sync.client.ClientConnection]:
    """Open a WebSocket and an episode on it. Raises RuntimeError as OpenEnv's client does when it is refused."""
    with websockets.sync.client.connect(f"{server.url.replace('http', 'ws')}/ws", close_timeout=1) as session:
        with suppress(WebSocketException):  # a session too many is told so and closed before it has said anything
            session.send(json.dumps({"type": "reset", "data": {"task_id": FAMILY}}))
        frame = json.loads(session.recv(PATIENCE_S))
        if frame["type"] == "error":
            raise RuntimeError(f"{frame['data']['message']} (code: {frame['data']['code']})")
        yield session


def ask(server: Server, step: dict[str, Any]) -> dict[str, Any]:
    """Send a step over HTTP. Raises GraderError."""
    with AutoTestEnvClient(server.url, tries=1) as client:
        result = client.step(step)
        return {"observation": result.observation.model_dump(), "reward": result.reward}
