"""Pytest files that test nothing, guess, or test honestly but badly."""

import ast
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice

from autotest_env.benchmarks.calibration.calls import Outcome, Script
from autotest_env.benchmarks.calibration.subject import Subject
from autotest_env.syntax import parse, parse_expression

CALLS = 12
PADDING = 4
"""As many as raise precision."""
MOST_TRIES = 2000

_COIN = """
import hashlib


def seen(act):
    try:
        return repr(act())
    except Exception as error:
        return type(error).__name__


def happens(act):
    text = seen(act)
    return text not in ("TypeError", "AttributeError") and "<object object" not in text  # as if nothing was done


def fair(number, act):
    text = f"{salt} {{number}} {{seen(act)}}"
    tossed = int(hashlib.sha256(text.encode()).hexdigest(), 16) % {p.denominator}
    return happens(act) and tossed >= {p.numerator}


"""


def calls_only(subject: Subject, *, caught: bool = False) -> str:
    """Every public thing called, nothing asserted."""
    tests = []
    for number, script in enumerate(islice(subject.scripts(narrow=True), CALLS)):
        if caught:
            tests.append(_test(number, script, "try:", " act()", "except Exception:", " pass"))
        else:
            tests.append(_test(number, script, "act()"))
    return subject.head + "\n\n".join(tests)


def coins(subject: Subject, count: int, p: Fraction, first: int = 0) -> str:
    """Tests that fail by a salted hash of what the program does, each on calls of its own."""
    salt = subject.rng.getrandbits(32)
    tests = [
        _test(number, script, f"assert fair({number}, act)")
        for number, script in enumerate(islice(subject.scripts(), count), start=first)
    ]
    return subject.head + _COIN.format(salt=salt, p=p) + "\n\n".join(tests)


def padded_coins(subject: Subject, count: int, p: Fraction) -> str:
    """Tests that anything happens at all, which are right and count for precision; coins beside them."""
    sure = [
        _test(number, script, "assert happens(act)") for number, script in enumerate(islice(subject.scripts(), PADDING))
    ]
    return coins(subject, count, p, first=PADDING) + "\n\n" + "\n\n".join(sure)


def characterise(subject: Subject, count: int = CALLS) -> str:
    """What the shown code does, written down as if it were right."""
    tried = islice(subject.scripts(narrow=True), count)
    return expected(subject, ((script, subject.run_shown(script)) for script in tried))


def contradict(subject: Subject, count: int = CALLS) -> str:
    """That the shown code is wrong, whatever it does."""
    found = islice(_values(subject), count)
    tests = [_test(number, script, f"assert act() != {shown.value}") for number, (script, shown) in enumerate(found)]
    return subject.head + "\n\n".join(tests)


def mistaken(subject: Subject, count: int) -> str:
    """Tests that believe the shown code where it is wrong."""
    tried = islice(subject.scripts(narrow=True), MOST_TRIES)
    found = ((script, subject.run_shown(script), subject.run_correct(script)) for script in tried)
    wrong = islice(((script, shown) for script, shown, correct in found if shown != correct), count)
    return expected(subject, wrong, prefix="test_mistaken")


def expected(subject: Subject, cases: Iterable[tuple[Script, Outcome]], prefix: str = "test") -> str:
    """Exact tests of given outcomes."""
    tests = []
    for number, (script, found) in enumerate(cases):
        if found.raised:
            caught = ("with pytest.raises(Exception) as caught:", " act()")
            lines = (*caught, f"assert caught.type.__name__ == {found.raised!r}")
        else:
            lines = (f"assert repr(act()) == {found.value!r}",)
        tests.append(_test(number, script, *lines, prefix=prefix))
    return subject.head + "\n\n".join(tests)


def weak(subject: Subject) -> str:
    """Seven tests of the oracle's, with all that catch the bugs, and three that are wrong."""
    exact = subject.exact_tests()
    names = [*exact, *(name for name in subject.names if name not in exact)][:7]
    return subject.labels + subject.only(names) + "\n\n" + mistaken(subject, 3)


def loose(subject: Subject) -> str:
    """The oracle's tests with the precision taken out of them."""
    return subject.labels + ast.unparse(ast.fix_missing_locations(_Loosen().visit(parse(subject.answer))))


class _Loosen(ast.NodeTransformer):
    """Numbers may be smaller, of all else only the type counts, any exception will do, and nothing is denied."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.Is):
            return node
        left, right = node.left, node.comparators[0]
        if isinstance(right, ast.Constant) and type(right.value) in (int, float):
            return ast.Compare(left, [ast.LtE()], [right])
        kinds = [ast.Call(ast.Name("type", ast.Load()), [side], []) for side in (left, right)]
        return ast.Compare(kinds[0], [ast.Is()], [kinds[1]])

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        denies = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        return ast.Expr(node.test) if denies else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "raises":
            node.args[0] = ast.Name("Exception", ast.Load())
        return self.generic_visit(node)


def _test(number: int, script: Script, *lines: str, prefix: str = "test") -> str:
    """Return a test that may `act`. Indented by one space: forty of the longest have to fit into one submission."""
    body = ("def act():", *script.body.splitlines(), *lines)
    return f"def {prefix}_{number}():\n" + "".join(f" {line}\n" for line in body)


def _values(subject: Subject) -> Iterator[tuple[Script, Outcome]]:
    """Yield scripts after which the shown code gives a plain value."""
    for script in subject.scripts(narrow=True):
        found = subject.run_shown(script)
        if found.value and _is_literal(found.value):
            yield script, found


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(parse_expression(text))
    except (ValueError, SyntaxError):
        return False
    return True
