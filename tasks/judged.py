"""What of a task is judged; it never leaves the server process."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autotest_env.tasks.program import ProgramSource

Chosen = Mapping[str, int]
"""Site name to alternative: 0, the default, is the reference's text, 1 the bug's, 2 and up its siblings'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The program, what is correct in this task, and what is wrong."""

    program: ProgramSource = field(repr=False)
    shown_source: str = field(repr=False)
    bugs: tuple[str, ...] = field(repr=False)
    """Ids of the places that hold a bug; a change that is not made counts as one."""
    correct: Chosen = field(default_factory=dict, repr=False)
    """The correct program of this task: the reference, or the reference with an intentional change."""
    probes: tuple[str, ...] = field(default=(), repr=False)
    """Names of the probes by which coverage is checked."""

    def wrong(self, bug: str, number: int) -> Chosen:
        """Return the correct program with one place made wrong: by the bug (number 0) or a sibling (1 and up).

        What is correct at that place, the reference's text or the change's, is not among the wrong ones.
        """
        as_bug = 0 if self.correct.get(bug, 0) else 1
        return {**self.correct, bug: as_bug if number == 0 else 1 + number}

    def siblings(self, bug: str) -> int:
        """Return how many siblings a bug has."""
        return len(self.program.bug(bug).siblings)
