"""From a seed to a task: which three bugs the shown module holds, and what the agent is told."""

from itertools import combinations

from autotest_env.tasks.family import Shown, Task
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.program import ProgramSource
from autotest_env.tasks.prompt import ANSWER_RULE, LIMITS_RULE, code_block, import_rule
from autotest_env.tasks.seeds import CLASSIC, secret_rng

NAME = "unit_test_writer"
VERSION = 1
BUGS_PER_TASK = 3

_PROMPT = """\
You write tests. Below is the Python module `{module}` as it stands now. Its documentation is right; its code holds \
{count} bugs.

{docs}

Write one pytest file that passes on the correct code, as documented, and fails on the bugs.

{import_rule}
* Assert exact expected values, worked out from the documentation and not from what the code does now.
* Every bug counts: each is put alone into the correct code, and a bug is caught when one of your tests fails on it \
and on similar wrong versions.
* A test that fails on correct code is a false alarm and lowers the whole score.
{limits_rule}

{code}

{answer_rule}
"""


def generate(program: ProgramSource, key: bytes, seed: int) -> Task:
    """Build the task of a seed."""
    rng = secret_rng(key, NAME, VERSION, program.name, seed)
    bugs = rng.choice(list(combinations([bug.id for bug in program.bugs], BUGS_PER_TASK)))
    source = program.shown(bugs)
    prompt = _PROMPT.format(
        module=program.module,
        count=BUGS_PER_TASK,
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
        secret=Secret(program=program, bugs=bugs, shown_source=source),
    )
