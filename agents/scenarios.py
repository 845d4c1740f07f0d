"""From existing tests to scenarios: the same steps with knobs to turn, which record what they see.

A test's constants become arguments, its calls can be repeated, and instead of asserting anything the scenario notes the
values that the test looks at. Pure: source text in, source text out.
"""

import ast
import copy
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from autotest_env.syntax import parse

# Goes into tests. Whatever the shown code raises is what it does, so `except Exception` there takes all.
HELPERS = '''\
def plain(value):
    """Return plain data as it is, anything else by the name of its type."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    return value if value is None or type(value) in (bool, int, float, str) else type(value).__name__


def observed(steps, **changed):
    """Go through the steps with some values changed; return what was seen, an error by its name."""
    seen = []
    try:
        steps(lambda value: seen.append(plain(value)), **changed)
    except Exception as error:
        seen.append(type(error).__name__)
    return seen
'''
_RESERVED = re.compile(r"plain|observed|see|(?:text|number|times)_\d+")
_MAX_KNOBS = 40
_MAX_NUMBER = 1e9
_MAX_CHARS = 200

Value = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The steps of a test. `knobs` maps each knob to the value that the test itself has."""

    test: str
    name: str
    knobs: Mapping[str, Value]
    function: ast.FunctionDef = field(repr=False)

    def code(self, knobs: Collection[str]) -> str:
        """Return the steps as a function that takes `see` and the given knobs."""
        chosen = [name for name in self.knobs if name in knobs]
        function = _Fixed(self.knobs, frozenset(chosen)).visit(copy.deepcopy(self.function))
        function.args.kwonlyargs = [ast.arg(arg=name) for name in chosen]
        function.args.kw_defaults = [ast.Constant(self.knobs[name]) for name in chosen]
        return ast.unparse(ast.fix_missing_locations(function))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTests:
    """A test file taken apart."""

    prelude: str
    """Imports, constants, fixtures, other helpers."""
    tests: Mapping[str, str]
    """Source of each test function, in order."""
    scenarios: tuple[Scenario, ...]
    """Of the tests whose arguments, if any, are spelt out in the file."""


def take_apart(source: str) -> ExistingTests:
    """Read a test file. Raises SyntaxError when it does not parse."""
    tree = parse(source)
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
    others = [node for node in tree.body if node not in tests and not _is_text(node)]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    constants = _constants(others)
    taken = any(map(_RESERVED.fullmatch, names))
    scenarios = [] if taken else [each for test in tests for each in _scenarios(test, constants)]
    return ExistingTests(
        prelude="\n".join(map(_spaced, others)).strip(),
        tests={test.name: ast.unparse(test) for test in tests},
        scenarios=tuple(scenarios),
    )


def _spaced(node: ast.stmt) -> str:
    text = ast.unparse(node)
    return f"\n\n{text}\n" if isinstance(node, ast.FunctionDef | ast.ClassDef) else text


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _constants(nodes: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Return the module's named constants; they are knobs of the tests that use them."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value) if name.isupper():
                found[name] = value
    return found


def _scenarios(test: ast.FunctionDef, constants: Mapping[str, ast.expr]) -> Iterator[Scenario]:
    """Yield one scenario per parameter set, none where arguments come from elsewhere."""
    for number, arguments in enumerate(_parameter_sets(test)):
        if {argument.arg for argument in test.args.args} != set(arguments):
            continue
        spelt = _Spelt({**constants, **arguments})
        body = [spelt.visit(copy.deepcopy(statement)) for statement in test.body if not _is_text(statement)]
        body = [_Recording().visit(statement) for statement in body]
        knobs = _Knobs()
        name = f"{test.name.removeprefix('test_')}_{number}"
        function = ast.FunctionDef(
            name=f"steps_of_{name}",
            args=ast.arguments(posonlyargs=[], args=[ast.arg(arg="see")], kwonlyargs=[], kw_defaults=[], defaults=[]),
            body=[knobs.visit(knobs.repeated(statement)) for statement in body] or [ast.Pass()],
            decorator_list=[],
        )
        yield Scenario(test=test.name, name=function.name, knobs=knobs.found, function=function)


def _parameter_sets(test: ast.FunctionDef) -> list[dict[str, ast.expr]]:
    """Return the arguments of each case, as they are written in the one `parametrize` that a test may have."""
    if not test.decorator_list:
        return [{}]
    match test.decorator_list:
        case [ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, ast.List(elts=rows)])]:
            words = re.findall(r"\w+", " ".join(_texts(names)))
            cells = [[row] if len(words) == 1 else getattr(row, "elts", []) for row in rows]
            return [dict(zip(words, row, strict=False)) for row in cells]
    return []


def _texts(node: ast.expr) -> list[str]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


class _Spelt(ast.NodeTransformer):
    """Replace names by what they stand for."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        return node if value is None or isinstance(node.ctx, ast.Store) else copy.deepcopy(value)


class _Recording(ast.NodeTransformer):
    """Replace assertions, expected errors and bare calls by notes of what they look at."""

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        return [_see(part) for part in _looked_at(node.test)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return _see(node.value) if isinstance(node.value, ast.Call) else node

    def visit_With(self, node: ast.With) -> ast.stmt:
        self.generic_visit(node)
        if not any(_is_pytest(item.context_expr) for item in node.items):
            return node
        (handler,) = parse("try: pass\nexcept Exception as error: see(type(error).__name__)").body[0].handlers  # type: ignore[attr-defined]
        return ast.Try(body=node.body, handlers=[handler], orelse=[], finalbody=[])


def _looked_at(test: ast.expr) -> list[ast.expr]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _looked_at(operand)
        case ast.Compare(left=left, comparators=others):
            parts = [part for part in (left, *others) if not _is_plain(part) and not _is_pytest(part)]
            return parts or [test]
    return [test]


def _is_plain(node: ast.expr) -> bool:
    """Tell whether an expression is spelt out, calls nothing and names nothing."""
    return not any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(node))


def _is_pytest(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("pytest.")


def _see(value: ast.expr) -> ast.Expr:
    return ast.Expr(ast.Call(func=ast.Name(id="see", ctx=ast.Load()), args=[value], keywords=[]))


class _Knobs(ast.NodeTransformer):
    """Give every constant a name, and every statement at the top a number of times."""

    def __init__(self) -> None:
        self.found: dict[str, Value] = {}

    def repeated(self, statement: ast.stmt | list[ast.stmt]) -> ast.stmt:
        """Wrap what a statement was turned into, so that it can be repeated."""
        body = statement if isinstance(statement, list) else [statement]
        if not all(isinstance(each, ast.Expr | ast.Try) for each in body):
            return body[0]
        times = self._named("times", 1)
        count = ast.Call(func=ast.Name(id="range", ctx=ast.Load()), args=[times], keywords=[])
        return ast.For(target=ast.Name(id="_", ctx=ast.Store()), iter=count, body=body, orelse=[])

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if len(self.found) >= _MAX_KNOBS or isinstance(value, bool):
            return node
        if isinstance(value, str) and len(value) <= _MAX_CHARS:
            return self._named("text", value)
        if isinstance(value, int | float) and abs(value) <= _MAX_NUMBER:
            return self._named("number", value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        return node

    def _named(self, kind: str, value: Value) -> ast.Name:
        name = f"{kind}_{len(self.found) + 1}"
        self.found[name] = value
        return ast.Name(id=name, ctx=ast.Load())


class _Fixed(ast.NodeTransformer):
    """Put the own values back in the place of all knobs but some."""

    def __init__(self, knobs: Mapping[str, Value], kept: frozenset[str]) -> None:
        self._knobs = knobs
        self._kept = kept

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        match node.iter:
            case ast.Call(args=[ast.Name(id=name)]) if name.startswith("times_") and name not in self._kept:
                return [self.visit(statement) for statement in node.body]
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._knobs and node.id not in self._kept:
            return ast.Constant(self._knobs[node.id])
        return node
