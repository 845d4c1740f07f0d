"""Source text to syntax trees, in one thread at a time.

Before Python 3.11.8 and 3.12.2 the interpreter keeps the depth of a tree that it is building where all threads see
it. When two threads parse at once and the first is interrupted, by a collection of garbage for example, one fails with
"SystemError: AST constructor recursion depth mismatch". Resets, steps and workers are threads, so nothing else here
calls `ast.parse`; the sandbox has processes of one thread.
"""

import ast
import threading

_ALONE = threading.RLock()


def parse(source: str) -> ast.Module:
    """Return the tree of a module's text.

    Raises:
        SyntaxError: The text is not Python.
        ValueError: The text has null bytes.
    """
    with _ALONE:
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """Return the tree of one expression's text; raises as `parse` does."""
    with _ALONE:
        return ast.parse(source, mode="eval")
