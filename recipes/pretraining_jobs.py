"""The runs of pretraining.py: what each is trained on and how, and which of them wait for others."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

SEEDS = (1, 2, 3)
_SPECIALS = ("<mask>", *(f"<extra_id_{number}>" for number in range(21)))


@dataclass(frozen=True)
class Job:
    """One run: what it is trained on and how, what has to be there before, and what is asked of it."""

    name: str
    files: tuple[str, ...]
    overrides: tuple[str, ...]
    valid: str | None = None
    test: str | None = None
    start: str | None = None
    """The job that it begins with."""
    settings: tuple[str, ...] = ()
    """What is tried."""
    tried: tuple[str, ...] = ()
    """Jobs of which the one with the best validation gives its settings."""
    kept: bool = False
    """Others begin with it, so that its checkpoints stay."""

    @property
    def needs(self) -> set[str]:
        return {*self.tried, *([self.start] if self.start else [])}


@dataclass(frozen=True)
class Budget:
    """Updates; a small one is to see that everything runs."""

    general: int = 3600
    stage_two: int = 300
    treebank: int = 8200
    treebank_minutes: float = 6.0
    task: int = 864
    epoch: int = 108
    tag: int = 800
    general_tokens: int = 16_384


def fields(**sections: Any) -> tuple[str, ...]:
    """`train__max_updates=3` as `train.max_updates=3`."""
    return tuple(f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in sections.items())


def language_model(updates: int, tokens: int, rate: float, **more: Any) -> tuple[str, ...]:
    own = {
        "optim__name": "adamw",
        "optim__rate": rate,
        "optim__weight_decay": 0.01,
        "schedule__name": "linear",
        "schedule__warmup": max(1, min(updates // 10, 500)),
        "schedule__total": updates + 1,
        "train__max_updates": updates,
        "train__batch_tokens": tokens,
        "train__accumulate": 1,
        "train__ema": 0,
        "train__patience": None,
        "train__validate_every": max(1, updates // 5),
        "train__save_every": 10**6,
        "train__log_every": max(1, updates // 40),
    }
    return fields(**own | more)


FAMILIES: dict[str, tuple[str, ...]] = {
    "gpt": fields(
        model={"preset": "gpt-tiny", "num_layers": 6, "model_dim": 256, "num_heads": 4, "ff_dim": 1024}
    ),
    "bert": fields(
        model={"preset": "bert-tiny", "num_layers": 6, "model_dim": 256, "num_heads": 4, "ff_dim": 1024}
    ),
    "t5": fields(
        model={"preset": "t5-tiny", "num_layers": 6, "model_dim": 256, "num_heads": 4, "ff_dim": 1024}
    ),
    "elmo": fields(model={"preset": "elmo-tiny", "model_dim": 256, "hidden_dim": 1024}),
    "ulmfit": fields(
        model={
            **{"preset": "ulmfit", "model_dim": 256, "hidden_dim": 640, "embedding_dropout": 0.05},
            **{"input_dropout": 0.1, "dropout": 0.1, "output_dropout": 0.1, "weight_dropout": 0.2},
        }
    ),
}
OBJECTIVES = {"gpt": "causal", "bert": "masked", "t5": "spans", "elmo": "bidirectional", "ulmfit": "causal"}
SETTINGS = tuple({"optim__rate": rate, "model__dropout": 0.1} for rate in (1e-4, 3e-4, 1e-3))
SETTINGS = (*SETTINGS, {"optim__rate": 3e-4, "model__dropout": 0.3})


def rates(*numbers: float) -> tuple[dict[str, Any], ...]:
    return tuple({"optim__rate": rate} for rate in numbers)


ULMFIT = {
    "transfer__layer_decay": 0.385,
    "schedule__name": "slanted_triangular",
    "transfer__unfreeze_every": 108,
    "task__pooling": "concat",
}
WITHOUT: dict[str, dict[str, Any]] = {
    "discriminative rates": {"transfer__layer_decay": 1.0},
    "slanted triangular rates": {"schedule__name": "constant", "schedule__warmup": 0},
    "gradual unfreezing": {"transfer__unfreeze_every": 0},
    "concat pooling": {"task__pooling": "last"},
}
FEATURES: dict[str, tuple[bool, dict[str, Any]]] = {
    "plain embeddings, learnt with the tagger": (False, {"task__layers": "embeddings"}),
    "ELMo's embeddings, frozen": (True, {"task__layers": "embeddings", "transfer__freeze": ["network."]}),
    "ELMo's last layer, frozen": (True, {"task__layers": "last", "transfer__freeze": ["network."]}),
    "ELMo's layers mixed, frozen": (True, {"task__layers": "mix", "transfer__freeze": ["network."]}),
    "ELMo's layers mixed, all fine-tuned": (True, {"task__layers": "mix"}),
}


def jobs(text: Path, budget: Budget) -> list[Job]:
    """The long ones first: those that others wait for."""
    general = [general_job(family, text, budget) for family in FAMILIES]
    return [
        *treebank(text, budget),
        *general,
        *chain(*(gains(f, text, budget) for f in list(FAMILIES)[:4])),
        *ulmfit(text, budget),
        *features(text, budget),
    ]


def general_job(family: str, text: Path, budget: Budget) -> Job:
    shared = fields(
        **{"tokenizer.vocab_size": 12_000, "tokenizer.specials": list(_SPECIALS), "objective.block": 128},
        **{"objective.name": OBJECTIVES[family], "seed": 1},
        **({"objective.next_sentence": False} if family == "bert" else {}),
    )
    model = language_model(budget.general, budget.general_tokens, 1e-3)
    files, valid = (str(text / "general.txt"),), str(text / "general.valid.txt")
    return Job(f"{family} general", files, (*FAMILIES[family], *shared, *model), valid, kept=True)


def trials(job: Job, settings: Sequence[dict[str, Any]]) -> list[Job]:
    """One run a setting with the first seed, and the best setting again with the others."""
    first = [
        replace(job, name=f"{job.name} @{number}", overrides=(*job.overrides, *fields(seed=SEEDS[0])),
                settings=fields(**setting))
        for number, setting in enumerate(settings, 1)
    ]  # fmt: skip
    return [*first, *seeds(job, SEEDS[1:], tuple(trial.name for trial in first))]


def seeds(job: Job, numbers: Iterable[int], tried: tuple[str, ...]) -> list[Job]:
    return [
        replace(job, name=f"{job.name} #{seed}", overrides=(*job.overrides, *fields(seed=seed)), tried=tried)
        for seed in numbers
    ]


def classifier(text: Path, budget: Budget, **more: Any) -> dict[str, Any]:
    own = {
        **{"task__kind": "classify", "train__max_updates": budget.task, "train__batch_tokens": 1600},
        **{"task__max_length": 128, "train__validate_every": budget.epoch, "train__save_every": 10**6},
        **{"schedule__total": budget.task + 1, "train__log_every": budget.epoch},
    }
    return {
        "files": (str(text / "sst2.train.tsv"),),
        "overrides": fields(**own | more),
        "valid": str(text / "sst2.dev.tsv"),
        "test": str(text / "sst2.test.tsv"),
    }


def gains(family: str, text: Path, budget: Budget) -> Iterator[Job]:
    """The same network fine-tuned and from scratch, with the tokenizer that the pre-trained one has."""
    how = {"task__pooling": "mean"} if family == "bert" else {}
    task = classifier(text, budget, **how)
    scratch = {**task, "overrides": (*task["overrides"], *FAMILIES[family], *fields(**_VOCABULARY))}
    yield from trials(Job(f"{family} scratch", **scratch), SETTINGS)
    yield from trials(Job(f"{family} fine-tuned", **task, start=f"{family} general"), SETTINGS)


_VOCABULARY = {"tokenizer.vocab_size": 4000}
"""Of what begins from scratch: 4,000 pieces are what 6,920 sentences can teach."""


def ulmfit(text: Path, budget: Budget) -> Iterator[Job]:
    """Three stages, and each trick switched off in turn at the rate that was the best with all of them."""
    tuned = language_model(
        budget.stage_two, 4096, 1e-3, **{"objective.name": "causal", "objective.block": 64}
    )
    slow = {"transfer__layer_decay": 0.385, "schedule__name": "slanted_triangular"}
    files, valid = (str(text / "sst2.train.txt"),), str(text / "sst2.dev.txt")
    on_task = (*tuned, *fields(**slow, optim__rate=2e-3))
    yield Job("ulmfit task", files, on_task, valid, start="ulmfit general", kept=True)
    new = (*FAMILIES["ulmfit"], *tuned, *fields(**_VOCABULARY))
    yield Job("ulmfit task alone", files, new, valid, kept=True)
    every = {**ULMFIT, "transfer__unfreeze_every": budget.epoch}
    whole = trials(
        Job("ulmfit all", **classifier(text, budget, **every), start="ulmfit task"), rates(1e-3, 3e-3, 1e-2)
    )
    yield from whole
    tried = tuple(job.name for job in whole if "@" in job.name)
    for name, off in WITHOUT.items():
        job = Job(f"ulmfit no {name}", **classifier(text, budget, **every | off), start="ulmfit task")
        yield from seeds(job, SEEDS, tried)
    task = classifier(text, budget, **every)
    for name, start in (("LM fine-tuning", "ulmfit general"), ("general text", "ulmfit task alone")):
        yield from seeds(Job(f"ulmfit no {name}", **task, start=start), SEEDS, tried)
    plain = classifier(text, budget, task__pooling="concat")
    plain["overrides"] = (*plain["overrides"], *FAMILIES["ulmfit"], *fields(**_VOCABULARY))
    yield from trials(Job("ulmfit from scratch", **plain), rates(3e-4, 1e-3, 3e-3))


def features(text: Path, budget: Budget) -> Iterator[Job]:
    """The same LSTM and the same tags over what ELMo knows of a word, and over plain embeddings."""
    shared = {
        **{"task__kind": "tag", "task__recurrent": 256, "task__dropout": 0.3, "train__batch_tokens": 1600},
        **{"train__max_updates": budget.tag, "schedule__total": budget.tag + 1, "train__save_every": 10**6},
        **{"train__validate_every": max(1, budget.tag // 10), "train__log_every": max(1, budget.tag // 10)},
    }
    for name, (begun, own) in FEATURES.items():
        scratch = () if begun else (*FAMILIES["elmo"], *fields(**_VOCABULARY))
        job = Job(
            f"tag {name}",
            (str(text / "wnut17.train.conll"),),
            (*fields(**shared | own), *scratch),
            str(text / "wnut17.dev.conll"),
            str(text / "wnut17.test.conll"),
            "elmo general" if begun else None,
        )
        yield from trials(job, rates(*((2e-4, 5e-4) if "fine-tuned" in name else (5e-4, 2e-3))))


def treebank(text: Path, budget: Budget) -> Iterator[Job]:
    words = {"kind": "word", "vocab_size": 20_000, "min_frequency": 1}
    words |= {"split_punctuation": False, "split_digits": False}
    files, valid, test = (str(text / f"ptb.{part}.txt") for part in ("train", "valid", "test"))
    awd = {"objective.name": "causal", "objective.carry": True, "objective.block": 70, "tokenizer": words}
    awd |= {"objective.activation_penalty": 2, "objective.temporal_penalty": 1}
    updates, every = budget.treebank, max(1, budget.treebank // 25)
    adam = language_model(updates, 70 * 80, 2e-3, **awd, model={"preset": "ulmfit"}, train__ema=0.999,
                          train__validate_every=every, train__clip=0.25)  # fmt: skip
    sgd = language_model(
        updates,
        70 * 40,
        30.0,
        **{**awd, "model": {"preset": "ulmfit", "scale_embeddings": False}, "train__clip": 0.25},
        **{"optim__name": "sgd", "optim__momentum": 0, "optim__weight_decay": 1.2e-6, "train__asgd": 5},
        **{"schedule__name": "constant", "train__validate_every": every},
    )
    gpt = {
        "preset": "gpt-tiny",
        "num_layers": 6,
        "model_dim": 256,
        "num_heads": 4,
        "ff_dim": 1024,
        "dropout": 0.3,
    }
    small = language_model(updates, 128 * 40, 1e-3, model=gpt, tokenizer=words, train__ema=0.999,
                           train__validate_every=every, **{"objective.name": "causal"})  # fmt: skip
    for name, overrides in (("AWD-LSTM, Adam", adam), ("AWD-LSTM, NT-ASGD", sgd), ("GPT", small)):
        ends = fields(train__max_minutes=budget.treebank_minutes)
        yield Job(f"ptb {name}", (files,), (*overrides, *ends), valid, test)
