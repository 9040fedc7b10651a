"""Word perplexity on the Penn Treebank: the runs of pretraining.py on it."""

from collections.abc import Iterator
from pathlib import Path

from pretraining_parts import SIX_LAYERS, Budget, Job, fields, language_model

WORDS = {
    **{"kind": "word", "vocab_size": 20_000, "min_frequency": 1},
    **{"split_punctuation": False, "split_digits": False},
}


def treebank_job(name: str, text: Path, overrides: tuple[str, ...], budget: Budget) -> Job:
    files, valid, test = (str(text / f"ptb.{part}.txt") for part in ("train", "valid", "test"))
    ends = fields(train__max_minutes=budget.treebank_minutes, tokenizer=WORDS)
    return Job(f"ptb {name}", (files,), (*overrides, *ends), valid, test)


def treebank(text: Path, budget: Budget) -> Iterator[Job]:
    """AWD-LSTM with the sizes, the dropout and the penalties of the paper."""
    awd = {"objective.name": "causal", "objective.carry": True, "objective.block": 70, "train__clip": 0.25}
    awd |= {"objective.activation_penalty": 2, "objective.temporal_penalty": 1}
    updates = budget.treebank
    every = max(1, updates // 30)
    adam = language_model(updates, 70 * 80, 2e-3, **awd, model={"preset": "ulmfit"}, train__ema=0.999,
                          train__validate_every=every)  # fmt: skip
    yield treebank_job("AWD-LSTM, Adam", text, adam, budget)
    sgd = language_model(
        2 * updates,
        70 * 40,
        20.0,
        **{**awd, "model": {"preset": "ulmfit", "scale_embeddings": False}, "train__asgd": 5},
        **{"optim__name": "sgd", "optim__momentum": 0, "optim__weight_decay": 1.2e-6},
        **{"schedule__name": "constant", "train__validate_every": every},
    )
    yield treebank_job("AWD-LSTM, NT-ASGD", text, sgd, budget)


def treebank_gpt(text: Path, budget: Budget) -> Job:
    updates = budget.treebank_gpt
    small = language_model(
        *(updates, 128 * 40, 1e-3),
        **{"model": {"preset": "gpt-tiny", **SIX_LAYERS, "dropout": 0.4}, "objective.name": "causal"},
        **{"train__ema": 0.999, "train__validate_every": max(1, updates // 25), "optim__weight_decay": 0.1},
    )
    return treebank_job("GPT", text, small, budget)
