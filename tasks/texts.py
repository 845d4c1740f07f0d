"""The texts that runs hold: a program plain, rendered, with a bug, or doing nothing; compiled once and kept."""

from functools import cached_property, lru_cache

from autotest_env.mutation.mutant import substitute
from autotest_env.mutation.null import null_program
from autotest_env.mutation.probes import probes
from autotest_env.mutation.rendering import render
from autotest_env.sandbox.run import compile_program
from autotest_env.sandbox.suite import Program
from autotest_env.tasks.judged import Chosen
from autotest_env.tasks.program import ProgramSource

_KEPT = 4096
"""Compiled texts kept per program, plain and rendered ones each; one is a few kilobytes."""


class Texts:
    """The texts of one program on one server; `key` salts the renderings."""

    def __init__(self, program: ProgramSource, key: bytes) -> None:
        self._program = program
        self._key = key
        self._plain = lru_cache(maxsize=_KEPT)(self._substitute)
        self._rendered = lru_cache(maxsize=_KEPT)(self._render)
        self.as_written = lru_cache(maxsize=_KEPT)(self._compile)
        self.null = self._compile(null_program(program.source))

    def plain(self, chosen: Chosen) -> Program:
        """Return the program as written, with the chosen alternatives."""
        return self._plain(tuple(sorted(chosen.items())))

    def rendered(self, chosen: Chosen, rendering: int) -> Program:
        """Return the program in a rendering, with the chosen alternatives."""
        return self._rendered(tuple(sorted(chosen.items())), rendering)

    def probed(self, name: str) -> Program:
        """Return the reference with one statement perturbed; KeyError names the unknown probe."""
        return self._probes[name]

    def neutral(self, name: str) -> Program:
        """Return the reference in the form of a probe; KeyError names the probe without one."""
        return self._neutrals[name]

    @cached_property
    def _probes(self) -> dict[str, Program]:
        return {probe.name: self._compile(probe.text) for probe in probes(self._program.source)}

    @cached_property
    def _neutrals(self) -> dict[str, Program]:
        found = probes(self._program.source)
        return {probe.name: self._compile(probe.neutral) for probe in found if probe.neutral is not None}

    def _compile(self, source: str) -> Program:
        return compile_program(self._program.module, source)

    def _substitute(self, chosen: tuple[tuple[str, int], ...]) -> Program:
        return self._compile(substitute(self._program.source, self._program.sites, dict(chosen)))

    def _render(self, chosen: tuple[tuple[str, int], ...], rendering: int) -> Program:
        program = self._program
        return self._compile(render(program.source, program.sites, dict(chosen), rendering, self._key))
