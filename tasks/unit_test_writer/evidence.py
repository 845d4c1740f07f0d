"""Which runs a submission needs, in which order, and their facts. Runs things, judges nothing.

Caches of the machine remember what a run did (see `sandbox.confine`, not covered), so a suite may find out whether it
is the first to run, or what earlier ones returned. Therefore correct and wrong programs are mixed in every phase, and
the first phase holds one correct program among seven: whoever takes a run for the correct one is right once in seven.
Only the shown code and the null program, which a suite can recognise anyway, are run before.
"""

import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from autotest_env.mutation.rendering import catalogue
from autotest_env.sandbox.run import Grading
from autotest_env.sandbox.suite import RUN_CPU_S, CompiledSuite, Program, RunJob, SuiteResult
from autotest_env.tasks.judging import TIME_FACTOR, BugRuns, Evidence, failing, failure, judge
from autotest_env.tasks.texts import Texts
from autotest_env.tasks.unit_test_writer.generate import Secret

DECOYS = 5
SIBLINGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Which renderings a submission meets: of the reference, of each bug (two), of each sibling."""

    decoys: tuple[int, ...] = field(repr=False)
    bugs: Mapping[str, tuple[int, int]] = field(repr=False)
    siblings: Mapping[str, tuple[int, ...]] = field(repr=False)


def draw(bugs: tuple[str, ...], rng: random.Random) -> Draw:
    """Draw renderings: always a decoy with chaff and one free of the reference's own tokens; a bug once with chaff."""
    chaff = [each.number for each in catalogue() if each.chaff]
    plain = [each.number for each in catalogue() if not each.chaff]
    free = [each.number for each in catalogue() if each.token_free]
    decoys = [rng.choice(chaff), rng.choice(free)]
    others = [each.number for each in catalogue() if each.number not in decoys]
    decoys += rng.sample(others, DECOYS - len(decoys))
    numbers = chaff + plain
    return Draw(
        decoys=tuple(decoys),
        bugs={bug: (rng.choice(plain), rng.choice(chaff)) for bug in bugs},
        siblings={bug: tuple(rng.choice(numbers) for _ in range(SIBLINGS)) for bug in bugs},
    )


def collect(secret: Secret, suite: CompiledSuite, grading: Grading, texts: Texts, rng: random.Random) -> Evidence:
    """Make the runs of a submission; those that cannot change the score any more are left out."""
    drawn = draw(secret.bugs, rng)
    runs = _Runs(suite, grading, rng)
    program = texts.plain(dict.fromkeys(secret.bugs, 1))
    shown, null = grading.run(
        [
            RunJob(program=program, suite=suite, represent=True, cover=True),
            RunJob(program=texts.null, suite=suite),
        ]
    )
    evidence = Evidence(shown=shown, null=null, bug_count=len(secret.bugs))
    if failure(evidence) is None:
        evidence = _first_phase(evidence, drawn, runs, texts)
        if failure(evidence) is None and judge(evidence).asserting:
            evidence = _second_phase(evidence, drawn, runs, texts)
    return replace(evidence, out_of_time=grading.is_used_up)


def _first_phase(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """The reference, each bug and each bug's first sibling."""
    wanted: dict[Hashable, Program] = {"reference": texts.reference}
    for bug, (rendering, _) in drawn.bugs.items():
        wanted["bug", bug] = texts.rendered({bug: 1}, rendering)
        wanted["sibling", bug] = texts.rendered({bug: 2}, drawn.siblings[bug][0])
    results = runs.make(wanted, RUN_CPU_S)
    bugs = tuple(
        BugRuns(bug=bug, renderings=(results["bug", bug],), siblings=(results["sibling", bug],)) for bug in drawn.bugs
    )
    return replace(evidence, reference=(results["reference"],), bugs=bugs)


def _second_phase(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """The decoys, the reference again, and of each bug that was noticed its other rendering and other siblings."""
    first, asserting = evidence.reference[0], judge(evidence).asserting
    noticed = [each.bug for each in evidence.bugs if asserting & failing(each.renderings[0], first)]
    wanted: dict[Hashable, Program] = {"reference": texts.reference}
    wanted |= {("decoy", number): texts.rendered({}, number) for number in drawn.decoys}
    for bug in noticed:
        wanted["bug", bug] = texts.rendered({bug: 1}, drawn.bugs[bug][1])
        for number in range(1, SIBLINGS):
            wanted["sibling", bug, number] = texts.rendered({bug: 2 + number}, drawn.siblings[bug][number])
    results = runs.make(wanted, TIME_FACTOR * RUN_CPU_S)
    bugs = tuple(
        replace(
            each,
            renderings=(*each.renderings, results["bug", each.bug]),
            siblings=(*each.siblings, *(results["sibling", each.bug, number] for number in range(1, SIBLINGS))),
        )
        if each.bug in noticed
        else each
        for each in evidence.bugs
    )
    decoys = tuple(results["decoy", number] for number in drawn.decoys)
    return replace(evidence, bugs=bugs, decoys=decoys, reference=(first, results["reference"]))


@dataclass(frozen=True, slots=True)
class _Runs:
    """Makes named runs of one suite in secret order."""

    suite: CompiledSuite
    grading: Grading
    rng: random.Random

    def make(self, wanted: Mapping[Hashable, Program], cpu_s: float) -> dict[Hashable, SuiteResult]:
        order = list(wanted)
        self.rng.shuffle(order)
        jobs = [RunJob(program=wanted[name], suite=self.suite, cpu_s=cpu_s) for name in order]
        return dict(zip(order, self.grading.run(jobs), strict=True))
