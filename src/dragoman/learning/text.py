"""Common parts of all objectives for text in one language."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from dragoman.data.batch import PairBatch, collate
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore, Prepared
from dragoman.data.noise import MASK, Pieces
from dragoman.data.seeded_random import Dice
from dragoman.errors import UserError
from dragoman.learning.base import TRACKS, Examples, Learning, Validator
from dragoman.learning.cross_entropy import decoder_objective
from dragoman.learning.loss import Objective
from dragoman.learning.validation import DecoderValidator
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder
from dragoman.models.task_heads import TaskNetwork
from dragoman.runs.config import Purpose, RunConfig
from dragoman.text.published_tokenizer import PublishedTokenizer
from dragoman.text.tokenizer import Tokenizer

_METRICS = ("loss", "perplexity", "accuracy")
_WORD_MARK = "▁"
_NOTHING = np.zeros(0, dtype=np.int64)


class FromText(Learning):
    learns_from = "text"
    purpose: Purpose = "read"
    counts = False
    """Whether a model that counts can learn this."""

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        self.check_model(config, abilities)
        if not config.data.text:
            if config.data.imported is not None:
                return
            raise UserError(f"objective.name: {self.name} learns from text; set data.train[].format to text")
        if abilities.counts and not self.counts:
            raise UserError(
                f"model.kind: a model that counts learns a text by objective.name causal, found {self.name}"
            )
        if config.train.metric not in _METRICS:
            raise UserError(
                f"train.metric: text is not translated, so there is no {config.train.metric}; choose one of "
                f"{', '.join(_METRICS)}"
            )
        _check_tokenizer(config)
        marks = self.marks(config, abilities)
        if marks is not None and abilities.max_length is not None:
            _check_block(config, marks, abilities.max_length)

    def check_model(self, config: RunConfig, abilities: Abilities) -> None:
        """Refuse models that do not support this objective."""
        if not abilities.writes:
            raise other_model(config)

    def marks(self, config: RunConfig, abilities: Abilities) -> int | None:  # noqa: ARG002
        """Positions of a block besides its tokens."""
        return abilities.block_marks

    def blocks(self, config: RunConfig, store: PairStore) -> Blocks:
        return Blocks(store, config.objective.block)

    def text_examples(self, config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> Examples:
        """The blocks of a store as examples of this objective."""
        raise NotImplementedError

    def examples(self, config: RunConfig, prepared: Prepared) -> Examples:
        return self.text_examples(config, prepared.train, prepared.tgt_tokenizer)

    def plain_examples(self, config: RunConfig, prepared: Prepared, store: PairStore) -> Examples:
        return self.text_examples(config, store, prepared.tgt_tokenizer)

    def objective(self, config: RunConfig, model: EncoderDecoder, processes: int) -> Objective:  # noqa: ARG002
        return decoder_objective(config.objective, model)

    def validator(
        self,
        config: RunConfig,
        prepared: Prepared,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> Validator:
        return DecoderValidator(self, config, prepared, device)

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:  # noqa: ARG002
        return []


def other_model(config: RunConfig) -> UserError:
    return UserError(
        f"objective.name: {config.objective.name} does not go with model.kind {config.model['kind']}: masked "
        "is for bert, bidirectional for elmo, unilm for unilm, the others are for models that write"
    )


Noise = Callable[[Sequence[np.ndarray], Dice], tuple[np.ndarray, np.ndarray]]
"""Turns the lines of a block into source and target."""


class Noised:
    """Blocks as pairs: the corrupted text, and the target. Lines are concatenated without marks."""

    def __init__(self, blocks: Blocks, noise: Noise, seed: int) -> None:
        self.blocks, self.noise, self.seed = blocks, noise, seed
        self.corpora, self.origin = blocks.corpora, blocks.origin
        self.src_lengths = blocks.lengths
        self.tgt_lengths = blocks.lengths + 2  # the sentinels of a text of one token

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        return collate([self._pair(number, epoch) for number in numbers.tolist()])

    def _pair(self, number: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        lines = self.blocks.sentences(number)
        return self.noise(lines, Dice(self.seed, epoch, number)) if lines else (_NOTHING, _NOTHING)


class FromNoise(FromText):
    """Objectives in which an encoder-decoder reconstructs text: T5 and BART."""

    next_step = "fine-tune it with:  dragoman finetune {run} FILES --task KIND"

    def noise(self, config: RunConfig, tokenizer: Tokenizer) -> Noise:
        raise NotImplementedError

    def text_examples(self, config: RunConfig, store: PairStore, tokenizer: Tokenizer) -> Noised:
        return Noised(self.blocks(config, store), self.noise(config, tokenizer), config.seed)

    def packs(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        return model.abilities.packs


def maskable_pieces(tokenizer: Tokenizer, whole_words: bool, mask_id: int) -> Pieces:
    """The properties of a vocabulary that masking needs."""
    starts = None
    if whole_words and isinstance(tokenizer, PublishedTokenizer):
        starts = np.array([tokenizer.bytes_of(number).startswith(b" ") for number in range(tokenizer.size)])
    elif whole_words:
        starts = np.array([piece.startswith(_WORD_MARK) for piece in tokenizer.pieces(range(tokenizer.size))])
    first = len(tokenizer.config.first_pieces) - 256
    return Pieces(mask_id, first, tokenizer.size, starts)


def special_id(tokenizer: Tokenizer, piece: str) -> int:
    """The id of a control token."""
    if not isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.config.first_pieces.index(piece)
    found = tokenizer.special(piece, *({"[MASK]"} if piece == MASK else ()))
    if found is None:
        raise UserError(
            f"objective.name: it writes {piece} into text, and the vocabulary that is begun with "
            "has no such piece; choose another objective"
        )
    return found


def _check_block(config: RunConfig, marks: int, max_length: int) -> None:
    if config.objective.block + marks > max_length:
        raise UserError(
            f"objective.block: a block of {config.objective.block} pieces needs {marks} more places, and "
            f"model.max_positions is {max_length}; lower one or raise the other"
        )


def _check_tokenizer(config: RunConfig) -> None:
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
