"""What a run learns from and is validated on, as its objective wants it."""

from collections.abc import Sequence

import numpy as np

from dragoman.data.blocks import Blocks
from dragoman.data.both_ways import BothWays
from dragoman.data.corpus import PairStore, Prepared
from dragoman.data.dice import Dice
from dragoman.data.examples import Examples, Noise, Noised, Pairs, Stream
from dragoman.data.labelled.examples import Labelled
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.masked import Masked, Pieces
from dragoman.data.noise import MASK, corrupt_spans, denoising_source
from dragoman.data.prefix import Prefixes
from dragoman.data.three_masks import ThreeMasks
from dragoman.errors import UserError
from dragoman.text.published import PublishedTokenizer
from dragoman.text.tokenizer import PAD_ID, Tokenizer
from dragoman.train.config import ObjectiveConfig, RunConfig

_WORD_MARK = "▁"

Corpus = Prepared | PreparedTask
"""What a run learns from, as it lies in its directory."""


def training_examples(config: RunConfig, prepared: Corpus) -> Examples:
    if isinstance(prepared, PreparedTask):
        assert config.task is not None, "labelled examples belong to a task"
        return Labelled(prepared.train, config.task, prepared.tgt_tokenizer, prepared.corpora)
    if config.data.text:
        return _of_text(config, prepared.train, prepared.tgt_tokenizer)
    return Pairs(
        prepared.train,
        (prepared.src_tokenizer, prepared.tgt_tokenizer),
        dropout=config.tokenizer.dropout,
        seed=config.seed,
        max_length=config.data.clean.max_length,
        linked=bool(config.objective.guided_alignment.weight),
    )


def plain_examples(config: RunConfig, prepared: Prepared, store: PairStore) -> Examples:
    """Of a store of the run, with neither BPE-dropout nor links: to look at, not to learn from."""
    if config.data.text:
        return _of_text(config, store, prepared.tgt_tokenizer)
    return Pairs(store, (prepared.src_tokenizer, prepared.tgt_tokenizer))


def _of_text(config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> Examples:
    objective = config.objective
    blocks = Blocks(store, objective.block)
    if objective.name == "causal":
        return Stream(blocks, objective.carry)
    if objective.name == "bidirectional":
        return BothWays(blocks)
    if objective.name == "prefix":
        return Prefixes(blocks, config.seed)
    if objective.name == "unilm":
        pieces = _pieces(tokenizer, objective.noise.whole_words, PAD_ID)  # a blank, see models/unilm.py
        return ThreeMasks(blocks, objective.noise, pieces, config.seed, objective.mask_shares)
    if objective.name == "masked":
        pieces = _pieces(tokenizer, objective.noise.whole_words, _special(tokenizer, MASK))
        return Masked(blocks, objective.noise, pieces, config.seed, pairs=objective.next_sentence)
    return Noised(blocks, _noise(objective, tokenizer), config.seed)


def _pieces(tokenizer: Tokenizer, whole_words: bool, mask_id: int) -> Pieces:
    spelt = tokenizer.pieces(range(tokenizer.size)) if whole_words else []
    starts = np.array([piece.startswith(_WORD_MARK) for piece in spelt]) if whole_words else None
    if whole_words and isinstance(tokenizer, PublishedTokenizer):
        starts = np.array([tokenizer.bytes_of(number).startswith(b" ") for number in range(tokenizer.size)])
    first = len(tokenizer.config.first_pieces) - 256
    return Pieces(mask_id, first, tokenizer.size, starts)


def _noise(objective: ObjectiveConfig, tokenizer: Tokenizer) -> Noise:
    noise = objective.noise
    if objective.name == "spans":
        sentinels = [_special(tokenizer, piece) for piece in noise.sentinels(objective.block)]
        return lambda lines, dice: corrupt_spans(np.concatenate(lines), dice, noise, sentinels)
    mask_id = _special(tokenizer, MASK)

    def denoise(lines: Sequence[np.ndarray], dice: Dice) -> tuple[np.ndarray, np.ndarray]:
        return denoising_source(lines, dice, noise, mask_id), np.concatenate(lines)

    return denoise


def _special(tokenizer: Tokenizer, piece: str) -> int:
    if not isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.config.first_pieces.index(piece)
    found = tokenizer.special(piece, *({"[MASK]"} if piece == MASK else ()))
    if found is None:
        raise UserError(
            f"objective.name: it writes {piece} into text, and the vocabulary that is begun with "
            "has no such piece; choose another objective"
        )
    return found
