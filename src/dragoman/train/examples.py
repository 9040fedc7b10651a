"""What a run learns from and is validated on, as its objective wants it."""

from dragoman.data.blocks import Blocks
from dragoman.data.corpus import Prepared
from dragoman.data.examples import Examples, Pairs, Stream
from dragoman.train.config import RunConfig


def training_examples(config: RunConfig, prepared: Prepared) -> Examples:
    if config.data.text:
        return Stream(Blocks(prepared.train, config.objective.block))
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
        return Stream(Blocks(prepared.valid, config.objective.block))
    return Pairs(prepared.valid, (prepared.src_tokenizer, prepared.tgt_tokenizer))
