"""Teach a run what a translation memory holds, without forgetting the rest.

    memory ───┬─ held out ─────────────────────────────┐
              └─ learnt ──┐                            ├─▶ old and new run on both ─▶ is it better?
    run's data ── some ───┴─▶ training from the run ───┤
    run's validation set ──────────────────────────────┘

Training on corrections alone makes a model apply them everywhere. So a share of every epoch is rehearsal:
pairs that the run was trained on. Pairs of it that contradict the memory are left out. There is one
validation, at the end, so that what is held out chooses nothing.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import to_dict
from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs
from dragoman.data.prepared import Prepared
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.evaluate.metrics import bleu, chrf, exact_match, sentence_chrf
from dragoman.files import discard, explained, new_directory, write_new
from dragoman.runs.directory import Run
from dragoman.runs.optim import paper_rate
from dragoman.text.segment import one_line

TextPairs = list[tuple[str, str]]

FEWEST = 8
"""Pairs of a memory that can be learnt from, and some of them held out."""
MOST_REHEARSED = 20_000
MOST_TESTED = 500
"""Pairs of each side that are translated to compare."""
ADAPT_RATE = 0.2
"""The learning rate, as a share of the run's highest one."""
_OWN_FILES = re.compile(r"(learnt|rehearsed|held_out|before)\.[\w.-]+")
ADAPT_METRICS = {"BLEU": bleu, "chrF": chrf, "exact": exact_match}


@dataclass(frozen=True)
class Parts:
    """The pairs that are learnt from, and those that are held out for testing."""

    learnt: TextPairs
    rehearsed: TextPairs
    held_out: TextPairs
    """Pairs of the memory that are held out."""
    before: TextPairs
    """Pairs of the run's validation set: these must not get worse."""


def read_memory(run: Run, files: Sequence[str]) -> TextPairs:
    """Read the pairs of all files. If a text has several translations, the last one counts."""
    data = run.config.data
    if data.directions is not None:
        raise UserError(
            f"{run.directory}: a run of several languages ({data.directions}) does not learn from "
            f"corrections; train it further with  dragoman train FILES start={run.directory}, on corpora of "
            "its directions"
        )
    found: dict[str, str] = {}
    for file in files:
        for pair in read_pairs(SourceConfig((file,)), data.src_lang, data.tgt_lang):
            source, target = one_line(pair.src).strip(), one_line(pair.tgt).strip()
            if source and target:
                found.pop(source, None)
                found[source] = target
    if len(found) < FEWEST:
        raise UserError(
            f"{', '.join(files)}: {len(found)} pairs are too few to learn from and to hold some out; "
            f"expected at least {FEWEST}"
        )
    return list(found.items())


def make_parts(run: Run, memory: TextPairs, hold_out: float) -> Parts:
    """Which pairs are held out depends on their text alone: the choice is stable as the memory grows."""
    prepared = pairs_to_rehearse(run)
    ordered = sorted(memory, key=lambda pair: hashlib.sha256(pair[0].encode()).digest())
    count = min(max(1, round(hold_out * len(ordered))), len(ordered) // 2, MOST_TESTED)
    held_out = ordered[:count]
    known = {source for source, _ in memory}
    return Parts(
        [pair for pair in memory if pair not in held_out],
        [pair for pair in _some(prepared, "train", MOST_REHEARSED) if pair[0] not in known],
        held_out,
        [pair for pair in _some(prepared, "valid", MOST_TESTED) if pair[0] not in known],
    )


def pairs_to_rehearse(run: Run) -> Prepared:
    """The run's own data."""
    if run.config.data.imported is not None or run.config.data.text:
        raise UserError(
            f"{run.directory}: it has no pairs to rehearse; train it further with "
            f"dragoman train FILES start={run.directory}, on the memory and on other pairs together"
        )
    if run.config.data.context is not None:
        raise UserError(
            f"{run.directory}: it was trained with the sentences before, and a memory has single ones; train "
            f"it further with  dragoman train FILES start={run.directory}, on documents"
        )
    prepared = run.prepared()
    if not len(prepared.valid):
        raise UserError(f"{run.directory}: it has no validation set to compare on; train it with one")
    return prepared


def _some(prepared: Prepared, which: str, most: int) -> TextPairs:
    """Up to `most` pairs, evenly spaced, as the run has read them."""
    store = prepared.train if which == "train" else prepared.valid
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    step = max(1, -(-len(store) // most))
    return [
        (one_line(src.decode(store.src(n).tolist())), one_line(tgt.decode(store.tgt(n).tolist())))
        for n in range(0, len(store), step)
    ]


@contextmanager
def corpora_for(trial: Path, corpus: Path, *made: Path) -> Iterator[None]:
    """The corpora of a training into `trial` are written inside. If it does not begin, for a mistake in a
    field or a full disk, nothing of it stays. A directory in their place that holds anything else is a
    UserError."""
    if corpus.is_dir():
        others = (entry.name for entry in corpus.iterdir() if not _OWN_FILES.fullmatch(entry.name))
        if (other := next(others, None)) is not None:
            raise UserError(
                f"{corpus}: the corpora of the training go there, and it holds '{other}'; choose another "
                "directory with --out"
            )
    new = [directory for directory in (corpus, *made) if not directory.exists()]
    try:
        yield
    except BaseException:
        if not Run.exists(trial):
            for directory in new:
                if directory.exists():
                    discard(directory)
        raise


def write_parts(parts: Parts, directory: Path) -> None:
    with explained(directory), new_directory(directory, replace_existing=True) as temporary:
        for name, pairs in vars(parts).items():
            for side, ending in enumerate(("src", "tgt")):
                lines = "".join(f"{pair[side]}\n" for pair in pairs)
                write_new(temporary / f"{name}.{ending}", (lines.encode("utf-8"),))


def adapt_config(run: Run, parts: Parts, directory: Path, share: float, updates: int) -> dict[str, Any]:
    """The configuration of the training: `share` of every epoch is the memory."""
    if not parts.rehearsed:
        raise UserError(f"{run.directory}: all its pairs are in the memory; train it further with start=")
    weight = share / (1 - share) * len(parts.rehearsed) / len(parts.learnt)

    def source(name: str, weight: float = 1.0) -> dict[str, Any]:
        files = [str(directory / f"{name}.{ending}") for ending in ("src", "tgt")]
        return {"files": files, "format": "plain", "weight": weight}

    train = [source("rehearsed"), source("learnt", weight)]
    valid = [source("held_out"), *([source("before")] if parts.before else [])]
    return adapt_config_from(run, run, train, valid, ADAPT_RATE, updates)


def adapt_config_from(
    run: Run, start: Run, train: list[dict[str, Any]], valid: list[dict[str, Any]], rate: float, updates: int
) -> dict[str, Any]:
    """A run's configuration with other corpora, for a short training that begins with the weights of `start`,
    at a share of the run's highest learning rate."""
    config = run.config
    highest = config.optim.rate or paper_rate(int(config.model.get("model_dim", 512)), config.schedule.warmup)
    return {
        "seed": config.seed,
        "start": str(start.directory),
        "data": to_dict(config.data) | {"train": train, "valid": valid, "test": [], "temperature": 1.0},
        "objective": to_dict(config.objective),
        "optim": to_dict(config.optim) | {"rate": rate * highest},
        "schedule": {"name": "linear", "warmup": max(1, updates // 20), "floor": 0.1},
        "train": to_dict(config.train)
        | {
            **{"max_updates": updates, "max_epochs": None, "max_minutes": None, "validations": None},
            **{"validate_every": updates, "save_every": updates, "average": 0, "patience": None},
            **{"metric": "loss", "tune_search": False, "report": False, "asgd": 0},
        },
        "search": to_dict(config.search),
    }


@dataclass(frozen=True)
class RunsCompared:
    """Two runs on one set of pairs."""

    pairs: TextPairs
    old: list[str]
    new: list[str]

    def scores(self, which: list[str]) -> dict[str, float]:
        references = [target for _, target in self.pairs]
        return {name: metric(which, references) for name, metric in ADAPT_METRICS.items()}

    @property
    def gain(self) -> float:
        """Difference in chrF, which also has a value for single sentences."""
        return self.scores(self.new)["chrF"] - self.scores(self.old)["chrF"]

    def changed(self) -> list[tuple[float, int]]:
        """Change in chrF and index of every sentence whose translation differs, the worst first."""
        return sorted(
            (sentence_chrf(new, pair[1]) - sentence_chrf(old, pair[1]), number)
            for number, (pair, old, new) in enumerate(zip(self.pairs, self.old, self.new, strict=True))
            if old != new
        )


@dataclass(frozen=True)
class AdaptVerdict:
    memory: RunsCompared
    before: RunsCompared
    tolerance: float
    """How much chrF may be lost on the run's own validation pairs."""

    @property
    def reason(self) -> str | None:
        """Why the new run should not be used; None if it is better."""
        if self.memory.gain <= 0:
            return f"it is no better on the memory (chrF {self.memory.gain:+.2f} on what was held out)"
        if self.before.pairs and self.before.gain < -self.tolerance:
            return f"it has forgotten too much (chrF {self.before.gain:+.2f} on the validation set)"
        return None


def compare_runs(old: Translator, new: Translator, parts: Parts, tolerance: float) -> AdaptVerdict:
    def side(pairs: TextPairs) -> RunsCompared:
        sources = [source for source, _ in pairs]
        return RunsCompared(
            pairs, old.translate(sources) if sources else [], new.translate(sources) if sources else []
        )

    return AdaptVerdict(side(parts.held_out), side(parts.before), tolerance)
