"""Choice of the model size, by the size of the corpus and by what can be trained in the given time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.autopilot.choice import Choice
from dragoman.autopilot.kinds import is_spelt
from dragoman.autopilot.machine import GIB, Machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.tokens import TokenCounts
from dragoman.models.presets import PRESETS

CPU_MINUTES = 60.0
GPU_MINUTES = 30.0
"""Minutes assumed if the user gives none."""
FEWEST_TOKENS = 1024
"""Smallest number of tokens in a batch."""


@dataclass(frozen=True)
class ModelSize:
    """A model size with the training settings that suit it."""

    name: str
    model: Mapping[str, Any]
    """The section `model`, without dropout."""
    layers: int
    width: int
    ff: int
    rate: float
    batch_tokens: int
    """Number of tokens per update for a large corpus."""
    gpu_bytes_per_token: int
    """GPU memory per token of a batch in bf16 training, with some margin."""
    train: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of `train`."""
    dropout: tuple[float, float] = (0.1, 0.3)
    """The lowest and the highest dropout rate."""
    warmup: int = 2000
    """Largest number of warm-up updates."""

    def operations(self, counts: TokenCounts, pieces: int) -> float:
        """Floating-point operations of training on one pair."""
        encoder = self.layers * (4 * self.width**2 + 2 * self.width * self.ff)
        decoder = self.layers * (8 * self.width**2 + 2 * self.width * self.ff) + pieces * self.width
        return 6 * (encoder * (counts.src_mean + 1) + decoder * (counts.tgt_mean + 1))

    def seconds(self, counts: TokenCounts, pieces: int, machine: Machine, pairs: float) -> float:
        """Seconds of one update with `pairs` pairs."""
        return machine.update_seconds(pairs * self.operations(counts, pieces), 2 * self.layers, self.width)


def _transformer(name: str, layers: int, width: int, ff: int, **more: Any) -> ModelSize:
    return ModelSize(
        name,
        {"preset": name, "norm": "pre", **more.pop("model", {})},
        layers,
        width,
        ff,
        more.pop("rate"),
        more.pop("tokens"),
        more.pop("memory"),
        **more,
    )


MINI = _transformer(
    "transformer-tiny", 2, 128, 256, model={"num_layers": 2}, rate=4e-3, tokens=4096, memory=70_000
)
TINY = _transformer(
    "transformer-tiny", 4, 128, 256, rate=4e-3, tokens=12_000, memory=100_000, dropout=(0.1, 0.2)
)
MID = _transformer(
    "transformer-small",
    3,
    192,
    768,
    model={"model_dim": 192, "ff_dim": 768},
    rate=1.8e-3,
    tokens=8000,
    memory=150_000,
)
WORDS = _transformer(
    "transformer-small",
    4,
    256,
    1024,
    model={"num_layers": 4},
    rate=1.8e-3,
    tokens=8000,
    memory=200_000,
    dropout=(0.1, 0.3),
)
SMALL = _transformer("transformer-small", 3, 256, 1024, rate=2e-3, tokens=12_000, memory=200_000)
BASE = _transformer("transformer-base", 6, 512, 2048, rate=1e-3, tokens=25_000, memory=600_000)
BIG = _transformer("transformer-big", 6, 1024, 4096, rate=5e-4, tokens=25_000, memory=1_500_000)
_OF_SENTENCES = (MINI, TINY, MID, SMALL, BASE, BIG)
_OF_WORDS = (MINI, TINY, MID, WORDS)
LADDERS = {False: _OF_SENTENCES, True: _OF_WORDS}
"""From small to large. True: for words that are spelt out."""
_FEWEST_UPDATES = 2500
"""On a CPU, models above TINY are chosen if there is time for this number of updates of the smallest
batch."""
_FEW_WORDS = (600, 6000)
"""Range of pairs of words for which TINY was better than WORDS on a GPU. Below it, words are invented."""
_LEAST_EPOCHS = ((100_000, 12.0), (500_000, 5.0))
"""A model is too large for fewer pairs than the first number if it cannot train for the second number of
epochs in the time."""


def model_size(
    profile: Profile, counts: TokenCounts, pieces: int, machine: Machine, minutes: float | None
) -> Choice[ModelSize]:
    ladder = LADDERS[is_spelt(profile)]
    rung = _by_pairs(profile, machine, ladder)
    reason = f"for {profile.pairs:,} pairs"
    while rung > 0:
        if epochs_in(ladder[rung], counts, pieces, machine, minutes) < _least_epochs(profile):
            reason = f"the largest that can see {profile.pairs:,} pairs often enough in the time"
        elif rung > ladder.index(TINY) and not _updates_often(ladder[rung], counts, pieces, machine, minutes):
            reason = "small enough for thousands of updates in the time"
        else:
            break
        rung -= 1
    return Choice(ladder[rung], reason)


def epochs_in(
    size: ModelSize, counts: TokenCounts, pieces: int, machine: Machine, minutes: float | None
) -> float:
    """Number of epochs that fit into the time."""
    pairs_an_update = max(1.0, min(counts.pairs, size.batch_tokens / (counts.longer_mean + 1)))
    seconds = size.seconds(counts, pieces, machine, pairs_an_update)
    return learning_seconds(machine, minutes) / seconds * pairs_an_update / max(1, counts.pairs)


def _updates_often(
    size: ModelSize, counts: TokenCounts, pieces: int, machine: Machine, minutes: float | None
) -> bool:
    """Whether there is time for enough updates. On a GPU small updates take as long as large ones, so a
    smaller model would not gain any."""
    if machine.gpu:
        return True
    seconds = size.seconds(counts, pieces, machine, FEWEST_TOKENS / (counts.longer_mean + 1))
    return learning_seconds(machine, minutes) / seconds >= _FEWEST_UPDATES


def learning_seconds(machine: Machine, minutes: float | None) -> float:
    return machine.learning_seconds(minutes or (GPU_MINUTES if machine.gpu else CPU_MINUTES))


def _by_pairs(profile: Profile, machine: Machine, ladder: tuple[ModelSize, ...]) -> int:
    pairs = profile.pairs
    if ladder is _OF_WORDS:
        few = _FEW_WORDS[0] < pairs < _FEW_WORDS[1]
        return ladder.index(TINY if few and machine.gpu else WORDS)
    if not machine.gpu or pairs < 500_000:
        return ladder.index(SMALL)
    return ladder.index(BIG if pairs >= 20_000_000 and machine.gpu_bytes >= 40 * GIB else BASE)


def _least_epochs(profile: Profile) -> float:
    if is_spelt(profile):
        return 25.0 if profile.pairs < 100_000 else 10.0
    return next((epochs for limit, epochs in _LEAST_EPOCHS if profile.pairs < limit), 1.5)


def family_of(section: Mapping[str, Any]) -> str | None:
    """The kind of model that the user has chosen, or None."""
    preset, kind = section.get("preset"), section.get("kind")
    if isinstance(preset, str) and preset in PRESETS:
        return PRESETS[preset].kind
    return str(kind) if kind is not None else None


def size_of_preset(preset: object) -> ModelSize | None:
    """The size of a Transformer preset that the user has chosen."""
    return next((size for size in (TINY, SMALL, BASE, BIG) if size.name == preset), None)


def recurrent(profile: Profile, machine: Machine, free_attention: bool) -> ModelSize:
    """LSTM, GRU and plain recurrence. With a low learning rate they memorise the pairs before attention
    learns alignment. If the user has not chosen the attention, Luong's is used: it trains all positions at
    once, while Bahdanau's takes a step per position."""
    wide = machine.gpu and profile.pairs >= 20_000 and not is_spelt(profile)
    width = 512 if wide else 256
    return ModelSize(
        "rnn",
        {
            "model_dim": width,
            **({"wiring": "luong", "attention": "cosine"} if free_attention else {}),
        },
        1,
        width,
        width,
        rate=2e-3 if wide else 3e-3,
        batch_tokens=4096,
        gpu_bytes_per_token=200_000,
        train={"clip": 1.0, "patience": 8},
        dropout=(0.2, 0.4),
        warmup=300,
    )


def convolutional(profile: Profile) -> ModelSize:
    width = 256 if profile.pairs < 500_000 else 512
    return ModelSize(
        "convs2s",
        {"model_dim": width},
        4,
        width,
        width,
        rate=1e-3 if width == 256 else 5e-4,
        batch_tokens=4096,
        gpu_bytes_per_token=200_000,
        train={"clip": 0.5, "patience": 8},
        dropout=(0.1, 0.3),
    )
