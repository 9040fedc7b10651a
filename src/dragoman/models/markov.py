"""Counting models: from n-grams to attention, without gradients.

A pair is read as one sequence, and the target pieces are predicted:

    source pieces  </s>  <s>  target pieces  </s>          a piece is another word on the other side

**Order n.** The row of a context is what followed it. Rows are mixed down to shorter contexts, the last of
which is the uniform distribution over all that can come (never <pad> or <s>); c is the last n target pieces,
with <s> before the first, and c' is c without its oldest piece:

    P(y | c) = λ_c · count(c y) / count(c) + (1 − λ_c) · P(y | c')      λ_c = count(c) / (count(c) + κ · D(c))

D(c) is how many different pieces followed, κ is `smoothing` (Witten & Bell 1991 for κ = 1; 0 trusts every row
that exists). This model never looks at the source.

**Skips.** Second order with skips: every word w before the last one, of source and target, makes the feature
(w, last), and each feature votes with its own row. The prediction is the mean of the votes:

    vote_w(y) = λ · count(w … last y) / count(w … last) + (1 − λ) · P(y | c)
    P(y) = mean over w of vote_w(y)

**Mask.** `selective` hides the features that tell little more than the last word does by itself: (w, last)
is visible if its row, smoothed by the last word's, differs from that by `mask_threshold` bits or more,

    KL( λ · count(w … last ·) / count(w … last) + (1 − λ) · P(· | last)  ‖  P(· | last) ) ≥ mask_threshold

Where all are hidden, the position of the last word itself is visible, and its vote is P(y | c).

**That is attention.** The masks, stacked, are a matrix with a row for each last word:

    query    one-hot of the last word
    keys     stacked masks, one for each earlier word      query × keys ─▶ scores: 0 visible, −∞ hidden
    values   the votes                                     softmax(scores) × values ─▶ the prediction

While a tap is open it is computed in this way, by `weigh`; otherwise by look-up. Tests compare the two.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import check_counts, check_not_negative, check_sizes
from dragoman.data.batch import PairBatch
from dragoman.errors import UserError
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Vocab
from dragoman.nn.attention_kernels import tap_is_open
from dragoman.nn.context_counts import CountTable, Tally
from dragoman.nn.skip_votes import Skips
from dragoman.nn.state import rows_of
from dragoman.shapes import Bool, Float, Int, Tensor

_ELEMENTS_AT_ONCE = 1 << 22  # probabilities that are being mixed
_LARGEST_EXACT_ID = 1 << 24  # a memory holds ids as floats


@dataclass(frozen=True)
class MarkovConfig:
    order: int = 2
    skips: bool = False
    mask: Literal["none", "selective"] = "none"  # which skips vote
    mask_threshold: float = 1.0  # bits
    smoothing: float = 1.0
    min_count: int = 1  # of an entry of the tables above order 1

    def __post_init__(self) -> None:
        check_sizes(self, depths=["order"])
        check_counts(self, "min_count")
        check_not_negative(self, "smoothing", "mask_threshold")
        if self.mask != "none" and not self.skips:
            raise UserError(f"mask: {self.mask} chooses among skips; set skips to true, or leave mask out")

    @property
    def abilities(self) -> Abilities:
        return Abilities(counts=True)


def markov(config: MarkovConfig, vocab: Vocab) -> "Markov":
    return Markov(config, vocab)


class Markov(EncoderDecoder):
    """Its decoder gives log-probabilities, so there is no projection."""

    decoder: "MarkovDecoder"

    def __init__(self, config: MarkovConfig, vocab: Vocab) -> None:
        if max(vocab.src_size, vocab.tgt_size) > _LARGEST_EXACT_ID:
            raise UserError(f"vocab: a counting model takes at most {_LARGEST_EXACT_ID:,} pieces a side")
        super().__init__(vocab, MarkovEncoder(), MarkovDecoder(config, vocab), None, config.abilities)

    def count(self, batches: Iterable[PairBatch]) -> None:
        """Fit the tables. The batches are read once for every table."""
        self.decoder.count(batches)


class MarkovEncoder(nn.Module):
    """The memory is the ids themselves."""

    like: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("like", torch.zeros(()), persistent=False)  # knows the model's dtype

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        return Memory(src_ids[:, :, None].to(self.like.dtype), src_mask)


class MarkovDecoder(nn.Module):
    def __init__(self, config: MarkovConfig, vocab: Vocab) -> None:
        super().__init__()
        self.config, self.vocab, self.order = config, vocab, config.order
        self.tables = nn.ModuleList(CountTable(vocab.tgt_size) for _ in range(config.order + 1))
        threshold = config.mask_threshold if config.mask == "selective" else None
        self.skips = (
            Skips(vocab.src_size, vocab.tgt_size, config.smoothing, threshold) if config.skips else None
        )

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T V"]:
        return self._predict(tgt_in, self.start(memory), tgt_in.size(1), memory.hidden.dtype)

    def start(self, memory: Memory) -> "MarkovState":
        source = memory.hidden[:, :, 0].long()
        return MarkovState(source, memory.mask, source[:, :0], memory.hidden.new_empty(0), beams=1)

    def step(
        self, last_ids: Int[Tensor, "N"], state: "MarkovState"
    ) -> tuple[Float[Tensor, "N V"], "MarkovState"]:
        target = torch.cat([state.target, last_ids[:, None]], dim=1)
        return self._predict(target, state, 1, state.like.dtype)[:, 0], replace(state, target=target)

    def _predict(
        self, target: Int[Tensor, "N P"], state: "MarkovState", queries: int, dtype: torch.dtype
    ) -> Float[Tensor, "N Q V"]:
        """Scores of what follows each of the last `queries` positions of the target."""
        contexts = last_pieces(target, self.order, self.vocab.bos_id)[:, -queries:]  # N Q order
        words, present = self._words(target, state)  # N M
        first = words.size(1) - queries  # position of the first query in the sequence
        size = self.vocab.tgt_size
        out = torch.empty(len(target), queries, size, dtype=dtype, device=target.device)
        start, skips = self._shortest(dtype), self.skips
        if skips is not None and tap_is_open():  # a tap sees the sentences of the batch side by side
            chunks = [torch.arange(len(target), device=target.device) * queries + q for q in range(queries)]
        else:
            chunks = torch.arange(len(target) * queries, device=target.device).split(
                max(1, _ELEMENTS_AT_ONCE // size)
            )
        for chunk in chunks:
            sentence, query = chunk // queries, chunk % queries
            probs = self._mix(start, contexts[sentence, query])
            if skips is not None:
                probs = skips(words[sentence], present[sentence], first + query, probs)
            out[sentence, query] = probs.clamp_(min=torch.finfo(torch.float32).tiny).log_()
        out[:, :, [self.vocab.pad_id, self.vocab.bos_id]] = -torch.inf
        return out

    def _words(
        self, target: Int[Tensor, "N P"], state: "MarkovState"
    ) -> tuple[Int[Tensor, "N M"], Bool[Tensor, "N M"]]:
        """The whole sequence of each row, and which of its positions hold pieces."""
        source, mask = (x.repeat_interleave(state.beams, dim=0) for x in (state.source, state.mask))
        words = torch.cat([source, self.vocab.src_size + target], dim=1)
        return words, torch.cat([mask, torch.ones_like(target, dtype=torch.bool)], dim=1)

    def _shortest(self, dtype: torch.dtype) -> Float[Tensor, "1 V"]:
        """The distribution without context: frequencies interpolated with the uniform distribution."""
        table = self.tables[0]
        assert isinstance(table, CountTable)
        probs = torch.ones(1, self.vocab.tgt_size, dtype=dtype, device=table.keys.device)
        probs[:, [self.vocab.pad_id, self.vocab.bos_id]] = 0.0
        probs /= probs.sum()
        return self._mix_in(table, probs, table.find(torch.zeros(1, dtype=torch.long, device=probs.device)))

    def _mix(self, start: Float[Tensor, "1 V"], contexts: Int[Tensor, "C N"]) -> Float[Tensor, "C V"]:
        """Interpolate from the shortest context to the longest, each with the one before."""
        probs = start.repeat(len(contexts), 1)
        for table, rows in self._rows(contexts, self.order):
            probs = self._mix_in(table, probs, rows)
        return probs

    def _mix_in(
        self, table: CountTable, probs: Float[Tensor, "C V"], rows: Int[Tensor, "C"]
    ) -> Float[Tensor, "C V"]:
        trust = table.trust(rows, self.config.smoothing, probs.dtype)
        probs *= 1 - trust[:, None]
        table.add_rows(probs, torch.arange(len(rows), device=rows.device), rows, trust)
        return probs

    def _rows(self, contexts: Int[Tensor, "C N"], upto: int) -> list[tuple[CountTable, Int[Tensor, "C"]]]:
        """The rows of the contexts of length 1, 2, … A context is found through the one that is shorter by
        its oldest piece: its key is row × size + piece. What has no row has no longer one either."""
        found, rows = [], torch.zeros_like(contexts[:, 0])
        for k in range(1, upto + 1):
            table = self.tables[k]
            assert isinstance(table, CountTable)
            rows = table.find(rows * self.vocab.tgt_size + contexts[:, -k])
            found.append((table, rows))
        return found

    def count(self, batches: Iterable[PairBatch]) -> None:
        for k, table in enumerate(self.tables):
            assert isinstance(table, CountTable)
            least = self.config.min_count if k > 1 else 1
            self._fill(table, batches, lambda batch, k=k: self._contexts(batch, k), least)
        if self.skips is not None:
            self._fill(self.skips.table, batches, self._features, self.config.min_count)
            lasts = self.tables[1]
            assert isinstance(lasts, CountTable)
            self.skips.learn_mask(lasts, self._shortest(torch.float64)[0])

    def _fill(
        self,
        table: CountTable,
        batches: Iterable[PairBatch],
        read: Callable[[PairBatch], tuple[Tensor, Tensor]],
        min_count: int,
    ) -> None:
        tally, size = Tally(), self.vocab.tgt_size
        for batch in batches:
            keys, pieces = read(batch)
            if len(keys) and int(keys.max()) >= (1 << 63) // size:
                raise UserError(
                    f"model.order: {self.order} is too much for {size:,} pieces: the contexts cannot be "
                    "numbered; lower it, or take a smaller vocabulary"
                )
            tally.add(keys * size + pieces)
        entries, counts = tally.result()
        kept = counts >= min_count
        table.fill(entries[kept].to(table.keys.device), counts[kept].to(table.keys.device))

    def _contexts(self, batch: PairBatch, order: int) -> tuple[Int[Tensor, "P"], Int[Tensor, "P"]]:
        """The keys of all contexts of this length, and what followed."""
        contexts = last_pieces(batch.tgt_in, self.order, self.vocab.bos_id)[batch.tgt_mask]  # P order
        pieces = batch.tgt_out[batch.tgt_mask]
        if order == 0:
            return torch.zeros_like(pieces), pieces
        rows = self._rows(contexts, order - 1)[-1][1] if order > 1 else torch.zeros_like(pieces)
        known = rows >= 0
        return (rows * self.vocab.tgt_size + contexts[:, -order])[known], pieces[known]

    def _features(self, batch: PairBatch) -> tuple[Int[Tensor, "P"], Int[Tensor, "P"]]:
        """The keys of all features (w, last), and what followed."""
        assert self.skips is not None
        sources, length = batch.src_ids.size(1), batch.tgt_in.size(1)
        words = torch.cat([batch.src_ids, self.vocab.src_size + batch.tgt_in], dim=1)  # B M
        present = torch.cat([batch.src_mask, batch.tgt_mask], dim=1)
        places = torch.arange(sources + length, device=words.device)
        earlier = places[None] < sources + places[:length, None]  # T M
        row, t, m = (earlier & present[:, None] & batch.tgt_mask[:, :, None]).nonzero(as_tuple=True)
        return self.skips.key(batch.tgt_in[row, t], words[row, m]), batch.tgt_out[row, t]


@dataclass(frozen=True)
class MarkovState:
    """The source has one row per sentence, shared by its beams; the target so far has one row per beam."""

    source: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"]
    target: Int[Tensor, "N P"]
    like: Float[Tensor, "0"]
    beams: int

    def expand(self, k: int) -> Self:
        return replace(self, target=self.target.repeat_interleave(k, dim=0), beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return replace(self, target=self.target.index_select(0, order))

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        rows = rows_of(sentences, self.beams)
        target = self.target.index_select(0, rows)
        return replace(self, source=self.source[sentences], mask=self.mask[sentences], target=target)


def last_pieces(target: Int[Tensor, "B T"], order: int, bos_id: int) -> Int[Tensor, "B T N"]:
    """The last `order` pieces at each position, oldest first, padded with <s>."""
    return F.pad(target, (order - 1, 0), value=bos_id).unfold(1, order, 1)
