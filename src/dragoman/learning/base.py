"""The interface of a training objective: everything that differs between objectives.

    pairs, text or labels ─ examples ─▶ batches ─ objective ─▶ loss
                          └ validator ─▶ metrics

Each objective is a class in its own file, and a line in `LEARNING`. Training, planning and the commands use
its methods, never its name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import torch

from dragoman.data.corpus import PairStore
from dragoman.data.packed import Batch
from dragoman.data.sampler import CorpusRange
from dragoman.errors import UserError
from dragoman.learning.loss import Objective
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.models.task_heads import HeadConfig, TaskNetwork
from dragoman.runs.config import Purpose, RunConfig
from dragoman.runs.optim import TransferConfig

if TYPE_CHECKING:
    from dragoman.learning.validation import Validation

TRACKS = 10


class Examples(Protocol):
    """Indexed examples with their lengths. A batch is a pure function of the indices and the epoch."""

    @property
    def src_lengths(self) -> np.ndarray: ...
    @property
    def tgt_lengths(self) -> np.ndarray: ...
    @property
    def corpora(self) -> Sequence[CorpusRange]: ...
    def __len__(self) -> int: ...
    def origin(self, index: int) -> str: ...
    def batch(self, numbers: np.ndarray, epoch: int) -> Batch: ...


class Validator:
    """The validation set of a run, chosen and ordered once."""

    def limit(self, seconds: float, now: Callable[[], float]) -> None:
        """Limit the time that the translations of one validation may take."""

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def frequency_loss(self) -> float | None:
        """The loss of predicting token frequencies alone; None for labels."""
        return None

    def run(self, model: Any, autocast: torch.autocast) -> "Validation":
        """Validate; the model stays in training mode."""
        raise NotImplementedError

    def estimated_seconds(
        self,
        model: Any,  # noqa: ARG002
        autocast: torch.autocast,  # noqa: ARG002
        now: Callable[[], float],  # noqa: ARG002
    ) -> float | None:
        """Estimate how long `run` takes for a trained model, by timing a small part of it; None if it cannot
        be estimated."""
        return None


class Learning:
    """One training objective. The defaults suit most of them."""

    name: str
    learns_from: Literal["pairs", "text", "labels"]
    purpose: Purpose
    """Use of the trained model."""
    next_step: str | None = None
    """The command to suggest after training, with {run} for the directory of the run."""
    label_smoothing: float = 0.0
    """Default of `objective.label_smoothing`."""
    unit: str = "tok"
    """The unit of the loss in the status line."""
    has_perplexity: bool = True
    packed_lengths: int = 32
    """Number of different lengths of packed batches: each is captured once on a GPU."""
    reads_source: bool = True
    """Whether the source holds the input; False if it is one token and the target holds the text."""

    several_languages: bool = False
    """Whether it can learn several languages in one run."""

    def run_name(self, config: RunConfig) -> str:  # noqa: ARG002
        """Default name of the run directory."""
        return self.name

    def preset(self, gpu: bool) -> str | None:  # noqa: ARG002
        """The default model; None: chosen by the size of the corpus."""
        return None

    def settle(self, config: RunConfig, abilities: Abilities) -> RunConfig:  # noqa: ARG002
        """Fill in settings that follow from the model."""
        return config

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        """Refuse settings that cannot be combined with this objective."""
        raise NotImplementedError

    def specials(self, config: RunConfig) -> tuple[str, ...]:  # noqa: ARG002
        """Control tokens that it inserts into text."""
        return ()

    def head(self, config: RunConfig) -> HeadConfig | None:  # noqa: ARG002
        """The head that is added to the network."""
        return None

    def examples(self, config: RunConfig, prepared: Any) -> Examples:
        """The training examples."""
        raise NotImplementedError

    def plain_examples(self, config: RunConfig, prepared: Any, store: PairStore) -> Examples:
        """Examples of a store of the run without BPE-dropout or alignments, for inspection."""
        raise NotImplementedError

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:
        """The loss function."""
        raise NotImplementedError

    def validator(
        self, config: RunConfig, prepared: Any, device: torch.device, tracks: int = TRACKS
    ) -> Validator:
        """The validator. `tracks`: the number of streams in which a text is read in parallel if the state is
        carried from block to block; each stream starts without a state."""
        raise NotImplementedError

    def packs(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        """Whether the objective takes packed batches (`PackedPairs`) of this model. A subclass with another
        objective has to say it anew."""
        return False

    def one_shape(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        """Whether nearly all batches have one shape or one of a few, and can be captured as CUDA graphs."""
        return False

    def mixed(self, config: RunConfig) -> Sequence[int] | None:  # noqa: ARG002
        """The group of each training corpus in the mixture; None if each is its own."""
        return None

    def report(self, config: RunConfig, record: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """Lines of Markdown on the metrics of the best validation, for what only this objective has."""
        return []

    def notes(self, examples: Examples) -> list[str]:  # noqa: ARG002
        """Notes on the training data for the user."""
        return []

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        """Lines of the plan that only this objective has, before the sizes of the data."""
        raise NotImplementedError


def may_pack(
    learning: Learning, config: RunConfig, model: Network | TaskNetwork, device: torch.device
) -> bool:
    """Whether batches are packed: on a GPU, if model and objective support it."""
    wanted = config.train.pack
    able = is_plain_training(config) and learning.packs(config, model)
    if wanted and not able:
        raise UserError(
            "train.pack: this model or objective needs padded batches; leave it out, or choose a transformer "
            "with decoder_self attention and cross-entropy, with R-Drop or without, or bert"
        )
    return able and (device.type == "cuda" if wanted is None else wanted)


def captures(learning: Learning, config: RunConfig, model: Network | TaskNetwork) -> bool:
    """Whether padded batches are captured as CUDA graphs."""
    return config.train.pack is not False and is_plain_training(config) and learning.one_shape(config, model)


def is_plain_training(config: RunConfig) -> bool:
    """Whether an update depends on nothing but weights and batch."""
    objective = config.objective
    other = objective.forcing().samples or objective.guided_alignment.weight
    return not other and config.transfer == TransferConfig()
