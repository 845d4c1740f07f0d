"""Messages between the server, its fork servers and their children: one JSON header, then raw blobs.

A message is ``length of header (4 bytes, big endian) | header | blobs``; the header's ``sizes`` gives the length of
each blob. Nothing is ever unpickled, and a message that is not exactly one message is refused.
"""

import json
import os
import struct
from collections.abc import Sequence
from typing import Any

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 16


class FrameError(ValueError):
    """These bytes are not exactly one message."""


def pack(header: dict[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """Return one message. Text in the header must be encodable as UTF-8."""
    head = json.dumps({**header, "sizes": [len(blob) for blob in blobs]}, ensure_ascii=False).encode()
    return b"".join((_LENGTH.pack(len(head)), head, *blobs))


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return header and blobs of exactly one message. Raises FrameError for anything else."""
    try:
        (size,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size + size
        header = json.loads(data[_LENGTH.size : start])
        sizes = header.pop("sizes")
        blobs = []
        for length in sizes:
            blobs.append(data[start : start + length])
            start += length
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FrameError("not a message") from error
    if start != len(data) or any(not isinstance(length, int) or length < 0 for length in sizes):
        raise FrameError("lengths do not fit")
    return header, blobs


def read_all(fd: int, limit: int) -> bytes:
    """Read until end of file, at most `limit` bytes and a chunk; the rest stays unread."""
    parts: list[bytes] = []
    size = 0
    while size <= limit:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            break
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write everything; raises BrokenPipeError when nobody reads."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
