"""Errors on the wire: a stable code and a message, the same on both transports, and never anybody's input.

OpenEnv answers an exception of an environment with a frame that carries `str(exception)` and swallows the rest, in
another thread and context than the one that serves the socket; its web page shows the same text. So the text is the
plain message, and `PassingError` notes which fault it stands for. `server.rim` looks the text up: only a text that we
raised ourselves leaves as one of our errors, and whatever else gets into such a frame is INTERNAL without text.
"""

import logging
import threading
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from autotest_env.errors import (
    AutotestError,
    CallerError,
    GraderError,
    InvalidRequestError,
    InvalidValueError,
    MethodNotAllowedError,
    NoSuchPathError,
    NotOfferedError,
)

INTERNAL = AutotestError.code

_MOST_NOTED = 1000
"""Messages are few, and each is looked up right after it was noted."""

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


_noted: OrderedDict[str, Fault] = OrderedDict()
_noting = threading.Lock()


def fault_of(error: BaseException) -> Fault:
    """Translate an exception; all but ours become INTERNAL."""
    if isinstance(error, PassingError):
        return error.fault
    if isinstance(error, GraderError):
        return Fault(code=error.code, message=str(error), status=error.status, retry_after_s=error.retry_after_s)
    if isinstance(error, CallerError):
        return Fault(code=error.code, message=str(error), status=error.status)
    return INTERNAL_FAULT


def fault_of_status(status: int, detail: str) -> Fault:
    """Translate a refusal of the web framework's, which has a status and a text of its own."""
    kinds: dict[int, CallerError] = {
        404: NoSuchPathError("nothing is served here; /docs shows what is"),
        405: MethodNotAllowedError("this path does not take this method"),
        422: InvalidValueError(detail),
        501: NotOfferedError(detail),
    }
    if status in kinds:
        return fault_of(kinds[status])
    return replace(fault_of(InvalidRequestError(detail)) if status < 500 else INTERNAL_FAULT, status=status)


class PassingError(AutotestError):
    """A fault on its way through OpenEnv; its text is the message, noted so that `passed` finds the fault again."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault
        with _noting:
            _noted[fault.message] = fault
            _noted.move_to_end(fault.message)
            while len(_noted) > _MOST_NOTED:
                _noted.popitem(last=False)


def passed(text: str) -> Fault:
    """Find the fault of an exception's text that came through OpenEnv."""
    with _noting:
        return _noted.get(text, INTERNAL_FAULT)


@contextmanager
def passing() -> Iterator[None]:
    """Turn every exception of the block into a PassingError, and log those that are our failure."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # the border to OpenEnv: it would pass any exception's text on
        log_failure(error)
        raise PassingError(fault_of(error)) from None


def log_failure(error: BaseException) -> None:
    """Log where something broke: types and places, not messages, which may hold submitted code."""
    if isinstance(error, CallerError | PassingError):
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
