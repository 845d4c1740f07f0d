"""The texts that runs hold: a program plain, rendered, with a bug, or doing nothing; compiled once and kept."""

from collections.abc import Mapping
from functools import lru_cache

from autotest_env.mutation.mutant import substitute
from autotest_env.mutation.null import null_program
from autotest_env.mutation.rendering import render
from autotest_env.sandbox.run import compile_program
from autotest_env.sandbox.suite import Program
from autotest_env.tasks.program import ProgramSource

_KEPT = 4096
"""Compiled texts kept per program, plain and rendered ones each; one is a few kilobytes."""

Chosen = Mapping[str, int]
"""Site name to alternative; 0, the default, is the reference, 1 the bug, 2 and up its siblings."""


class Texts:
    """The texts of one program on one server; `key` salts the renderings."""

    def __init__(self, program: ProgramSource, key: bytes) -> None:
        self._program = program
        self._key = key
        self._plain = lru_cache(maxsize=_KEPT)(self._substitute)
        self._rendered = lru_cache(maxsize=_KEPT)(self._render)
        self.null = compile_program(program.module, null_program(program.source))
        self.reference = self.plain({})

    def plain(self, chosen: Chosen) -> Program:
        """Return the program as written, with the chosen alternatives."""
        return self._plain(tuple(sorted(chosen.items())))

    def rendered(self, chosen: Chosen, rendering: int) -> Program:
        """Return the program in a rendering, with the chosen alternatives."""
        return self._rendered(tuple(sorted(chosen.items())), rendering)

    def _substitute(self, chosen: tuple[tuple[str, int], ...]) -> Program:
        program = self._program
        return compile_program(program.module, substitute(program.source, program.sites, dict(chosen)))

    def _render(self, chosen: tuple[tuple[str, int], ...], rendering: int) -> Program:
        program = self._program
        text = render(program.source, program.sites, dict(chosen), rendering, self._key)
        return compile_program(program.module, text)
