"""What a choice is: a value, and the reason for it in words; and all of them together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dragoman.autopilot.profile import SampledPair

T = TypeVar("T")


@dataclass(frozen=True)
class Choice(Generic[T]):
    value: T
    reason: str


@dataclass(frozen=True)
class Chosen:
    sections: dict[str, dict[str, Any]]
    """Plain sections of a configuration. Of `data`, only fields that are not left as they are by default."""
    reasons: list[tuple[str, str]]
    """What was chosen and why, for people."""
    shown: tuple[SampledPair, ...] = ()
    """Pairs that the usual rules of cleaning would have left out."""
    update_seconds: float | None = None
    """What an update is taken to cost on this machine; None where nothing depends on it."""
    updates: int | None = None
    """How many there will be, about."""
    epochs: float = 0.0


def said(given: Mapping[str, Any], dotted: str) -> Any:
    """What a person has said about a field, such as `train.batch_tokens`; None where nothing."""
    value: Any = given
    for name in dotted.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def positive(given: Mapping[str, Any], dotted: str) -> Any:
    """The same of a number above 0. Anything else is refused where the configuration is read."""
    value = said(given, dotted)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def round_down(number: float) -> int:
    """To two leading digits: 13,742 becomes 13,000."""
    whole = max(0, int(number))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return whole // unit * unit


def percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1%"
    return f"{100 * share:.1f}%" if share < 0.1 else f"{100 * share:.0f}%"
