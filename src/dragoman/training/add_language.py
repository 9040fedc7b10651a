"""Teach a run a further language, without forgetting the ones that it has.

    new corpora ──┬─ held out ───────────────────────────────────┐
                  └─ learnt ──┐                                  ├─▶ every direction, before and after
    run's data ─── some ──────┴─▶ training from the larger run ──┤
    run's validation set ────────────────────────────────────────┘

    larger run: the run with the new language's pieces (`training/larger_vocabulary.py`)

All old directions are rehearsed. There is one validation, at the end.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.data.directions import Languages, direction_name
from dragoman.data.formats import read_pairs
from dragoman.data.languages import corpora_by_direction, corpora_in, languages_told
from dragoman.errors import UserError
from dragoman.files import explained, new_directory, write_new
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_translator
from dragoman.text.segment import one_line
from dragoman.training.adapt import (
    FEWEST,
    MOST_REHEARSED,
    MOST_TESTED,
    RunsCompared,
    TextPairs,
    adapt_config_from,
    pairs_to_rehearse,
)

Corpora = dict[Languages, TextPairs]
LANGUAGE_RATE = 0.5
"""The learning rate, as a share of the run's highest one: more than for corrections, which are few."""


@dataclass(frozen=True)
class NewLanguage:
    """The pairs of each direction, old and new."""

    learnt: Corpora
    held_out: Corpora
    rehearsed: Corpora
    before: Corpora
    """Pairs of the run's validation set."""

    @property
    def directions(self) -> tuple[Languages, ...]:
        """The old ones first."""
        return (*self.rehearsed, *self.learnt)

    @property
    def new_texts(self) -> set[str]:
        """The sentences of new languages. One with several translations counts once."""
        known = {code for pair in self.rehearsed for code in pair}
        return {
            texts[side]
            for pair, own in self.learnt.items()
            for side in (0, 1)
            if pair[side] not in known
            for texts in own
        }


def old_directions(run: Run) -> tuple[Languages, ...]:
    data = run.config.data
    return ((data.src_lang, data.tgt_lang),) if data.directions is None else data.directions.trained


def gather_pairs(run: Run, files: Sequence[str], directions: str, hold_out: float) -> NewLanguage:
    """Everything that is learnt from and tested on. A sentence of the new language that is held out is held
    out in all directions; a directory's own validation files take the place of held-out sentences."""
    rehearsed, before = (_own_pairs(run, part) for part in ("train", "valid"))
    known = {code for pair in rehearsed for code in pair}
    parts: dict[str, list[str]] = {"train": [], "valid": []}
    for file in files:
        own = corpora_in(Path(file)) if os.path.isdir(file) else {"train": [file]}  # noqa: PTH112
        for part in parts:
            parts[part] += own.get(part, [])
    learnt = _new_corpora(parts["train"], directions, rehearsed)
    told = ", ".join(map(direction_name, rehearsed))
    if not learnt:
        raise UserError(f"{', '.join(files)}: no direction that {run.directory} lacks; it translates {told}")
    if not any(code in known for pair in learnt for code in pair):
        names = ", ".join(map(direction_name, learnt))
        raise UserError(
            f"{', '.join(files)}: {names} has no language of {run.directory} ({told}); train a new run"
        )
    held_out = _new_corpora(parts["valid"], "all", rehearsed) if parts["valid"] else {}
    held_out = {pair: pairs[:MOST_TESTED] for pair, pairs in held_out.items() if pair in learnt}
    for pair in learnt:
        if pair not in held_out:
            new = 1 if pair[0] in known else 0
            learnt[pair], held_out[pair] = _parted(learnt[pair], new, hold_out)
        if len(learnt[pair]) < FEWEST:
            raise UserError(
                f"{direction_name(pair)}: {len(learnt[pair])} pairs are too few; expected {FEWEST}"
            )
    return NewLanguage(learnt, held_out, rehearsed, before)


def _new_corpora(files: Sequence[str], directions: str, known: Iterable[Languages]) -> Corpora:
    found: Corpora = {}
    old = set(known)
    for source in corpora_by_direction(files, directions):
        pair = languages_told(source)
        if pair in old:
            continue
        own = found.setdefault(pair, [])
        for one in read_pairs(source, *pair):
            texts = one_line(one.src).strip(), one_line(one.tgt).strip()
            if all(texts):
                own.append(texts)
    return found


def _parted(pairs: TextPairs, side: int, hold_out: float) -> tuple[TextPairs, TextPairs]:
    """What is learnt and what is held out, by the text on one side alone."""
    ordered = sorted({pair[side] for pair in pairs}, key=lambda text: hashlib.sha256(text.encode()).digest())
    chosen = set(ordered[: min(max(1, round(hold_out * len(ordered))), len(ordered) // 2, MOST_TESTED)])
    return [p for p in pairs if p[side] not in chosen], [p for p in pairs if p[side] in chosen]


def _own_pairs(run: Run, part: str) -> Corpora:
    """Pairs of each direction of the run's own data."""
    data = run.config.data
    prepared = pairs_to_rehearse(run)
    store = prepared.train if part == "train" else prepared.valid
    sources = data.train if part == "train" else data.valid or data.train
    ranges: dict[Languages, list[int]] = {pair: [] for pair in old_directions(run)}
    for source, corpus in zip(sources, store.corpora, strict=True):
        ranges[data.languages_of(source)] += range(corpus.start, corpus.end)
    most = MOST_REHEARSED if part == "train" else max(1, MOST_TESTED // len(ranges))
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    return {
        pair: [
            (one_line(src.decode(store.src(n).tolist())), one_line(tgt.decode(store.tgt(n).tolist())))
            for n in numbers[:: max(1, -(-len(numbers) // most))]
        ]
        for pair, numbers in ranges.items()
    }


def write_corpora(parts: NewLanguage, directory: Path) -> None:
    with explained(directory), new_directory(directory, replace_existing=True) as temporary:
        for name, corpora in vars(parts).items():
            for pair, pairs in corpora.items():
                for side in (0, 1):
                    lines = "".join(f"{texts[side]}\n" for texts in pairs)
                    write_new(temporary / _file(name, pair, side), (lines.encode("utf-8"),))


def _file(name: str, pair: Languages, side: int) -> str:
    return f"{name}.{direction_name(pair)}.{pair[side]}"


def language_recipe(
    run: Run, larger: Run, parts: NewLanguage, directory: Path, share: float, updates: int
) -> dict[str, Any]:
    """The configuration of the training: `share` of every epoch is new. All new directions count alike, and
    so do all old ones."""

    def sources(name: str, corpora: Corpora, share: float | None = None) -> list[dict[str, Any]]:
        most = max(map(len, parts.learnt.values()))
        return [
            {
                "files": [str(directory / _file(name, pair, side)) for side in (0, 1)],
                "format": "plain",
                "src_lang": pair[0],
                "tgt_lang": pair[1],
                **({} if share is None else {"weight": share * most / len(corpora) / len(pairs)}),
            }
            for pair, pairs in corpora.items()
            if pairs
        ]

    train = sources("rehearsed", parts.rehearsed, 1 - share) + sources("learnt", parts.learnt, share)
    valid = sources("before", parts.before) + sources("held_out", parts.held_out)
    return adapt_config_from(run, larger, train, valid, LANGUAGE_RATE, updates)


@dataclass(frozen=True)
class LanguageVerdict:
    old: Mapping[Languages, RunsCompared]
    new: Mapping[Languages, RunsCompared]
    """Where the old run has no translations."""
    tolerance: float
    """How much chrF old directions may lose on average."""

    @property
    def lost(self) -> float:
        gains = [one.gain for one in self.old.values()]
        return -sum(gains) / max(1, len(gains))

    @property
    def reason(self) -> str | None:
        """Why the new run should not be used."""
        if self.lost > self.tolerance:
            return f"the old directions lost too much (chrF {-self.lost:+.2f} on average)"
        return None


def compare_directions(
    old: Run, new: Run, parts: NewLanguage, tolerance: float, device: str = "auto"
) -> LanguageVerdict:
    """Translations of the validation set by both runs, and of what was held out by the new one."""

    def said(run: Run, pair: Languages, pairs: TextPairs) -> list[str]:
        languages = pair if run.config.data.directions is not None else None
        return open_translator([run], device=device, languages=languages).translate([src for src, _ in pairs])

    compared = {
        pair: RunsCompared(pairs, said(old, pair, pairs), said(new, pair, pairs))
        for pair, pairs in parts.before.items()
        if pairs
    }
    found = {pair: RunsCompared(pairs, [], said(new, pair, pairs)) for pair, pairs in parts.held_out.items()}
    return LanguageVerdict(compared, found, tolerance)
