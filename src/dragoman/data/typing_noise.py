"""Source noise: imitates hasty typing in the sources of a share of the training pairs.

    upper      THE DOG SLEEPS.            lower     the dog sleeps.
    accents    Ou est le garcon?          marks     "the dog" ─▶ „the dog“, no full stop at the end
    typos      Teh dog sleps.

A model trained on edited text only may fail on «THE DOG SLEEPS.». Each function is pure: it depends on the
text and the dice, whose key is (seed, epoch, pair index).
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

from dragoman.data.seeded_random import Dice, uniform_each
from dragoman.data.store import IdPair
from dragoman.text.tokenizer import Tokenizer

_LETTERS_PER_TYPO = 14
_WORD = re.compile(r"[^\W\d_]{4,}")
_DOUBLE_QUOTES, _SINGLE_QUOTES, _DASHES = '"“”„«»', "'’‘`´", "-–—"
_SPACED_DASH = re.compile(rf"(?<= )[{_DASHES}](?= )")
_PAIRS_OF_QUOTES = ('""', "“”", "„“", "«»", "''", "‚‘")
_END = re.compile(r"\s*[.!?…]+$")
_KEY = 0x510


def upper(text: str, _dice: Dice) -> str:
    return text.upper()


def lower(text: str, _dice: Dice) -> str:
    return text.lower()


def accents(text: str, _dice: Dice) -> str:
    """Remove diacritics from Latin, Greek and Cyrillic letters. In other scripts such marks are letters."""
    composed = (_bare(letter) if ord(letter) > 0x7F else letter for letter in text)
    return "".join(composed)


def _bare(letter: str) -> str:
    first = unicodedata.normalize("NFD", letter)[:1]
    return first if unicodedata.name(letter, "").startswith(("LATIN", "GREEK", "CYRILLIC")) else letter


def typos(text: str, dice: Dice) -> str:
    """Drop, double, swap or replace a letter, in words of four letters or more."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    letters = "".join(word[0] for word in words)
    count = max(1, round(len(letters) / _LETTERS_PER_TYPO))
    chosen = dice.order(len(words))[:count].tolist()
    places, ways, others = dice.uniform(len(chosen)), dice.below(4, len(chosen)), dice.uniform(len(chosen))
    result = text
    changes = sorted(zip(chosen, places, ways, others, strict=True), reverse=True)
    for number, place, way, other in changes:
        word = words[number]
        at = word.start() + 1 + int(place * (len(word[0]) - 2))  # the first and the last letter stay
        pair = result[at : at + 2]
        replacement = letters[int(other * len(letters))].lower()
        changed = (pair[1:], pair[0] + pair, pair[::-1], replacement + pair[1:])[way]
        result = result[:at] + changed + result[at + 2 :]
    return result


def marks(text: str, dice: Dice) -> str:
    """Other quotation marks, apostrophes and dashes, or no full stop at the end."""
    opening, closing = _PAIRS_OF_QUOTES[dice.one_below(len(_PAIRS_OF_QUOTES))]
    single = _SINGLE_QUOTES[dice.one_below(len(_SINGLE_QUOTES))]
    dash = _DASHES[dice.one_below(len(_DASHES))]
    result, opens = [], True
    for letter in text:
        if letter in _DOUBLE_QUOTES:
            letter, opens = (opening if opens else closing), not opens
        elif letter in _SINGLE_QUOTES:
            letter = single
        result.append(letter)
    changed = _SPACED_DASH.sub(dash, "".join(result))
    return changed if changed != text else _END.sub("", text)


SloppyWay = Callable[[str, Dice], str]
WAYS: dict[str, SloppyWay] = {
    "upper": upper,
    "lower": lower,
    "accents": accents,
    "typos": typos,
    "marks": marks,
}
_ORDER = ("upper", "typos", "upper", "typos", "lower", "accents", "marks")
"""Order in which the ways are tried. Upper case and typos are the most frequent and the hardest."""


def sloppy(text: str, dice: Dice) -> str:
    """The text as typed in a hurry. If one way changes nothing, the next is tried."""
    begin = dice.one_below(len(_ORDER))
    for turn in range(len(_ORDER)):
        changed = WAYS[_ORDER[(begin + turn) % len(_ORDER)]](text, dice)
        if changed != text and changed.strip():
            return changed
    return text


class SloppySources:
    """Replaces the source of a share of the pairs, chosen anew in each epoch."""

    def __init__(self, tokenizer: Tokenizer, share: float, seed: int, max_length: int | None) -> None:
        self._tokenizer, self._share, self._seed, self._max_length = tokenizer, share, seed, max_length

    def __call__(self, pairs: Sequence[IdPair], numbers: np.ndarray, epoch: int) -> list[IdPair]:
        chosen = uniform_each(numbers, _KEY, self._seed, epoch) < self._share
        result = list(pairs)
        for place in np.flatnonzero(chosen).tolist():
            result[place] = self._pair(pairs[place], Dice(_KEY, self._seed, epoch, int(numbers[place])))
        return result

    def _pair(self, pair: IdPair, dice: Dice) -> IdPair:
        noisy = self._tokenizer.encode(sloppy(self._tokenizer.decode(pair[0].tolist()), dice))
        src = [*self._tokenizer.opening_of(pair[0]), *noisy]
        if self._max_length is not None and len(src) > self._max_length:
            return pair
        return np.array(src, dtype=np.int64), pair[1]
