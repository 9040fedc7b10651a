"""Translator: text in, hypotheses out. Order in = order out; a sentence is translated alike in any batch."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import torch

from dragoman.data.batch import by_length, collate, pad_sources
from dragoman.decode.aligner import Aligner
from dragoman.decode.config import SearchConfig
from dragoman.decode.ended import Ended
from dragoman.decode.hypothesis import Hypothesis, normalised, total
from dragoman.decode.protected import keep_spans, task_of
from dragoman.decode.scorer import Scorer, log_probs
from dragoman.decode.search import search
from dragoman.decode.stream import Partial, stream_tokens
from dragoman.models.base import EncoderDecoder
from dragoman.text.incremental import IncrementalDecoder
from dragoman.text.spans import Kind
from dragoman.text.tokenizer import Tokenizer

DEFAULT_BATCH_TOKENS = 2048

Progress = Callable[[int, int], None]
"""Told how many sentences are done, of how many."""


class Translator:
    """A model with its tokenizers and its way of searching.

    A text without anything but white space is translated as the empty text, without asking the model.
    """

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
        self.aligner = Aligner(self.model, src_tokenizer, tgt_tokenizer, self.device)

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        protect: Collection[Kind] = (),
    ) -> list[str]:
        """The best translation of each text."""
        found = self.hypotheses(texts, search=search, batch_tokens=batch_tokens, protect=protect)
        return [best.text for best, *_ in found]

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        progress: Progress | None = None,
        protect: Collection[Kind] = (),
        align: bool = False,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first, with their scores.

        `protect` names what has to come out as it went in (`text/spans.py`); the default measures the model
        alone. `align` adds word alignments.
        """
        self._refuse_string(texts)
        settings = search or self.search
        found = self._hypotheses(texts, settings, batch_tokens, progress)
        if protect:

            def again(cut: Sequence[str]) -> list[list[Hypothesis]]:
                return self._hypotheses(cut, settings, batch_tokens)

            found = keep_spans(found, texts, protect, again, self.aligner, batch_tokens)
        if align:
            rows = zip(texts, found, strict=True)
            tasks = [task_of(text, one, protect, self.aligner) for text, row in rows for one in row]
            links = iter(self.aligner.links(tasks, batch_tokens))
            found = [[replace(one, alignment=tuple(next(links))) for one in row] for row in found]
        return found

    def stream(self, text: str, *, search: SearchConfig | None = None) -> Iterator[Partial]:
        """The best translation of one text, part by part, each as soon as it is final. Nothing is protected:
        that needs the whole of it."""
        settings = search or self.search
        if not text.strip():
            yield Partial("", (), _EMPTY)
            return
        source = pad_sources(self.src_tokenizer.encode_batch([text]), self.device)
        decoder = IncrementalDecoder(self.tgt_tokenizer)
        for final in stream_tokens(self.scorer, *source, settings):
            if isinstance(final, Ended):
                yield Partial(decoder.finish(), (), self._hypothesis(final, settings.alpha))
            else:
                yield Partial("".join(map(decoder.push, final)), final)

    def _hypotheses(
        self,
        texts: Sequence[str],
        settings: SearchConfig,
        batch_tokens: int,
        progress: Progress | None = None,
    ) -> list[list[Hypothesis]]:
        sources = self.src_tokenizer.encode_batch(texts)
        results: list[list[Hypothesis]] = [[_EMPTY] for _ in texts]
        asked = [index for index, text in enumerate(texts) if text.strip()]
        done = len(texts) - len(asked)
        for places in by_length([len(sources[index]) + 1 for index in asked], batch_tokens):
            batch = [asked[place] for place in places]
            for index, found in zip(batch, self._search([sources[i] for i in batch], settings), strict=True):
                results[index] = [self._hypothesis(ended, settings.alpha) for ended in found]
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
                results[index] = self._hypothesis(Ended((*tgt, eos), tuple(scores), "stop"), alpha)
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

    def _hypothesis(self, ended: Ended, alpha: float) -> Hypothesis:
        tokens, log_prob = ended.tokens[:-1], total(ended.token_scores)
        return Hypothesis(
            text=self.tgt_tokenizer.decode(tokens),
            score=normalised(log_prob, len(ended.tokens), alpha),
            log_prob=log_prob,
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
