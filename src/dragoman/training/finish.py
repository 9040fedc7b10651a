"""After the last update: tune the search on the validation set, and write the report.

Neither changes a weight. A run that is killed here repeats this step when it is resumed; a run that has
completed it does not.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from dragoman.data.corpus import Prepared
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.translator.translator import Translator
from dragoman.evaluate.metrics import SCORES
from dragoman.evaluate.tune import (
    OutOfTime,
    Tuned,
    tune_search,
    validation_openings,
    validation_pairs,
)
from dragoman.files import explained, read_regular, replace_file
from dragoman.runs.directory import Corpus, Outcome, Run
from dragoman.text.context import sentence_of
from dragoman.training.budget import TUNING, Budget, StopRequest
from dragoman.training.log import Log
from dragoman.training.report import ValidationTranslations, report_rows, write_report

TUNING_FILE = "tuning.json"
_TUNING_LIMIT = 1 << 20
_BEAMS = (1, 2, 4, 8)
_BATCH_TOKENS = 1024
"""Source tokens per batch; the time is checked after each batch."""
_ALPHAS = (0.0, 0.4, 0.7, 1.0, 1.3, 1.6)
_LEAST_SECONDS = 10.0
"""Minimum seconds for tuning without a budget."""
_MOST_SENTENCES, _FEWEST_SENTENCES = 1000, 50
_LEAST_GAIN = 0.2
"""Points by which another setting has to be better; less is noise."""


@dataclass(frozen=True)
class Finish:
    run: Run
    corpus: Corpus
    device: torch.device
    log: Log
    stop: StopRequest
    budget: Budget | None
    validation_seconds: float | None
    """Seconds of the last validation, if there was one."""

    def __call__(self, outcome: Outcome) -> None:
        config = self.run.config
        said: ValidationTranslations | None = None
        if not isinstance(self.corpus, Prepared) or self.run.best is None or not len(self.corpus.valid):
            return
        if config.train.tune_search and config.purpose == "translate":
            said = self._tuned()
        if config.train.report and self.stop.signal is None:
            if said is None and config.purpose == "translate":
                said = self._translated(config.train.validate_sentences)
            write_report(self.run, self.corpus, outcome, self.log.elapsed, said)
            self.log.display.table("Result", report_rows(self.run, outcome, self.log.elapsed, said))

    def _translated(self, count: int) -> ValidationTranslations | None:
        """Validation sentences by the best checkpoint and the run's own search."""
        assert isinstance(self.corpus, Prepared)
        if not count:
            return None
        sources, references = validation_pairs(self.corpus, count)
        translator = self.run.translator("best", str(self.device), undirected=True)
        openings = validation_openings(self.corpus, count)
        outputs = translator.by_opening(sources, openings, Translator.translate)
        return ValidationTranslations(list(map(sentence_of, sources)), references, outputs)

    def _tuned(self) -> ValidationTranslations | None:
        assert isinstance(self.corpus, Prepared)
        if self._is_done():
            return None
        limit = self._seconds_for_tuning()
        deadline = self.log.clock.seconds() + limit
        sentences = self._sentences(limit)
        sources, references = validation_pairs(self.corpus, sentences)
        metric = _metric(self.run.config.train.metric)
        now = self.run.config.search
        if not isinstance(now, BeamSearch):
            return None
        self.log.display.stage("tuning the search", 0, None)
        beams = sorted({*_BEAMS, now.beam})
        try:
            found = tune_search(
                self.run.translator("best", str(self.device), undirected=True),
                sources,
                references,
                beams=beams,
                alphas=sorted({*_ALPHAS, now.alpha}),
                metric=metric,
                batch_tokens=_BATCH_TOKENS,
                progress=self._watch(beams, len(sources), deadline),
                openings=validation_openings(self.corpus, sentences),
            )
        except OutOfTime:
            self.log.say("there was no time to tune the search: dragoman tune does it at any time")
            return None
        chosen = _chosen(found, now)
        self._store(found, chosen, metric, len(sources))
        return ValidationTranslations(
            list(map(sentence_of, sources)), references, found.translations[chosen.beam, chosen.alpha]
        )

    def _watch(self, beams: Sequence[int], sentences: int, deadline: float) -> Callable[[int, int], None]:
        """Stops when the time is over, or would be before the next beam size is done. The time of a beam is
        taken to be proportional to its size."""
        clock, began = self.log.clock, [self.log.clock.seconds()]

        def watch(done: int, of: int) -> None:
            self.log.display.stage("tuning the search", done, of)
            now, number = clock.seconds(), done // sentences
            needed = 0.0
            if number == len(began):  # first batch of a beam
                began.append(now)
            elif done % sentences == 0 and number:  # last batch of a beam
                needed = (began[number] - began[number - 1]) * beams[number] / beams[number - 1]
            if now + needed > deadline or self.stop.signal is not None:
                raise OutOfTime

        return watch

    def _seconds_for_tuning(self) -> float:
        if self.budget is None:
            return max(_LEAST_SECONDS, TUNING * self.log.elapsed)
        return max(0.0, min(TUNING * self.budget.total, self.budget.left - 1.0))

    def _sentences(self, seconds: float) -> int:
        """The number of sentences for which all beam sizes can be tried in this time. It follows from the
        time of a validation, half of which is taken to be greedy search; the other half computes losses."""
        translated = min(self.run.config.train.validate_sentences, len(self.corpus.valid))
        if not translated or not self.validation_seconds:
            return _FEWEST_SENTENCES
        each = self.validation_seconds / translated / 2
        return max(_FEWEST_SENTENCES, min(_MOST_SENTENCES, int(seconds / (each * sum(_BEAMS)))))

    def _is_done(self) -> bool:
        path, best = self.run.directory / TUNING_FILE, self.run.best
        try:
            return (
                best is not None
                and json.loads(read_regular(path, _TUNING_LIMIT))["checkpoint"] == best["name"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _store(self, found: Tuned, chosen: BeamSearch, metric: str, sentences: int) -> None:
        run, now = self.run, self.run.config.search
        if chosen is not now:
            run.replace_config(replace(run.config, search=chosen))
        record = {
            "checkpoint": (run.best or {}).get("name"),
            "metric": metric,
            "sentences": sentences,
            "chosen": {"beam": chosen.beam, "alpha": chosen.alpha},
            "scores": [
                {"beam": beam, "alpha": alpha, "score": score}
                for (beam, alpha), score in found.scores.items()
            ],
        }
        path = run.directory / TUNING_FILE
        with explained(path):
            replace_file(path, json.dumps(record, indent=1).encode())
        best = found.scores.get((chosen.beam, chosen.alpha))
        told = "" if best is None else f" ({metric} {best:.1f} on {sentences} validation sentences)"
        self.log.say(f"search: beam {chosen.beam}, alpha {chosen.alpha:g}{told}")


def _metric(metric: str) -> str:
    """The run's metric if translations can be scored by it, else chrF."""
    return metric if metric in SCORES else "chrf"


def _chosen(found: Tuned, now: BeamSearch) -> BeamSearch:
    """Keep the present settings unless others are clearly better."""
    present = found.scores.get((now.beam, now.alpha))
    if present is not None and found.best < present + _LEAST_GAIN:
        return now
    return replace(
        now, beam=found.chosen.beam, alpha=found.chosen.alpha, n_best=min(now.n_best, found.chosen.beam)
    )
