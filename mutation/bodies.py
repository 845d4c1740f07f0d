"""Where the statements of a body start."""

import ast


def first_free(tree: ast.Module) -> int:
    """Return the first index at which a statement may be put: behind the docstring and `__future__`."""
    index = 0
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (future or (docstring and index == 0)):
            break
        index += 1
    return index


def has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether a body starts with a docstring."""
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
