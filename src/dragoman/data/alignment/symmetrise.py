"""Join the alignments of both directions into one: grow-diag-final-and (Koehn et al. 2003).

Links found in both directions are mostly right; links found in one direction are often missing from the
other. The algorithm starts with the links found in both. It then adds neighbouring links, diagonal ones
included, that one direction has and that reach a word without a link. Finally it adds links between two words
that both have no link.
"""

from collections.abc import Iterable

Link = tuple[int, int]
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def grow_diag_final_and(forward: Iterable[Link], backward: Iterable[Link]) -> list[Link]:
    """Links (source, target) of both directions, given in this order, as one sorted list."""
    forward, backward = sorted(set(forward)), sorted(set(backward))
    union = {*forward, *backward}
    links = set(forward) & set(backward)
    sources, targets = {s for s, _ in links}, {t for _, t in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    waiting = sorted(links)
    while waiting:
        grown: list[Link] = []
        for source, target in waiting:
            for down, right in _NEIGHBOURS:
                link = source + down, target + right
                if link in union and link not in links and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    grown.append(link)
        waiting = grown  # words only gain links, so a link rejected before stays rejected
    for link in (*forward, *backward):
        if link[0] not in sources and link[1] not in targets:
            add(link)
    return sorted(links)
