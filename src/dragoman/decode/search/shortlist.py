"""Which target pieces can a source piece become? The output layer then scores those alone.

Translation probabilities by IBM model 1 (Brown et al. 1993, section 4.1), a few steps of EM on the training
pairs, `</s>` of the source being the empty word:

    c(t|s) = Σ over pairs and places  p(t|s) / Σ_s' p(t|s'),    p(t|s) = c(t|s) / Σ_t' c(t'|s)

A source piece gets its most probable target pieces and, in a joint vocabulary, itself. The most frequent
target pieces are always there. Work and memory are bounded by the number of links, which are taken from pairs
that lie evenly over the corpus.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from dragoman.errors import UserError
from dragoman.files import read_regular
from dragoman.text.tokenizer import EOS_ID

ITERATIONS = 4
MAX_LINKS = 16_000_000
LEAST_PROBABILITY = 1e-4
_FORMAT = "dragoman shortlist 1"
_CHUNK = 1 << 20
_LARGEST_FILE = 1 << 30


class IdPairStore(Protocol):
    """A store of pairs of raw ids."""

    @property
    def src_lengths(self) -> np.ndarray: ...
    @property
    def tgt_lengths(self) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def src(self, index: int) -> np.ndarray: ...
    def tgt(self, index: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Shortlist:
    """Target ids: of every sentence, and by source id."""

    always: tuple[int, ...]
    by_source: dict[int, tuple[int, ...]]
    _arrays: dict[int, np.ndarray] = field(default_factory=dict, init=False, repr=False, compare=False)

    def lines(self, src_names: Sequence[str] | None = None, tgt_names: Sequence[str] | None = None) -> str:
        """As CTranslate2's `vmap.txt` has it: a source piece, a tab, target pieces; first those of every
        sentence. Without names pieces are called by their ids."""
        source = str if src_names is None else src_names.__getitem__
        target = str if tgt_names is None else tgt_names.__getitem__
        rows = [("", self.always), *sorted((source(piece), found) for piece, found in self.by_source.items())]
        return "".join(f"{name}\t{' '.join(map(target, found))}\n" for name, found in rows)

    def of(self, source: Iterable[int]) -> set[int]:
        """The target pieces that a sentence may produce."""
        return set(self.always).union(*(self.by_source.get(piece, ()) for piece in source))

    def allowed(self, sources: Sequence[Iterable[int]], tgt_size: int) -> np.ndarray:
        """The allowed target pieces of many sentences, as one row of booleans over the target vocabulary
        each."""
        found = np.zeros((len(sources), tgt_size), dtype=bool)
        found[:, self.always] = True
        for row, source in zip(found, sources, strict=True):
            for piece in source:
                row[self._array(piece)] = True
        return found

    def _array(self, piece: int) -> np.ndarray:
        if piece not in self._arrays:
            self._arrays[piece] = np.array(self.by_source.get(piece, ()), dtype=np.int64)
        return self._arrays[piece]

    def file(self, fingerprint: str) -> bytes:
        """`shortlist.txt` of a run: the fingerprint of the data it is from, a hash, and the lines."""
        body = self.lines().encode("ascii")
        return f"{_FORMAT} {fingerprint} {hashlib.sha256(body).hexdigest()}\n".encode("ascii") + body

    @classmethod
    def read(cls, path: Path, fingerprint: str, pieces: int) -> "Shortlist":
        """That of a run, for a vocabulary of so many target pieces."""
        try:
            head, _, body = read_regular(path, _LARGEST_FILE).partition(b"\n")
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        if head.decode("ascii", "replace") != f"{_FORMAT} {fingerprint} {hashlib.sha256(body).hexdigest()}":
            raise UserError(f"{path}: damaged, or of other data; delete it, and it is computed again")
        try:
            rows = [line.split("\t") for line in body.decode("ascii").splitlines()]
            found = {source: tuple(map(int, pieces.split())) for source, pieces in rows}
            always, by_source = found.pop(""), {int(source): pieces for source, pieces in found.items()}
        except (ValueError, KeyError):
            raise UserError(f"{path}: not a list of pieces; delete it, and it is computed again") from None
        if any(not 0 <= piece < pieces for listed in (always, *by_source.values()) for piece in listed):
            raise UserError(f"{path}: for another vocabulary; delete it, and it is computed again")
        return cls(always, by_source)


def learn_shortlist(
    pairs: IdPairStore,
    sizes: tuple[int, int],
    *,
    joint: bool,
    per_piece: int = 20,
    frequent: int = 1000,
    max_links: int = MAX_LINKS,
) -> Shortlist:
    """`per_piece` targets of each source piece at most, and the `frequent` most frequent ones."""
    src_size, tgt_size = sizes
    chosen = _chosen(pairs, max_links)
    targets = [np.zeros(0, np.int64), *(pairs.tgt(index) for index in chosen)]
    counts = np.bincount(np.concatenate(targets), minlength=tgt_size)
    order = np.argsort(-counts, kind="stable")[:frequent]
    always = (EOS_ID, *(int(piece) for piece in order if counts[piece] and piece != EOS_ID))
    keys, probabilities = _model_1(pairs, chosen, tgt_size)
    found = _best(keys, probabilities, tgt_size, per_piece)
    if joint:
        for piece in range(EOS_ID + 1, src_size):
            found[piece] = tuple(dict.fromkeys((*found.get(piece, ()), piece)))
    return Shortlist(always, found)


def _chosen(pairs: IdPairStore, max_links: int) -> Sequence[int]:
    """Pairs at even distances that have about `max_links` links together."""
    links = 0
    for start in range(0, len(pairs), _CHUNK):
        part = slice(start, start + _CHUNK)
        links += int(((pairs.src_lengths[part].astype(np.int64) + 1) * pairs.tgt_lengths[part]).sum())
    stride = max(1, -(-links // max_links))
    return range(0, len(pairs), stride)


def _model_1(pairs: IdPairStore, chosen: Sequence[int], tgt_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorted keys s · V + t of all pieces that occur together, and p(t|s) of each."""
    links, places = _links(pairs, chosen, tgt_size)
    keys, link_keys = np.unique(links, return_inverse=True)
    del links
    sources = keys // tgt_size
    probabilities = np.ones(len(keys))
    for _ in range(ITERATIONS):
        per_link = probabilities[link_keys]
        per_link /= np.bincount(places, per_link)[places]
        counts = np.bincount(link_keys, per_link, len(keys))
        probabilities = counts / np.bincount(sources, counts)[sources]
    return keys, probabilities


def _links(pairs: IdPairStore, chosen: Sequence[int], tgt_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The key of each link between a source and a target place, and the number of the target place."""
    keys: list[np.ndarray] = []
    places: list[np.ndarray] = []
    place = 0
    for index in chosen:
        source = np.append(pairs.src(index).astype(np.int64), EOS_ID)
        target = pairs.tgt(index).astype(np.int64)
        keys.append((source[:, None] * tgt_size + target).ravel())
        places.append(np.tile(np.arange(place, place + len(target), dtype=np.int32), len(source)))
        place += len(target)
    if not keys:
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    return np.concatenate(keys), np.concatenate(places)


def _best(
    keys: np.ndarray, probabilities: np.ndarray, tgt_size: int, per_piece: int
) -> dict[int, tuple[int, ...]]:
    """The most probable targets of each source piece, best first."""
    sources, targets = np.divmod(keys, tgt_size)
    order = np.lexsort((targets, -probabilities, sources))
    sources, targets, probabilities = sources[order], targets[order], probabilities[order]
    first = np.searchsorted(sources, sources)  # where the entries of the same source begin
    kept = (np.arange(len(sources)) - first < per_piece) & (probabilities >= LEAST_PROBABILITY)
    found: dict[int, list[int]] = {}
    for source, target in zip(sources[kept].tolist(), targets[kept].tolist(), strict=True):
        found.setdefault(source, []).append(target)
    return {source: tuple(row) for source, row in found.items()}
