"""One pytest session per fork server, prepared once; each child uses its copy for one suite and dies.

Everything that is the same for all runs happens in `prepare`: plug-ins, options, fixtures of pytest itself. Only the
submitted file counts: no conftest, no ini file, no plug-ins from outside. Tests go through pytest's own run protocol
(driving items by hand loses unittest failures); only the making of reports is replaced, because rendering one traceback
costs more than a run.
"""

import inspect
import marshal
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from io import StringIO
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal, cast

import pytest
from _pytest.config import Config, get_config
from _pytest.main import Session
from _pytest.runner import CallInfo

from autotest_env.sandbox.audit import trusted_namespaces
from autotest_env.sandbox.rewrite import SUITE_FILE
from autotest_env.sandbox.suite import MAX_CASES, MAX_FUNCTIONS, MAX_MESSAGE_CHARS, RunEnd, TestOutcome

_SUITE_MODULE = "test_suite"
_PLUGINS_OFF = "cacheprovider doctest junitxml pastebin stepwise setuponly setupplan faulthandler".split()
_PLUGINS_OFF += ["threadexception", "unraisableexception"]
_MAX_PARAMETER_IDS = 20 * MAX_CASES
_Phase = Literal["setup", "call", "teardown"]
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_FLAWS = (TestOutcome.ERROR, TestOutcome.FAILED)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A configured pytest session that has collected nothing yet."""

    config: Config
    session: Session
    recorder: "_Recorder"
    trusted: frozenset[int]
    """Namespaces of everything that was loaded before any suite."""


@dataclass(frozen=True, slots=True)
class Modules:
    """The two modules of a run: the suite and the program under test."""

    suite: ModuleType
    program: ModuleType


@dataclass(slots=True)
class Facts:
    """What a run has seen so far; turned into the header of its report."""

    end: RunEnd = RunEnd.COMPLETED
    detail: str = ""
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)


class EndRun(KeyboardInterrupt):
    """Stops the run with a named end; pytest lets a KeyboardInterrupt pass wherever it is raised."""

    def __init__(self, end: RunEnd, detail: str) -> None:
        super().__init__(end)
        self.end = end
        self.detail = detail


class _Terminal:
    """Stands where pytest looks for its terminal reporter: assertion messages ask it for a writer."""

    def __init__(self, config: Config) -> None:
        self._tw = pytest.TerminalReporter(config, StringIO())._tw


def prepare(folder: Path) -> Prepared:
    """Configure pytest once; `folder` is the working folder that every run will find itself in."""
    options = ["-q", "-s", "-c", "/dev/null", f"--rootdir={folder}", "--noconftest", f"--basetemp={folder / 'tmp'}"]
    options += ["-o", "addopts=", "--disable-plugin-autoload"]
    for name in _PLUGINS_OFF:
        options += ["-p", f"no:{name}"]
    config = get_config(options)
    config = config.pluginmanager.hook.pytest_cmdline_parse(pluginmanager=config.pluginmanager, args=options)
    config._do_configure()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Terminal(config), "terminalreporter")
    session = Session.from_config(config)
    config.hook.pytest_sessionstart(session=session)
    recorder = _Recorder(folder)
    config.pluginmanager.register(recorder, "autotest-recorder")
    return Prepared(config, session, recorder, trusted_namespaces())


def run_suite(
    prepared: Prepared, code: bytes, modules: Modules, *, represent: bool, progress: Callable[[], None]
) -> Facts:
    """Load, collect and run one suite in this process and return the facts; `progress` is called as a test starts."""
    facts = Facts()
    prepared.recorder.begin(facts, modules, represent=represent)
    prepared.config.pluginmanager.register = _refuse_plugin  # type: ignore[method-assign]
    random.seed(0)
    try:
        items = _collect(prepared.session, modules.suite, code)
        _check_items(items)
        for item, following in zip(items, [*items[1:], None], strict=True):
            progress()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        _check_threads()
    except EndRun as stop:
        facts.end, facts.detail = stop.end, stop.detail
    except (SystemExit, KeyboardInterrupt, pytest.exit.Exception) as stop:
        facts.end, facts.detail = RunEnd.STOPPED, f"the suite stopped the session: {type(stop).__name__}"
    except MemoryError:
        facts.end, facts.detail = RunEnd.OUT_OF_MEMORY, "the suite ran out of memory"
    except Exception as error:  # noqa: BLE001 - border: pytest itself breaks only on what a suite did to it
        facts.end, facts.detail = RunEnd.UNTRUSTED, f"the suite broke the test runner: {type(error).__name__}"
    if not represent:
        facts.detail = ""
    return facts


def make_module(name: str, code: bytes | None = None, file: str | None = None) -> ModuleType:
    """Make a module without a loader and without a source, register it, and run its code in it."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    if file is not None:
        module.__file__ = file
    sys.modules[name] = module
    if code is not None:
        exec(marshal.loads(code), vars(module))
    return module


def suite_module() -> ModuleType:
    """Make the empty module that the suite will be loaded into."""
    return make_module(_SUITE_MODULE, file=str(Path.cwd() / SUITE_FILE))


class _SuiteFile(pytest.Module):
    """The submitted file, already loaded."""

    suite: ModuleType

    def _getobj(self) -> ModuleType:
        return self.suite


def _collect(session: Session, suite: ModuleType, code: bytes) -> list[pytest.Item]:
    try:
        exec(marshal.loads(code), vars(suite))
    except pytest.skip.Exception as error:
        raise EndRun(RunEnd.COLLECTION_ERROR, f"the file skips itself: {error}") from error
    except (SystemExit, KeyboardInterrupt, pytest.exit.Exception):
        raise
    except MemoryError as error:
        raise EndRun(RunEnd.OUT_OF_MEMORY, "the file ran out of memory while it was imported") from error
    except BaseException as error:  # border: whatever the submitted file raises while it is imported
        raise EndRun(RunEnd.COLLECTION_ERROR, _import_problem(error, suite, session)) from error
    if hasattr(suite, "pytest_plugins"):
        raise EndRun(RunEnd.PLUGINS, "pytest_plugins is not allowed: only the submitted file counts")
    node = _SuiteFile.from_parent(session, path=Path.cwd() / SUITE_FILE)
    node.suite = suite
    items = list(session.genitems(node))
    session.items = items
    session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
    return items


def _import_problem(error: BaseException, suite: ModuleType, session: Session) -> str:
    line = _suite_line(error.__traceback__, suite)
    where = f"line {line}: " if line else ""
    return _steady(f"{where}{type(error).__name__}: {error}", str(session.config.rootpath))


def _steady(text: str, folder: str) -> str:
    """Cap a message and take out what differs from run to run: memory addresses and the run's folder."""
    return _ADDRESS.sub("0x...", text[: 2 * MAX_MESSAGE_CHARS].replace(folder, "."))[:MAX_MESSAGE_CHARS]


def _check_items(items: list[pytest.Item]) -> None:
    if not items:
        raise EndRun(RunEnd.NO_TESTS, "no test was found; name functions test_... and classes Test...")
    functions = {item.nodeid.partition("[")[0] for item in items}
    if len(functions) > MAX_FUNCTIONS:
        raise EndRun(RunEnd.TOO_MANY_FUNCTIONS, f"{len(functions)} test functions, at most {MAX_FUNCTIONS} are allowed")
    if len(items) > MAX_CASES:
        raise EndRun(RunEnd.TOO_MANY_CASES, f"{len(items)} test cases, at most {MAX_CASES} are allowed")
    for item in items:
        function = getattr(item, "obj", None)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or _is_async_case(item):
            raise EndRun(RunEnd.ASYNC_TESTS, "async tests are not run; call asyncio.run(...) inside a plain test")


def _is_async_case(item: pytest.Item) -> bool:
    owner = getattr(item, "cls", None)
    asyncio_case = getattr(sys.modules.get("unittest.async_case"), "IsolatedAsyncioTestCase", None)
    return owner is not None and asyncio_case is not None and issubclass(owner, asyncio_case)


def _check_threads() -> None:
    left = threading.active_count() - 1
    if left:
        raise EndRun(RunEnd.THREADS_LEFT, f"{left} thread(s) of the suite were still running at the end; join them")


def _refuse_plugin(*_: object, **__: object) -> None:
    raise EndRun(RunEnd.PLUGINS, "registering plug-ins is not allowed: only the submitted file counts")


class _Recorder:
    """A plug-in that keeps one record per test instead of pytest's reports."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._represent = False
        self._parameter_ids = 0

    def begin(self, facts: Facts, modules: Modules, *, represent: bool) -> None:
        """Record one suite into `facts`."""
        self._facts = facts
        self._suite = modules.suite
        self._program = modules.program
        self._represent = represent

    def pytest_runtest_makereport(self, item: pytest.Item, call: CallInfo[None]) -> pytest.TestReport:
        """Make a report without a traceback.

        Runs before pytest's own maker, but after unittest's hook (tryfirst), which hands over the failures of test
        cases, and inside the wrapper for xfail.
        """
        report = pytest.TestReport(item.id, item.location, {}, "passed", None, cast("_Phase", call.when))
        record = self._facts.tests.setdefault(_name(item), {"outcome": TestOutcome.PASSED})
        if call.excinfo is not None:
            error = call.excinfo.value
            if isinstance(error, SystemExit):
                raise error
            skipped = isinstance(error, pytest.skip.Exception)
            report.outcome = "skipped" if skipped else "failed"
            report.longrepr = (SUITE_FILE, 0, "skipped") if skipped else "failed"
            self._note(record, error)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of a test's phases and subtests."""
        record = self._facts.tests[report.nodeid.partition("::")[2]]
        if hasattr(report, "wasxfail"):
            outcome = TestOutcome.XFAILED if report.skipped else TestOutcome.XPASSED
        elif report.failed:
            outcome = TestOutcome.FAILED if report.when == "call" else TestOutcome.ERROR
        elif report.skipped:
            outcome = TestOutcome.SKIPPED
        else:
            return
        if record["outcome"] not in _FLAWS:
            record["outcome"] = outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A part of the file that cannot be collected makes the whole file uncollectable."""
        if not report.passed:
            raise EndRun(
                RunEnd.COLLECTION_ERROR, f"pytest could not collect the file: {report.longrepr}"[:MAX_MESSAGE_CHARS]
            )

    def pytest_make_parametrize_id(self) -> None:
        """Count parameter sets while they are made: a million of them must not be made first."""
        self._parameter_ids += 1
        if self._parameter_ids > _MAX_PARAMETER_IDS:
            raise EndRun(RunEnd.TOO_MANY_CASES, f"more than {MAX_CASES} test cases, at most {MAX_CASES} are allowed")

    def _note(self, record: dict[str, Any], error: BaseException) -> None:
        if "message" in record:
            return
        record["asserted"] = isinstance(error, AssertionError | pytest.fail.Exception) and self._is_from_suite(error)
        record["message"] = ""
        if self._represent:
            record["message"] = _steady(f"{type(error).__name__}: {error}", self._folder)
            record["line"] = _suite_line(error.__traceback__, self._suite)

    def _is_from_suite(self, error: BaseException) -> bool:
        """Whether the innermost frame that is the suite's or the program's is the suite's."""
        owner = None
        for frames in _links(error.__traceback__):
            if frames.tb_frame.f_globals is vars(self._suite):
                owner = self._suite
            elif frames.tb_frame.f_globals is vars(self._program):
                owner = self._program
        return owner is self._suite


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


def _suite_line(trace: TracebackType | None, suite: ModuleType) -> int | None:
    lines = [link.tb_lineno for link in _links(trace) if link.tb_frame.f_globals is vars(suite)]
    return lines[-1] if lines else None


def _links(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
