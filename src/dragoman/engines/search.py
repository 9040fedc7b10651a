"""Sentences in ids, searched and scored by CTranslate2 as our own search would.

CTranslate2's beam search is ours with `stop: complete`: 2K extensions, those by `</s>` among the K best are
set aside, done with K of them. Two things are put right afterwards. Its length limit is one for all sentences
of a call; a sentence that meets its own limit is searched again with that one. And it may write `<pad>` or
`<s>`; a sentence where it did is searched again without them. `docs/engines.md` says what remains.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import ctranslate2

from dragoman.decode.config import SearchConfig
from dragoman.decode.hypothesis import normalised, total
from dragoman.errors import UserError
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

_SUPPORTED = frozenset(
    (
        "beam",
        "n_best",
        "alpha",
        "max_ratio",
        "max_extra",
        "max_length",
        "min_ratio",
        "min_length",
        "stop",
        "loop_guard",
    )
)
_ALMOST_ZERO = 1e-6
"""CTranslate2 stops by another rule where its length penalty is 0."""

Ids = Sequence[int]


@dataclass(frozen=True)
class Found:
    """A hypothesis as the search ranks it: its tokens without `</s>`, and Σ log p with it."""

    tokens: tuple[int, ...]
    log_prob: float
    cut: bool
    """It was ended by the length limit; `log_prob` lacks its `</s>` until that is scored."""

    def rank(self, alpha: float) -> float:
        return normalised(self.log_prob, len(self.tokens) + 1, alpha)


@dataclass(frozen=True)
class Call:
    """What all sentences of one call to CTranslate2 share."""

    longest: int
    shortest: int
    forbid: bool = False
    """Leave out `<pad>` and `<s>`. That renormalises what is left, so it is done only where needed."""


def refuse_unsupported(search: SearchConfig) -> None:
    """A setting that would be ignored is an error."""
    default = SearchConfig()
    for field in fields(search):
        value = getattr(search, field.name)
        if field.name not in _SUPPORTED and value != getattr(default, field.name):
            raise UserError(
                f"search.{field.name}: CTranslate2 cannot search with {value!r}; use the run itself"
            )
    if search.stop != "complete":
        raise UserError(
            f"search.stop: CTranslate2 stops when `beam` hypotheses have ended ('complete'), not by "
            f"'{search.stop}'; translate with the run itself"
        )


class Engine:
    """A loaded model. `workers` batches run at once, each on `threads` cores."""

    def __init__(
        self, directory: Path, positions: int | None, shortlist: bool, workers: int | None, threads: int
    ) -> None:
        self.positions, self.shortlist = positions, shortlist
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        self.workers = workers or max(1, cores // threads)
        self._model: Any = _load(directory, self.workers, threads)

    def search(self, sources: Sequence[Ids], settings: SearchConfig, batch_tokens: int) -> list[list[Found]]:
        """The n best of each source. They share their calls, so they should be of similar length."""
        limits = [self._limit(len(source) + 1, settings) for source in sources]
        shortest = [
            min(settings.shortest(len(source) + 1), limits[i] - 1) for i, source in enumerate(sources)
        ]
        results: list[list[Found]] = [[] for _ in sources]
        calls = [Call(max(limits), least) for least in shortest]
        self._run(range(len(sources)), calls, sources, settings, batch_tokens, results)
        again = [i for i, found in enumerate(results) if _has_to_be_redone(found, limits[i])]
        own = [Call(limit - 1, least, forbid=True) for limit, least in zip(limits, shortest, strict=True)]
        self._run(again, own, sources, settings, batch_tokens, results)
        self._score_again(sources, results, batch_tokens, shortest)
        for found in results:
            found.sort(key=lambda one: one.rank(settings.alpha), reverse=True)
            del found[settings.n_best :]
        return results

    def _run(
        self,
        numbers: Iterable[int],
        calls: Sequence[Call],
        sources: Sequence[Ids],
        settings: SearchConfig,
        batch_tokens: int,
        results: list[list[Found]],
    ) -> None:
        """Search these sentences, those that share a call together."""
        groups: dict[Call, list[int]] = {}
        for number in numbers:
            groups.setdefault(calls[number], []).append(number)
        for call, members in groups.items():
            if call.longest < 1:  # there is room for `</s>` alone
                for number in members:
                    results[number] = [Found((), 0.0, cut=True)]
                continue
            found = self._call([sources[number] for number in members], call, settings, batch_tokens)
            for number, hypotheses in zip(members, found, strict=True):
                results[number] = hypotheses

    def _call(
        self, sources: Sequence[Ids], call: Call, settings: SearchConfig, batch_tokens: int
    ) -> list[list[Found]]:
        greedy = settings.beam == 1
        penalty = max(settings.alpha, _ALMOST_ZERO)
        rows = [self._named(source, EOS_ID) for source in sources]
        forbidden = [[str(PAD_ID)], [str(BOS_ID)]] if call.forbid else None
        found = self._model.translate_batch(
            rows,
            max_batch_size=self._batch_size(rows, batch_tokens),
            batch_type="tokens",
            beam_size=settings.beam,
            num_hypotheses=settings.beam,
            length_penalty=penalty,
            suppress_sequences=forbidden,
            max_input_length=0,
            max_decoding_length=call.longest,
            min_decoding_length=call.shortest,
            use_vmap=self.shortlist,
            return_scores=not greedy,
            return_end_token=True,
        )
        return [
            [
                _found(tokens, 0.0 if greedy else row.scores[number], penalty)
                for number, tokens in enumerate(row.hypotheses)
            ]
            for row in found
        ]

    def _score_again(
        self,
        sources: Sequence[Ids],
        results: list[list[Found]],
        batch_tokens: int,
        shortest: Sequence[int],
    ) -> None:
        """The `</s>` that the length limit set has a probability too. And where a least length kept `</s>`
        away, CTranslate2 has renormalised: then all hypotheses of the sentence are scored."""
        places = [(i, k) for i, found in enumerate(results) for k in range(len(found))]
        places = [(i, k) for i, k in places if shortest[i] > 0 or results[i][k].cut]
        pairs = [(sources[i], results[i][k].tokens) for i, k in places]
        for (i, k), scores in zip(places, self.token_scores(pairs, batch_tokens), strict=True):
            results[i][k] = replace(results[i][k], log_prob=total(scores))

    def token_scores(
        self, pairs: Sequence[tuple[Ids, tuple[int, ...]]], batch_tokens: int
    ) -> list[tuple[float, ...]]:
        """log p of every token and of `</s>`, over the whole vocabulary."""
        if not pairs:
            return []
        sources = [self._named(src, EOS_ID) for src, _ in pairs]
        targets = [self._named(tgt) for _, tgt in pairs]
        size = self._batch_size(
            [max(pair, key=len) for pair in zip(sources, targets, strict=True)], batch_tokens
        )
        found = self._model.score_batch(
            sources, targets, max_batch_size=size, batch_type="tokens", max_input_length=0
        )
        return [tuple(row.log_probs) for row in found]

    def _batch_size(self, rows: Sequence[Sequence[str]], batch_tokens: int) -> int:
        """Tokens a batch: so few that every worker has something to do."""
        longest = max(map(len, rows)) + 1
        share = sum(map(len, rows)) // self.workers + 1
        return max(longest, min(batch_tokens, share))

    def _limit(self, source_tokens: int, settings: SearchConfig) -> int:
        limit = settings.longest(source_tokens)
        return limit if self.positions is None else min(limit, self.positions)

    def _named(self, ids: Ids, *end: int) -> list[str]:
        """The names of pieces are their ids."""
        return [str(number) for number in (*ids, *end)]


def _load(directory: Path, workers: int, threads: int) -> Any:
    """Loading sets OpenMP's threads for the thread that loads; torch, if it is there, keeps its own."""
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


def _found(tokens: Sequence[str], score: float, penalty: float) -> Found:
    """CTranslate2 has divided the score by the length of what it returns, `</s>` counted, to the power."""
    ids = tuple(map(int, tokens))
    ended = ids[-1:] == (EOS_ID,)
    return Found(ids[:-1] if ended else ids, score * len(ids) ** penalty, cut=not ended)


def _has_to_be_redone(found: Sequence[Found], limit: int) -> bool:
    """At its limit a sentence ends every live hypothesis; and control pieces are no text."""
    return any(
        one.cut or len(one.tokens) + 1 >= limit or not {PAD_ID, BOS_ID}.isdisjoint(one.tokens)
        for one in found
    )
