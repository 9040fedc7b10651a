"""A model loaded by CTranslate2, with token ids as input and output."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ctranslate2
import numpy as np

from dragoman.decode.search.job import Job, by_length, neighbour_batches, never
from dragoman.engines.manifest import VOCABULARIES
from dragoman.errors import UserError
from dragoman.plain import read_json
from dragoman.system import usable_cores
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.text.tokenizer_file import LARGEST_VOCABULARY

TokenIds = Sequence[int]

_COMPUTED = {"int8": ("int8", "int8_float32")}
"""Compute types that match a quantization under another name."""
_LARGEST_VOCABULARY_FILE = 64 << 20
_MOST_NUMBERS = 1 << 24
"""Maximum number of scores or weights that one call may return. A call runs to the length of its longest row,
and returns as many for each step of each row."""


def computed_as_stored(quantization: str) -> bool:
    """Whether CTranslate2 computes in this type on this CPU. It converts other types when loading."""
    supported = ctranslate2.get_supported_compute_types("cpu")
    return any(kind in supported for kind in _COMPUTED.get(quantization, (quantization,)))


class _Names:
    """CTranslate2's piece names of one side."""

    def __init__(self, path: Path) -> None:
        try:
            found = read_json(path, _LARGEST_VOCABULARY_FILE, LARGEST_VOCABULARY)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise UserError(f"{path}: expected a list of pieces")
        self._names: list[str] = found
        self._ids = {name: number for number, name in enumerate(found)}

    def of(self, ids: Iterable[int]) -> list[str]:
        return list(map(self._names.__getitem__, ids))

    def ids(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(map(self._ids.__getitem__, names))


@dataclass(frozen=True)
class Call:
    """The settings that all sentences of one call share."""

    longest: int
    shortest: int = 0
    beam: int = 1
    length_penalty: float = 1.0
    patience: float = 1.0
    no_repeat_ngram: int = 0
    shortlist: bool = False
    forbid: bool = False
    """Suppress `<pad>` and `<s>`. This renormalises the other probabilities, so it is used only where
    needed."""
    shows: Literal["attention", "logits"] | None = None

    def limits(self, target: _Names) -> dict[str, Any]:
        """The length and suppression options of CTranslate2, for whole translations or streams."""
        return {
            "no_repeat_ngram_size": self.no_repeat_ngram,
            "suppress_sequences": [target.of([n]) for n in (PAD_ID, BOS_ID)] if self.forbid else None,
            "max_input_length": 0,
            "max_decoding_length": self.longest,
            "min_decoding_length": self.shortest,
            "use_vmap": self.shortlist,
        }


class Runtime:
    """`workers` batches run at once, each on `threads` cores."""

    def __init__(self, directory: Path, quantization: str, workers: int | None, threads: int) -> None:
        self.workers = workers or max(1, usable_cores() // threads)
        self._model: Any = _load(directory, self.workers, threads)
        names = next((pair for pair in VOCABULARIES if (directory / pair[0]).exists()), VOCABULARIES[0])
        self._source, self.target = (_Names(directory / name) for name in names)
        self.compute_type: str = self._model.compute_type
        """The actual compute type: CPUs without int16 support use int8 instead."""
        self.quantized = self.compute_type.startswith("int8")
        if self.compute_type not in _COMPUTED.get(quantization, (quantization,)):
            logging.getLogger("dragoman").warning(
                f"{directory}: CTranslate2 does not compute in {quantization} on this CPU; it has converted "
                f"the weights to {self.compute_type}, and translations may differ"
            )

    def translate(
        self,
        jobs: Sequence[Job],
        call: Call,
        batch_tokens: int,
    ) -> Iterator[Any]:
        """CTranslate2's results in the order of the jobs; adjacent jobs share a batch. All batches are
        submitted at once, so processing the first results does not delay the last. Prefixes are forced and
        count in the length. Greedy search stops cancelled jobs; beam search in CTranslate2 cannot be
        interrupted."""
        rows = [self._source.of(job.source) for job in jobs]
        prefixes = [self.target.of(job.begin) for job in jobs] if any(job.begin for job in jobs) else None
        greedy = call.beam == 1 and any(job.cancelled is not never for job in jobs)
        promised = [
            self._model.translate_batch(
                rows[part],
                target_prefix=None if prefixes is None else prefixes[part],
                asynchronous=True,
                beam_size=call.beam,
                num_hypotheses=call.beam,
                length_penalty=call.length_penalty,
                patience=call.patience,
                **call.limits(self.target),
                return_scores=call.beam > 1,
                return_attention=call.shows == "attention",
                return_logits_vocab=call.shows == "logits",
                return_end_token=True,
                callback=_breaking_off(jobs[part]) if greedy else None,
            )
            for part in batch_slices([len(row) for row in rows], batch_tokens, self.workers)
        ]
        return (one.result() for batch in promised for one in batch)

    def token_scores(
        self, pairs: Sequence[tuple[TokenIds, TokenIds]], batch_tokens: int
    ) -> list[tuple[float, ...]]:
        """log p of every token and of `</s>`, over the whole vocabulary."""
        if not pairs:
            return []
        sources = [self._source.of((*src, EOS_ID)) for src, _ in pairs]
        targets = [self.target.of(tgt) for _, tgt in pairs]
        size = self._batch_size(
            [max(pair, key=len) for pair in zip(sources, targets, strict=True)], batch_tokens
        )
        found = self._model.score_batch(
            sources, targets, max_batch_size=size, batch_type="tokens", max_input_length=0
        )
        return [tuple(row.log_probs) for row in found]

    def attention(
        self, pairs: Sequence[tuple[TokenIds, TokenIds]], batch_tokens: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The index of a pair and its weights of the exported attention: a row for `<s>` and each target
        piece, a column for each source piece and `</s>`."""
        widest = max((len(src) + 1 for src, _ in pairs), default=1)
        for numbers in by_length([len(tgt) + 1 for _, tgt in pairs], _MOST_NUMBERS // widest):
            found = self._forced([pairs[number] for number in numbers], "attention", batch_tokens)
            for number, row in zip(numbers, found, strict=True):
                src, tgt = pairs[number]
                # CTranslate2 runs no model for an empty source; but all that is there to look at is `</s>`.
                weights = np.array(row.attention[0]) if len(src) else np.ones((len(tgt) + 1, 1))
                yield number, weights[: len(tgt) + 1]

    def next_scores(
        self, pairs: Sequence[tuple[TokenIds, TokenIds]], vocab_size: int, batch_tokens: int
    ) -> list[np.ndarray]:
        """Scores of every piece after the given ones: log p up to a constant."""
        results: list[np.ndarray] = [np.zeros(0)] * len(pairs)
        for numbers in by_length([len(tgt) + 1 for _, tgt in pairs], _MOST_NUMBERS // vocab_size):
            found = self._forced([pairs[number] for number in numbers], "logits", batch_tokens)
            for number, row in zip(numbers, found, strict=True):
                results[number] = np.array(row.logits[0][len(pairs[number][1])])
        return results

    def stream(self, source: TokenIds, call: Call) -> Iterator[int]:
        """The pieces of a greedy translation as they are generated, including `</s>`."""
        steps = self._model.generate_tokens(self._source.of(source), **call.limits(self.target))
        return (step.token_id for step in steps)

    def _forced(
        self,
        pairs: Sequence[tuple[TokenIds, TokenIds]],
        shows: Literal["attention", "logits"],
        batch_tokens: int,
    ) -> list[Any]:
        """Run given translations and one piece further."""
        jobs = [Job((*src, EOS_ID), begin=tuple(tgt)) for src, tgt in pairs]
        call = Call(max(len(job.begin) for job in jobs) + 1, shows=shows)
        return list(self.translate(jobs, call, batch_tokens))

    def _batch_size(self, rows: Sequence[Sequence[str]], batch_tokens: int) -> int:
        """Tokens per batch: small enough to keep every worker busy."""
        longest = max(map(len, rows)) + 1
        share = sum(map(len, rows)) // self.workers + 1
        return max(longest, min(batch_tokens, share))


def _breaking_off(jobs: Sequence[Job]) -> Callable[[Any], bool]:
    """The callback that stops cancelled sentences of a batch."""
    return lambda step: jobs[step.batch_id].cancelled()


def batch_slices(lengths: Sequence[int], batch_tokens: int, workers: int) -> list[slice]:
    """Adjacent sentences in batches of at most about `batch_tokens`, including padding: equally many for each
    worker and of equal size, so that the workers finish together."""
    rough = list(neighbour_batches(lengths, batch_tokens))
    padded = sum(max(lengths[part]) * (part.stop - part.start) for part in rough)
    each = padded / (workers * -(-len(rough) // workers))
    parts, start, longest, done = [], 0, 0, 0
    for place, length in enumerate(lengths, 1):
        longest = max(longest, length)
        here = done + longest * (place - start)
        if here >= each * (len(parts) + 1) or place == len(lengths):
            parts.append(slice(start, place))
            start, longest, done = place, 0, here
    return parts


def _load(directory: Path, workers: int, threads: int) -> Any:
    """Load the model. Loading changes OpenMP's thread count, so torch's is restored."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    try:
        return ctranslate2.Translator(
            str(directory), device="cpu", inter_threads=workers, intra_threads=threads
        )
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{directory}: CTranslate2 cannot load this model ({reason})") from None
    finally:
        if torch:
            torch.set_num_threads(before)
