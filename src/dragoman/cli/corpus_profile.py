"""The profile of a corpus as rows of a table and as plain data."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.autopilot.profile import Profile, SideProfile


def profile_rows(profile: "Profile") -> list[list[str]]:
    """Name, source, target."""
    from dragoman.autopilot.kinds import looks_of

    def both(name: str, show: Any) -> list[str]:
        return [name, *(show(side) for side in (profile.src, profile.tgt))]

    lines = max(1, profile.pairs)
    return [
        both("kind of text", lambda side: looks_of(side, profile.pairs).name),
        both("words per line, mean", lambda side: f"{side.words / lines:.1f}"),
        both("  1%, median, 99%", lambda side: ", ".join(str(side.words_a_line[n]) for n in (1, 4, 7))),
        both("lines of one word", lambda side: _percent(side.single_words / lines)),
        both("different words", lambda side: f"{side.word_types:,} of {side.word_tokens:,}"),
        both("words that occur ten times", lambda side: _percent(side.frequent_words)),
        both("different characters", lambda side: f"{side.alphabet:,}"),
        both("scripts", _scripts),
        both("digits", lambda side: _percent(side.digits)),
        both("brackets, operators", lambda side: _percent(side.code)),
        both("lines with tags (N;PL)", lambda side: _percent(side.tags)),
        both("longest line, characters", lambda side: f"{side.longest:,}"),
    ]


def pair_rows(profile: "Profile") -> list[list[str]]:
    """Name and value, of both sides together."""
    ratios = [math.exp(value) for value in profile.log_ratios]
    return [
        ["length of target / source: 1%, median, 99%", ", ".join(f"{ratios[n]:.2f}" for n in (1, 4, 7))],
        ["similarity of letter frequencies", _percent(profile.shared_letters)],
        ["target characters that occur in the source", _percent(profile.overlap)],
        ["  beyond chance", _percent(profile.copied_letters)],
        ["rare target words that occur in the source, beyond chance", _percent(profile.copied_words)],
        ["targets that repeat themselves", _percent(profile.repeating)],
    ]


def _scripts(side: "SideProfile") -> str:
    frequent = [(name.capitalize(), share) for name, share in side.scripts[:2] if share > 0.01]
    return ", ".join(f"{name} {_percent(share)}" for name, share in frequent)


def _percent(share: float) -> str:
    from dragoman.autopilot.choice import percent

    return percent(share)


def plain_profile(profile: "Profile") -> dict[str, Any]:
    """The profile as a dict, without the sample."""
    from dataclasses import asdict

    return {name: value for name, value in asdict(profile).items() if name not in ("lengths", "examples")}
