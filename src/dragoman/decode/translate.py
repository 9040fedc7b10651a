"""Translator: text in, hypotheses out. Order in = order out; a sentence is translated alike in any batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from dragoman.data.batch import by_length, collate, pad_sources
from dragoman.decode.config import SearchConfig
from dragoman.decode.constraints import Constraints, constraints_for
from dragoman.decode.ended import Ended
from dragoman.decode.hypothesis import Hypothesis, normalised, total
from dragoman.decode.scorer import Scorer, log_probs
from dragoman.decode.search import search
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.text.glossary import Glossary
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
        prefixes: Sequence[str] | None = None,
        prefix_open: bool = False,
        required: Sequence[Sequence[str | Sequence[str]]] | None = None,
        forbidden: Sequence[str] | Sequence[Sequence[str]] = (),
        glossary: Glossary | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        progress: Progress | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first, with their scores.

        `prefixes` are what the translations begin with; `prefix_open` lets the last word of each go on.
        `required` has for every text the phrases that must come, each one phrase or several variants of it;
        `glossary` adds those of the terms that a text has. `forbidden` are phrases for all texts, or a list
        of phrases for each. A phrase is always matched as whole words, in the case given.
        """
        self._refuse_string(texts)
        settings = search or self.search
        constraints = self._constraints(texts, prefixes, prefix_open, required, forbidden, glossary)
        sources = self.src_tokenizer.encode_batch(texts)
        results: list[list[Hypothesis]] = [[_EMPTY] for _ in texts]
        asked = [i for i, text in enumerate(texts) if text.strip() or constraints[i].writes_something]
        done = len(texts) - len(asked)
        for places in by_length([len(sources[index]) + 1 for index in asked], batch_tokens):
            batch = [asked[place] for place in places]
            ended = self._search([sources[i] for i in batch], settings, [constraints[i] for i in batch])
            for index, found in zip(batch, ended, strict=True):
                results[index] = [self._hypothesis(one, settings.alpha) for one in found]
                if settings.record:
                    results[index] = self._with_pieces(results[index])
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

    def _search(
        self, sources: Sequence[Sequence[int]], settings: SearchConfig, constraints: Sequence[Constraints]
    ) -> list[list[Ended]]:
        constrained = any(own != Constraints() for own in constraints)
        spelling = self.tgt_tokenizer.spelling if constrained else None
        return search(self.scorer, *pad_sources(sources, self.device), settings, constraints, spelling)

    def _constraints(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None,
        prefix_open: bool,
        required: Sequence[Sequence[str | Sequence[str]]] | None,
        forbidden: Sequence[str] | Sequence[Sequence[str]],
        glossary: Glossary | None,
    ) -> list[Constraints]:
        if prefixes is None and required is None and not forbidden and glossary is None:
            return [Constraints()] * len(texts)
        for name, given in (("prefixes", prefixes), ("required", required)):
            if given is not None and (isinstance(given, str) or len(given) != len(texts)):
                raise UserError(
                    f"{name}: expected one for each of the {len(texts)} texts, found {len(given)}"
                )
        if isinstance(forbidden, str):
            raise UserError(f"forbidden: expected a list of phrases, found one string; write [{forbidden!r}]")
        for_all = tuple(phrase for phrase in forbidden if isinstance(phrase, str))
        if for_all and len(for_all) < len(forbidden):
            raise UserError("forbidden: expected phrases for all texts or a list for each, found both")
        if not for_all and forbidden and len(forbidden) != len(texts):
            raise UserError(
                f"forbidden: expected a list for each of {len(texts)} texts, found {len(forbidden)}"
            )
        return [
            constraints_for(
                self.tgt_tokenizer,
                prefix=prefixes[i] if prefixes else "",
                prefix_open=prefix_open,
                required=[
                    *(required[i] if required else ()),
                    *([match.targets for match in glossary.matches(text)] if glossary else ()),
                ],
                forbidden=for_all or (forbidden[i] if forbidden else ()),
            )
            for i, text in enumerate(texts)
        ]

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
            exact=ended.exact,
            trace=ended.trace,
        )

    def _with_pieces(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """All hypotheses of a sentence share one trace; its tokens are told as text."""
        trace = found[0].trace
        assert trace is not None
        told = trace.with_pieces(self.tgt_tokenizer.pieces)
        return [replace(hypothesis, trace=told) for hypothesis in found]

    @staticmethod
    def _refuse_string(texts: Sequence[str]) -> None:
        if isinstance(texts, str):
            raise TypeError("texts: expected a list of sentences, found one string; write [text]")


_EMPTY = Hypothesis("", 0.0, 0.0, (), (), (), "stop")
