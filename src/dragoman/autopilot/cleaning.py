"""Choice of the cleaning rules. No rule drops more than one pair in a hundred unless the user asks for it. A
rule that would is relaxed to fit the corpus, and the plan shows pairs that it concerns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.autopilot.choice import Choice, percent
from dragoman.autopilot.kinds import is_summary, looks_of
from dragoman.autopilot.profile import Profile, SampledPair, quantile
from dragoman.autopilot.tokens import TokenCounts, count_tokens, fewest_tokens
from dragoman.data.config import CleanConfig
from dragoman.data.drop_reasons import SHORT_FOR_RATIO
from dragoman.decode.search.config import SearchConfig

MOST = 0.01
"""Largest share of the pairs that a rule may drop by default."""
_SAFE = 0.003
"""Share that a relaxed rule drops in the sample. Lengths in pieces are only estimates."""
_MARGIN = 1.5
_LONGEST = 8192
"""Largest length in pieces. Memory and time grow with the square of the length."""
_ROOM = 1.3
"""Factor by which outputs may be longer than the training targets."""
_REPEATING = 0.001
_CUT, _MOST_READ = 0.75, 512
"""For summaries: the quantile of source lengths that are read, and the largest number of pieces."""
_USUAL = CleanConfig()
_SEARCH = SearchConfig()
_SHOWN = 3


@dataclass(frozen=True)
class Cleaning:
    section: dict[str, Any]
    """Fields of `data.clean` that differ from their defaults."""
    shown: tuple[SampledPair, ...] = ()
    """Pairs that the default rules would have dropped."""


def cleaning(profile: Profile, kind: str, cut: Choice[int | None] | None = None) -> Choice[Cleaning]:
    """Choose the cleaning rules. `cut` is the user's choice of `cut_source`, or one derived from it."""
    counts = count_tokens(profile, kind)
    section: dict[str, Any] = {}
    reasons = []
    shown: list[SampledPair] = []
    cut = cut or cut_source(profile, counts)
    if cut.value is not None:
        section["cut_source"] = cut.value
        reasons.append(cut.reason)
        counts = counts.cut(cut.value)
    length = max_length(counts)
    longest = max(length.value, cut.value or 0)
    if longest != _USUAL.max_length:
        section["max_length"] = longest
        reasons.append(length.reason)
        shown += _longest(profile)
    fewest = fewest_tokens(profile, kind)
    ratio = max_ratio(counts, fewest if cut.value is None else fewest.cut(cut.value))
    if ratio.value != _USUAL.max_ratio:
        section["max_ratio"] = ratio.value
        reasons.append(ratio.reason)
        shown += _most_uneven(profile)
    if profile.duplicate_share > MOST:
        section["drop_duplicates"] = False
        reasons.append(
            f"{percent(profile.duplicate_share)} of the pairs occurred before and are kept "
            "(data.clean.drop_duplicates=true drops them)"
        )
    reason = "; ".join(reasons) or "the usual rules leave out less than 1%"
    return Choice(Cleaning(section, tuple(dict.fromkeys(shown))[:_SHOWN]), reason)


def cut_source(profile: Profile, counts: TokenCounts) -> Choice[int | None]:
    """Number of source pieces that are read. Key facts are mostly at the beginning of a text."""
    if not is_summary(profile):
        return Choice(None, "sources are read as a whole")
    longest = -(-int(quantile(sorted(counts.src), _CUT) * _MARGIN) // 64) * 64
    most = max(_USUAL.max_length, min(_MOST_READ, longest))
    return Choice(most, f"outputs are summaries, so sources are cut at {most:,} pieces and not left out")


def max_length(counts: TokenCounts) -> Choice[int]:
    """Largest number of pieces per side."""
    longer = sorted(counts.longer)
    too_long = _share(longer, _USUAL.max_length / 1.25)
    if too_long <= _SAFE:
        return Choice(_USUAL.max_length, "hardly any line is longer")
    wanted = int(quantile(longer, 1 - _SAFE) * _MARGIN)
    value = min(_LONGEST, -(-wanted // 64) * 64)
    return Choice(
        max(_USUAL.max_length, value),
        f"{percent(too_long)} of the pairs have a side of more than {_USUAL.max_length} pieces, so up to "
        f"{value:,} are allowed",
    )


def max_ratio(counts: TokenCounts, fewest: TokenCounts) -> Choice[float]:
    """Largest ratio of the longer to the shorter side, given that the shorter one may have the `fewest`
    pieces."""
    sides = zip(counts.src, counts.tgt, fewest.src, fewest.tgt, strict=True)
    ratios = sorted(
        max(src / max(1, few_tgt), tgt / max(1, few_src))
        for src, tgt, few_src, few_tgt in sides
        if max(src, tgt) * 1.25 > SHORT_FOR_RATIO
    )
    uneven = _share(ratios, _USUAL.max_ratio / 1.25) * len(ratios) / max(1, len(counts.src))
    if uneven <= _SAFE:
        return Choice(_USUAL.max_ratio, "hardly any pair is so uneven")
    value = float(math.ceil(quantile(ratios, 1 - _SAFE) * 2))
    return Choice(
        max(_USUAL.max_ratio, value),
        f"{percent(uneven)} of the pairs are more uneven than 1 : {_USUAL.max_ratio:g}, so up to "
        f"1 : {value:g} is allowed",
    )


def _share(ordered: Sequence[float], limit: float) -> float:
    """Share of the values above `limit`."""
    return sum(value > limit for value in ordered) / max(1, len(ordered))


def _longest(profile: Profile) -> list[SampledPair]:
    def size(example: SampledPair) -> int:
        return max(example.lengths.src_characters, example.lengths.tgt_characters)

    return sorted(profile.examples, key=size, reverse=True)[:_SHOWN]


def _most_uneven(profile: Profile) -> list[SampledPair]:
    def ratio(example: SampledPair) -> float:
        return abs(math.log(example.lengths.tgt_characters / example.lengths.src_characters))

    return sorted(profile.examples, key=ratio, reverse=True)[:_SHOWN]


def search_limits(profile: Profile, kind: str) -> Choice[dict[str, Any]]:
    """Limits on the length of outputs, and whether they may repeat themselves. The defaults are for
    translation."""
    counts = count_tokens(profile, kind)
    section: dict[str, Any] = {}
    reasons = []
    ratios = sorted(
        (_ROOM * tgt - _SEARCH.max_extra) / (src + 1) for src, tgt in zip(counts.src, counts.tgt, strict=True)
    )
    ratio = quantile(ratios, 0.999)
    if ratio > _SEARCH.max_ratio:
        section["max_ratio"] = float(math.ceil(ratio))
        reasons.append(f"outputs may have {math.ceil(ratio)} times the pieces of the source")
    elif counts.src_mean > 4 * counts.tgt_mean:
        longest = -(-int(2 * max(counts.tgt)) // 10) * 10 + 20
        section["max_length"] = longest
        reasons.append(f"outputs have at most {longest} pieces, for targets are short")
    looks = looks_of(profile.tgt, profile.pairs)
    if profile.brackets and (looks.formal or looks.closed):
        section["brackets"] = profile.brackets
        reasons.append(f"outputs keep the brackets {profile.brackets} valid, as all targets do")
    if profile.repeating > _REPEATING:
        section["loop_guard"] = False
        reasons.append(f"{percent(profile.repeating)} of the targets repeat themselves, so outputs may too")
    return Choice(section, "; ".join(reasons))
