"""Turning the source of a suite into one code object: parsed, checked, assertions rewritten. Runs nothing of it."""

import ast
import hashlib
import marshal
from pathlib import Path
from typing import Any

from _pytest.assertion.rewrite import rewrite_asserts
from _pytest.config import Config

from autotest_env.sandbox.suite import MAX_CODE_BYTES, CompileStatus

SUITE_FILE = "test_suite.py"
"""Name under which every suite is known inside a run."""

_QUOTED_CHARS = 200


def compile_suite(source: str, config: Config) -> tuple[dict[str, Any], bytes]:
    """Return a header and the marshalled code; on refusal the header names a CompileStatus and the code is empty.

    A leading byte order mark is dropped; a coding cookie means nothing, the source is text already.
    """
    try:
        tree = ast.parse(source.removeprefix("\ufeff"), SUITE_FILE)
    except SyntaxError as error:
        return _syntax_error(error), b""
    except ValueError as error:  # a NUL character
        return _refusal(CompileStatus.SYNTAX_ERROR, f"not Python: {error}"), b""
    except (RecursionError, MemoryError):
        return _refusal(CompileStatus.TOO_COMPLEX, "the file is nested too deeply to be parsed"), b""
    problem = _check(tree)
    if problem is not None:
        return problem, b""
    try:
        digest = hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
        rewrite_asserts(tree, source.encode("utf-8", "surrogatepass"), SUITE_FILE, config)
        code = compile(tree, str(Path.cwd() / SUITE_FILE), "exec", dont_inherit=True)
    except SyntaxError as error:
        return _syntax_error(error), b""
    except (RecursionError, MemoryError):
        return _refusal(CompileStatus.TOO_COMPLEX, "the file is nested too deeply to be compiled"), b""
    data = marshal.dumps(code)
    if len(data) > MAX_CODE_BYTES:
        return _refusal(CompileStatus.TOO_COMPLEX, f"compiled, the file is larger than {MAX_CODE_BYTES >> 10} KiB"), b""
    return {"digest": digest}, data


def _check(tree: ast.Module) -> dict[str, Any] | None:
    body = tree.body
    if not body or (len(body) == 1 and ast.get_docstring(tree) is not None):
        return _refusal(CompileStatus.EMPTY, "the file holds no code; send one pytest file with test functions")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "pytest_plugins" and isinstance(node.ctx, ast.Store):
            return _refusal(CompileStatus.PLUGINS, "pytest_plugins is not allowed: only the submitted file counts")
    return None


def _syntax_error(error: SyntaxError) -> dict[str, Any]:
    text = (error.text or "").strip("\n")[:_QUOTED_CHARS]
    message = f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
    return {**_refusal(CompileStatus.SYNTAX_ERROR, message), "line": error.lineno, "text": text}


def _refusal(status: CompileStatus, message: str) -> dict[str, Any]:
    return {"status": status, "message": message}
