"""Programs as data: the reference, its documentation, bugs with siblings and witnesses, and the oracle suite.

`load_program("order_total")` reads the folder `tasks/programs/order_total`. Nothing of it is imported or executed.
"""

import itertools
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files

from autotest_env.errors import SetupError
from autotest_env.mutation.mutant import Site, substitute

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSource:
    """A program as its author wrote it. `sites[i]` is the place of `bugs[i]`, named by the bug's id."""

    name: str
    module: str
    docs: str = field(repr=False)
    source: str = field(repr=False)
    sites: tuple[Site, ...] = field(repr=False)
    bugs: tuple[Bug, ...] = field(repr=False)
    oracle_suite: str = field(repr=False)

    def bug(self, bug_id: str) -> Bug:
        """Return a bug by id; KeyError names the unknown id."""
        for bug in self.bugs:
            if bug.id == bug_id:
                return bug
        raise KeyError(bug_id)

    def variant(self, bug_id: str, alternative: int = 1) -> dict[str, int]:
        """Return what `render` and `substitute` take as `chosen`; 1 is the bug, 2 and up its siblings."""
        count = 1 + len(self.bug(bug_id).siblings)
        if not 1 <= alternative <= count:
            raise ValueError(f"bug {bug_id!r} has alternatives 1 to {count}, not {alternative}")
        return {bug_id: alternative}

    def shown(self, bug_ids: tuple[str, ...]) -> str:
        """Return the plain text holding all the named bugs."""
        return substitute(self.source, self.sites, {self.bug(bug_id).id: 1 for bug_id in bug_ids})


def load_program(name: str) -> ProgramSource:
    """Read a program's folder. Raises SetupError saying which file is damaged and how."""
    folder = files("autotest_env.tasks.programs") / name
    try:
        source = (folder / "reference.py").read_text(encoding="utf-8")
        suite = (folder / "oracle_suite.py").read_text(encoding="utf-8")
        facts = tomllib.loads((folder / "program.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(f"program {name!r} cannot be read: {error}") from error
    return parse_program(name, source, suite, facts)


def parse_program(name: str, source: str, oracle_suite: str, facts: dict[str, object]) -> ProgramSource:
    """Build a program from its parts; `facts` is the content of its program.toml. Raises SetupError."""
    tables = facts.get("bugs")
    if not isinstance(tables, list) or not tables:
        raise SetupError(f"program {name!r}: program.toml needs at least one [[bugs]] table")
    bugs = tuple(_bug(name, table) for table in tables)
    if len({bug.id for bug in bugs}) != len(bugs):
        raise SetupError(f"program {name!r}: two bugs have the same id")
    sites = tuple(_site(name, source, bug) for bug in bugs)
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


def _bug(name: str, table: object) -> Bug:
    if not isinstance(table, dict):
        raise SetupError(f"program {name!r}: every bug is a table")
    bug_id = _text(name, table, "id")
    where = f"{name}/{bug_id}"
    bug = Bug(
        id=bug_id,
        summary=_text(where, table, "summary"),
        original=_text(where, table, "original"),
        text=_text(where, table, "bug"),
        siblings=_texts(where, table, "siblings"),
        padding=_texts(where, {"padding": [], **table}, "padding"),
        witness=_texts(where, table, "witness"),
    )
    if len(bug.siblings) < MIN_SIBLINGS or not bug.witness:
        raise SetupError(f"program {where!r}: a bug needs a witness and at least {MIN_SIBLINGS} siblings")
    texts = (bug.original, bug.text, *bug.siblings, *bug.padding)
    if len(set(texts)) != len(texts):
        raise SetupError(f"program {where!r}: two alternatives have the same text")
    return bug


def _site(name: str, source: str, bug: Bug) -> Site:
    count = source.count(bug.original)
    if count != 1:
        raise SetupError(f"program {name!r}: original of bug {bug.id!r} occurs {count} times in the reference")
    start = source.index(bug.original)
    alternatives = (bug.original, bug.text, *bug.siblings, *bug.padding)
    return Site(name=bug.id, start=start, end=start + len(bug.original), alternatives=alternatives)


def _text(where: str, table: dict[str, object], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SetupError(f"program {where!r}: {key!r} must be a non-empty text")
    return value


def _texts(where: str, table: dict[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise SetupError(f"program {where!r}: {key!r} must be a list of texts")
    return tuple(value)
