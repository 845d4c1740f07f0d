"""Bugs as edits of source text: the places of a program that can hold one, and what may stand there."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One place of a program: a span of its reference source and the texts that may stand there.

    `start` and `end` are character offsets into the reference; `alternatives[0]` is the reference's own text,
    `alternatives[1]` the bug's, the others its siblings'. Sites of a program do not overlap.
    """

    name: str = field(repr=False)
    start: int
    end: int
    alternatives: tuple[str, ...] = field(repr=False)


def substitute(source: str, sites: tuple[Site, ...], chosen: dict[str, int]) -> str:
    """Return the source with `chosen[site.name]` (default 0, the reference) standing at each site.

    Everything outside the sites stays byte-identical.
    """
    text = source
    for site in sorted(sites, key=lambda site: site.start, reverse=True):
        text = text[: site.start] + site.alternatives[chosen.get(site.name, 0)] + text[site.end :]
    return text
