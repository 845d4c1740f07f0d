"""The task families, as a table of import strings, and the way from a reset's parameters to a task."""

import difflib
import re
from dataclasses import dataclass
from importlib import import_module

from autotest_env.errors import InvalidValueError, UnknownTaskError
from autotest_env.sandbox.run import Sandbox
from autotest_env.tasks.family import Family, Task
from autotest_env.tasks.seeds import CLASSIC, MAX_SEED

FAMILIES = {
    "unit_test_writer": "autotest_env.tasks.unit_test_writer.family:UnitTestWriter",
    "coverage_audit": "autotest_env.tasks.coverage_audit.family:CoverageAudit",
    "regression_audit": "autotest_env.tasks.regression_audit.family:RegressionAudit",
}
DEFAULT_FAMILY = "unit_test_writer"

_TASK_ID = re.compile(r"(?P<family>[a-z_]+)-v(?P<version>\d{1,6})/(?P<split>[a-z_]+)/(?P<index>\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What a reset asks for; `seed` and `index` are 0 to 2**63 - 1, None means: not given."""

    task_id: str | None = None
    seed: int | None = None
    split: str | None = None
    index: int | None = None
    difficulty: str | None = None


class Tasks:
    """All families of a server, loaded when asked for."""

    def __init__(self, sandbox: Sandbox, secret: bytes) -> None:
        self._sandbox = sandbox
        self._secret = secret
        self._loaded: dict[str, Family] = {}

    def family(self, name: str) -> Family:
        """Load a family by name. Raises UnknownTaskError naming the nearest one."""
        if name not in FAMILIES:
            raise UnknownTaskError(_unknown("task family", name, tuple(FAMILIES)))
        if name not in self._loaded:
            module, _, attribute = FAMILIES[name].partition(":")
            self._loaded[name] = getattr(import_module(module), attribute)(self._sandbox, self._secret)
        return self._loaded[name]

    def generate(self, request: TaskRequest, fresh_seed: int) -> Task:
        """Build the requested task; `fresh_seed` is used when neither seed nor index nor a full task id was given.

        Raises UnknownTaskError or InvalidValueError; nothing is kept of a refused request.
        """
        name, split, index = self._resolve(request)
        family = self.family(name)
        if split not in (None, CLASSIC):
            raise InvalidValueError(_unknown("split", split or "", (CLASSIC,)))
        if request.difficulty is not None:
            raise InvalidValueError(f"split {CLASSIC!r} has no difficulty tiers; leave difficulty out")
        return family.generate(fresh_seed if index is None else index)

    def _resolve(self, request: TaskRequest) -> tuple[str, str | None, int | None]:
        index = _agree(_bounded("seed", request.seed), _bounded("index", request.index))
        task_id = request.task_id
        if task_id is None or "/" not in task_id:
            return task_id or DEFAULT_FAMILY, request.split, index
        match = _TASK_ID.fullmatch(task_id)
        if match is None:
            raise UnknownTaskError(
                "task_id is not a family nor a task's own id; families: "
                f"{', '.join(FAMILIES)}; ids look like {DEFAULT_FAMILY}-v1/{CLASSIC}/17"
            )
        version = self.family(match["family"]).version
        if int(match["version"]) != version:
            raise UnknownTaskError(f"this server has {match['family']}-v{version}, not v{int(match['version'])}")
        if index not in (None, int(match["index"])) or request.split not in (None, match["split"]):
            raise InvalidValueError("task_id names one task, and seed, index or split another one; leave them out")
        return match["family"], match["split"], _bounded("task_id's index", int(match["index"]))


def _bounded(name: str, number: int | None) -> int | None:
    if number is not None and not 0 <= number <= MAX_SEED:
        raise InvalidValueError(f"{name} must be an integer from 0 to {MAX_SEED}")
    return number


def _agree(seed: int | None, index: int | None) -> int | None:
    if seed is not None and index is not None and seed != index:
        raise InvalidValueError("seed and index name different tasks; leave one of them out")
    return seed if index is None else index


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
    return f"unknown {what}; {hint}"
