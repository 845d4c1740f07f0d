"""Probes: the program with one statement that does something else, to see whether a suite checks what it does.

    if stock < 1:                   becomes         if not (stock < 1):
        raise KeyError(name)        becomes             pass
    total += price * units          becomes         total += <perturbed>(price * units)

Everything else stays as it is, line numbers included: a probe is written into its statement's own lines and needs
nothing beside it. Values are perturbed when they are known; what has no other value of its kind stays the same object.

What is written around a value takes memory and time, which a suite can measure. So such a probe has a *neutral* text
beside it, of the same form, that does what the program does: who fails on the form fails on this too.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from autotest_env.mutation.facts import FUNCTIONS
from autotest_env.syntax import parse

_Body = list[ast.stmt]
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
_INERT = (ast.Lambda, ast.Set, ast.SetComp, ast.GeneratorExp)
_LEFT_OUT: dict[type[ast.stmt], str] = {ast.Raise: "raise", ast.Delete: "del", ast.Assert: "assert"}
_VALUES = (bool, int, float, str)

# Names of built-ins may be shadowed where these stand: `t` is `type`, the others come from displays. `f` returns a list
# of the perturbed value, or an empty one where there is none; `w` pairs each element with its perturbation.
_VALUE = (
    "(lambda f, t, v: [*f(f, t, v), v][%d])(lambda f, t, v:"
    " [not v] if t(v) is t(True)"
    " else [v + 1 if v + 1 != v else -v] if t(v) in (t(0), t(0.0))"
    " else [v + '?'] if t(v) is t('')"
    " else (lambda w: [t(v)([*b, a][0] for a, b in w)] if [a for a, b in w if b] else [])"
    "([(x, f(f, t, x)) for x in v]) if t(v) in (t(()), t([]))"
    " else (lambda w: [{{k: [*b, a][0] for k, a, b in w}}] if [k for k, a, b in w if b] else [])"
    "([(k, x, f(f, t, x)) for k, x in v.items()]) if t(v) is t({{}})"
    " else [], ().__class__.__class__, ({}))"
)
_ITEMS = "(lambda v, w: (w.pop(0) %sfor x in v if w.append(x) or w[%s]))(({}), [])"
_WITH_NEUTRAL = frozenset({"assign", "augmented", "return", "yield", "for"})


@dataclass(frozen=True, slots=True)
class Probe:
    """A program with one statement perturbed."""

    name: str
    """Function, number of the statement in it, and kind: ``Inventory.add_item:3:assign``. Unique, and as stable."""
    line: int
    """1-based line of the statement, here and in the plain source."""
    text: str = field(repr=False)
    neutral: str | None = field(repr=False)
    """The same form without a perturbation; None where nothing is written around a value."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """What stands in the place of a statement, or of a part of it; ``{}`` is the part's own text."""

    kind: str
    part: ast.stmt | ast.expr
    template: str
    neutral: str | None = None


def probes(source: str) -> tuple[Probe, ...]:
    """Return the probes of a program, one per statement of a function body that can have one, function by function.

    Values assigned, returned or yielded are perturbed (of augmented assignments the right operand): numbers grow by
    one, texts by a character, truth is negated; tuples, lists and dictionaries element by element. Conditions of `if`
    and `while` are negated, `for` and `yield from` lose the last item; `raise`, `del`, `assert` and expressions are
    left out. Raises SyntaxError when the source does not parse.
    """
    content = source.encode()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for function, number, statement in _statements(parse(source)):
        edit = _edit(statement)
        if edit is not None:
            name = f"{function}:{number}:{edit.kind}"
            text = _applied(edit.part, edit.template, content, starts)
            neutral = None if edit.neutral is None else _applied(edit.part, edit.neutral, content, starts)
            found.append(Probe(name=name, line=statement.lineno, text=text, neutral=neutral))
    return tuple(found)


def has_neutral(name: str) -> bool:
    """Say whether the probe of this name has a neutral text."""
    return name.rpartition(":")[2] in _WITH_NEUTRAL


def _statements(tree: ast.Module) -> Iterator[tuple[str, int, ast.stmt]]:
    """Yield each statement of a function with the function's name and its number there, docstrings left out."""
    seen: dict[str, int] = {}
    functions = list(_functions(tree.body, ""))
    for name, function in functions:
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        skipped = int(ast.get_docstring(function, clean=False) is not None)
        for number, statement in enumerate(_flat(function.body[skipped:]), start=1):
            yield unique, number, statement


def _functions(body: _Body, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for statement in _flat(body):
        if isinstance(statement, FUNCTIONS):
            yield prefix + statement.name, statement
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            yield from _functions(statement.body, f"{prefix}{statement.name}.")


def _flat(body: _Body) -> Iterator[ast.stmt]:
    """Yield the statements of a body and of the blocks in it; functions and classes are yielded, not entered."""
    for statement in body:
        yield statement
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            for block in _BLOCKS:
                for inner in getattr(statement, block, []):
                    yield from _flat([inner] if isinstance(inner, ast.stmt) else inner.body)


def _edit(statement: ast.stmt) -> _Edit | None:
    """Return how a statement is perturbed, or None where nothing is."""
    match statement:
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _of_value("assign", value)
        case ast.AugAssign(value=value):
            return _of_value("augmented", value)
        case ast.Return(value=ast.expr() as value):
            return _of_value("return", value)
        case ast.If(test=test) | ast.While(test=test):
            return _Edit("if" if isinstance(statement, ast.If) else "while", test, "not ({})")
        case ast.For(iter=items):
            return _of_items("for", items)
        case ast.AsyncFor(iter=items):
            return _of_items("for", items, "async ")
        case ast.Raise() | ast.Delete() | ast.Assert():
            return _left_out(_LEFT_OUT[type(statement)], statement)
        case ast.Expr(value=value):
            return _of_expression(statement, value)
    return None


def _of_expression(statement: ast.Expr, value: ast.expr) -> _Edit | None:
    match value:
        case ast.Constant():
            return None
        case ast.NamedExpr(value=inner):
            return _of_value("assign", inner)
        case ast.Yield(value=inner):
            return None if inner is None else _of_value("yield", inner)
        case ast.YieldFrom(value=inner):
            return _of_items("yield", inner)
    return _left_out("expression", statement)


def _of_value(kind: str, value: ast.expr) -> _Edit | None:
    return None if _is_inert(value) else _Edit(kind, value, _VALUE % 0, _VALUE % -1)


def _of_items(kind: str, items: ast.expr, how: str = "") -> _Edit:
    return _Edit(kind, items, _ITEMS % (how, "1:"), _ITEMS % (how, ":1"))


def _is_inert(value: ast.expr) -> bool:
    """Say whether a value stays the same for certain when it is perturbed."""
    match value:
        case ast.Constant(value=constant):
            return type(constant) not in _VALUES
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Dict(values=elements):
            return all(map(_is_inert, elements))
    return isinstance(value, _INERT)


def _left_out(kind: str, statement: ast.stmt) -> _Edit:
    """Return the edit that leaves a statement out, but not its lines; what is a generator stays one."""
    lines = (statement.end_lineno or statement.lineno) - statement.lineno
    yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(statement))
    nothing = "False and (yield)" if yields else "()"
    return _Edit(kind, statement, "(" + "\n" * lines + nothing + ")" if lines or yields else "pass")


def _applied(part: ast.stmt | ast.expr, template: str, content: bytes, starts: list[int]) -> str:
    """Return the source with one part rewritten; offsets in syntax trees count bytes."""
    assert part.end_lineno is not None
    assert part.end_col_offset is not None
    start = starts[part.lineno - 1] + part.col_offset
    end = starts[part.end_lineno - 1] + part.end_col_offset
    written = template.format(content[start:end].decode())
    return (content[:start] + written.encode() + content[end:]).decode()
