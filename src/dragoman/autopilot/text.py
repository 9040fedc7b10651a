"""Choices for pre-training on text: the objective determines the model, the amount of text the rest."""

from collections.abc import Mapping
from typing import Any

from dragoman.autopilot.choice import Choice, Chosen, round_down, said
from dragoman.autopilot.machine import Machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.tokens import vocabulary_size
from dragoman.learning import Learning
from dragoman.models.presets import PRESETS

_RATES = ((100_000, 2e-3, 4096), (500_000, 1e-3, 8192))
"""Number of lines below which they apply, learning rate, and tokens per update."""
_OTHERWISE = (7e-4, 25_000)
_EPOCHS = ((10_000, 200), (100_000, 100), (500_000, 40), (5_000_000, 20))
_MOST_UPDATES = {"gpu": 100_000, "cpu": 20_000}
_MOST_ON_CPU = 4096
_BYTES_PER_TOKEN = 600_000
_RELATIVE_RATE = 2e-2
"""Relative to the size of the weights (recipes/pretraining.md)."""


def for_text(
    profile: Profile,
    machine: Machine,
    minutes: float | None,
    max_updates: int | None,
    learning: Learning,
    given: Mapping[str, Any],
) -> Chosen:
    lines = profile.pairs
    rate, wanted = next(((r, t) for limit, r, t in _RATES if lines < limit), _OTHERWISE)
    tokens = max(1, profile.tgt.characters // 4) + lines
    wanted = min(wanted, max(1024, tokens // 50))
    fits = machine.gpu_bytes // (2 * _BYTES_PER_TOKEN) if machine.gpu else _MOST_ON_CPU
    accumulate = -(-wanted // max(1024, fits))
    batch = round_down(wanted / accumulate)
    epochs = next((epochs for limit, epochs in _EPOCHS if lines < limit), 10)
    most = _MOST_UPDATES["gpu" if machine.gpu else "cpu"]
    by_epochs = epochs * max(1, tokens // (batch * accumulate))
    updates = max_updates or round_down(min(most, max(500, by_epochs)))
    every = max(1, round_down(min(max(100, updates // 20), 5000, -(-updates // 2))))
    pieces = vocabulary_size(profile, "bpe", joint=True)
    preset = said(given, "model.preset") or learning.preset(gpu=machine.gpu)
    optim = _optimizer(preset, rate, said(given, "optim.rate") is not None)
    train: dict[str, Any] = {
        "max_updates": updates,
        **({"max_minutes": minutes} if minutes is not None else {}),
        "batch_tokens": batch,
        "accumulate": accumulate,
        "ema": 0.999 if updates >= 5000 else 0.99,
        "log_every": max(1, min(100, every // 10)),
        "validate_every": every,
        "save_every": every,
        "metric": "loss",
        "patience": 10,
    }
    sections = {
        "tokenizer": {"vocab_size": pieces.value},
        "model": {"preset": preset} if preset else _by_size(lines, machine),
        "objective": {},
        "optim": optim.value,
        "schedule": {
            "name": "inverse_sqrt",
            "warmup": round_down(min(max(100, updates // 10), 4000, updates // 2)),
        },
        "train": train,
    }
    reasons = [("vocabulary size", f"up to {pieces.value:,}, {pieces.reason}")]
    if optim.reason:
        reasons.append(("optimizer", optim.reason))
    return Chosen(sections, reasons)


def _optimizer(preset: object, rate: float, rate_given: bool) -> Choice[dict[str, Any]]:
    config = PRESETS[preset].make() if isinstance(preset, str) and preset in PRESETS else None
    if rate_given or not getattr(config, "scale_output", False):
        return Choice({"name": "adam", "rate": rate}, "")
    why = "T5's embeddings are so large that steps of one size for all weights hardly change them"
    return Choice(
        {"name": "adamw", "rate": _RELATIVE_RATE, "relative": True, "weight_decay": 0.01},
        f"steps in proportion to the weights: {why}",
    )


def _by_size(lines: int, machine: Machine) -> dict[str, Any]:
    """The preset of an encoder-decoder for denoising."""
    if lines < 100_000:
        return {"preset": "transformer-tiny", "dropout": 0.3}
    if lines < 500_000 or not machine.gpu:
        return {"preset": "transformer-small", "dropout": 0.2 if lines < 500_000 else 0.1}
    return {"preset": "transformer-base", "dropout": 0.1}
