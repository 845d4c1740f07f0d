"""The parts of a prompt that families share."""

from autotest_env.sandbox.suite import MAX_CASES, MAX_FUNCTIONS, MAX_SUITE_BYTES
from autotest_env.tasks.program import ProgramSource

LIMITS_RULE = (
    f"* At most {MAX_FUNCTIONS} test functions, {MAX_CASES} cases, {MAX_SUITE_BYTES >> 10} KiB. "
    "No network, no other files, no plug-ins."
)
ANSWER_RULE = "Answer with the complete file in one ```python block."


def import_rule(program: ProgramSource) -> str:
    """Return how tests reach the code."""
    return f"* Import the module by name, e.g. `from {program.module} import {program.public_names[0]}`."


def code_block(name: str, source: str) -> str:
    """Return a file as a prompt shows it."""
    return f"```python\n# {name}\n{source}```"
