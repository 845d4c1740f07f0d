"""What changed between two versions of a module, edit by edit; pure text, nothing is executed."""

import ast
import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from autotest_env.syntax import parse

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_FILLERS = frozenset(
    "a an and are as at be by for from has have in is it its no not now of on one or than that the to".split()
)
_MAX_EDITS = 16
_MAX_PARTS = 2000
"""Comparing takes time with the square of it."""

_LINE_ENDS = re.compile(r"(?<=\n)")
_PART_ENDS = re.compile(r"(?<=[\n,])|(?=\b(?:and|or|if|else)\b)")
Key = TypeVar("Key")

_SAME_FUNCTION = 2.0
"""A reworded docstring beside an edit counts as much as two telling words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Characters `start` to before `end` of the old version become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Two versions of a module and the edits that lead from one to the other."""

    old: str
    new: str
    behaviour: tuple[Edit, ...]
    """Edits of code, each of which can be made alone."""
    wording: tuple[Edit, ...]
    """Edits of comments and docstrings only."""

    def with_edits(self, *edits: Edit) -> str:
        """Return the old version with some of the edits made."""
        return _edited(self.old, edits)


def compare(old: str, new: str) -> Versions:
    """Find the edits between two versions; none when they are too many, or make no sense alone.

    Raises SyntaxError for a version that does not parse.
    """
    parse(new)
    code = ast.dump(_without_texts(parse(old)))
    edits = list(itertools.islice(_edits(old, new), _MAX_EDITS + 1))
    if len(edits) > _MAX_EDITS or not all(_parses(_edited(old, [edit])) for edit in edits):
        edits = []
    wording = tuple(edit for edit in edits if ast.dump(_without_texts(parse(_edited(old, [edit])))) == code)
    return Versions(old=old, new=new, behaviour=tuple(edit for edit in edits if edit not in wording), wording=wording)


def announced(versions: Versions, changelog: str, broken: Mapping[Edit, Iterable[str]]) -> Edit | None:
    """Return the edit that a changelog tells of; `broken` holds the names of the tests that each edit makes fail."""
    reworded = {_function_at(versions.old, edit) for edit in versions.wording} - {""}
    told = "\n".join((changelog, *(text for edit in versions.wording for text in _texts(versions.old, edit))))
    functions = {edit: _function_at(versions.old, edit) for edit in broken}
    texts = {
        edit: " ".join((*_texts(versions.old, edit), function, *broken[edit])) for edit, function in functions.items()
    }
    weights = likeness(told, texts)
    return max(weights, key=lambda edit: weights[edit] + _SAME_FUNCTION * (functions[edit] in reworded), default=None)


def likeness(told: str, texts: Mapping[Key, str]) -> dict[Key, float]:
    """Weigh the words that each text has in common with what is told; those that fewer texts have tell more."""
    words = {key: _words(text) for key, text in texts.items()}
    common = {key: sorted(found & _words(told)) for key, found in words.items()}
    return {
        key: sum(1 / sum(word in others for others in words.values()) for word in found)
        for key, found in common.items()
    }


def _edits(old: str, new: str) -> Iterator[Edit]:
    """Yield the edits as fine as they still make sense alone: conditions of a line, lines, blocks of lines."""
    for block in _blocks(_LINE_ENDS.split(old), _LINE_ENDS.split(new), 0):
        replaced = old[block.start : block.end]
        for ends in (_PART_ENDS, _LINE_ENDS):
            blocks = _blocks(ends.split(replaced), ends.split(block.text), block.start)
            edits = [edit for each in blocks for edit in _one_by_one(old, each, ends)]
            if len(edits) <= _MAX_EDITS and all(_parses(_edited(old, [edit])) for edit in edits):
                yield from edits
                break
        else:
            yield block


def _blocks(old: Sequence[str], new: Sequence[str], start: int) -> Iterator[Edit]:
    """Yield what differs between two texts that are cut into parts; the old one begins at `start`."""
    places = [start, *(start + length for length in itertools.accumulate(map(len, old)))]
    if max(len(old), len(new)) > _MAX_PARTS:
        yield Edit(start=start, end=places[-1], text="".join(new))
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind != "equal":
            yield Edit(start=places[first], end=places[last], text="".join(new[new_first:new_last]))


def _one_by_one(old: str, block: Edit, ends: re.Pattern[str]) -> list[Edit]:
    """Cut a block whose parts are replaced by as many others."""
    parts, others = ends.split(old[block.start : block.end]), ends.split(block.text)
    if len(parts) != len(others):
        return [block]
    places = [block.start, *(block.start + length for length in itertools.accumulate(map(len, parts)))]
    return [
        Edit(start=start, end=end, text=text)
        for (start, end), part, text in zip(itertools.pairwise(places), parts, others, strict=True)
        if part != text
    ]


def _edited(old: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        old = old[: edit.start] + edit.text + old[edit.end :]
    return old


def _parses(text: str) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _without_texts(tree: ast.Module) -> ast.Module:
    """Take out the docstrings; comments are in no tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _texts(old: str, edit: Edit) -> tuple[str, str]:
    return old[edit.start : edit.end], edit.text


def _function_at(old: str, edit: Edit) -> str:
    """Return the name of the innermost function around an edit, empty outside of functions."""
    line = old.count("\n", 0, edit.start) + 1
    name = ""
    for node in ast.walk(parse(old)):  # outer ones come first
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or node.lineno):
            name = node.name
    return name


def _words(text: str) -> frozenset[str]:
    """Return the telling words: of identifiers the parts, without endings; numbers as digits."""
    words = (word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text))
    telling = (str(_NUMBERS.index(word)) if word in _NUMBERS else word for word in words if word not in _FILLERS)
    return frozenset(re.sub(r"(?<=[a-z]{3})(?:ing|ed|es|s)$", "", word) for word in telling)
