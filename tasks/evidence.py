"""Which runs a submission needs, in which order, and their facts. Runs things, judges nothing.

Caches of the machine remember what a run did (see `sandbox.confine`, not covered), so a suite may find out whether it
is the first to run, or what earlier ones returned. Therefore correct and wrong programs are mixed in every phase, and
the first phase holds one correct program among at least seven: whoever takes a run for the correct one is right once
in seven. Only the shown code and the null program, which a suite can recognise anyway, are run before.
"""

import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from autotest_env.mutation.probes import has_neutral
from autotest_env.mutation.rendering import catalogue
from autotest_env.sandbox.run import Grading
from autotest_env.sandbox.suite import RUN_CPU_S, CompiledSuite, Program, RunJob, SuiteResult
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.judging import TIME_FACTOR, BugRuns, Evidence, failing, failure, judge
from autotest_env.tasks.texts import Texts

DECOYS = 5
SIBLINGS = 3
MAX_PROBES = 30
NEUTRALS = 3
"""Probes that also run in their neutral form, as decoys: a test that tells a third of all probes by their form
survives in 3 of 10 submissions."""
RENDERING_COST = 40
"""A rendering took up to 30 times the CPU seconds of the program as written, where a suite did nothing else."""
LEAST_CPU_S = 1.5
"""What a run of the second phase may take at least; honest loops hang on some wrong programs, each of them as long."""
FIRST_WRONG = 6
"""Wrong programs in the first phase, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Which renderings a submission meets: of the reference, of each bug (two), of each sibling.

    And which probes, and which of them in neutral form.
    """

    decoys: tuple[int, ...] = field(repr=False)
    bugs: Mapping[str, tuple[int, int]] = field(repr=False)
    siblings: Mapping[str, tuple[int, ...]] = field(repr=False)
    probes: tuple[str, ...] = field(repr=False)
    neutrals: tuple[str, ...] = field(repr=False)


def draw(secret: Secret, rng: random.Random) -> Draw:
    """Draw renderings: always a decoy with chaff and one free of the reference's own tokens; a bug once with chaff."""
    chaff = [each.number for each in catalogue() if each.chaff]
    plain = [each.number for each in catalogue() if not each.chaff]
    free = [each.number for each in catalogue() if each.token_free]
    decoys = [rng.choice(chaff), rng.choice(free)]
    others = [each.number for each in catalogue() if each.number not in decoys]
    decoys += rng.sample(others, DECOYS - len(decoys))
    numbers = chaff + plain
    bugs = {bug: (rng.choice(plain), rng.choice(chaff)) for bug in secret.bugs}
    siblings = {bug: tuple(rng.choice(numbers) for _ in range(SIBLINGS)) for bug in secret.bugs}
    probes = rng.sample(secret.probes, min(MAX_PROBES, len(secret.probes)))
    formed = [name for name in probes if has_neutral(name)]
    return Draw(
        decoys=tuple(decoys),
        bugs=bugs,
        siblings=siblings,
        probes=tuple(probes),
        neutrals=tuple(rng.sample(formed, min(NEUTRALS, len(formed)))),
    )


def collect(secret: Secret, suite: CompiledSuite, grading: Grading, texts: Texts, rng: random.Random) -> Evidence:
    """Make the runs of a submission; those that cannot change the score any more are left out."""
    phases = _Phases(secret, texts, suite, grading, rng)
    shown, null = grading.run(
        [
            RunJob(program=texts.as_written(secret.shown_source), suite=suite, represent=True, cover=True),
            RunJob(program=texts.null, suite=suite),
        ]
    )
    evidence = Evidence(shown=shown, null=null, bug_count=len(secret.bugs))
    if failure(evidence) is None:
        evidence = phases.first(evidence)
        if failure(evidence) is None and judge(evidence).asserting:
            evidence = phases.second(evidence)
    return replace(evidence, out_of_time=grading.is_used_up)


class _Phases:
    """The runs of one submission whose order is secret."""

    def __init__(
        self, secret: Secret, texts: Texts, suite: CompiledSuite, grading: Grading, rng: random.Random
    ) -> None:
        self._secret = secret
        self._texts = texts
        self._suite = suite
        self._grading = grading
        self._rng = rng
        self._drawn = draw(secret, rng)
        bugs = max(1, len(secret.bugs))
        self._early = min(SIBLINGS - 1, max(1, -(-FIRST_WRONG // bugs) - 1))

    def first(self, evidence: Evidence) -> Evidence:
        """The correct program, each bug, and a first sibling or two of each bug."""
        wanted: dict[Hashable, Program] = {"reference": self._texts.plain(self._secret.correct)}
        for bug in self._secret.bugs:
            wanted["bug", bug] = self._wrong(bug, 0, self._drawn.bugs[bug][0])
            wanted |= self._siblings(bug, range(self._early))
        results = self._make(wanted, RUN_CPU_S)
        bugs = tuple(
            BugRuns(bug=bug, renderings=(results["bug", bug],), siblings=self._of(bug, results))
            for bug in self._secret.bugs
        )
        return replace(evidence, reference=(results["reference"],), bugs=bugs)

    def second(self, evidence: Evidence) -> Evidence:
        """The decoys, the correct program again, of each bug that was noticed the rest; and the probes."""
        first, asserting = evidence.reference[0], judge(evidence).asserting
        noticed = [each.bug for each in evidence.bugs if asserting & failing(each.renderings[0], first)]
        wanted: dict[Hashable, Program] = {"reference": self._texts.plain(self._secret.correct)}
        wanted |= {
            ("decoy", number): self._texts.rendered(self._secret.correct, number) for number in self._drawn.decoys
        }
        for bug in noticed:
            wanted["bug", bug] = self._wrong(bug, 0, self._drawn.bugs[bug][1])
            wanted |= self._siblings(bug, range(self._early, SIBLINGS))
        if noticed or not evidence.bugs:
            wanted |= {("probe", name): self._texts.probed(name) for name in self._drawn.probes}
            wanted |= {("neutral", name): self._texts.neutral(name) for name in self._drawn.neutrals}
        cpu_s = min(TIME_FACTOR * RUN_CPU_S, max(LEAST_CPU_S, RENDERING_COST * first.cpu_s))
        results = self._make(wanted, cpu_s)
        bugs = tuple(
            replace(
                each,
                renderings=(*each.renderings, results["bug", each.bug]),
                siblings=(*each.siblings, *self._of(each.bug, results)),
            )
            if each.bug in noticed
            else each
            for each in evidence.bugs
        )
        return replace(
            evidence,
            bugs=bugs,
            decoys=_of_kind(results, "decoy") + _of_kind(results, "neutral"),
            reference=(first, results["reference"]),
            probes=_of_kind(results, "probe"),
        )

    def _wrong(self, bug: str, number: int, rendering: int) -> Program:
        return self._texts.rendered(self._secret.wrong(bug, number), rendering)

    def _siblings(self, bug: str, numbers: range) -> dict[Hashable, Program]:
        renderings = self._drawn.siblings[bug]
        return {
            ("sibling", bug, number): self._wrong(bug, 1 + number, renderings[number])
            for number in numbers
            if number < self._secret.siblings(bug)
        }

    def _of(self, bug: str, results: Mapping[Hashable, SuiteResult]) -> tuple[SuiteResult, ...]:
        named = (("sibling", bug, number) for number in range(SIBLINGS))
        return tuple(results[name] for name in named if name in results)

    def _make(self, wanted: Mapping[Hashable, Program], cpu_s: float) -> dict[Hashable, SuiteResult]:
        """Make named runs in secret order."""
        order = list(wanted)
        self._rng.shuffle(order)
        jobs = [RunJob(program=wanted[name], suite=self._suite, cpu_s=cpu_s) for name in order]
        return dict(zip(order, self._grading.run(jobs), strict=True))


def _of_kind(results: Mapping[Hashable, SuiteResult], kind: str) -> tuple[SuiteResult, ...]:
    return tuple(result for name, result in results.items() if isinstance(name, tuple) and name[0] == kind)
