"""Source text to syntax trees, in one thread at a time.

Before Python 3.11.8 and 3.12.2 the interpreter keeps the depth of a tree that it is building where all threads see
it. When a collection of garbage interrupts it, and another tree is built meanwhile, it fails with "SystemError: AST
constructor recursion depth mismatch". That other tree may belong to another thread, or to a finalizer that the
collection calls: formatting a traceback parses too. So nothing is collected while a tree is built, which also keeps
the interpreter's lock. Resets, steps and workers are threads, so nothing else here calls `ast.parse`; the sandbox has
processes of one thread.
"""

import ast
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ALONE = threading.RLock()


@contextmanager
def _alone() -> Iterator[None]:
    with _ALONE:
        collected = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collected:
                gc.enable()


def parse(source: str) -> ast.Module:
    """Return the tree of a module's text.

    Raises:
        SyntaxError: The text is not Python.
        ValueError: The text has null bytes.
    """
    with _alone():
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """Return the tree of one expression's text; raises as `parse` does."""
    with _alone():
        return ast.parse(source, mode="eval")
