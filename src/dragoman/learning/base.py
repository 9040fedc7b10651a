"""What a way of learning is: everything in which one differs from another.

    pairs, text or labels ─ examples ─▶ batches ─ objective ─▶ loss
                          └ validator ─▶ metrics

Each way is a class in a file of its own, and a line in `LEARNING`. Training, planning and the commands ask it
and never its name.
"""

from collections.abc import Callable, Sequence
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
    """Numbered examples with their lengths. A batch is a pure function of their numbers and of the epoch."""

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

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def frequency_loss(self) -> float | None:
        """The loss of a model that knows how frequent pieces are, and nothing else; None for labels."""
        return None

    def run(self, model: Any, autocast: torch.autocast) -> "Validation":
        """Leaves the model in training mode, as it was."""
        raise NotImplementedError

    def estimated_seconds(
        self,
        model: Any,  # noqa: ARG002
        autocast: torch.autocast,  # noqa: ARG002
        now: Callable[[], float],  # noqa: ARG002
    ) -> float | None:
        """About how long `run` takes once the model has learnt something, by timing a small part of it; None
        where only running it would tell."""
        return None


class Learning:
    """One way of learning. The defaults are those of most."""

    name: str
    learns_from: Literal["pairs", "text", "labels"]
    purpose: Purpose
    """What the trained model is used for."""
    next_step: str | None = None
    """What to type after training, before the name of the run."""
    label_smoothing: float = 0.0
    """Where nothing is said."""
    unit: str = "tok"
    """What the loss is a mean over, as the status line writes it."""
    has_perplexity: bool = True
    packed_lengths: int = 32
    """So many different lengths a packed batch may have: each is recorded once on a GPU."""
    reads_source: bool = True
    """The source holds what is read; False where it is one piece and the target holds the text."""

    def run_name(self, config: RunConfig) -> str:  # noqa: ARG002
        """Of its directory, where nobody chooses one."""
        return self.name

    def preset(self, gpu: bool) -> str | None:  # noqa: ARG002
        """The model where none is chosen; None: by the size of the corpus."""
        return None

    def settle(self, config: RunConfig, abilities: Abilities) -> RunConfig:  # noqa: ARG002
        """Fill in what follows from the model."""
        return config

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        """Refuse what does not go together with this way of learning."""
        raise NotImplementedError

    def specials(self, config: RunConfig) -> tuple[str, ...]:  # noqa: ARG002
        """Control pieces that it writes into text."""
        return ()

    def head(self, config: RunConfig) -> HeadConfig | None:  # noqa: ARG002
        """What the network gets on top of it."""
        return None

    def examples(self, config: RunConfig, prepared: Any) -> Examples:
        """What is learnt from."""
        raise NotImplementedError

    def plain_examples(self, config: RunConfig, prepared: Any, store: PairStore) -> Examples:
        """Examples of a store of the run without BPE-dropout or links: to look at, not to learn from."""
        raise NotImplementedError

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:
        """What is minimised."""
        raise NotImplementedError

    def validator(
        self, config: RunConfig, prepared: Any, device: torch.device, tracks: int = TRACKS
    ) -> Validator:
        """What measures models on the validation set. `tracks`: in how many parts a text is read at once
        where a state goes on from block to block; each part begins without a state."""
        raise NotImplementedError

    def packs(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        """Whether batches may go without padding."""
        return False

    def one_shape(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        """Whether nearly all batches have one shape or one of a few, and can be captured as CUDA graphs."""
        return False

    def notes(self, examples: Examples) -> list[str]:  # noqa: ARG002
        """What a person should know of the training data."""
        return []

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        """Lines of the plan that only this way has, before the sizes of the data."""
        raise NotImplementedError


def may_pack(
    learning: Learning, config: RunConfig, model: Network | TaskNetwork, device: torch.device
) -> bool:
    """Whether batches are packed: on a GPU, where model and objective can."""
    wanted = config.train.pack
    able = is_plain(config) and learning.packs(config, model)
    if wanted and not able:
        raise UserError(
            "train.pack: this model or objective needs padded batches; leave it out, or choose a transformer "
            "with decoder_self attention and cross-entropy, with R-Drop or without, or bert"
        )
    return able and (device.type == "cuda" if wanted is None else wanted)


def captures(learning: Learning, config: RunConfig, model: Network | TaskNetwork) -> bool:
    """Whether padded batches are captured as CUDA graphs."""
    return config.train.pack is not False and is_plain(config) and learning.one_shape(config, model)


def is_plain(config: RunConfig) -> bool:
    """Whether an update depends on nothing but weights and batch."""
    objective = config.objective
    other = objective.forcing().samples or objective.guided_alignment.weight
    return not other and config.transfer == TransferConfig()
