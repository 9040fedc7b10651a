"""A choice of the autopilot: a value with its reason in words; and the result with all choices."""

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
    """Sections of a configuration as plain dicts. The section `data` only has fields that differ from their
    defaults."""
    reasons: list[tuple[str, str]]
    """The choices and their reasons, for display."""
    shown: tuple[SampledPair, ...] = ()
    """Pairs that the default cleaning rules would have dropped."""
    update_seconds: float | None = None
    """Estimated seconds per update on this machine. None if no choice depends on it."""
    updates: int | None = None
    """Approximate number of updates."""
    epochs: float = 0.0


def said(given: Mapping[str, Any], dotted: str) -> Any:
    """The value that the user set for a field such as `train.batch_tokens`, or None."""
    value: Any = given
    for name in dotted.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def positive(given: Mapping[str, Any], dotted: str) -> Any:
    """The user's value if it is a number above 0. Other values are refused later, when the configuration is
    read."""
    value = said(given, dotted)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def round_down(number: float) -> int:
    """Round down to two leading digits: 13,742 becomes 13,000."""
    whole = max(0, int(number))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return whole // unit * unit


def percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1%"
    return f"{100 * share:.1f}%" if share < 0.1 else f"{100 * share:.0f}%"
