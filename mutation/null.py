"""The null program: same public names, does nothing."""

import ast
import builtins

from autotest_env.mutation.facts import FUNCTIONS
from autotest_env.syntax import parse

_KEPT_DECORATORS = frozenset({"property", "staticmethod", "classmethod", "setter", "deleter", "getter"})
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})


def null_program(source: str) -> str:
    """Return a program with the same public names and signatures whose functions return a fresh ``object()``.

    Exception classes, enumerations and literal constants are kept; everything else that is assigned is an ``object()``.
    """
    tree = parse(source)
    exceptions: set[str] = set()
    tree.body = _emptied(tree.body, exceptions) or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _emptied(body: list[ast.stmt], exceptions: set[str]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, FUNCTIONS):
            result.append(_empty_function(statement))
        elif isinstance(statement, ast.ClassDef):
            result.append(_empty_class(statement, exceptions))
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            result.append(statement)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            result.append(_constant(statement))
        elif isinstance(statement, ast.If):
            statement.body = _emptied(statement.body, exceptions) or [ast.Pass()]
            statement.orelse = _emptied(statement.orelse, exceptions)
            result.append(statement)
        elif isinstance(statement, ast.Try):
            statement.body = _emptied(statement.body, exceptions) or [ast.Pass()]
            for handler in statement.handlers:
                handler.body = _emptied(handler.body, exceptions) or [ast.Pass()]
            statement.orelse = _emptied(statement.orelse, exceptions)
            statement.finalbody = _emptied(statement.finalbody, exceptions)
            result.append(statement)
    return result


def _empty_function(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    function.decorator_list = [node for node in function.decorator_list if _last_name(node) in _KEPT_DECORATORS]
    fresh = ast.Call(func=ast.Name("object", ast.Load()), args=[], keywords=[])
    function.body = [ast.Pass() if function.name == "__init__" else ast.Return(value=fresh)]
    return function


def _empty_class(node: ast.ClassDef, exceptions: set[str]) -> ast.stmt:
    bases = {_last_name(base) for base in node.bases}
    if any(_is_exception(base, exceptions) for base in bases):
        exceptions.add(node.name)
        return node
    members = [item for item in node.body if not isinstance(item, FUNCTIONS)]
    if bases & _ENUMS:
        node.body = members or [ast.Pass()]
        return node
    methods = [item for item in node.body if isinstance(item, FUNCTIONS)]
    kept = [item for item in methods if not item.name.startswith("__") or item.name == "__init__"]
    node.body = [*_emptied(members, exceptions), *map(_empty_function, kept)]
    if not any(item.name == "__init__" for item in kept):
        node.body += parse("def __init__(self, *args, **kwargs):\n    pass").body
    node.bases = [base for base in node.bases if isinstance(base, ast.Name) and not hasattr(builtins, base.id)]
    node.keywords, node.decorator_list = [], []
    return node


def _is_exception(base: str, exceptions: set[str]) -> bool:
    known = getattr(builtins, base, None)
    return base in exceptions or (isinstance(known, type) and issubclass(known, BaseException))


def _constant(statement: ast.Assign | ast.AnnAssign) -> ast.stmt:
    if statement.value is None:
        return statement
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError):
        statement.value = ast.Call(func=ast.Name("object", ast.Load()), args=[], keywords=[])
    return statement


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
