"""What a configuration has to say, and may not say, where a run learns from text."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dragoman.data.noise import MASK
from dragoman.errors import UserError
from dragoman.models.base import CountedConfig
from dragoman.models.bert import BertConfig
from dragoman.models.elmo import ElmoConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.ulmfit import UlmfitConfig
from dragoman.models.unilm import UnilmConfig
from dragoman.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from dragoman.train.config import RunConfig

_METRICS = ("loss", "perplexity", "accuracy")
_FOR_KIND: dict[str, type] = {"masked": BertConfig, "bidirectional": ElmoConfig, "unilm": UnilmConfig}
"""Objectives that are made for one kind of model."""
_WITHOUT = {"label_smoothing": 0.0, "r_drop": 0.0, "teacher_forcing": 1.0} | dict.fromkeys(
    ("activation_penalty", "temporal_penalty"), 0.0
)
"""Fields that these objectives do not know, and what they are where they do nothing."""
_MARKS: dict[type, int] = {GptConfig: 1, UnilmConfig: 2, BertConfig: 3}
"""Places that a block needs beside its pieces, where a model has a table of places."""


def without_smoothing(objective: object) -> object:
    """A language model is judged by its perplexity, which smoothing makes worse."""
    if not isinstance(objective, Mapping) or objective.get("name", "translate") == "translate":
        return objective
    return {"label_smoothing": 0.0, **objective}


def with_specials(config: "RunConfig") -> TokenizerConfig:
    """The tokenizer with the control pieces that the objective writes into text."""
    objective, tokenizer = config.objective, config.tokenizer
    needed: tuple[str, ...] = (MASK,) if objective.name in ("masked", "denoise") else ()
    if objective.name == "spans":
        needed = objective.noise.sentinels(objective.block)
    specials = (*tokenizer.specials, *(piece for piece in needed if piece not in tokenizer.specials))
    return dataclasses.replace(tokenizer, specials=specials)


def check_text(config: "RunConfig", model: object) -> None:
    """Text, the objectives that learn from it and the models that can belong together."""
    name = config.objective.name
    kind = _FOR_KIND.get(name)
    if (kind and kind is not type(model)) or (isinstance(model, BertConfig | ElmoConfig) and not kind):
        raise UserError(
            f"objective.name: {name} does not go with model.kind {config.model['kind']}: masked is for bert, "
            "bidirectional for elmo, unilm for unilm, the others are for models that write"
        )
    for field, off in _WITHOUT.items():
        if kind and (found := getattr(config.objective, field)) != off:
            raise UserError(f"objective.{field}: it does nothing for {name}, found {found}; leave it out")
    if not config.data.text:
        if name == "translate" or config.data.imported is not None:
            return
        raise UserError(f"objective.name: {name} learns from text; set data.train[].format to text")
    if name == "translate":
        raise UserError(
            "objective.name: translate learns from pairs, and data.train is text; choose another one, "
            "such as causal or masked, or give pairs"
        )
    if isinstance(model, CountedConfig):
        raise UserError("model.kind: a model that counts learns from pairs; choose another one for text")
    if config.train.metric not in _METRICS:
        raise UserError(
            f"train.metric: text is not translated, so there is no {config.train.metric}; choose one of "
            f"{', '.join(_METRICS)}"
        )
    _check_tokenizer(config)
    if config.objective.carry:
        _check_carry(config, model)
    if isinstance(model, GptConfig | UnilmConfig | BertConfig):
        one_text = isinstance(model, BertConfig) and not config.objective.next_sentence
        marks = _MARKS[type(model)] - one_text
        if config.objective.block + marks > model.max_positions:
            raise UserError(
                f"objective.block: a block of {config.objective.block} pieces needs {marks} more places, and "
                f"model.max_positions is {model.max_positions}; lower one or raise the other"
            )


def _check_carry(config: "RunConfig", model: object) -> None:
    if not isinstance(model, UlmfitConfig):
        raise UserError(
            "objective.carry: only model.kind ulmfit has a state that can go on, found "
            f"{config.model['kind']}; set it to false"
        )
    corpora = config.data.train
    if len(corpora) > 1 or any(corpus.weight != 1 for corpus in corpora):
        raise UserError(
            f"objective.carry: one text of weight 1 is read in its order, and data.train has {len(corpora)} "
            "corpora; write them into one file, or set it to false"
        )
    if config.train.batch_tokens < config.objective.block:
        raise UserError(
            f"train.batch_tokens: a batch of {config.train.batch_tokens} has no room for one block of "
            f"objective.block, which is {config.objective.block}; raise it"
        )


def _check_tokenizer(config: "RunConfig") -> None:
    tokenizer = config.tokenizer
    if not tokenizer.joint or tokenizer.dropout:
        field, value = ("joint", tokenizer.joint) if not tokenizer.joint else ("dropout", tokenizer.dropout)
        raise UserError(
            f"tokenizer.{field}: text has one side and one segmentation, found {value}; leave it out"
        )
    if config.objective.noise.whole_words and (tokenizer.kind, tokenizer.word_mark) != ("bpe", "start"):
        raise UserError(
            "objective.noise.whole_words: words are told by their mark; it needs tokenizer.kind bpe and "
            f"word_mark start, found {tokenizer.kind} and {tokenizer.word_mark}"
        )
