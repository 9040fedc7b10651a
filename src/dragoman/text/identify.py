"""Language identification with the model of py3langid: naive Bayes over byte n-grams (Lui and Baldwin 2011).

    log P(language | text) = log P(language) + Σ over n-grams  log(1 + count) · log P(n-gram | language)

An automaton finds the n-grams. It reads many texts at once, one byte of each at a time, so that a corpus of
millions of sentences takes minutes. Scores are divided by the root of the length, as py3langid does it, which
makes them probabilities that can be compared between short and long texts.
"""

import math
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec

import numpy as np

from dragoman.errors import missing_package

_MOST_CHARACTERS = 1000
"""Maximum number of characters; the rest of a text is ignored."""
_BATCH = 1024
_NO_LANGUAGE = "zxx"
_SAME = {"nb": "no", "iw": "he", "in": "id", "fil": "tl"}
"""Other codes of languages in the model."""
_SURE = 50.0
_LEAST_LETTERS = 20
"""Letters that a sample of a corpus needs for its language to be named."""


@dataclass(frozen=True)
class _Model:
    """The automaton reads a byte in a state: `moves[rows[state] + byte]`. `features` has the n-gram that is
    complete in a state, or -1."""

    labels: tuple[str, ...]
    moves: np.ndarray
    rows: np.ndarray
    features: np.ndarray
    log_priors: np.ndarray
    log_likelihoods: np.ndarray
    """Log-likelihoods by n-gram and label."""

    @cached_property
    def columns(self) -> dict[str, list[int]]:
        """A language has several columns if it has several scripts."""
        found: dict[str, list[int]] = {}
        for column, label in enumerate(self.labels):
            found.setdefault(label, []).append(column)
        return found

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Probabilities by text and label."""
        encoded = [_encode(text) for text in texts]
        lengths = np.array([len(one) for one in encoded])
        features = self._features(encoded, lengths)
        scores = np.repeat(self.log_priors[None], len(texts), axis=0)
        if features.size:
            found, counts = np.unique(features, return_counts=True)
            rows, grams = np.divmod(found, len(self.log_likelihoods))
            weighted = np.log1p(counts, dtype=np.float32)[:, None] * self.log_likelihoods[grams]
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
            scores[rows[starts]] += np.add.reduceat(weighted, starts, axis=0)
        scores /= np.sqrt(np.maximum(1, lengths))[:, None]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def _features(self, encoded: Sequence[bytes], lengths: np.ndarray) -> np.ndarray:
        """The n-grams of all texts, as  text · number of n-grams + n-gram."""
        order = np.argsort(-lengths, kind="stable")
        letters = np.zeros((int(lengths.max(initial=0)), len(encoded)), dtype=np.int64)
        for column, row in enumerate(order):
            letters[: lengths[row], column] = np.frombuffer(encoded[row], dtype=np.uint8)
        alive = np.searchsorted(-lengths[order], -np.arange(len(letters)), side="left")
        state = np.zeros(len(encoded), dtype=np.int64)
        found = []
        for at, count in enumerate(alive):
            state = self.moves[self.rows[state[:count]] + letters[at, :count]]
            features = self.features[state]
            seen = features >= 0
            found.append(order[:count][seen] * len(self.log_likelihoods) + features[seen])
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


_lock = threading.Lock()
_loaded: list[_Model] = []


def identification_model() -> _Model:
    """The model of py3langid, read once. Only languages with a code of two letters are kept: the others are
    dialects and small languages, for which short texts are taken too often."""
    with _lock:
        if not _loaded:
            try:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier
            except ModuleNotFoundError:
                raise missing_package("py3langid", "language identification") from None
            read = LanguageIdentifier.from_model_file(MODEL_FILE)
            kept = [
                at for at, label in enumerate(read.nb_classes) if len(label) == 2 or label == _NO_LANGUAGE
            ]
            _loaded.append(
                _Model(
                    labels=tuple(read.nb_classes[at] for at in kept),
                    moves=np.asarray(read.tk_nextmove, dtype=np.int64),
                    rows=np.asarray(read.tk_row, dtype=np.int64) << 8,
                    features=np.asarray(read.tk_output, dtype=np.int64),
                    log_priors=np.asarray(read.nb_pc, dtype=np.float32)[kept],
                    log_likelihoods=np.ascontiguousarray(np.asarray(read.nb_ptc, dtype=np.float32)[:, kept]),
                )
            )
        return _loaded[0]


def can_identify() -> bool:
    """Whether py3langid is installed."""
    if _loaded:
        return True
    try:
        return find_spec("py3langid") is not None
    except ValueError:  # it is blocked
        return False


def known_languages() -> tuple[str, ...]:
    """The codes of the languages that can be told."""
    return tuple(label for label in identification_model().columns if label != _NO_LANGUAGE)


def identify(text: str, among: Sequence[str] | None = None) -> list[tuple[str, float]]:
    """The languages `among` which to choose, best first, each with a confidence from 0 to 100."""
    codes = known_languages() if among is None else among
    shares = confidences([text], codes)[0]
    found = zip(codes, (round(float(share), 1) for share in shares), strict=True)
    return sorted(found, key=lambda one: -one[1])


def confidences(texts: Sequence[str], among: Sequence[str]) -> np.ndarray:
    """Confidences by text and language, from 0 to 100.

    Candidates compete with each other and with the most likely other language. So a German text is not
    English, even if English is the only candidate. Unknown languages and texts without letters have 0.
    """
    model = identification_model()
    columns = [model.columns.get(_label(code), []) for code in among]
    chosen = sorted({column for one in columns for column in one})
    others = [column for column in range(len(model.labels)) if column not in chosen]
    result = np.zeros((len(texts), len(among)), dtype=np.float32)
    for start in range(0, len(texts), _BATCH):
        part = [text[:_MOST_CHARACTERS] for text in texts[start : start + _BATCH]]
        found = model.probabilities(part)
        rival = found[:, others].max(axis=1) if others else np.zeros(len(part), dtype=np.float32)
        whole = np.maximum(found[:, chosen].sum(axis=1) + rival, 1e-30)
        letters = np.array([any(map(str.isalpha, text)) for text in part])
        for place, own in enumerate(columns):
            result[start : start + len(part), place] = 100 * letters * found[:, own].sum(axis=1) / whole
    return result


def language_of(texts: Iterable[str]) -> str | None:
    """The language of a sample of a corpus; None if it is not certain, as for numbers, codes or names."""
    sample = [text[:_MOST_CHARACTERS] for text in texts]
    weights = np.array([math.sqrt(sum(map(str.isalpha, text))) for text in sample])
    if (weights**2).sum() < _LEAST_LETTERS:
        return None
    codes = known_languages()
    found = confidences(sample, codes)
    best = found.argmax(axis=1)
    votes = np.bincount(best, weights * (found.max(axis=1) >= _SURE), minlength=len(codes))
    return codes[int(votes.argmax())] if votes.max() * 2 > weights.sum() else None


def _encode(text: str) -> bytes:
    """As the model was trained: capitals only where there are small letters too. The spaces around it tell
    where the first word begins and the last one ends, which matters in short texts."""
    lowered = text.lower() if text.isupper() else text
    return f" {unicodedata.normalize('NFC', lowered)} ".encode("utf-8", errors="surrogatepass")


def _label(code: str) -> str:
    first = code.replace("_", "-").partition("-")[0].lower()
    return _SAME.get(first, first)
