"""Data of the *Data* view: the validation or test set with the model's translations and their scores, and the
training pairs that are most similar to a sentence."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs
from dragoman.data.prepared import Prepared
from dragoman.errors import UserError
from dragoman.evaluate.metrics import chrf, sentence_chrf
from dragoman.runs.directory import Run
from dragoman.studio.limits import check_text
from dragoman.studio.packing import number
from dragoman.studio.subject import Subject

_MOST_PAIRS = 50_000  # of the training data that are searched, spread evenly


def table(subject: Subject, count: int, beam: int, alpha: float, test: Sequence[str] = ()) -> dict[str, Any]:
    """Pairs of the test files, or else of the validation set, evenly spaced, translated and scored."""
    if subject.generator is not None or subject.filler is not None:
        raise UserError("data: only for runs that translate")
    pairs = _test_pairs(subject, test) if test else _validation_pairs(subject)
    chosen = [pairs[place] for place in _spread(len(pairs), count)]
    sources, references = [source for source, _ in chosen], [target for _, target in chosen]
    found = subject.translator.hypotheses(sources, search=subject.settings(beam, 1, alpha))
    outputs = [each[0].text for each in found]
    return {
        "all": len(pairs),
        "chrf": number(chrf(outputs, references)),
        "rows": [
            {
                "source": source,
                "reference": reference,
                "output": output,
                "words": len(source.split()),
                "chrf": number(sentence_chrf(output, reference)),
                "log_prob": number(each[0].log_prob / max(1, len(each[0].token_scores))),
            }
            for source, reference, output, each in zip(sources, references, outputs, found, strict=True)
        ],
    }


def _validation_pairs(subject: Subject) -> list[tuple[str, str]]:
    src, tgt = subject.tokenizers
    pairs = subject.run.validation_examples()
    if not pairs:
        raise UserError("data: the data of this run are gone, so there is no validation set to show")
    return [
        (src.decode([int(piece) for piece in a]), tgt.decode([int(piece) for piece in b])) for a, b in pairs
    ]


def _test_pairs(subject: Subject, files: Sequence[str]) -> list[tuple[str, str]]:
    data = subject.run.config.data
    return [
        (pair.src, pair.tgt) for pair in read_pairs(SourceConfig(tuple(files)), data.src_lang, data.tgt_lang)
    ]


class Nearest:
    """The training pairs of a run with the most similar sources: the share of common pieces, weighted by
    rarity."""

    def __init__(self, run: Run) -> None:
        found = run.prepared()
        assert isinstance(found, Prepared)
        self._store, self._tokenizers = found.train, (found.src_tokenizer, found.tgt_tokenizer)
        self._numbers = _spread(len(self._store), _MOST_PAIRS)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The distinct pieces of all sources in one array, the offset of each source in it, the weight of
        each piece, and the weight of each source."""
        sets = [np.unique(self._store.src(place)) for place in self._numbers]
        pieces = np.concatenate(sets).astype(np.int64)
        begins = np.cumsum([0, *(len(own) for own in sets[:-1])])
        seen = np.bincount(pieces, minlength=self._tokenizers[0].size)
        rarity = np.log((1 + len(sets)) / (1 + seen))
        return pieces, begins, rarity, np.add.reduceat(rarity[pieces], begins)

    def find(self, text: str, count: int = 5) -> list[dict[str, Any]]:
        asked = np.unique(check_text(text, self._tokenizers[0])).astype(np.int64)
        pieces, begins, rarity, own = self._index
        common = np.add.reduceat(np.where(np.isin(pieces, asked), rarity[pieces], 0.0), begins)
        shares = common / np.maximum(rarity[asked].sum() + own - common, 1e-9)
        best = np.argsort(-shares, kind="stable")[:count]
        src, tgt = self._tokenizers
        return [
            {
                "source": src.decode(self._store.src(place).tolist()),
                "target": tgt.decode(self._store.tgt(place).tolist()),
                "share": number(float(shares[at])),
                "origin": Path(self._store.origin(place)).name,
            }
            for at, place in ((at, self._numbers[at]) for at in best.tolist())
        ]


def _spread(there: int, wanted: int) -> list[int]:
    """At most `wanted` indices, evenly spaced."""
    count = min(there, wanted)
    return np.linspace(0, there - 1, count).round().astype(int).tolist() if count else []
