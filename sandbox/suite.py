"""What goes into a run and what comes out: plain facts, no judgement.

A *suite* is the pytest file of a submission. A *run* is one suite against one text in one fresh process.
"""

from dataclasses import dataclass, field
from enum import StrEnum

MAX_SUITE_BYTES = 64 << 10
MAX_FUNCTIONS = 40
MAX_CASES = 200
MAX_MESSAGE_CHARS = 2000
MAX_ID_CHARS = 1000
MAX_CODE_BYTES = 1 << 20
"""Of a compiled suite."""
RUN_CPU_S = 2.0
"""CPU seconds of the first run."""
IDLE_S = 3.0
"""Seconds a run may do nothing, beside its CPU time."""
STEP_IDLE_S = 6.0
"""Seconds all runs of a submission may do nothing together: sleeping suites hold graders that others wait for."""
STEP_OWN_S = 16.0
"""Seconds all runs of a submission may take together: CPU and waiting, without the time they wait for a processor."""
STEP_WALL_S = 20.0
"""Wall seconds after which a submission is given up, as our failure."""

TestId = str
"""A pytest node id without its file: ``TestCart::test_total[3-4]``."""

FunctionId = str
"""A test id without its parameter set: ``TestCart::test_total``. The unit of validity."""


class TestOutcome(StrEnum):
    """How one test ended. Only PASSED is a pass."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    """Failed in its call phase."""
    ERROR = "error"
    """Failed in setup or teardown."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class RunEnd(StrEnum):
    """Every way a run can end."""

    COMPLETED = "completed"
    COLLECTION_ERROR = "collection_error"
    """The file raised while it was imported or collected."""
    NO_TESTS = "no_tests"
    TOO_MANY_FUNCTIONS = "too_many_functions"
    TOO_MANY_CASES = "too_many_cases"
    ASYNC_TESTS = "async_tests"
    PLUGINS = "plugins"
    """The suite tried to register plug-ins or hooks."""
    STOPPED = "stopped"
    """The suite ended the session: sys.exit, pytest.exit, KeyboardInterrupt."""
    EXITED = "exited"
    """The process was left without a report, e.g. by os._exit."""
    CRASHED = "crashed"
    """The process died by a signal that was not ours."""
    THREADS_LEFT = "threads_left"
    TOO_MANY_THREADS = "too_many_threads"
    DISK_LIMIT = "disk_limit"
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    OUT_OF_MEMORY = "out_of_memory"
    UNTRUSTED = "untrusted"
    """The suite read code, frames or the collector, or set a tracer."""
    GARBLED = "garbled"
    """The report is not one well-formed report: somebody wrote over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """One test's outcome in one run; `message` and `line` only where the run was asked for representations."""

    __test__ = False

    id: TestId
    outcome: TestOutcome
    asserted: bool = False
    """Failed by AssertionError or pytest's Failed, raised in the suite's own frames."""
    message: str = ""
    line: int | None = None
    """1-based line of the suite that failed."""

    @property
    def function(self) -> FunctionId:
        """The test function this case belongs to."""
        return self.id.partition("[")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """The facts of one run."""

    end: RunEnd
    tests: tuple[TestReport, ...] = ()
    detail: str = ""
    """For people, about the suite alone; empty where representations were not asked for."""
    started: int = 0
    """Where the run was stopped at a limit: how many tests had started; the last of them was running."""
    cpu_s: float = 0.0
    lines: frozenset[int] = frozenset()
    """1-based executed lines of the program; only where coverage was asked for."""


class CompileStatus(StrEnum):
    """Why a suite cannot be run at all."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    BAD_ENCODING = "bad_encoding"
    SYNTAX_ERROR = "syntax_error"
    NO_TESTS = "no_tests"
    PLUGINS = "plugins"
    TOO_COMPLEX = "too_complex"
    """Parsing or compiling it went over its own limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSuite:
    """A suite that never ran, and why; `line` (1-based) and `text` for syntax errors."""

    status: CompileStatus
    message: str
    line: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSuite:
    """A suite parsed, rewritten and compiled once; only run children unmarshal it."""

    code: bytes = field(repr=False)
    digest: str
    """SHA-256 (hex) of the AST: comments and layout do not change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One text of a program, compiled: what a single run holds."""

    module: str
    code: bytes = field(repr=False)
    """Marshalled module code object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """One run to make."""

    program: Program
    suite: CompiledSuite = field(repr=False)
    cpu_s: float = RUN_CPU_S
    represent: bool = False
    """Fill messages and lines; for the shown code only."""
    cover: bool = False
    """Record executed lines of the program; for the shown code only."""
