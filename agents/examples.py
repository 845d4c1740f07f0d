"""Documented examples of a shown module, read from its text: nothing of it is executed here.

Understood are doctest blocks (``>>> f(1)`` with the value or the error below), and sentences that pair a call on
literals with a literal: ``f(1) == 2``, ``f(1) -> 2``, ``f(1) returns 2``, ``f(1) raises ValueError``.
"""

import ast
import builtins
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass

from autotest_env.syntax import parse, parse_expression

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading the text of odd code raises."""

_ARROW = re.compile(r"[`\s]*(?:==|=>|->|→|⇒|returns?\b|gives?\b|yields?\b|equals?\b|is\b)[`\s]*")
_RAISES = re.compile(r"[`\s]*raises?\b[`\s]*(?:an?\s+)?[`]*(?P<error>[A-Za-z_]\w*)")
_AFTER_LITERAL = re.compile(r"`*(?:\s*$|[.,;:)](?:\s|$)|\s+(?:for|when|if|because|since|as|and|but)\b)")
_MAX_CALL_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A documented fact: after the `setup` statements, `expression` has the value or raises the error."""

    owner: str
    """Public name whose documentation states it."""
    expression: str
    setup: tuple[str, ...] = ()
    want: str = ""
    """Documented value: a Python literal, or else the value's repr."""
    raises: str = ""
    """Name of the documented exception class, if it is an error."""

    @property
    def call(self) -> ast.Call | None:
        """The expression's call, where it is one."""
        body = parse_expression(self.expression).body
        return body if isinstance(body, ast.Call) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Documentation:
    """What a module's text documents."""

    names: tuple[str, ...]
    """Public names a test may import."""
    texts: tuple[tuple[str, str], ...]
    """Public name and docstring; the module's own under the empty name."""
    examples: tuple[Example, ...]


def read_documentation(source: str) -> Documentation:
    """Read the public names, docstrings and examples of a module. Raises one of UNREADABLE when it cannot be read."""
    tree = parse(source)
    names = tuple(dict.fromkeys(_public_names(tree)))
    texts = tuple(_docstrings(tree))
    found = dict.fromkeys(
        example
        for owner, text in texts
        for example in (*_doctests(owner, text, names), *_sentences(owner, text, names))
    )
    return Documentation(names=names, texts=texts, examples=tuple(found))


def literal(text: str) -> object:
    """Return the value of a literal; raises ValueError when the text is not one."""
    try:
        return ast.literal_eval(parse_expression(text.strip()))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("not a literal") from error


def _public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found = [name]
            case ast.Assign(targets=targets):
                found = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                found = [name]
            case _:
                continue
        yield from (name for name in found if not name.startswith("_"))


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    yield "", ast.get_docstring(tree) or ""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        yield node.name, ast.get_docstring(node) or ""
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef):
                yield node.name, ast.get_docstring(member) or ""


def _doctests(owner: str, text: str, names: tuple[str, ...]) -> Iterator[Example]:
    """Yield the examples of a docstring in order, each with the statements before it that it may depend on."""
    try:
        blocks = doctest.DocTestParser().get_examples(text)
        for block in blocks:
            parse(block.source)
    except (ValueError, SyntaxError):
        return
    setup: list[str] = []
    stateful = any(_expression(block.source) is None or not (block.want or block.exc_msg) for block in blocks)
    for block in blocks:
        expression = _expression(block.source)
        fact = None
        if expression is not None and not block.options:
            fact = _fact(owner, expression, tuple(setup), block)
        if fact is not None and _resolves(fact, names):
            yield fact
        if expression is None or (stateful and block.exc_msg is None):
            setup.append(expression or ast.unparse(parse(block.source)))


def _fact(owner: str, expression: str, setup: tuple[str, ...], block: doctest.Example) -> Example | None:
    if block.exc_msg is not None:
        error = block.exc_msg.partition(":")[0].strip().rpartition(".")[2]
        return Example(owner=owner, expression=expression, setup=setup, raises=error)
    want = block.want.strip()
    if not want or "..." in want or "<BLANKLINE>" in want or " at 0x" in want or expression.startswith("print("):
        return None
    return Example(owner=owner, expression=expression, setup=setup, want=want)


def _expression(source: str) -> str | None:
    try:
        return ast.unparse(parse_expression(source.strip()))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _resolves(example: Example, names: tuple[str, ...]) -> bool:
    """Tell whether every name of an example is imported, assigned before, or built in."""
    try:
        tree = parse("\n".join((*example.setup, example.expression)))
    except SyntaxError:
        return False
    bound = {*names, *dir(builtins)}
    used = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound.update((alias.asname or alias.name).partition(".")[0] for alias in aliases)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
    known_error = not example.raises or example.raises in bound
    return used <= bound and known_error


def _sentences(owner: str, text: str, names: tuple[str, ...]) -> Iterator[Example]:
    """Yield the facts that running text states about calls on literals."""
    prose = re.sub(r"^[ \t]*(?:>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)
    for name in names:
        for match in re.finditer(rf"(?<![\w.]){re.escape(name)}\(", prose):
            expression = _call_at(prose, match.start())
            if expression is None:
                continue
            call, end = expression
            raised = _RAISES.match(prose, end)
            value = _value_at(prose, end)
            fact = None
            if raised:
                fact = Example(owner=owner, expression=call, raises=raised["error"])
            elif value is not None:
                fact = Example(owner=owner, expression=call, want=value)
            if fact is not None and _resolves(fact, names):
                yield fact


def _call_at(prose: str, start: int) -> tuple[str, int] | None:
    """Return the call on literals that begins at `start`, and where it ends."""
    depth = 0
    for end in range(start, min(len(prose), start + _MAX_CALL_CHARS)):
        depth += (prose[end] in "([{") - (prose[end] in ")]}")
        if depth == 0 and prose[end] == ")":
            expression = _expression(" ".join(prose[start : end + 1].split()))
            if expression is None:
                continue
            call = parse_expression(expression).body
            return (expression, end + 1) if isinstance(call, ast.Call) and _on_literals(call) else None
    return None


def _on_literals(call: ast.Call) -> bool:
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        try:
            literal(ast.unparse(argument))
        except ValueError:
            return False
    return True


def _value_at(prose: str, start: int) -> str | None:
    """Return the literal that an equals sign, an arrow or a verb at `start` leads to."""
    arrow = _ARROW.match(prose, start)
    if arrow is None:
        return None
    line = prose[arrow.end() :].partition("\n")[0]
    for end in range(min(len(line), _MAX_CALL_CHARS), 0, -1):
        if not _AFTER_LITERAL.match(line, end) or line[end - 1] in ". \t":
            continue
        try:
            value = literal(line[:end])
        except ValueError:
            continue
        bare_list = isinstance(value, tuple) and not line.lstrip().startswith("(")
        return None if bare_list else repr(value)
    return None
