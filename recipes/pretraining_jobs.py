"""The runs of pretraining.py: what each is trained on and how, and which of them wait for others."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pretraining_parts import (
    SEEDS,
    SIX_LAYERS,
    Budget,
    Job,
    fields,
    language_model,
    names_of_trials,
    rates,
    seeds,
    trials,
)
from pretraining_treebank import treebank, treebank_gpt

_SPECIALS = ("<mask>", *(f"<extra_id_{number}>" for number in range(21)))


@dataclass(frozen=True)
class General:
    """How a family is pre-trained on the general text."""

    objective: str
    share: float
    """Of the minutes."""
    block: int = 128
    tokens: int = 16_384
    rate: float = 1e-3
    more: tuple[str, ...] = ()


def network(preset: str, **more: Any) -> tuple[str, ...]:
    return fields(model={"preset": preset, **more})


FAMILIES: dict[str, tuple[str, ...]] = {
    "gpt": network("gpt-tiny", **SIX_LAYERS),
    "bert": network("bert-tiny", **SIX_LAYERS),
    "t5": network("t5-tiny", **SIX_LAYERS, num_decoder_layers=2),
    "elmo": network("elmo-tiny", model_dim=256, hidden_dim=1024),
    "ulmfit": network(
        "ulmfit",
        **{"model_dim": 256, "hidden_dim": 640, "embedding_dropout": 0.05, "input_dropout": 0.1},
        **{"dropout": 0.1, "output_dropout": 0.1, "weight_dropout": 0.2},
    ),
}
_MASKED = fields(**{"objective.next_sentence": False, "objective.noise": {"share": 0.2}})
GENERAL = {
    "gpt": General("causal", 0.85, rate=1.5e-3),
    "bert": General("masked", 1.0, tokens=8192, more=_MASKED),
    "t5": General("spans", 1.0),
    "elmo": General("bidirectional", 1.0, block=64, rate=2e-3),
    "ulmfit": General("causal", 0.65, block=64, rate=2e-3),
}
"""Recurrent layers take as long for many rows as for few, and half as long for half the block."""


def settings(*pairs: tuple[float, float]) -> tuple[dict[str, Any], ...]:
    return tuple({"optim__rate": rate, "model__dropout": dropout} for rate, dropout in pairs)


SETTINGS = {
    "gpt": settings((1e-4, 0.1), (3e-4, 0.1), (3e-4, 0.3)),
    "bert": settings((1e-4, 0.1), (3e-4, 0.1), (3e-4, 0.3)),
    "t5": settings((3e-4, 0.1), (1e-3, 0.1), (3e-4, 0.3)),
    "elmo": settings((5e-4, 0.1), (1e-3, 0.1), (2e-3, 0.1)),
}
"""The same for what is fine-tuned and what begins from scratch."""
_VOCABULARY = {"tokenizer.vocab_size": 4000}
"""Of what begins from scratch: 4,000 pieces are what 6,920 sentences can teach."""

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
    """Those first that others wait for; of all others, the most important ones."""
    transformers_and_elmo = list(SETTINGS)
    return [
        *(general_job(family, text, budget) for family in FAMILIES),
        *treebank(text, budget),
        *chain(*(fine_tuned(family, text, budget) for family in transformers_and_elmo)),
        *chain(*(from_scratch(family, text, budget) for family in transformers_and_elmo)),
        *features(text, budget),
        *ulmfit(text, budget),
        *chain(*(adapted(family, text, budget) for family in transformers_and_elmo)),
        treebank_gpt(text, budget),
    ]


def general_job(family: str, text: Path, budget: Budget) -> Job:
    how = GENERAL[family]
    own = {
        **{"tokenizer.vocab_size": 12_000, "tokenizer.specials": list(_SPECIALS), "seed": 1},
        **{"objective.name": how.objective, "objective.block": how.block},
        **{"optim__name": "adamw", "optim__rate": how.rate, "optim__weight_decay": 0.01},
        **{"schedule__name": "inverse_sqrt", "schedule__warmup": 1000, "train__ema": 0.999},
        **{"train__max_minutes": how.share * budget.general_minutes, "train__max_updates": None},
        **{"train__patience": None, "train__accumulate": 1, "train__validate_every": 1000},
        **{"train__batch_tokens": int(how.tokens * budget.general_tokens), "train__save_every": 10**6},
        **{"train__log_every": 200},
    }
    files, valid = (str(text / "general.txt"),), str(text / "general.valid.txt")
    overrides = (*FAMILIES[family], *fields(**own), *how.more)
    return Job(f"{family} general", files, overrides, valid, kept=True)


def classifier(
    text: Path, budget: Budget, few: bool = False, updates: int = 0, **more: Any
) -> dict[str, Any]:
    """What all runs on sst2 share; `few`: the small set."""
    updates = updates or (budget.few if few else budget.task)
    every = max(1, updates // 10) if few else budget.epoch
    own = {
        **{"task__kind": "classify", "task__max_length": 128},
        **{"train__max_updates": updates, "train__batch_tokens": 1600, "schedule__total": updates + 1},
        **{"train__validate_every": every, "train__log_every": every, "train__save_every": 10**6},
    }
    return {
        "files": (str(text / f"sst2.{'few' if few else 'train'}.tsv"),),
        "overrides": fields(**own | more),
        "valid": str(text / "sst2.dev.tsv"),
        "test": str(text / "sst2.test.tsv"),
    }


def of_family(family: str, text: Path, budget: Budget, few: bool) -> dict[str, Any]:
    """ELMo mixes its layers; its updates take twice the tokens, and there are half as many of them."""
    if family != "elmo":
        return classifier(text, budget, few, task__pooling="mean" if family == "bert" else "auto")
    updates = max(2, (budget.few if few else budget.task) // 2)
    every = max(1, updates // 10 if few else budget.epoch // 2)
    own = {"train__batch_tokens": 3200, "train__validate_every": every, "task__layers": "mix"}
    return classifier(text, budget, few, updates, **own)


def fine_tuned(family: str, text: Path, budget: Budget) -> Iterator[Job]:
    """The best of the settings on all of sst2, and the same on the small set."""
    start = f"{family} general"
    whole = trials(
        Job(f"{family} fine-tuned", **of_family(family, text, budget, few=False), start=start),
        SETTINGS[family],
    )
    yield from whole
    job = Job(f"{family} fine-tuned, few", **of_family(family, text, budget, few=True), start=start)
    yield from seeds(job, SEEDS, names_of_trials(whole))


def from_scratch(family: str, text: Path, budget: Budget) -> Iterator[Job]:
    """The same network. Its vocabulary is what so many sentences can teach."""
    task = of_family(family, text, budget, few=False)
    task["overrides"] += (*FAMILIES[family], *fields(**_VOCABULARY))
    whole = trials(Job(f"{family} scratch", **task), SETTINGS[family])
    yield from whole
    task = of_family(family, text, budget, few=True)
    task["overrides"] += (*FAMILIES[family], *fields(**{"tokenizer.vocab_size": 2000}))
    yield from seeds(Job(f"{family} scratch, few", **task), SEEDS, names_of_trials(whole))


def adapted(family: str, text: Path, budget: Budget) -> Iterator[Job]:
    """The language model learns the sentences of the task before their labels, as ULMFiT does."""
    how = GENERAL[family]
    learnt = {"objective.name": how.objective, "objective.block": how.block}
    overrides = (*language_model(budget.stage_two, 4096, 3e-4, **learnt), *how.more)
    files, valid = (str(text / "sst2.train.txt"),), str(text / "sst2.dev.txt")
    yield Job(f"{family} task", files, overrides, valid, start=f"{family} general", kept=True)
    tried = tuple(f"{family} fine-tuned @{number}" for number in range(1, 1 + len(SETTINGS[family])))
    for few in (False, True):
        name = f"{family} adapted{', few' if few else ''}"
        job = Job(name, **of_family(family, text, budget, few), start=f"{family} task")
        yield from seeds(job, SEEDS, tried)


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

    def task(**more: Any) -> dict[str, Any]:
        return classifier(text, budget, updates=budget.ulmfit, **more)

    whole = trials(Job("ulmfit all", **task(**every), start="ulmfit task"), rates(5e-3, 1e-2, 2e-2))
    yield from whole
    tried = names_of_trials(whole)
    for name, off in WITHOUT.items():
        yield from seeds(Job(f"ulmfit no {name}", **task(**every | off), start="ulmfit task"), SEEDS, tried)
    for name, start in (("LM fine-tuning", "ulmfit general"), ("general text", "ulmfit task alone")):
        yield from seeds(Job(f"ulmfit no {name}", **task(**every), start=start), SEEDS, tried)
    plain = task(task__pooling="concat")
    plain["overrides"] += (*FAMILIES["ulmfit"], *fields(**_VOCABULARY))
    yield from trials(Job("ulmfit from scratch", **plain), rates(1e-3, 3e-3, 1e-2))


def features(text: Path, budget: Budget) -> Iterator[Job]:
    """The same LSTM and the same tags over what ELMo knows of a word, and over plain embeddings."""
    shared = {
        **{"task__kind": "tag", "task__recurrent": 256, "task__dropout": 0.3, "train__batch_tokens": 3200},
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
        yield from trials(job, rates(*((3e-4, 1e-3) if "fine-tuned" in name else (1e-3, 3e-3))))
