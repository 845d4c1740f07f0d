"""Programs as data: the reference, its documentation, bugs with siblings and witnesses, and the oracle suite.

`load_program("order_total")` reads the folder `tasks/programs/order_total`. Nothing of it is imported or executed.
What was measured by running it (`scripts/programs`) stands beside it in measured.toml, with a digest of what was run.
"""

import ast
import hashlib
import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypedDict

from autotest_env.errors import SetupError
from autotest_env.mutation.mutant import Site, substitute
from autotest_env.syntax import parse

MIN_SIBLINGS = 3

Outcome = str
"""``value <repr>`` or ``raises <exception type><args>``: what one line of a witness gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One edit of the reference. `siblings` are run; `padding` only stands beside them in chaff."""

    id: str = field(repr=False)
    summary: str = field(repr=False)
    original: str = field(repr=False)
    text: str = field(repr=False)
    siblings: tuple[str, ...] = field(repr=False)
    padding: tuple[str, ...] = field(repr=False)
    witness: tuple[str, ...] = field(repr=False)
    """Lines of Python over the program's names; expressions give outcomes, statements only when they raise."""


class _Alternatives(TypedDict):
    """The fields of a Bug, read from its table."""

    id: str
    summary: str
    original: str
    text: str
    siblings: tuple[str, ...]
    padding: tuple[str, ...]
    witness: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Bug):
    """An intentional change between two versions: `original` is version 1's text and `text` the new one's.

    Its siblings are wrong versions of the change.
    """

    entry: str
    """What the changelog says of it."""
    documented: tuple[tuple[str, str], ...] = field(repr=False)
    """Old and new texts of the documentation; each old one occurs once in the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What runs of the program's own suites have shown."""

    noticed: tuple[str, ...] = field(default=(), repr=False)
    """Names of the probes that the oracle suite notices."""
    fails: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    """Id of a bug or change to the existing tests that fail when it alone is put into the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSource:
    """A program as its author wrote it. `sites` are the places of the bugs and changes, named by their ids."""

    name: str
    module: str
    docs: str = field(repr=False)
    source: str = field(repr=False)
    sites: tuple[Site, ...] = field(repr=False)
    bugs: tuple[Bug, ...] = field(repr=False)
    oracle_suite: str = field(repr=False)
    changes: tuple[Change, ...] = field(default=(), repr=False)
    existing_tests: str = field(default="", repr=False)
    """Tests that pass on the reference and are shown, where it has a second version."""
    measured: Measured = field(default=Measured(), repr=False)

    def bug(self, bug_id: str) -> Bug:
        """Return a bug or change by id; KeyError names the unknown id."""
        for bug in (*self.bugs, *self.changes):
            if bug.id == bug_id:
                return bug
        raise KeyError(bug_id)

    @property
    def public_names(self) -> tuple[str, ...]:
        """Functions and classes that tests import, in the order of the source."""
        return _public_names(self.source)

    def variant(self, bug_id: str, alternative: int = 1) -> dict[str, int]:
        """Return what `render` and `substitute` take as `chosen`; 1 is the bug, 2 and up its siblings."""
        count = 1 + len(self.bug(bug_id).siblings)
        if not 1 <= alternative <= count:
            raise ValueError(f"bug {bug_id!r} has alternatives 1 to {count}, not {alternative}")
        return {bug_id: alternative}

    def shown(self, bug_ids: tuple[str, ...]) -> str:
        """Return the plain text holding all the named bugs."""
        return substitute(self.source, self.sites, {self.bug(bug_id).id: 1 for bug_id in bug_ids})


@lru_cache(maxsize=256)  # asked for by every task
def _public_names(source: str) -> tuple[str, ...]:
    return tuple(
        node.name
        for node in parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    )


def load_program(name: str) -> ProgramSource:
    """Read a program's folder. Raises SetupError saying which file is damaged and how."""
    folder = files("autotest_env.tasks.programs") / name
    try:
        texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()}
        facts = tomllib.loads(texts["program.toml"])
        measured = tomllib.loads(texts["measured.toml"]) if "measured.toml" in texts else None
        program = parse_program(name, texts["reference.py"], texts["oracle_suite.py"], facts)
    except KeyError as error:
        raise SetupError(f"program {name!r} cannot be read: it has no file {error.args[0]}") from error
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(f"program {name!r} cannot be read: {error}") from error
    return replace(
        program,
        existing_tests=texts.get("existing_tests.py", ""),
        measured=Measured() if measured is None else _measured(name, measured, measured_digest(folder)),
    )


def measured_digest(folder: Traversable) -> str:
    """Return SHA-256 (hex) of the files that measured.toml was measured on, each with its name and length before it."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.is_file() and file.name not in ("measured.toml", "README.md"):
            content = file.read_bytes()
            digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def parse_program(name: str, source: str, oracle_suite: str, facts: Mapping[str, object]) -> ProgramSource:
    """Build a program from its parts; `facts` is the content of its program.toml. Raises SetupError."""
    bugs = tuple(_bug(name, table) for table in _tables(name, facts, "bugs"))
    if not bugs:
        raise SetupError(f"program {name!r}: program.toml needs at least one [[bugs]] table")
    changes = tuple(_change(name, source, table) for table in _tables(name, facts, "changes"))
    places = (*bugs, *changes)
    if len({place.id for place in places}) != len(places):
        raise SetupError(f"program {name!r}: two bugs have the same id")
    sites = tuple(_site(name, source, place) for place in places)
    ordered = sorted(sites, key=lambda site: site.start)
    for left, right in itertools.pairwise(ordered):
        if right.start < left.end:
            raise SetupError(f"program {name!r}: bugs {left.name!r} and {right.name!r} overlap")
    return ProgramSource(
        name=name,
        module=_text(name, facts, "module"),
        docs=_text(name, facts, "docs").strip(),
        source=source,
        sites=sites,
        bugs=bugs,
        oracle_suite=oracle_suite,
        changes=changes,
    )


def run_witness(text: str, witness: tuple[str, ...]) -> tuple[Outcome, ...]:
    """Execute a program text and a witness on it, in this process: for tests and builders, on trusted code only."""
    namespace: dict[str, object] = {"__name__": __name__}  # dataclasses look their module up
    exec(compile(text, "<program>", "exec"), namespace)
    return tuple(outcome for line in witness if (outcome := _outcome(line, namespace)) is not None)


def _outcome(line: str, namespace: dict[str, object]) -> Outcome | None:
    try:
        code, is_expression = compile(line, "<witness>", "eval"), True
    except SyntaxError:
        code, is_expression = compile(line, "<witness>", "exec"), False
    try:
        value = eval(code, namespace)
    except Exception as error:  # noqa: BLE001  border: whatever the program raises is an outcome
        return f"raises {type(error).__name__}{error.args!r}"
    return f"value {value!r}" if is_expression else None


def _tables(name: str, facts: Mapping[str, object], key: str) -> list[dict[str, object]]:
    tables = facts.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SetupError(f"program {name!r}: {key} are written as [[{key}]] tables")
    return tables


def _bug(name: str, table: Mapping[str, object]) -> Bug:
    return Bug(**_alternatives(name, table))


def _change(name: str, source: str, table: Mapping[str, object]) -> Change:
    alternatives = _alternatives(name, table)
    where = f"{name}/{alternatives['id']}"
    pairs = table.get("documented", [])
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise SetupError(f"program {where!r}: 'documented' must be a list of pairs of texts, old and new")
    for old, new in pairs:
        if source.count(old) != 1 or old.count("\n") != new.count("\n"):
            raise SetupError(f"program {where!r}: {old!r} must occur once in the reference and keep its lines")
    return Change(
        **alternatives, entry=_text(where, table, "entry"), documented=tuple((old, new) for old, new in pairs)
    )


def _alternatives(name: str, table: Mapping[str, object]) -> _Alternatives:
    bug_id = _text(name, table, "id")
    where = f"{name}/{bug_id}"
    found = _Alternatives(
        id=bug_id,
        summary=_text(where, table, "summary"),
        original=_text(where, table, "original"),
        text=_text(where, table, "bug"),
        siblings=_texts(where, table, "siblings"),
        padding=_texts(where, {"padding": [], **table}, "padding"),
        witness=_texts(where, table, "witness"),
    )
    if len(found["siblings"]) < MIN_SIBLINGS or not found["witness"]:
        raise SetupError(f"program {where!r}: a bug needs a witness and at least {MIN_SIBLINGS} siblings")
    texts = (found["original"], found["text"], *found["siblings"], *found["padding"])
    if len(set(texts)) != len(texts):
        raise SetupError(f"program {where!r}: two alternatives have the same text")
    return found


def _measured(name: str, table: Mapping[str, object], digest: str) -> Measured:
    if table.get("digest") != digest:
        raise SetupError(f"program {name!r}: measured.toml was measured on other files; run scripts/programs --write")
    fails = table.get("fails", {})
    if not isinstance(fails, dict):
        raise SetupError(f"program {name!r}: 'fails' of measured.toml must be a table")
    return Measured(
        noticed=_texts(name, {"noticed": [], **table}, "noticed"),
        fails={bug: frozenset(_texts(f"{name}/fails", fails, bug)) for bug in fails},
    )


def _site(name: str, source: str, bug: Bug) -> Site:
    count = source.count(bug.original)
    if count != 1:
        raise SetupError(f"program {name!r}: original of bug {bug.id!r} occurs {count} times in the reference")
    start = source.index(bug.original)
    alternatives = (bug.original, bug.text, *bug.siblings, *bug.padding)
    return Site(name=bug.id, start=start, end=start + len(bug.original), alternatives=alternatives)


def _text(where: str, table: Mapping[str, object], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SetupError(f"program {where!r}: {key!r} must be a non-empty text")
    return value


def _texts(where: str, table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise SetupError(f"program {where!r}: {key!r} must be a list of texts")
    return tuple(value)
