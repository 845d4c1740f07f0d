"""From a model's answer to the pytest file in it, whatever stands around it.

Fenced blocks are preferred, closed or not; of several, the largest that parses and holds tests is taken, and others
that complete it are joined. Without a fence the Python between the prose is cut out. What does not parse is returned
all the same when it looks like code: judging it is not our business.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autotest_env.syntax import parse

_MAX_ANSWER_CHARS = 256 * 1024
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_FENCE = re.compile(
    r"(?P<indent>[ \t]*)(?P<before>(?:[^`~]*[^`~\s][ \t]*)?)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+.-]*)[^`]*"
)
_PYTHON = frozenset({"", "py", "python", "python3", "pytest"})
_CODE_START = re.compile(r"(?:import|from|def|class|async def)\s+\w|@\w|#|\"\"\"|'''")
_LOOKS_LIKE_CODE = re.compile(r"^\s*(?:def test_|class Test|import \w+\s*$|from [\w.]+ import |assert )", re.MULTILINE)
_MAX_STARTS = 20


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    python: bool
    """Tagged as Python, or not tagged."""
    closed: bool


@dataclass(frozen=True, slots=True)
class _Names:
    defined: frozenset[str]
    bound: frozenset[str]
    """Defined or imported at top level."""
    missing: frozenset[str]
    """Used, but bound nowhere in the text; empty where a star import may bind it."""
    comments_only: bool


def extract_code(answer: str) -> str:
    """Return the pytest file of an answer; empty when there is no code in it."""
    sendable = answer[:_MAX_ANSWER_CHARS].encode("utf-8", "replace").decode("utf-8")
    text = _without_thinking(sendable.replace("\r\n", "\n"))
    blocks = [block for block in _fenced(text) if block.text.strip()]
    if not blocks:
        return _from_prose(text)
    candidates = [block for block in blocks if block.python] or blocks
    texts = [block.text if block.closed else _salvage(block.text) for block in candidates]
    with_tests = [text for text in texts if _has_tests(_parse(text))]
    if with_tests:
        return _joined(texts, max(with_tests, key=len))
    return max(texts, key=len)


def _without_thinking(text: str) -> str:
    """Drop what a reasoning model wrote before its answer."""
    text = _THINKING.sub("", text)
    return re.split(r"</think(?:ing)?>", text, flags=re.IGNORECASE)[-1]


def _fenced(text: str) -> Iterator[_Block]:
    """Yield the fenced blocks in order; the last may be unclosed."""
    fence = ""
    lines: list[str] = []
    indent, python = 0, True
    for line in text.splitlines():
        if fence:
            stripped = line.strip()
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                yield _Block("\n".join(lines) + "\n", python, closed=True)
                fence = ""
            else:
                lines.append(line[min(indent, len(line) - len(line.lstrip())) :])
        elif match := _OPEN_FENCE.fullmatch(line):
            fence, lines = match["fence"], []
            indent = len(match["indent"]) if not match["before"] else 0
            python = match["language"].lower() in _PYTHON
    if fence:
        yield _Block("\n".join(lines) + "\n", python, closed=False)


def _parse(text: str) -> ast.Module | None:
    try:
        return parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _has_tests(tree: ast.Module | None) -> bool:
    return tree is not None and any(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in ast.walk(tree)
    )


def _salvage(text: str) -> str:
    """Cut a text that ends in the middle back to its last complete statement, if tests remain."""
    cut = _longest_python(text)
    return cut if _has_tests(_parse(cut)) else text


def _longest_python(text: str) -> str:
    """Return the longest beginning of a text that is Python, by whole top-level statements."""
    lines = text.splitlines()
    while lines:
        try:
            parse("\n".join(lines))
        except SyntaxError as error:
            last = min(error.lineno or len(lines), len(lines)) - 1
        except (ValueError, MemoryError, RecursionError):
            return ""
        else:
            return "\n".join(lines) + "\n"
        while last > 0 and not _begins_statement(lines[last]):
            last -= 1
        lines = lines[:last]
    return ""


def _begins_statement(line: str) -> bool:
    return bool(line.strip()) and not line[0].isspace() and line[0] not in ")]}"


def _from_prose(text: str) -> str:
    """Return the Python of an answer without fences, without the prose around it."""
    if _has_tests(_parse(text)):
        return text
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if _CODE_START.match(line)][:_MAX_STARTS]
    found = [_longest_python("\n".join(lines[start:])) for start in starts]
    with_tests = [code for code in found if _has_tests(_parse(code))]
    if with_tests:
        return max(with_tests, key=len)
    match = _LOOKS_LIKE_CODE.search(text)
    return text[match.start() :].lstrip("\n") if match else ""


def _joined(texts: Sequence[str], main: str) -> str:
    """Join to the main text, in order, the others that complete it; the main text alone when that does not parse.

    A text completes it when it holds further tests, defines what is missing, or is nothing but comments, and redefines
    nothing.
    """
    names = {text: _names(text) for text in dict.fromkeys(texts) if _parse(text) is not None}
    kept = [main]
    grew = True
    while grew:
        grew = False
        bound = frozenset().union(*(names[text].bound for text in kept))
        missing = frozenset().union(*(names[text].missing for text in kept)) - bound
        for text, own in names.items():
            wanted = own.comments_only or own.bound & missing or _has_tests(_parse(text))
            if text not in kept and wanted and not own.defined & bound:
                kept.append(text)
                grew = True
                break
    joined = "\n\n".join(text.rstrip("\n") + "\n" for text in dict.fromkeys(texts) if text in kept)
    return joined if _parse(joined) is not None else main


def _names(text: str) -> _Names:
    defined: set[str] = set()
    imported: set[str] = set()
    used: set[str] = set()
    bound = set(dir(builtins))
    tree = parse(text)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            imported.update((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            used.add(node.arg)
    missing = set() if "*" in imported else used - bound - defined - imported
    return _Names(frozenset(defined), frozenset(defined | imported), frozenset(missing), comments_only=not tree.body)
