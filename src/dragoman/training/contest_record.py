"""The record of a contest between configurations: the contenders and all results so far."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.autopilot.contenders import Contender
from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError
from dragoman.files import beside, read_regular
from dragoman.runs.config import LOWER_IS_BETTER

CONTEST = "contest.json"
_LIMIT = 1 << 20


@dataclass(frozen=True)
class Result:
    """The result of one contender in one round."""

    name: str
    updates: int = 0
    value: float | None = None
    """Value of the metric; None if the contender failed."""
    nll: float | None = None
    """Negative log-likelihood per validation target (not per token), comparable across tokenizers."""
    failed: str | None = None


@dataclass(frozen=True)
class Round:
    seconds: float
    """Training time of each contender at the end of the round."""
    names: tuple[str, ...]
    results: tuple[Result, ...] = ()


@dataclass(frozen=True)
class Contest:
    asked: str
    """The arguments of the command, to recognise an interrupted contest."""
    minutes: float
    """Budget of the whole command."""
    unit: float
    """Seconds per contender in the first round."""
    train: dict[str, Any]
    """The winner's `train` section; contenders have their own."""
    reasons: tuple[tuple[str, str], ...]
    speed: float
    contenders: tuple[Contender, ...]
    rounds: tuple[Round, ...] = ()
    elapsed: float = 0.0
    """Elapsed seconds of the command."""
    winner: str | None = None
    """The winner's name; None before the end."""

    def told(self) -> list[tuple[str, str]]:
        """One row per contender: what it changes, and its results."""
        return [(each.name, f"{each.told}: {self._way(each.name)}") for each in self.contenders]

    def _way(self, name: str) -> str:
        found = [result for each in self.rounds for result in each.results if result.name == name]
        if not found or found[-1].failed:
            return "failed" if found else "not tried"
        values = " → ".join(f"{result.value:.4g}" for result in found)
        told = f"{values} after {found[-1].updates:,} updates"
        return f"{told}, the winner" if name == self.winner else told


def directory_of(out: Path) -> Path:
    return beside(out, ".search")


def read_contest(directory: Path) -> Contest | None:
    """The record of a contest, or None if there is none."""
    path = directory / CONTEST
    if not path.is_file():
        return None
    try:
        return from_dict(Contest, json.loads(read_regular(path, _LIMIT)), str(path))
    except (ValueError, TypeError):
        raise UserError(f"{path}: damaged: this is not the record of a contest") from None


def encoded(contest: Contest) -> bytes:
    return json.dumps(to_dict(contest), indent=1, ensure_ascii=False).encode()


def ranked(results: Sequence[Result], metric: str) -> list[str]:
    """Names, the best first: by the mean of two ranks, that of the metric and that of the likelihood. Early
    on a metric may be 0 for all; later the likelihood alone would favour the sure over the right."""
    sign = 1 if metric in LOWER_IS_BETTER else -1
    whole = [result for result in results if result.failed is None]

    def rank(value: float, values: Sequence[float]) -> float:
        return sum(other < value for other in values) + sum(other == value for other in values) / 2

    def score(result: Result) -> tuple[float, float]:
        values, nlls = [sign * (r.value or 0.0) for r in whole], [r.nll or 0.0 for r in whole]
        place = rank(sign * (result.value or 0.0), values) + rank(result.nll or 0.0, nlls)
        return place, result.nll or 0.0

    broken = [result.name for result in results if result.failed is not None]
    return [result.name for result in sorted(whole, key=score)] + broken
