"""From a seed to a task: which methods of the shown class are buggy, and what the agent is told."""

import ast
from functools import lru_cache

from autotest_env.syntax import parse
from autotest_env.tasks.family import Shown, Task
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.program import Bug, ProgramSource
from autotest_env.tasks.prompt import ANSWER_RULE, LIMITS_RULE, code_block, import_rule
from autotest_env.tasks.seeds import CLASSIC, secret_rng

NAME = "coverage_audit"
VERSION = 1
BUGGY_METHODS = (2, 3)

_PROMPT = """\
You audit code with tests. Below is the Python module `{module}` as it stands now. Its documentation is right; two or \
three of these methods hold one bug each: {methods}.

{docs}

Write one pytest file that checks everything the documentation says, passes on the correct code, and fails on the bugs.

{import_rule}
* Assert exact expected values, worked out from the documentation and not from what the code does now.
* Every buggy method counts: each bug is put alone into the correct code, and it is caught when one of your tests \
fails on it and on similar wrong versions.
* Coverage counts too, up to 80 %: a statement is covered when an assertion of yours fails once that statement does \
something else. Running a line without checking what it does is worth nothing.
* A test that fails on correct code is a false alarm and lowers the whole score.
{limits_rule}

{code}

{answer_rule}
"""


def generate(program: ProgramSource, key: bytes, seed: int) -> Task:
    """Build the task of a seed."""
    rng = secret_rng(key, NAME, VERSION, program.name, seed)
    by_method = bugs_by_method(program)
    methods = rng.sample(list(by_method), rng.choice(BUGGY_METHODS))
    bugs = tuple(rng.choice(by_method[method]).id for method in by_method if method in methods)
    source = program.shown(bugs)
    prompt = _PROMPT.format(
        module=program.module,
        methods=", ".join(f"`{method.rpartition('.')[2]}`" for method in by_method),
        docs=program.docs,
        import_rule=import_rule(program),
        limits_rule=LIMITS_RULE,
        code=code_block(f"{program.module}.py", source),
        answer_rule=ANSWER_RULE,
    )
    return Task(
        id=f"{NAME}-v{VERSION}/{CLASSIC}/{seed}",
        family=NAME,
        seed=seed,
        shown=Shown(prompt=prompt, module_name=program.module, files={f"{program.module}.py": source}),
        secret=Secret(program=program, shown_source=source, bugs=bugs, probes=program.measured.noticed),
    )


def bugs_by_method(program: ProgramSource) -> dict[str, list[Bug]]:
    """Return the bugs of each method, e.g. ``Inventory.add_item``, in the order of the source."""
    places = {site.name: site.start for site in program.sites}
    spans = _methods(program.source)
    found = {method: [bug for bug in program.bugs if start <= places[bug.id] < end] for start, end, method in spans}
    return {method: bugs for method, bugs in found.items() if bugs}


@lru_cache(maxsize=256)  # asked for by every task
def _methods(source: str) -> tuple[tuple[int, int, str], ...]:
    """Return where each method starts and ends, in characters, and its name."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return tuple(
        (starts[node.lineno - 1], starts[node.end_lineno or node.lineno], f"{owner.name}.{node.name}")
        for owner in parse(source).body
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
    )
