"""Word alignments of training data: computed from the text alone, written to and read from files."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from dragoman.data.alignment.expectation import OrderedMap
from dragoman.data.alignment.model import Direction, learn_together, make_blocks
from dragoman.text.segment import nfc
from dragoman.text.word_boundaries import units

Link = tuple[int, int]
MOST_CELLS = 1 << 20
"""Largest number of source words × target words in a pair that is aligned. A longer pair gets no links."""
STEM = 5
"""Number of letters of a word that are compared. Rare forms share statistics with frequent ones."""
ITERATIONS = 5
"""Number of EM iterations of each of the two models."""

StepProgress = Callable[[int], None]
"""Called with the number of each completed step."""


class Words:
    """The vocabulary of one side. Words are split into parts: punctuation is separate, case is folded, and
    parts are cut after five letters. «Haus.» and «haus» therefore share a part, and so do most forms of one
    word."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[int, ...]] = {}
        self._ids: dict[str, int] = {}

    def read(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of the parts, and the index of the word that each part belongs to."""
        rows = [self._parts.get(word) or self._split(word) for word in text.split()]
        return list(chain.from_iterable(rows)), [number for number, row in enumerate(rows) for _ in row]

    def _split(self, word: str) -> tuple[int, ...]:
        whole = nfc(word)
        names = [whole[start:end].casefold()[:STEM] for start, end in units(whole)]
        self._parts[word] = tuple(self._ids.setdefault(name, len(self._ids)) for name in names)
        return self._parts[word]


class CorpusAligner:
    """Learns the word alignment of a corpus in both directions, and joins them. `each` computes the blocks of
    pairs, here or on other machines."""

    def __init__(self, pairs: Iterable[tuple[str, str]], each: OrderedMap = map) -> None:
        self._each = each
        src_words, tgt_words = Words(), Words()
        self._places: list[tuple[list[int], list[int]]] = []
        self.too_long: list[int] = []
        """Indices of the pairs that are too long to be aligned."""
        rows: list[tuple[list[int], list[int]]] = []
        for number, (src, tgt) in enumerate(pairs):
            (src_ids, src_places), (tgt_ids, tgt_places) = src_words.read(src), tgt_words.read(tgt)
            if len(src_ids) * len(tgt_ids) > MOST_CELLS:
                self.too_long.append(number)
                src_ids = tgt_ids = []
            rows.append((src_ids, tgt_ids))
            self._places.append((src_places, tgt_places))
        blocks, table = make_blocks(rows)
        self.forward = Direction(blocks, table)
        """p(target | source)."""
        self.backward = Direction([block.turned() for block in blocks], table.turned())

    def learn(self, iterations: int = ITERATIONS, progress: StepProgress | None = None) -> None:
        """Run EM: `iterations` steps with the diagonal prior, each direction on its own, then as many with
        the jump model, in which the two directions have to agree."""
        for step in range(2 * iterations):
            if step < iterations:
                self.forward.learn(self._each)
                self.backward.learn(self._each)
            else:
                if step == iterations:
                    self.forward.follow_jumps()
                    self.backward.follow_jumps()
                learn_together(self.forward, self.backward, self._each)
            if progress is not None:
                progress(step + 1)

    def links(self) -> Iterator[list[Link]]:
        """The links (source word, target word) of every pair, in order."""
        sources, targets = (dict(one.best(self._each)) for one in (self.forward, self.backward))
        for number, (of_src, of_tgt) in enumerate(self._places):
            if number not in sources:
                yield []
                continue
            forward = [(s, t) for t, s in enumerate(sources[number].tolist()) if s >= 0]
            backward = [(s, t) for s, t in enumerate(targets[number].tolist()) if t >= 0]
            joined = grow_diag_final_and(forward, backward)
            yield sorted({(of_src[s], of_tgt[t]) for s, t in joined})


_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def grow_diag_final_and(forward: Iterable[Link], backward: Iterable[Link]) -> list[Link]:
    """Links (source, target) of both directions, given in this order, as one sorted list (Koehn et al. 2003).

    Links found in both directions are mostly right; links found in one direction are often missing from the
    other. The algorithm starts with the links found in both. It then adds neighbouring links, diagonal ones
    included, that one direction has and that reach a word without a link. Finally it adds links between two
    words that both have no link.
    """
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
