"""Training sources with terms: a part of the pairs has words of its target beside those of its source.

    A <term> ladder <as> Leiter </term> leans on the wall.       the form that the target has
    Two <term> ladders <as> Leiter </term> lean on the wall.     another form: the target has «Leitern»

Which words belong together is learnt from the corpus itself by the word aligner. Other forms are those that
the corpus has for the same source word and that look like the one of this target; a word that the corpus has
in one form only gets the ending of another one, exchanged as the other words show it. So a model learns to
take the word from the source and the form from the sentence (Dinu et al. 2019, Bergmanis & Pinnis 2021).

Each draw is a pure function of (seed, epoch, number of the pair).
"""

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np

from dragoman.data.alignment import CorpusAligner
from dragoman.data.seeded_random import uniform_each
from dragoman.data.store import IdPair, PairStore
from dragoman.errors import UserError
from dragoman.text.source_additions import TERM_PIECES, SpeltTerm, between, pieces_in, spelt
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import has_phrase
from dragoman.text.word_forms import are_forms, common_beginning, word_runs

_ALIGNED = 10_000
"""Pairs that terms are learnt from."""
_ITERATIONS = 2
_LONGEST = 3
"""Words of a term, on either side."""
_LEAST_LETTERS = 3
_FREQUENT = 0.1
"""Words in more than this share of the sentences are no terms by themselves."""
_LEAST_SHARE = 0.1
"""Of the places of a source term, for a translation of it."""
_MOST_TERMS = 3
"""Of one sentence."""
_OTHER_FORM = 0.5
"""Share of the terms that are given in another form."""
_STEM = 4
"""Letters that the forms of a source word have in common."""
_LONGEST_ENDING = 3
_LEAST_EXCHANGES = 3
"""Words that show that two endings belong to one word."""
_MOST_KNOWN = 100_000
"""Pairs whose terms are kept from epoch to epoch, in about a kilobyte each."""
_DRAWS = 1 + 3 * _MOST_TERMS
"""Of one sentence: how many terms, and for each which one, whether in another form, in which."""
_MOST_SPELT = 50_000
"""Forms whose pieces are kept."""
_KEY = 0x7E3

TermKey = tuple[str, ...]
FoundTerm = tuple[int, int, str, TermKey]
"""A term at `text[start:end]`, its translation, and its key in the lexicon."""


@dataclass(frozen=True)
class _Read:
    """A text and its words."""

    text: str
    words: list[tuple[str, int, int]]

    @classmethod
    def of(cls, text: str) -> "_Read":
        return cls(text, word_runs(text))

    def key(self, first: int, end: int) -> TermKey:
        return tuple(word.casefold() for word, _, _ in self.words[first:end])

    def part(self, first: int, end: int) -> str:
        return self.text[self.words[first][1] : self.words[end - 1][2]]

    def joined(self, first: int, end: int) -> bool:
        """Whether only a space stands between these words."""
        return " ".join(word for word, _, _ in self.words[first:end]) == self.part(first, end)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Words that only a space stands between, at most `_LONGEST` of them; the longest first."""
        joined = [self.text[one[2] : other[1]] == " " for one, other in pairwise(self.words)]
        for first in range(len(self.words)):
            end = first + 1
            while end < min(first + _LONGEST, len(self.words)) and joined[end - 1]:
                end += 1
            yield from ((first, last) for last in range(end, first, -1))


class TermLexicon:
    """Terms of a corpus with the forms of their translations."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        read = [(_Read.of(src), _Read.of(tgt)) for src, tgt in pairs]
        found: dict[TermKey, Counter[str]] = defaultdict(Counter)
        frequent = [_frequent(side) for side in zip(*read, strict=True)] or [set(), set()]
        aligner = CorpusAligner((_spaced(src), _spaced(tgt)) for src, tgt in read)
        aligner.learn(_ITERATIONS)
        places: Counter[TermKey] = Counter()
        for (src, tgt), links in zip(read, aligner.links(), strict=True):
            for first, end in src.runs():
                places[src.key(first, end)] += 1
                target = _target(first, end, links)
                if (
                    target is None
                    or _plain(src, first, end, frequent[0])
                    or _plain(tgt, *target, frequent[1])
                ):
                    continue
                found[src.key(first, end)][tgt.part(*target)] += 1
        self.targets: dict[TermKey, tuple[str, ...]] = {}
        """Of each term of the source, most frequent first."""
        self._families: dict[TermKey, set[str]] = defaultdict(set)
        for key, counts in found.items():
            kept = [
                target
                for target, count in counts.most_common()
                if count >= _LEAST_SHARE * places[key] and (count > 1 or len(key) == len(target.split()) == 1)
            ]
            if kept:
                self.targets[key] = tuple(kept)
                self._families[_stem(key)].update(kept)
        if not self.targets:
            raise UserError(
                "objective.terms: no terms are found in this corpus; give more pairs, or set it to 0"
            )
        self._endings = self._learn_endings()
        self._others: dict[tuple[str, TermKey], tuple[str, ...]] = {}
        self._keys = {key: key for key in self.targets}  # whoever keeps a term keeps this key of it
        self._longest: Counter[str] = Counter()
        """By the first word of terms."""
        for key in self.targets:
            self._longest[key[0]] = max(self._longest[key[0]], len(key))

    def _learn_endings(self) -> dict[str, list[str]]:
        """For each ending of a word those that other forms of it have, as often as they occur."""
        counts: Counter[tuple[str, str]] = Counter()
        for family in self._families.values():
            for one, other in permutations(sorted(form for form in family if form.isalpha()), 2):
                shared = common_beginning(one, other)
                own, new = one[shared:], other[shared:]
                if are_forms(one, other) and max(map(len, (own, new))) <= _LONGEST_ENDING:
                    counts[own, new] += 1
        endings: dict[str, list[str]] = defaultdict(list)
        for (own, new), count in sorted(counts.items()):
            endings[own] += [new] * (count if count >= _LEAST_EXCHANGES else 0)
        return {own: new for own, new in endings.items() if new}

    def terms(self, src: str, tgt: str) -> list[FoundTerm]:
        """The terms of a source whose translation its target has."""
        source = _Read.of(src)
        folded = [word.casefold() for word, _, _ in source.words]
        found: list[FoundTerm] = []
        free = 0
        for first, word in enumerate(folded):
            longest = self._longest.get(word, 0) if first >= free else 0
            for end in range(min(first + longest, len(folded)), first, -1):
                key = self._keys.get(tuple(folded[first:end]))
                if key is None or not source.joined(first, end):
                    continue
                forms = (form for form in self.targets[key] if form in tgt and has_phrase(tgt, form))
                if (written := next(forms, None)) is not None:
                    found.append((source.words[first][1], source.words[end - 1][2], written, key))
                    free = end
                    break
        return found

    def other_form(self, form: str, term: TermKey, chance: float) -> str:
        """Another form of a translation; the same where none can be thought of. Which one is a matter of
        `chance`, from 0 up to 1."""
        others = self._others.get((form, term))
        if others is None:
            family = self._families.get(_stem(term), ())
            others = tuple(sorted(other for other in family if other != form and _same_words(form, other)))
            self._others[form, term] = others
        if others:
            return others[int(chance * len(others))]
        for length in range(min(_LONGEST_ENDING, len(form) - _LEAST_LETTERS), -1, -1):
            endings = self._endings.get(form[len(form) - length :])
            if endings:
                which = int(chance * len(endings) * (1 if length else 2))  # half of them gets no ending
                return form[: len(form) - length] + endings[which] if which < len(endings) else form
        return form


class TermSources:
    """Writes terms into the sources of a share of the pairs, others in each epoch."""

    def __init__(
        self, store: PairStore, tokenizer: Tokenizer, share: float, seed: int, max_length: int | None
    ) -> None:
        self._tokenizer, self._share, self._seed, self._max_length = tokenizer, share, seed, max_length
        self._known: dict[tuple[bytes, bytes], list[FoundTerm]] = {}
        self._marks = tokenizer.control_ids(TERM_PIECES)  # refused before anything is learnt
        self._spelt = functools.lru_cache(_MOST_SPELT)(functools.partial(spelt, tokenizer))
        chosen = np.linspace(0, len(store) - 1, min(_ALIGNED, len(store))).astype(np.int64).tolist()
        decode = tokenizer.decode
        self.lexicon = TermLexicon(
            (decode(store.src(number).tolist()), decode(store.tgt(number).tolist())) for number in chosen
        )

    def __call__(self, pairs: Sequence[IdPair], numbers: np.ndarray, epoch: int) -> list[IdPair]:
        key = _KEY, self._seed, epoch
        chosen = np.flatnonzero(uniform_each(numbers, *key) < self._share)
        of_each = numbers[chosen, None].astype(np.int64) * _DRAWS + np.arange(_DRAWS)
        result = list(pairs)
        for place, draws in zip(chosen.tolist(), uniform_each(of_each, *key, 1).tolist(), strict=True):
            result[place] = self._pair(pairs[place], draws)
        return result

    def _pair(self, pair: IdPair, draws: Sequence[float]) -> IdPair:
        known = self._terms(pair)
        if not known:
            return pair
        ids = between(pair[0].tolist(), self._chosen(known, draws), self._marks)
        if self._max_length is not None and len(ids) > self._max_length:
            return pair
        return np.array(ids, dtype=np.int64), pair[1]

    def _terms(self, pair: IdPair) -> list[FoundTerm]:
        """By the numbers of their pieces."""
        key = pair[0].tobytes(), pair[1].tobytes()
        found = self._known.get(key)
        if found is None:
            ids, (src, tgt) = pair[0].tolist(), (self._tokenizer.decode(side.tolist()) for side in pair)
            terms = self.lexicon.terms(src, tgt)
            places = pieces_in(self._tokenizer, ids, src, [term[:2] for term in terms])
            found = [(*place, *term[2:]) for place, term in zip(places, terms, strict=True)]
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = found
        return found

    def _chosen(self, known: Sequence[FoundTerm], draws: Sequence[float]) -> Iterator[SpeltTerm]:
        count = min(1 + int(draws[0] * _MOST_TERMS), len(known))
        left = list(range(len(known)))
        places = sorted(left.pop(int(draw * len(left))) for draw in draws[1 : 1 + count])
        others, chances = (draws[1 + turn * _MOST_TERMS :] for turn in (1, 2))
        for number, place in enumerate(places):
            first, behind, form, term = known[place]
            if others[number] < _OTHER_FORM:
                form = self.lexicon.other_form(form, term, chances[number])
            yield first, behind, self._spelt(form)


def _spaced(read: _Read) -> str:
    return " ".join(word for word, _, _ in read.words)


def _frequent(texts: Sequence[_Read]) -> set[str]:
    """Words in more sentences than a term is in."""
    counts = Counter(word for read in texts for word in {word.casefold() for word, _, _ in read.words})
    return {word for word, count in counts.items() if count > max(2.0, _FREQUENT * len(texts))}


def _plain(read: _Read, first: int, end: int, frequent: set[str]) -> bool:
    """Whether these words are no term: not in a run, too short, or all of them frequent."""
    key = read.key(first, end)
    letters = sum(map(len, key))
    edges = (key[0], key[-1])
    return (
        not read.joined(first, end)
        or letters < _LEAST_LETTERS
        or any(word in frequent or word.isdigit() for word in edges)
    )


def _target(first: int, end: int, links: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The run of target words that these source words, and no others, are linked to."""
    own = [target for source, target in links if first <= source < end]
    if not own or max(own) - min(own) >= _LONGEST:
        return None
    begin, behind = min(own), max(own) + 1
    outside = any(begin <= target < behind and not first <= source < end for source, target in links)
    return None if outside else (begin, behind)


def _stem(key: TermKey) -> TermKey:
    return tuple(word[:_STEM] for word in key)


def _same_words(form: str, other: str) -> bool:
    one, two = form.split(), other.split()
    return len(one) == len(two) and all(map(are_forms, one, two))
