"""The candidates of a short comparison with the default: one change each, based on the profile and the
choices."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.autopilot.kinds import is_spelt, looks_of
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.sizes import LADDERS, ModelSize

DEFAULT = "default"
_COUNTS = (8, 6, 4, 3, 2)
"""Possible numbers of candidates; the largest that time allows is used."""
_MOST_FOR_R_DROP = 100_000
_LETTERS_A_LINE = 60
"""Largest mean length of a side in characters for which a character vocabulary is tried."""
_FEWEST_PIECES = 500
_OF_SIZE = ("preset", "num_layers", "model_dim", "ff_dim")
"""Fields of `model` that differ between sizes."""


@dataclass(frozen=True)
class Contender:
    name: str
    overrides: tuple[str, ...]
    """Fields that differ from the default. Dependent choices follow them."""

    @property
    def told(self) -> str:
        return ", ".join(self.overrides) or "as planned"


def contenders(
    profile: Profile, sections: Mapping[str, Mapping[str, Any]], given: Collection[str]
) -> list[Contender]:
    """The default first, then the candidates, those that help most often first. `given` are the dotted fields
    and sections that the user has set; no candidate changes those."""

    def is_free(override: str) -> bool:
        field = override.partition("=")[0]
        return field not in given and field.partition(".")[0] not in given

    def is_whole(contender: Contender) -> bool:
        return all(map(is_free, contender.overrides))

    return [Contender(DEFAULT, ()), *filter(is_whole, _changes(profile, sections, given))]


def _changes(
    profile: Profile, sections: Mapping[str, Mapping[str, Any]], given: Collection[str]
) -> Iterator[Contender]:
    model, train = sections.get("model", {}), sections.get("train", {})
    rate, tokens = sections["optim"]["rate"], train.get("batch_tokens")
    sized = not any(field in given for field in ("model.preset", "model.kind", "model.model_dim"))
    if sized:
        yield from _sizes(profile, model)
    yield from _tokenizers(profile, sections["tokenizer"])
    yield Contender("higher-rate", (f"optim.rate={2 * rate:.3g}",))
    yield from _regularised(profile, sections)
    if tokens:
        yield Contender("smaller-batch", (f"train.batch_tokens={tokens // 2}",))
    if model.get("copy"):
        yield Contender("no-copying", ("model.copy=false",))
    yield Contender("lower-rate", (f"optim.rate={rate / 2:.3g}",))
    dropout = model.get("dropout")
    if dropout is not None:
        less = dropout >= 0.2
        changed = round(dropout - 0.1 if less else dropout + 0.1, 3)
        yield Contender("less-dropout" if less else "more-dropout", (f"model.dropout={changed}",))


def _sizes(profile: Profile, model: Mapping[str, Any]) -> Iterator[Contender]:
    """The next smaller model, or the next larger one if there is none."""
    ladder = LADDERS[is_spelt(profile)]
    here = next((n for n, size in enumerate(ladder) if _is_of(size, model)), None)
    if here is None:
        return
    other = ladder[here - 1 if here else 1]
    overrides = [f"model.{name}={other.model[name]}" for name in _OF_SIZE if name in other.model]
    if "positions" in model:
        overrides.append(f"model.positions={model['positions']}")
    yield Contender("smaller-model" if here else "larger-model", tuple(overrides))


def _is_of(size: ModelSize, model: Mapping[str, Any]) -> bool:
    return all(model.get(name) == size.model.get(name) for name in _OF_SIZE)


def _tokenizers(profile: Profile, tokenizer: Mapping[str, Any]) -> Iterator[Contender]:
    kind, pieces = tokenizer.get("kind"), tokenizer.get("vocab_size", 0)
    if kind == "bpe" and pieces >= 2 * _FEWEST_PIECES:
        yield Contender("fewer-pieces", (f"tokenizer.vocab_size={pieces // 2}",))
    elif (kind == "bpe" and _is_short(profile)) or kind == "word":
        yield Contender("characters", ("tokenizer.kind=char",))
    elif kind == "char" and looks_of(profile.src, profile.pairs).tagged:
        often = max(5, profile.pairs // 500)
        yield Contender("whole-features", ("tokenizer.kind=word", f"tokenizer.min_frequency={often}"))


def _is_short(profile: Profile) -> bool:
    return profile.characters / max(1, profile.pairs) <= 2 * _LETTERS_A_LINE


def _regularised(profile: Profile, sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Contender]:
    if profile.pairs >= _MOST_FOR_R_DROP or "preset" not in sections.get("model", {}):
        return
    weight = sections.get("objective", {}).get("r_drop", 0.0)
    if weight:
        yield Contender("no-r-drop", ("objective.r_drop=0",))
    else:
        yield Contender("r-drop", (f"objective.r_drop={3 if is_spelt(profile) else 5}",))


def rungs(count: int) -> list[tuple[int, int]]:
    """The number of candidates in each round, and the units of time up to which they are trained. Half of
    them, rounded up, go on to the next round with twice the time."""
    found, units = [], 1
    while count > 1:
        found.append((count, units))
        count, units = -(-count // 2), 2 * units
    return found


def total_units(count: int) -> int:
    """Units of time that all rounds take together."""
    before, total = 0, 0
    for trained, units in rungs(count):
        total += trained * (units - before)
        before = units
    return total


def affordable(candidates: int, seconds: float, least: float) -> int:
    """The number of candidates that can be trained for at least `least` seconds each in the first round. 0 if
    fewer than two."""
    return next((n for n in _COUNTS if n <= candidates and total_units(n) * least <= seconds), 0)
