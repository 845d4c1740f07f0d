"""Errors on the wire: a stable code and a message, the same on both transports, and never anybody's input.

OpenEnv answers an exception of an environment with a frame that carries `str(exception)` and swallows the rest, in
another thread and context than the one that serves the socket. So the text itself is the carrier: that of a MarkedError
begins with a mark drawn anew in each process, and `server.rim` takes only texts with the mark for ours. Whatever else
gets into such a frame, from whichever library, is INTERNAL without text.
"""

import logging
import secrets
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from autotest_env.errors import AutotestError, CallerError, GraderError

INTERNAL = "INTERNAL"

_MARK = secrets.token_hex(16)
_SEPARATOR = "\x1f"
_log = logging.getLogger("autotest_env.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a caller is told."""

    code: str
    message: str
    status: int = 500
    retry_after_s: int | None = None

    def body(self) -> dict[str, Any]:
        """The fault as the JSON body of an HTTP answer."""
        return {"error": {"code": self.code, "message": self.message}}

    def headers(self) -> dict[str, str]:
        """The fault's HTTP headers."""
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}

    def frame(self) -> dict[str, Any]:
        """The fault as OpenEnv's error frame."""
        data: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.retry_after_s is not None:
            data["retry_after_s"] = self.retry_after_s
        return {"type": "error", "data": data}


INTERNAL_FAULT = Fault(code=INTERNAL, message="the server failed; nothing was judged and no attempt was spent")


def fault_of(error: BaseException) -> Fault:
    """Translate an exception; all but ours become INTERNAL."""
    if isinstance(error, MarkedError):
        return error.fault
    if isinstance(error, GraderError):
        return Fault(code=error.code, message=str(error), status=error.status, retry_after_s=error.retry_after_s)
    if isinstance(error, CallerError):
        return Fault(code=error.code, message=str(error), status=error.status)
    return INTERNAL_FAULT


class MarkedError(AutotestError):
    """A fault on its way through OpenEnv."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(
            _SEPARATOR.join((_MARK, fault.code, str(fault.status), str(fault.retry_after_s or ""), fault.message))
        )
        self.fault = fault


def unmark(text: str) -> Fault:
    """Read the text of an exception that came through OpenEnv."""
    mark, _, rest = text.partition(_SEPARATOR)
    if not secrets.compare_digest(mark.encode(), _MARK.encode()):
        return INTERNAL_FAULT
    code, status, retry_after_s, message = rest.split(_SEPARATOR, 3)
    return Fault(
        code=code,
        message=message,
        status=int(status),
        retry_after_s=int(retry_after_s) if retry_after_s else None,
    )


@contextmanager
def marking() -> Iterator[None]:
    """Turn every exception of the block into a MarkedError one, and log those that are our failure."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # the border to OpenEnv: it would pass the text of any exception to the caller
        log_failure(error)
        raise MarkedError(fault_of(error)) from None


def log_failure(error: BaseException) -> None:
    """Log where something broke: types and places, not messages, which may hold submitted code."""
    if isinstance(error, CallerError | MarkedError):
        return
    if isinstance(error, GraderError):
        _log.warning("%s: %s", error.code, error)
        return
    chain: BaseException | None = error
    while chain is not None:
        frames = reversed(traceback.extract_tb(chain.__traceback__))
        places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
        _log.error("%s at %s", type(chain).__qualname__, places)
        chain = chain.__cause__ or chain.__context__
