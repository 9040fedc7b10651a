"""Translator: text in, hypotheses out. Order in = order out; a sentence is translated alike in any batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from dragoman.data.batch import by_length, collate, pad_sources, unpadded
from dragoman.decode.alignment.attention import ModelAligner
from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.finished import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.search import search
from dragoman.decode.search.shortlist import Shortlist
from dragoman.decode.search.shortlist_scorer import ListedScorer
from dragoman.decode.translator.base import Progress, Surface
from dragoman.decode.translator.cancel import Wanted, some_of, still
from dragoman.decode.translator.hypothesis import EMPTY, Hypothesis, Partial, hypothesis_of, partials
from dragoman.decode.translator.loops import without_loops
from dragoman.decode.translator.mbr import by_expected_utility
from dragoman.decode.translator.stream import stream_tokens
from dragoman.decode.translator.workers import share_of, side_by_side, workers_for
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.shapes import Bool, Int, Tensor
from dragoman.text.spelling import Spelling
from dragoman.text.tokenizer import Tokenizer


def search_guarded(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    config: SearchConfig,
    constraints: Sequence[Constraints] | None = None,
    spelling: Spelling | None = None,
    wanted: Sequence[Wanted] | None = None,
) -> list[list[Ended]]:
    """`search`, and what goes in circles made anew."""

    def again(numbers: list[int], calm: SearchConfig) -> list[list[Ended]]:
        rows = torch.tensor(numbers, device=src_ids.device)
        own = None if constraints is None else [constraints[row] for row in numbers]
        return search(scorer, src_ids[rows], src_mask[rows], calm, own, spelling, some_of(wanted, numbers))

    found = search(scorer, src_ids, src_mask, config, constraints, spelling, wanted)
    return without_loops(found, unpadded(src_ids, src_mask), config, again)


DEFAULT_BATCH_TOKENS = 2048
_ON_A_GPU = 16384


class Translator(Surface):
    """A model, or several that are asked together, with their tokenizers and a way of searching."""

    default_batch_tokens = DEFAULT_BATCH_TOKENS

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
        self.device = torch.device(device)
        self.aligner = ModelAligner(self.model, src_tokenizer, tgt_tokenizer, self.device)
        super().__init__(self.aligner, search or SearchConfig())
        if self.device.type == "cuda":
            self.default_batch_tokens = _ON_A_GPU
        self.shortlist: Callable[[], Shortlist] | None = None
        """Where `search.shortlist` takes it from."""

    def stream(self, text: str, *, search: SearchConfig | None = None) -> Iterator[Partial]:
        """The best translation of one text, part by part, each as soon as it is final. Nothing is protected:
        that needs the whole of it."""
        settings = search or self.search
        if not text.strip():
            yield Partial("", (), EMPTY)
            return
        source = pad_sources(self.src_tokenizer.encode_batch([text]), self.device)
        listed = self._listed(*source) if settings.shortlist else None
        finals = stream_tokens(listed or self.scorer, *source, settings)
        if listed is not None:
            finals = map(listed.in_vocabulary, finals)
        yield from partials(finals, self.tgt_tokenizer, settings)

    def _hypotheses(
        self,
        texts: Sequence[str],
        settings: SearchConfig,
        constraints: Sequence[Constraints],
        batch_tokens: int,
        progress: Progress | None = None,
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Hypothesis]]:
        sources = self.src_tokenizer.encode_batch(texts)
        results: dict[int, list[Hypothesis]] = {}
        asked = [i for i, text in enumerate(texts) if text.strip() or constraints[i].writes_something]
        asked = [i for i in asked if still(wanted, i)]
        done = len(texts) - len(asked)
        lengths = [len(sources[index]) + 1 for index in asked]
        workers = workers_for(self.device, sum(lengths)) if not settings.coverage else 1
        size = share_of(batch_tokens, sum(lengths), workers)
        batches = [[asked[place] for place in places] for places in by_length(lengths, size)]

        def find(batch: list[int]) -> list[list[Hypothesis]]:
            own = [constraints[i] for i in batch]
            return self.search_ids([sources[i] for i in batch], settings, own, some_of(wanted, batch))

        for batch, found in side_by_side(find, batches, workers):
            results |= dict(zip(batch, found, strict=True))
            done += len(batch)
            if progress:
                progress(done, len(texts))
        return [results.get(index) or [EMPTY] for index in range(len(texts))]

    def search_ids(
        self,
        sources: Sequence[Sequence[int]],
        settings: SearchConfig,
        constraints: Sequence[Constraints],
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best of sources that are ids already, all in one batch; maybe none of one that is not wanted
        any more."""
        found = self._search(sources, settings, constraints, wanted)
        return [self._ranked(own, settings) if own else [] for own in found]

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
            for index, ended in zip(batch, found, strict=True):
                results[index] = hypothesis_of(ended, self.tgt_tokenizer, search)
        return [results[index] for index in range(len(pairs))]

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        settings: SearchConfig,
        constraints: Sequence[Constraints],
        wanted: Sequence[Wanted] | None,
    ) -> list[list[Ended]]:
        """A sentence with constraints may need any piece, so no shortlist is for it; it is searched apart."""
        if not settings.shortlist:
            return self._search_alike(sources, settings, constraints, wanted)
        results: dict[int, list[Ended]] = {}
        for bound in (False, True):
            rows = [row for row, own in enumerate(constraints) if (own != Constraints()) == bound]
            chosen, own = [sources[row] for row in rows], [constraints[row] for row in rows]
            if rows:
                alike = replace(settings, shortlist=not bound)
                found = self._search_alike(chosen, alike, own, some_of(wanted, rows))
                results |= dict(zip(rows, found, strict=True))
        return [results[row] for row in range(len(sources))]

    def _search_alike(
        self,
        sources: Sequence[Sequence[int]],
        settings: SearchConfig,
        constraints: Sequence[Constraints],
        wanted: Sequence[Wanted] | None,
    ) -> list[list[Ended]]:
        padded = pad_sources(sources, self.device)
        if settings.shortlist:
            listed = self._listed(*padded)
            return listed.restore(search_guarded(listed, *padded, settings, wanted=wanted))
        constrained = any(own != Constraints() for own in constraints)
        spelling = self.tgt_tokenizer.spelling if constrained else None
        return search_guarded(self.scorer, *padded, settings, constraints, spelling, wanted)

    def _listed(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> ListedScorer:
        if self.shortlist is None:
            raise UserError("search.shortlist: this translator has none; open a run, or set it to false")
        return ListedScorer(self.scorer, self.shortlist(), src_ids, src_mask)

    def _forced(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], watched: bool) -> list[Ended]:
        with torch.inference_mode():
            scores, covered = self.scorer.forced(collate(pairs, self.device), watched)
        eos, covers = self.scorer.vocab.eos_id, [0.0] * len(pairs) if covered is None else covered.tolist()
        return [
            Ended((*tgt, eos), tuple(row[: len(tgt) + 1]), "stop", covered=cover)
            for (_, tgt), row, cover in zip(pairs, scores.tolist(), covers, strict=True)
        ]

    def _ranked(self, found: Sequence[Ended], settings: SearchConfig) -> list[Hypothesis]:
        hypotheses = [hypothesis_of(ended, self.tgt_tokenizer, settings) for ended in found]
        if settings.record:
            hypotheses = self._with_pieces(hypotheses)
        return by_expected_utility(hypotheses, settings) if settings.method == "mbr" else hypotheses

    def _with_pieces(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """All hypotheses of a sentence share one trace; its tokens are told as text."""
        trace = found[0].trace
        assert trace is not None
        told = trace.with_pieces(self.tgt_tokenizer.pieces)
        return [replace(hypothesis, trace=told) for hypothesis in found]
