"""Training settings: batch size, updates, learning rate, regularisation, validation."""

import math
from dataclasses import dataclass
from typing import Any

from dragoman.autopilot.choice import Choice, percent, round_down
from dragoman.autopilot.kinds import MOSTLY_COPIED, Kind, is_spelt, is_summary, kind_of, looks_of
from dragoman.autopilot.machine import Machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.sizes import FEWEST_TOKENS, TINY, ModelSize, learning_seconds
from dragoman.autopilot.tokens import TokenCounts
from dragoman.extras import EXTRAS, install_command

_UPDATES_AN_EPOCH = {"gpu": 5, "cpu": 35}
"""Number of updates per epoch that the batch size should allow. On a GPU, smaller batches would leave it
idle."""
_PAIRS_AT_ONCE = 400
"""Smallest number of pairs of words per update (Wu, Cotterell & Hulden 2021)."""
_UPDATES_IN_TIME = 4000
"""Number of updates in the given time that the batch size should allow."""
_ENOUGH_UPDATES = 3000
"""With fewer updates than this, smaller batches train better on a GPU."""
_FEW_UPDATES = 1000
"""With fewer updates than this, the smallest batch is halved on a CPU: 500 pairs of sentences and the same
number of tokens gave 24.1 chrF instead of 20.7."""
_SMALLEST_SHARE = 0.25
_MOST_ON_CPU = 4096
_VALIDATIONS = 30
_EPOCHS = ((10_000, 200), (100_000, 100), (500_000, 40), (5_000_000, 20))
_MOST_UPDATES = {"gpu": 100_000, "cpu": 20_000}
_WORD_UPDATES = {"gpu": 20_000, "cpu": 10_000}
_R_DROP_EPOCHS = (50, 150)
"""Number of two-pass epochs that must fit into the time. The first number is for fewer than 15,000 pairs of
words and for more than 20,000 pairs of sentences."""
_R_DROP_SMALL_WORDS, _R_DROP_SMALL = 15_000, 20_000
_R_DROP_UPDATES = 2000
"""Smallest number of updates with two passes each."""
_R_DROP_RATE = 1.1
"""Factor of the learning rate with R-Drop."""
_MUCH_COPIED = 0.4
"""Mean share of the target covered by its longest common substring with the source."""
_FEW_WORDS, _REAL_AND_INVENTED, _MOST_INVENTED = 600, 2000, 10
"""With 100 pairs, ten invented pairs each were a large gain; with 1,000 pairs they were a loss."""
_LOWEST_SCALE = 0.7
"""Lowest factor of the learning rate, however small the batch."""
_FEW_FOR_POSITIONS = 20_000
_COPIED_WORDS, _COPIED_NAMES = 0.5, 0.8
"""Smallest share of copied rare words for which copying is used: for formal text, and for all other text.
Translations have less than 0.4."""
_COPIED_LETTERS, _COPIED_SPELT = 0.5, 0.35
"""On a CPU with time for few updates: the same for the letters of targets that another source does not have,
for sentences that are mostly copied, and for words. Translations have at most 0.4, pronunciations 0.33."""
_UPDATES_TO_COPY = 1000
"""Largest number of updates for which letters are a reason to copy. After 1,200 updates Turkish lemmas were
learned as well without copying, and better from then on."""
_WORDS_TO_COPY = 3000
"""Number of words up to which any number of updates is few. With 1,000 Turkish words copying was still better
after 2,000 updates, with 10,000 Finnish words it was not."""
_MOST_FOR_COPYING = {"gpu": 30_000, "cpu": 100_000}
"""Largest number of pairs for copying. On a GPU an update with copying takes as long as two without."""
_TREES = 0.999
_KNOWN_WORDS = 0.5
"""Share of frequent words from which outputs are sentences."""
_CARELESS = 0.0
"""Share of sources with noise. 0 until benchmarks/robust.py has shown that it costs nothing on clean text."""
_DROPOUT_BY_PAIRS = ((100_000, 0.3), (500_000, 0.2))
_WORD_DROPOUT_BY_PAIRS = ((20_000, 0.3), (40_000, 0.2))
_DROPOUT_BY_EPOCHS = ((4.0, 0.1), (12.0, 0.15), (40.0, 0.2))


@dataclass(frozen=True)
class TimeAllowance:
    """The number of updates that fit into the time."""

    updates: int
    epochs: float
    update_seconds: float


def batch(
    profile: Profile,
    counts: TokenCounts,
    size: ModelSize,
    pieces: int,
    machine: Machine,
    minutes: float | None,
    longest: int,
) -> Choice[tuple[int, int]]:
    """Tokens per batch, and batches per update."""
    a_pair = counts.longer_mean + 1
    wanted, reason = size.batch_tokens, "as large as this model is trained with"
    if is_spelt(profile):
        wanted = max(wanted, int(_PAIRS_AT_ONCE * a_pair))
    many = _UPDATES_AN_EPOCH["gpu" if machine.gpu else "cpu"]
    if counts.batched // many < wanted:
        wanted, reason = counts.batched // many, f"about {many} updates an epoch"
    if not machine.gpu:
        seconds = size.seconds(counts, pieces, machine, 1)
        in_time = int(learning_seconds(machine, minutes) / seconds * a_pair / _UPDATES_IN_TIME)
        if min(in_time, _MOST_ON_CPU) < wanted:
            wanted = min(in_time, _MOST_ON_CPU)
            reason = "small enough for some thousand updates in the time"
    elif (in_time := _updates_in(size, counts, pieces, machine, minutes, wanted / a_pair)) < _ENOUGH_UPDATES:
        wanted = int(wanted * max(_SMALLEST_SHARE, in_time / _ENOUGH_UPDATES))
        reason = "smaller, since time allows few updates"
    fewest = _fewest_tokens(size, counts, pieces, machine, minutes)
    if wanted < fewest:
        wanted, reason = fewest, "the smallest, because there is little data or time"
    fits = machine.gpu_bytes // (2 * size.gpu_bytes_per_token) if machine.gpu else _MOST_ON_CPU
    accumulate = -(-wanted // max(1024, fits))
    tokens = round_down(wanted / accumulate)
    if longest + 2 > tokens:
        tokens, reason = longest + 2, f"with room for a line of {longest:,} pieces"
    return Choice((tokens, accumulate), reason)


def _fewest_tokens(
    size: ModelSize, counts: TokenCounts, pieces: int, machine: Machine, minutes: float | None
) -> int:
    """Smallest number of tokens in a batch. If there is time for only a few hundred updates, half the tokens
    teach nearly as much per update."""
    updates = _updates_in(size, counts, pieces, machine, minutes, FEWEST_TOKENS / (counts.longer_mean + 1))
    return FEWEST_TOKENS // 2 if updates < _FEW_UPDATES and not machine.gpu else FEWEST_TOKENS


def pace(
    profile: Profile,
    counts: TokenCounts,
    size: ModelSize,
    pieces: int,
    machine: Machine,
    minutes: float | None,
    max_updates: int | None,
    update_tokens: int,
    passes: int = 1,
) -> Choice[TimeAllowance]:
    """The number of updates."""
    pairs_an_update = max(1.0, update_tokens / (counts.longer_mean + 1))
    an_epoch = max(1.0, counts.pairs / pairs_an_update)
    seconds = size.seconds(counts, pieces, machine, passes * pairs_an_update)
    in_time = learning_seconds(machine, minutes) / seconds
    if max_updates is not None:
        return Choice(TimeAllowance(max_updates, max_updates / an_epoch, seconds), "as given")
    if minutes is not None:
        updates = max(100, round_down(in_time))
        return Choice(TimeAllowance(updates, updates / an_epoch, seconds), "as many as there is time for")
    where = "gpu" if machine.gpu else "cpu"
    if is_spelt(profile):
        wanted, most = _WORD_UPDATES[where], _WORD_UPDATES[where]
    else:
        epochs = next((epochs for limit, epochs in _EPOCHS if profile.pairs < limit), 10)
        wanted, most = int(epochs * an_epoch), _MOST_UPDATES[where]
    updates = min(most, max(500, wanted))
    if not machine.gpu:
        updates = max(500, min(updates, int(in_time)))
    updates = round_down(updates)
    return Choice(TimeAllowance(updates, updates / an_epoch, seconds), f"{updates / an_epoch:.0f} epochs")


def dropout(profile: Profile, size: ModelSize, epochs: float) -> Choice[float]:
    table = _WORD_DROPOUT_BY_PAIRS if is_spelt(profile) else _DROPOUT_BY_PAIRS
    by_pairs = next((rate for limit, rate in table if profile.pairs < limit), 0.1)
    by_epochs = next((rate for limit, rate in _DROPOUT_BY_EPOCHS if epochs < limit), 1.0)
    low, high = size.dropout
    if kind_of(profile) is Kind.NUMBERS:
        return Choice(low, "outputs are computed from every digit")
    value = min(high, max(low, min(by_pairs, by_epochs)))
    if size.name in ("rnn", "convs2s") and profile.pairs < 100_000 and epochs >= 12:
        value = high
    often = f"each pair is seen about {epochs:.0f} times" if epochs >= 2 else "few pairs are seen twice"
    return Choice(value, often)


def _updates_in(
    size: ModelSize, counts: TokenCounts, pieces: int, machine: Machine, minutes: float | None, pairs: float
) -> float:
    """Number of updates of `pairs` pairs that fit into the time."""
    return learning_seconds(machine, minutes) / size.seconds(counts, pieces, machine, pairs)


def r_drop(profile: Profile, size: ModelSize, epochs: float, updates: int) -> Choice[float]:
    """The weight of R-Drop. Its second pass pays off for a small corpus that is seen very often, in many
    updates."""
    spelt = is_spelt(profile)
    small = _R_DROP_SMALL_WORDS if spelt else _R_DROP_SMALL
    least = _R_DROP_EPOCHS[0 if (profile.pairs < small) == spelt else 1]
    often = epochs >= least and updates >= _R_DROP_UPDATES
    if kind_of(profile) is Kind.NUMBERS:
        return Choice(0.0, "no R-Drop: outputs are computed from every digit")
    if size is TINY if spelt else profile.overlap >= MOSTLY_COPIED:
        return Choice(0.0, "no R-Drop: the model is small, or outputs are mostly copied")
    if "preset" in size.model and profile.pairs < 100_000 and often:
        weight = 3.0 if spelt else 5.0
        return Choice(weight, f"R-Drop {weight:g}: {profile.pairs:,} pairs can be seen {epochs:.0f} times")
    return Choice(0.0, "no R-Drop")


def invented(profile: Profile, kind: str, joint: bool) -> Choice[int]:
    """Number of invented pairs per real pair, for few inflected words whose stems are copied."""
    copied = profile.stem >= _MUCH_COPIED and is_spelt(profile) and joint and kind in ("char", "word")
    if not copied or profile.pairs > _FEW_WORDS:
        return Choice(0, "no invented pairs")
    times = max(1, min(_MOST_INVENTED, _REAL_AND_INVENTED // max(1, profile.pairs)))
    why = f"{profile.pairs:,} pairs are few, and {percent(profile.stem)} of a target is copied on average"
    return Choice(times, f"{times} for each real pair, with made-up stems: {why}")


def source_noise(profile: Profile, machine: Machine, kind: str) -> Choice[float]:
    """Share of sources with noise: for sentences, never for words or formal text. On a CPU, where batches are
    padded, the longer sources would cost too much."""
    sides = (looks_of(side, profile.pairs) for side in (profile.src, profile.tgt))
    if kind != "bpe" or not machine.gpu or any(looks.name != "sentences" for looks in sides):
        return Choice(0.0, "sources as they are")
    return Choice(_CARELESS, f"{percent(_CARELESS)} of the sources in upper case or with typing errors")


def positions(profile: Profile) -> Choice[str]:
    """The kind of position encoding."""
    if is_spelt(profile) or profile.pairs < _FEW_FOR_POSITIONS:
        why = "better with few pairs (model.positions=sinusoidal makes a run for export --to huggingface)"
        return Choice("rotary", why)
    return Choice("sinusoidal", "the usual ones")


def copying(profile: Profile, machine: Machine, joint: bool, updates: int) -> Choice[bool]:
    """Whether the model copies source pieces: if rare words of targets are those of their source; and on a
    CPU without time for many updates, if most of their letters are. It makes updates slower, so other text is
    learned better without it."""
    most = _MOST_FOR_COPYING["gpu" if machine.gpu else "cpu"]
    few_words = is_spelt(profile) and profile.pairs <= _WORDS_TO_COPY
    few = not machine.gpu and (updates <= _UPDATES_TO_COPY or few_words)
    copied = _copied(profile, few, joint) if profile.pairs <= most else None
    if copied is None:
        return Choice(False, "few rare words are copied, or many pairs teach them")
    return Choice(
        True, f"{copied} (a model that copies cannot be exported; model.copy=false makes one that can)"
    )


def _copied(profile: Profile, few_updates: bool, joint: bool) -> str | None:
    """What is copied, in words. None if it is too little."""
    tgt, letters = looks_of(profile.tgt, profile.pairs), profile.own_letters
    if is_spelt(profile):
        much, named = letters >= _COPIED_SPELT and kind_of(profile) is not Kind.NUMBERS, False
    else:
        much = letters >= _COPIED_LETTERS and profile.overlap >= MOSTLY_COPIED
        named = profile.copied_words >= (_COPIED_WORDS if tgt.formal or tgt.closed else _COPIED_NAMES)
    if named:
        share = percent(profile.copied_words)
        return f"{share} of the rare words of targets stand in their source and not in others"
    if much and joint and few_updates:  # two vocabularies may have no piece in common
        share = percent(profile.overlap)
        return f"{share} of the letters of targets stand in their source: a short training learns that late"
    return None


def metric(profile: Profile) -> Choice[str]:
    tgt = looks_of(profile.tgt, profile.pairs)
    kind = kind_of(profile)
    rewritten_sentences = kind is Kind.LETTERS and profile.tgt.known_words >= _KNOWN_WORDS
    if kind.spelt and not rewritten_sentences:
        return Choice("exact", f"outputs are {kind.value}, right or wrong")
    if profile.trees >= _TREES:
        return Choice("brackets", "outputs are trees over the words of their sources")
    if tgt.words or tgt.symbols or tgt.closed or tgt.formal:
        return Choice("exact", f"outputs are {tgt.name}, right or wrong")
    latin = profile.tgt.scripts[:1] and profile.tgt.scripts[0][0] == "LATIN"
    if is_summary(profile) and latin:
        if not EXTRAS["rouge"].missing:
            return Choice("rouge", "outputs are summaries")
        return Choice("chrf", f"outputs are summaries; for ROUGE  {install_command('rouge')}")
    words = profile.tgt.words / max(1, profile.pairs)
    if words < 4 or profile.pairs < 5000:
        why = (
            "outputs are short" if words < 4 else "BLEU says little of a model that has learnt from so little"
        )
        return Choice("chrf", why)
    if profile.tgt.word_length > 12:
        return Choice("chrf", "words have no spaces between them")
    return Choice("bleu", "outputs are sentences")


def learning_rate(size: ModelSize, update_tokens: int, regularised: bool) -> Choice[float]:
    """The learning rate. Smaller batches get a lower rate; stronger regularisation allows a higher one."""
    scale = min(1.0, max(_LOWEST_SCALE, math.sqrt(update_tokens / size.batch_tokens)))
    if regularised:
        scale *= _R_DROP_RATE
    value = float(f"{size.rate * scale:.1e}")
    return Choice(value, f"for width {size.width} and updates of {update_tokens:,} tokens")


def averaging(updates: int) -> float:
    """Decay of the moving average, which covers about a fiftieth of the run."""
    return next(
        (decay for least, decay in ((5000, 0.999), (2500, 0.998), (1000, 0.995)) if updates >= least), 0.99
    )


def validation(
    profile: Profile, machine: Machine, updates: int, by_time: bool = False
) -> Choice[dict[str, Any]]:
    """How often and on how much the model is validated; `by_time`: when the clock says so."""
    every = max(1, round_down(min(max(50, updates // _VALIDATIONS), 5000, -(-updates // 2))))
    sentences = (1000 if machine.gpu else 400) if is_spelt(profile) else (500 if machine.gpu else 200)
    section = {
        "validate_every": every,
        "save_every": every,
        "log_every": max(1, min(100, every // 10)),
        "validate_sentences": sentences,
    }
    often = "evenly spaced in time" if by_time else f"every {every:,} updates"
    return Choice(section, f"{often}, on up to {sentences:,} outputs")


def describe_copies(profile: Profile) -> str | None:
    share = profile.copies / max(1, profile.pairs)
    return f"{percent(share)} of the targets are the source itself" if share > 0.05 else None
