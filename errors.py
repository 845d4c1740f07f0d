"""Every error of autotest-env, in one tree.

    AutotestError
    ├── CallerError                the caller can fix it: an HTTP 4xx or 501, an error frame on a WebSocket
    │   ├── InvalidRequestError    400  not JSON, not an object, or outside the guard's bounds
    │   │   └── RequestTooLargeError 413  more bytes than a request may have
    │   ├── InvalidValueError      422  a field has a value that is not allowed
    │   ├── UnknownTaskError       404  no such family or task
    │   ├── UnknownEpisodeError    404  no such episode, or one that has expired
    │   │   └── EpisodeExpiredError 404  this session's episode was dropped after an idle hour
    │   ├── NoEpisodeError         409  nothing was reset before this call
    │   ├── EpisodeInUseError      409  the episode id belongs to an open episode
    │   ├── NoSuchPathError        404  nothing is served there
    │   ├── MethodNotAllowedError  405  the path is served, but not to this method
    │   ├── NotOfferedError        501  a part of OpenEnv's interface that this environment does not offer
    │   ├── UnknownTypeError       400  WebSocket: a frame of no known type
    │   └── SessionError           409  WebSocket: the session asked for does not exist or cannot go on
    ├── GraderError                503  we failed: nothing was judged, nothing was spent
    │   ├── GraderBusyError             the queue is full or too slow; try again later
    │   ├── CapacityReachedError        WebSocket: all sessions are taken; try again later
    │   └── GraderFailedError           the sandbox broke, twice
    └── SetupError                 the server or a command cannot start as configured

A bad submission is none of these: it is evidence, and scores 0 with a named status.
"""


class AutotestError(Exception):
    """Base of all errors raised on purpose; `code` is stable, the message is for people."""

    code = "INTERNAL"
    status = 500


class CallerError(AutotestError):
    """The caller can fix this."""

    code = "INVALID_REQUEST"
    status = 400


class InvalidRequestError(CallerError):
    """The request is not a JSON object within the bounds."""


class RequestTooLargeError(InvalidRequestError):
    """The request has more bytes than the guard admits."""

    code = "REQUEST_TOO_LARGE"
    status = 413


class InvalidValueError(CallerError):
    """A field has a value that is not allowed; the message says which are."""

    code = "INVALID_VALUE"
    status = 422


class UnknownTaskError(CallerError):
    """No such family or task; the message names the nearest one."""

    code = "UNKNOWN_TASK"
    status = 404


class UnknownEpisodeError(CallerError):
    """No such episode, or it has expired."""

    code = "UNKNOWN_EPISODE"
    status = 404


class EpisodeExpiredError(UnknownEpisodeError):
    """The session was idle for so long that its episode was dropped; a reset starts another."""

    code = "EPISODE_EXPIRED"


class NoEpisodeError(CallerError):
    """A step or a look at the state before any reset."""

    code = "NO_EPISODE"
    status = 409


class EpisodeInUseError(CallerError):
    """The requested episode id belongs to an open episode."""

    code = "EPISODE_IN_USE"
    status = 409


class NoSuchPathError(CallerError):
    """Nothing is served under this path; `/docs` shows what is."""

    code = "NOT_FOUND"
    status = 404


class MethodNotAllowedError(CallerError):
    """The path is served, but not to this method; the header `Allow` names those it is."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class NotOfferedError(CallerError):
    """A part of OpenEnv's interface that this environment does not offer."""

    code = "NOT_IMPLEMENTED"
    status = 501


class UnknownTypeError(CallerError):
    """WebSocket: a frame whose `type` is none of reset, step, state, close, mcp."""

    code = "UNKNOWN_TYPE"


class SessionError(CallerError):
    """WebSocket: no such session, or it cannot go on; connect again."""

    code = "SESSION_ERROR"
    status = 409


class GraderError(AutotestError):
    """The grader could not judge; the attempt is not spent. `retry_after_s` is in whole seconds."""

    code = "GRADER_FAILED"
    status = 503

    def __init__(self, message: str, *, retry_after_s: int = 5) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class GraderBusyError(GraderError):
    """The submission waited too long for a grader, or the queue is full."""

    code = "GRADER_BUSY"


class CapacityReachedError(GraderError):
    """WebSocket: all sessions are in use; close one or try again later."""

    code = "CAPACITY_REACHED"


class GraderFailedError(GraderError):
    """A run broke in our own code, also when it was made again."""


class SetupError(AutotestError):
    """The server or a command cannot start as configured; the message names the fix."""

    code = "SETUP"
