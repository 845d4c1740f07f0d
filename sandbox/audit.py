"""An audit hook that ends a run when the suite reads code or sets tracers: the second line behind the renderings.

Reading is allowed by caller: modules that were loaded before the suite (standard library, pytest) may look at code
objects, because signatures, mocks and tracebacks need them, but not in a function that the suite called itself: such a
one may hand out what it reads. The suite's own frames may not look at those of the program, nor walk the collector, and
nobody may install a tracer. What the hook cannot see (ctypes, a way through two trusted functions) has to be answered
by renderings and executed chaff.
"""

import os
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, GeneratorType, TracebackType
from typing import Any

_TRACERS = frozenset({"sys.settrace", "sys.setprofile", "sys.monitoring.register_callback", "sys._current_frames"})
_COLLECTOR = frozenset({"gc.get_objects", "gc.get_referrers", "gc.get_referents"})
_READS = "object.__getattr__"
_FRAMES = "sys._getframe"
_WATCHED = _TRACERS | _COLLECTOR | {_READS, _FRAMES}
_CODE_NAMES = frozenset({"__code__", "f_code", "gi_code", "cr_code", "tb_frame", "gi_frame", "cr_frame", "ag_code"})
_NEVER_ALLOWED = ("dis", "gc", "ctypes", "opcode")
_LEAKS = frozenset(
    (
        "getmembers _getmembers getmembers_static getattr_static getinnerframes getouterframes trace stack getrawcode"
    ).split()
)
"""Functions of trusted modules that hand out what they read, also when they call each other."""


def trusted_namespaces() -> frozenset[int]:
    """Identify the namespaces of all modules loaded so far; call it before any fork, it touches every module."""
    return frozenset(id(vars(module)) for name, module in sys.modules.items() if name not in _NEVER_ALLOWED)


def watch(
    trusted: frozenset[int], program: dict[str, Any], report: Callable[[str], None], *, tracing: bool = False
) -> None:
    """Install the hook for good; `program` is the namespace of the module under test, `tracing` lets coverage trace.

    `report(what)` is called once, in the frame that broke the rule, and must not return.
    """
    busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal busy
        if busy or event not in _WATCHED:
            return
        busy = True
        try:
            if event == _READS and (arguments[1] not in _CODE_NAMES or not _is_of_program(arguments[0], program)):
                return
            if event == _FRAMES and not _is_called_by(program, sys._getframe(1)):
                return
            if _is_allowed(event, sys._getframe(1), trusted, tracing=tracing):
                return
            report(f"{event} {arguments[1]}" if event == _READS else event)
        finally:
            busy = False

    sys.addaudithook(hook)


def _is_allowed(event: str, caller: FrameType, trusted: frozenset[int], *, tracing: bool) -> bool:
    if event in _TRACERS:
        return tracing and caller.f_globals.get("__name__", "").startswith("coverage.")
    parent = caller.f_back
    frames_trusted = id(caller.f_globals) in trusted and parent is not None and id(parent.f_globals) in trusted
    return frames_trusted and caller.f_code.co_name not in _LEAKS


def _is_called_by(program: dict[str, Any], frame: FrameType | None) -> bool:
    """Whether a frame of the program is among the callers: then a look at the callers is a look at it."""
    while frame is not None:
        if frame.f_globals is program:
            return True
        frame = frame.f_back
    return False


def _is_of_program(thing: object, program: dict[str, Any]) -> bool:
    """Whether a function, frame, generator or traceback belongs to the module under test, or cannot be told."""
    if isinstance(thing, FunctionType):
        return thing.__globals__ is program
    if isinstance(thing, FrameType):
        return thing.f_globals is program
    if isinstance(thing, TracebackType):
        link: TracebackType | None = thing
        while link is not None:
            if link.tb_frame.f_globals is program:
                return True
            link = link.tb_next
        return False
    if isinstance(thing, GeneratorType):
        frame = thing.gi_frame
        return frame is None or frame.f_globals is program
    return True


def leave(code: int) -> None:
    """End the process at once: no atexit, no finalisers, nothing of the suite runs any more."""
    os._exit(code)
