"""What a run learns from and is validated on, as its objective wants it."""

from collections.abc import Sequence

import numpy as np

from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore, Prepared
from dragoman.data.dice import Dice
from dragoman.data.examples import Examples, Noise, Noised, Pairs, Stream
from dragoman.data.labelled.examples import Labelled
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.masked import Masked, Pieces
from dragoman.data.noise import MASK, corrupt_spans, denoising_source
from dragoman.text.tokenizer import Tokenizer
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


def validation_examples(config: RunConfig, prepared: Prepared) -> Examples:
    """Neither BPE-dropout nor links."""
    if config.data.text:
        return _of_text(config, prepared.valid, prepared.tgt_tokenizer)
    return Pairs(prepared.valid, (prepared.src_tokenizer, prepared.tgt_tokenizer))


def _of_text(config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> Examples:
    objective = config.objective
    blocks = Blocks(store, objective.block)
    if objective.name == "causal":
        return Stream(blocks)
    if objective.name == "masked":
        pieces = _pieces(tokenizer, objective.noise.whole_words)
        return Masked(blocks, objective.noise, pieces, config.seed, pairs=objective.next_sentence)
    return Noised(blocks, _noise(objective, tokenizer), config.seed)


def _pieces(tokenizer: Tokenizer, whole_words: bool) -> Pieces:
    spelt = tokenizer.pieces(range(tokenizer.size)) if whole_words else []
    starts = np.array([piece.startswith(_WORD_MARK) for piece in spelt]) if whole_words else None
    first = len(tokenizer.config.first_pieces) - 256
    return Pieces(_special(tokenizer, MASK), first, tokenizer.size, starts)


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
    return tokenizer.config.first_pieces.index(piece)
