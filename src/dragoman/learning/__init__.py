"""All training objectives by name. To add one: its own file and a line here."""

from dragoman.errors import UserError, did_you_mean
from dragoman.learning.base import Learning
from dragoman.learning.bidirectional import Bidirectional
from dragoman.learning.captions import Captions
from dragoman.learning.causal import Causal
from dragoman.learning.denoise import Denoise
from dragoman.learning.masked import Masked
from dragoman.learning.prefix import Prefix
from dragoman.learning.spans import Spans
from dragoman.learning.task import LabelledTask
from dragoman.learning.translate import Translate
from dragoman.learning.unilm import Unilm
from dragoman.learning.vectors import VectorTask
from dragoman.runs.config import RunConfig

LEARNING: dict[str, Learning] = {
    "translate": Translate(),
    "causal": Causal(),
    "masked": Masked(),
    "spans": Spans(),
    "denoise": Denoise(),
    "bidirectional": Bidirectional(),
    "prefix": Prefix(),
    "unilm": Unilm(),
    "task": LabelledTask(),
    "vectors": VectorTask(),
    "captions": Captions(),
}


def named(name: object) -> Learning:
    """The training objective of a configuration."""
    if not isinstance(name, str) or name not in LEARNING:
        advice = did_you_mean(name, LEARNING) if isinstance(name, str) else ""
        raise UserError(f"objective.name: expected one of {', '.join(LEARNING)}, found {name!r}{advice}")
    return LEARNING[name]


def learning_of(config: RunConfig) -> Learning:
    return LEARNING[config.objective.name]
