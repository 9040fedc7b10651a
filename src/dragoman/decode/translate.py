"""Translator: text in, hypotheses out. Order in = order out; a sentence is translated alike in any batch."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from dragoman.data.batch import by_length, collate, pad_sources
from dragoman.decode.config import SearchConfig
from dragoman.decode.ended import Ended
from dragoman.decode.guard import search_guarded
from dragoman.decode.hypothesis import Hypothesis, total
from dragoman.decode.mbr import by_expected_utility
from dragoman.decode.scorer import Scorer
from dragoman.models.base import EncoderDecoder
from dragoman.text.tokenizer import Tokenizer

DEFAULT_BATCH_TOKENS = 2048

Progress = Callable[[int, int], None]
"""Told how many sentences are done, of how many."""


class Translator:
    """A model, or several that are asked together, with their tokenizers and a way of searching.

    A text without anything but white space is translated as the empty text, without asking the model.
    """

    def __init__(
        self,
        model: EncoderDecoder | Sequence[EncoderDecoder],
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        search: SearchConfig | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        models = [model] if isinstance(model, EncoderDecoder) else model
        self.scorer = Scorer([each.to(device).eval() for each in models])
        self.model = self.scorer.models[0]
        self.src_tokenizer, self.tgt_tokenizer = src_tokenizer, tgt_tokenizer
        self.search = search or SearchConfig()
        self.device = torch.device(device)

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[str]:
        """The best translation of each text."""
        return [found[0].text for found in self.hypotheses(texts, search=search, batch_tokens=batch_tokens)]

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        progress: Progress | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first, with their scores."""
        self._refuse_string(texts)
        settings = search or self.search
        sources = self.src_tokenizer.encode_batch(texts)
        results: list[list[Hypothesis]] = [[_EMPTY] for _ in texts]
        asked = [index for index, text in enumerate(texts) if text.strip()]
        done = len(texts) - len(asked)
        for places in by_length([len(sources[index]) + 1 for index in asked], batch_tokens):
            batch = [asked[place] for place in places]
            for index, found in zip(batch, self._search([sources[i] for i in batch], settings), strict=True):
                results[index] = self._ranked(found, settings)
            done += len(batch)
            if progress:
                progress(done, len(texts))
        return results

    def score(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[Hypothesis]:
        """How probable the model finds the given translations, token by token."""
        ranking = self.search if alpha is None else replace(self.search, alpha=alpha)
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        return self.score_ids(
            list(zip(sources, targets, strict=True)), search=ranking, batch_tokens=batch_tokens
        )

    def score_ids(
        self,
        pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
        *,
        search: SearchConfig,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> list[Hypothesis]:
        """The same for pairs of ids: a search may segment a text in another way than the tokenizer. `search`
        says how the scores are normalised."""
        results: dict[int, Hypothesis] = {}
        lengths = [max(len(src), len(tgt)) + 1 for src, tgt in pairs]
        for batch in by_length(lengths, batch_tokens):
            found = self._forced([pairs[index] for index in batch], watched=search.coverage > 0)
            results |= {i: self._hypothesis(ended, search) for i, ended in zip(batch, found, strict=True)}
        return [results[index] for index in range(len(pairs))]

    def _search(self, sources: Sequence[Sequence[int]], settings: SearchConfig) -> list[list[Ended]]:
        return search_guarded(self.scorer, *pad_sources(sources, self.device), settings)

    def _forced(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], watched: bool) -> list[Ended]:
        with torch.inference_mode():
            scores, covered = self.scorer.forced(collate(pairs, self.device), watched)
        eos, covers = self.scorer.vocab.eos_id, [0.0] * len(pairs) if covered is None else covered.tolist()
        return [
            Ended((*tgt, eos), tuple(row[: len(tgt) + 1]), "stop", cover)
            for (_, tgt), row, cover in zip(pairs, scores.tolist(), covers, strict=True)
        ]

    def _ranked(self, found: Sequence[Ended], settings: SearchConfig) -> list[Hypothesis]:
        hypotheses = [self._hypothesis(ended, settings) for ended in found]
        return by_expected_utility(hypotheses, settings) if settings.method == "mbr" else hypotheses

    def _hypothesis(self, ended: Ended, settings: SearchConfig) -> Hypothesis:
        tokens = ended.tokens[:-1]
        return Hypothesis(
            text=self.tgt_tokenizer.decode(tokens),
            score=ended.score(settings),
            log_prob=total(ended.token_scores),
            tokens=tokens,
            pieces=tuple(self.tgt_tokenizer.pieces(tokens)),
            token_scores=ended.token_scores,
            finish_reason=ended.reason,
        )

    @staticmethod
    def _refuse_string(texts: Sequence[str]) -> None:
        if isinstance(texts, str):
            raise TypeError("texts: expected a list of sentences, found one string; write [text]")


_EMPTY = Hypothesis("", 0.0, 0.0, (), (), (), "stop")
