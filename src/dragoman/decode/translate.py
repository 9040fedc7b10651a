"""Translator: text in, hypotheses out. Order in = order out; a sentence is translated alike in any batch."""

from collections.abc import Callable, Iterator, Sequence

import torch

from dragoman.data.batch import by_length, collate, pad_sources
from dragoman.decode.config import SearchConfig
from dragoman.decode.ended import Ended
from dragoman.decode.hypothesis import Hypothesis
from dragoman.decode.render import EMPTY, hypothesis_of, refuse_string
from dragoman.decode.scorer import Scorer, log_probs
from dragoman.decode.search import search
from dragoman.models.base import EncoderDecoder
from dragoman.text.tokenizer import Tokenizer

DEFAULT_BATCH_TOKENS = 2048

Progress = Callable[[int, int], None]
"""Told how many sentences are done, of how many."""


class Translator:
    """A model with its tokenizers and its way of searching.

    A text without anything but white space is translated as the empty text, without asking the model.
    """

    default_batch_tokens = DEFAULT_BATCH_TOKENS

    def __init__(
        self,
        model: EncoderDecoder,
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        search: SearchConfig | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.model = model.to(device).eval()
        self.scorer = Scorer([self.model])
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
        refuse_string(texts)
        settings = search or self.search
        sources = self.src_tokenizer.encode_batch(texts)
        results: list[list[Hypothesis]] = [[EMPTY] for _ in texts]
        asked = [index for index, text in enumerate(texts) if text.strip()]
        done = len(texts) - len(asked)
        for places in by_length([len(sources[index]) + 1 for index in asked], batch_tokens):
            batch = [asked[place] for place in places]
            for index, found in zip(batch, self._search([sources[i] for i in batch], settings), strict=True):
                results[index] = [hypothesis_of(ended, self.tgt_tokenizer, settings.alpha) for ended in found]
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
        alpha = self.search.alpha if alpha is None else alpha
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        return self.score_ids(
            list(zip(sources, targets, strict=True)), alpha=alpha, batch_tokens=batch_tokens
        )

    def score_ids(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], *, alpha: float, batch_tokens: int
    ) -> list[Hypothesis]:
        """The same for pairs of ids: a search may segment a text in another way than the tokenizer."""
        results: dict[int, Hypothesis] = {}
        lengths = [max(len(src), len(tgt)) + 1 for src, tgt in pairs]
        eos = self.model.vocab.eos_id
        for batch in by_length(lengths, batch_tokens):
            chosen = [pairs[index] for index in batch]
            for index, (_, tgt), scores in zip(batch, chosen, self._token_scores(chosen), strict=True):
                ended = Ended((*tgt, eos), tuple(scores), "stop")
                results[index] = hypothesis_of(ended, self.tgt_tokenizer, alpha)
        return [results[index] for index in range(len(pairs))]

    def _search(self, sources: Sequence[Sequence[int]], settings: SearchConfig) -> list[list[Ended]]:
        return search(self.scorer, *pad_sources(sources, self.device), settings)

    def _token_scores(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Iterator[list[float]]:
        batch = collate(pairs, self.device)
        with torch.inference_mode():
            hidden = self.model(batch.src_ids, batch.src_mask, batch.tgt_in)
            for row, (_, tgt) in enumerate(pairs):  # row by row: B T V logits at once would be large
                scores = log_probs(self.model, hidden[row, : len(tgt) + 1])
                target = batch.tgt_out[row, : len(tgt) + 1, None]
                yield scores.gather(1, target)[:, 0].tolist()
