"""All choices for a corpus and a machine. Values set by the user take precedence, and dependent choices
follow them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from dragoman.autopilot import training
from dragoman.autopilot.choice import Choice, Chosen, positive, said
from dragoman.autopilot.cleaning import cleaning, search_limits
from dragoman.autopilot.kinds import looks_of
from dragoman.autopilot.machine import Machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.sizes import (
    TINY,
    ModelSize,
    convolutional,
    family_of,
    model_size,
    recurrent,
    size_of_preset,
)
from dragoman.autopilot.text import for_text
from dragoman.autopilot.tokens import (
    TokenCounts,
    count_tokens,
    joint_vocabulary,
    tokenizer_kind,
    vocabulary_size,
)
from dragoman.data.config import CleanConfig
from dragoman.learning import Learning
from dragoman.models.presets import PRESETS

_WITHOUT_NOISE = ("tokenizer.dropout", "objective.guided_alignment.weight", "objective.invented")
"""Options that cannot be combined with source noise."""
_PATIENCE = 10
_CAREFUL_RATE = 1e-3
"""Highest learning rate for a model of unknown size."""


def choose(
    profile: Profile,
    machine: Machine,
    *,
    minutes: float | None = None,
    max_updates: int | None = None,
    learning: Learning,
    given: Mapping[str, Any] | None = None,
) -> Chosen:
    """Choose a configuration. `given` is the part of it that the user has set."""
    if learning.learns_from != "pairs":
        return for_text(profile, machine, minutes, max_updates, learning, given or {})
    return _Choosing(profile, machine, minutes, max_updates, given or {}).chosen()


class _Choosing:
    """Makes the choices in the order of their dependencies."""

    def __init__(
        self,
        profile: Profile,
        machine: Machine,
        minutes: float | None,
        max_updates: int | None,
        given: Mapping[str, Any],
    ) -> None:
        self.profile, self.machine, self.minutes, self.max_updates = profile, machine, minutes, max_updates
        self.given = given
        self.reasons: list[tuple[str, str]] = []

    def chosen(self) -> Chosen:
        profile, machine, minutes, given = self.profile, self.machine, self.minutes, self.given
        src, tgt = (looks_of(side, profile.pairs).name for side in (profile.src, profile.tgt))
        copied = training.describe_copies(profile)
        self._because("data", f"{src} → {tgt}" + (f"; {copied}" if copied else ""))
        tokenizer = self._tokenizer()
        kind, pieces = tokenizer["kind"], _pieces(profile, tokenizer)
        counts = count_tokens(profile, kind)
        cleaned = self._told("cleaning", cleaning(profile, kind, _given_cut(given)))
        clean = {**cleaned.section, **_mapping(said(given, "data.clean"))}
        longest = int(positive(given, "data.clean.max_length") or clean.get("max_length", _USUAL_LENGTH))
        if cut := positive(clean, "cut_source"):
            counts = counts.cut(int(cut))
        limits = search_limits(profile, kind)
        size = self._size(counts, pieces)
        tokens, accumulate = self._batch(counts, size, pieces, longest)
        update_tokens = tokens * accumulate
        twice = training.pace(
            profile, counts, size, pieces, machine, minutes, self.max_updates, update_tokens, passes=2
        ).value
        r_drop = training.r_drop(profile, size, twice.epochs, twice.updates)
        r_drop_given = said(given, "objective.r_drop")
        passes = 2 if (r_drop.value if r_drop_given is None else r_drop_given) else 1
        pace = training.pace(
            profile, counts, size, pieces, machine, minutes, self.max_updates, update_tokens, passes
        )
        updates, epochs = pace.value.updates, pace.value.epochs
        self._because("updates", pace.reason)
        dropped = self._told("dropout", training.dropout(profile, size, epochs), show_value=True)
        rate = self._told(
            "learning rate", training.learning_rate(size, update_tokens, passes > 1), show_value=True
        )
        if r_drop.value:
            self._because("regularisation", r_drop.reason)
        invented = training.invented(profile, kind, tokenizer["joint"])
        if invented.value:
            self._because("invented pairs", invented.reason)
        careless = training.source_noise(profile, machine, kind)
        if careless.value and any(said(given, name) for name in _WITHOUT_NOISE):
            careless = Choice(0.0, "")
        if careless.value:
            self._because("careless sources", careless.reason)
        objective = {"r_drop": r_drop.value, "invented": invented.value, "source_noise": careless.value}
        metric = self._told("metric", training.metric(profile), show_value=True)
        budgeted = minutes is not None and self.max_updates is None
        validation = self._told("validation", training.validation(profile, machine, updates, budgeted))
        if limits.value:
            self._because("search", limits.reason)
        sections: dict[str, dict[str, Any]] = {
            "tokenizer": tokenizer,
            "model": self._model(size, dropped, longest, tokenizer["joint"], updates),
            "objective": {"label_smoothing": 0.1, **{name: n for name, n in objective.items() if n}},
            "optim": {"name": "adamw", "rate": rate, "weight_decay": 0.01},
            "schedule": {"name": self._schedule(), "warmup": _warmup(updates, size.warmup)},
            "train": {
                **({"max_updates": updates} if not positive(given, "train.max_epochs") else {}),
                **({"max_minutes": minutes} if minutes is not None else {}),
                "batch_tokens": tokens,
                "accumulate": accumulate,
                "ema": training.averaging(updates),
                "metric": metric,
                "patience": _PATIENCE,
                **validation,
                **size.train,
            },
            "search": limits.value,
        }
        if clean:
            sections["data"] = {"clean": clean}
        measured = pace.value.update_seconds if minutes is not None else None
        return Chosen(sections, self.reasons, cleaned.shown, measured, updates, epochs / (1 + invented.value))

    def _schedule(self) -> str:
        """The rate decays to 0 at the end, if the end is known in advance and comes after the warm-up."""
        warmup = positive(self.given, "schedule.warmup") or 0
        if self.max_updates is not None and self.max_updates <= warmup:
            return "inverse_sqrt"
        train = self.given.get("train")
        by_patience = isinstance(train, Mapping) and "patience" in train and self.max_updates is None
        ends = self.minutes is not None or self.max_updates is not None
        unknown = positive(self.given, "train.max_epochs") or by_patience
        return "linear" if ends or not unknown else "inverse_sqrt"

    def _model(
        self, size: ModelSize, dropout: float, longest: int, joint: bool, updates: int
    ) -> dict[str, Any]:
        family = family_of(_mapping(self.given.get("model")))
        if family not in (None, "transformer", "rnn", "convs2s"):
            return {}
        section = {**size.model, "dropout": dropout}
        if family == "convs2s":
            section["max_positions"] = max(512, longest + 2)
        if family is None and (positions := training.positions(self.profile)).value != "sinusoidal":
            section["positions"] = positions.value
            self._because("positions", f"{positions.value}: {positions.reason}")
        own = _mapping(self.given.get("model"))
        if (
            "copy" not in own
            and _attends(own)
            and (copying := training.copying(self.profile, self.machine, joint, updates)).value
        ):
            section["copy"] = True
            self._because("copying", copying.reason)
        return section

    def _because(self, name: str, reason: str) -> None:
        self.reasons.append((name, reason))

    def _told(self, name: str, choice: Choice[Any], show_value: bool = False) -> Any:
        self._because(name, f"{choice.value}: {choice.reason}" if show_value else choice.reason)
        return choice.value

    def _tokenizer(self) -> dict[str, Any]:
        own = _mapping(self.given.get("tokenizer"))
        chosen = tokenizer_kind(self.profile)
        section = chosen.value if own.get("kind") in (None, chosen.value["kind"]) else {"kind": own["kind"]}
        kind = section["kind"]
        why = chosen.reason if section is chosen.value else "as given"
        joint = joint_vocabulary(self.profile, kind)
        together = own["joint"] if isinstance(own.get("joint"), bool) else joint.value
        size = self._affordable(kind, vocabulary_size(self.profile, kind, together))
        self._because("tokenizer", f"{kind}: {why}")
        number = "one vocabulary" if together else "two vocabularies"
        self._because("vocabulary size", f"up to {size.value:,}, {size.reason}; {number}: {joint.reason}")
        return {**section, "joint": together, "vocab_size": size.value}

    def _affordable(self, kind: str, size: Choice[int]) -> Choice[int]:
        """The vocabulary size, limited for a narrow model on a CPU, which would otherwise spend most of its
        time on the output layer."""
        free = family_of(_mapping(self.given.get("model"))) is None
        if self.machine.gpu or kind != "bpe" or size.value <= _OF_NARROW or not free:
            return size
        counts = count_tokens(self.profile, kind)
        model = model_size(self.profile, counts, size.value, self.machine, self.minutes).value
        if model.width > TINY.width:
            return size
        return Choice(_OF_NARROW, "since more would take most of the time of a small model")

    def _size(self, counts: TokenCounts, pieces: int) -> ModelSize:
        own = _mapping(self.given.get("model"))
        family = family_of(own)
        profile = self.profile
        if family in ("rnn", "convs2s"):
            size = (
                recurrent(profile, self.machine, _free_attention(own))
                if family == "rnn"
                else convolutional(profile)
            )
            self._because("model size", f"width {size.width}, for {profile.pairs:,} pairs")
            return size
        free = model_size(profile, counts, pieces, self.machine, self.minutes)
        if family is None:
            self._because(
                "model size", f"{free.value.layers} layers of width {free.value.width}, {free.reason}"
            )
            return free.value
        self._because("model size", "as given")
        named = size_of_preset(own.get("preset"))
        if named is not None:
            return dataclasses.replace(named, model={"norm": "pre"})
        return dataclasses.replace(free.value, model={}, rate=min(free.value.rate, _CAREFUL_RATE))

    def _batch(self, counts: TokenCounts, size: ModelSize, pieces: int, longest: int) -> tuple[int, int]:
        chosen = training.batch(self.profile, counts, size, pieces, self.machine, self.minutes, longest)
        tokens = positive(self.given, "train.batch_tokens")
        accumulate = positive(self.given, "train.accumulate")
        if tokens is None and accumulate is None:
            times = f"{chosen.value[1]} × " if chosen.value[1] > 1 else ""
            self._because("batch size", f"{times}{chosen.value[0]:,} tokens: {chosen.reason}")
        return int(tokens or chosen.value[0]), int(accumulate or chosen.value[1])


_USUAL_LENGTH = CleanConfig().max_length
_OF_NARROW = 4000
"""Largest vocabulary of a narrow model on a CPU."""


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _given_cut(given: Mapping[str, Any]) -> Choice[int | None] | None:
    """The user's choice of `cut_source`. Sources are not cut if the user has set `max_length`."""
    cut = positive(given, "data.clean.cut_source")
    if cut is None and positive(given, "data.clean.max_length") is None:
        return None
    return Choice(cut, f"sources are cut at {cut} pieces, as given")


def _free_attention(model: Mapping[str, Any]) -> bool:
    """Whether a recurrent model has attention whose kind the user has not chosen."""
    return _attends(model) and not {"attention", "wiring", "input_feeding", "attention_dim"} & set(model)


def _attends(model: Mapping[str, Any]) -> bool:
    """Whether a model has attention, or may have it. One without is not given a copy of its source either."""
    named = PRESETS.get(str(model.get("preset")))
    usual = getattr(named.make(), "attention", None) if named is not None else None
    return model.get("attention", usual) != "none"


def _pieces(profile: Profile, tokenizer: Mapping[str, Any]) -> int:
    """Approximate size of the target vocabulary."""
    if tokenizer["kind"] == "bpe":
        return int(tokenizer["vocab_size"])
    return 260 + profile.tgt.alphabet + min(500, profile.tgt.word_types)


def _warmup(updates: int, most: int) -> int:
    return min(max(100, updates // 10), most, updates // 2)
