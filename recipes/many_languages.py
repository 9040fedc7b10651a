"""All twelve directions of Multi30k in one model, beside models of one direction, and zero-shot directions.

    python recipes/many_languages.py DATA OUT [--minutes 2.5] [--single-minutes 0.75] [--held-out-minutes 1.5]

DATA has train, val and test_2016_flickr in cs, de, en and fr. Three parts, each as far as the time goes:

- `many`: one model of twelve directions;
- `single`: a model for each of a few directions;
- `held out`: one model of eight directions, measured in the four that it has no pairs for, directly
  (zero-shot) and through English (pivot), where both ways are trained.

Everything is chosen by the autopilot; the minutes are those of the whole command. `OUT/results.json` is
written after every step, `OUT/table.md` at the end.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dragoman
from dragoman.data.directions import Languages, direction_name
from dragoman.data.formats import read_lines
from dragoman.decode.translator.translator import Translator
from dragoman.errors import run_script
from dragoman.evaluate.confidence import calibration_of, measure
from dragoman.evaluate.metrics import bleu, chrf, sentence_chrf
from dragoman.runs.directory import Run
from dragoman.training.draft import with_directions

SINGLES = (("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "cs"))
HELD_OUT = (("de", "fr"), ("fr", "de"), ("cs", "de"), ("de", "cs"))
QUICK = ["train.validations=5", "train.tune_search=false", "train.report=false", "train.samples=0"]


class Experiment:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.data, self.out = Path(arguments.data), Path(arguments.out)
        self.arguments, self.began = arguments, time.monotonic()
        self.results: dict[str, Any] = {"minutes": vars(arguments), "parts": []}
        self.out.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        return self.arguments.seconds - (time.monotonic() - self.began)

    def train(self, name: str, directions: str, minutes: float) -> Run:
        config = with_directions([str(self.data)], [], directions)
        config["data"].pop("test", None)
        overrides = [*QUICK, f"seed={self.arguments.seed}", *self.arguments.set]
        began = time.monotonic()
        run = dragoman.train(config, out=self.out / name, overrides=overrides, minutes=minutes)
        size = sum(tensor.numel() for tensor in self.translator(run).model.parameters())
        update = run.outcome.update if run.outcome is not None else None
        self.record(
            part=name, trained=directions, seconds=time.monotonic() - began, parameters=size, updates=update
        )
        return run

    def translator(self, run: Run, languages: Languages | None = None) -> Translator:
        data = run.config.data
        found = run.translator("best", undirected=True)
        if data.directions is None or languages is None:
            return found
        return found.with_opening(found.src_tokenizer.control_ids(data.directions.opening(languages)))

    def sentences(self, language: str) -> list[str]:
        (file,) = self.data.glob(f"{self.arguments.test}.{language}*")
        return list(read_lines(file))[: self.arguments.sentences]

    def measure(self, name: str, run: Run, pairs: Sequence[Languages], how: str = "trained") -> None:
        for src, tgt in pairs:
            if self.left() < 5:
                print(f"no time for {name} {src}-{tgt}", flush=True)
                continue
            began = time.monotonic()
            search = run.config.search
            texts = self.sentences(src)
            if how == "pivot":
                texts = self.translator(run, (src, "en")).translate(texts, search=search)
                outputs = self.translator(run, ("en", tgt)).translate(texts, search=search)
            else:
                outputs = self.translator(run, (src, tgt)).translate(texts, search=search)
            references = self.sentences(tgt)
            self.record(
                part=name,
                how=how,
                direction=direction_name((src, tgt)),
                bleu=bleu(outputs, references),
                chrf=chrf(outputs, references),
                seconds=time.monotonic() - began,
            )

    def confidence(self, name: str, run: Run, pairs: Sequence[Languages]) -> None:
        """Calibrated on the validation set, measured on the test set."""
        for pair in pairs:
            if self.left() < 10:
                return
            calibration = calibration_of(run)
            texts, references = self.sentences(pair[0]), self.sentences(pair[1])
            found = [best for best, *_ in self.translator(run, pair).hypotheses(texts)]
            sure = [calibration.confidence(text, best) for text, best in zip(texts, found, strict=True)]
            scores = [sentence_chrf(best.text, right) for best, right in zip(found, references, strict=True)]
            measured = measure(sure, scores, calibration.threshold)
            self.record(part=name, confidence=direction_name(pair), **asdict(measured))

    def record(self, **found: Any) -> None:
        print(json.dumps(found), flush=True)
        self.results["parts"].append(found)
        text = json.dumps(self.results, indent=1)
        (self.out / "results.json").write_text(text, encoding="utf-8")


def table(results: dict[str, Any]) -> str:
    """BLEU (chrF) by direction and model."""
    rows: dict[str, dict[str, str]] = {}
    for one in results["parts"]:
        if "direction" in one:
            how = one["part"].split("-")[0] + ("" if one["how"] == "trained" else f", {one['how']}")
            rows.setdefault(one["direction"], {})[how] = f"{one['bleu']:.1f} ({one['chrf']:.1f})"
    columns = list(dict.fromkeys(how for row in rows.values() for how in row))
    lines = [f"| direction | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for direction, row in rows.items():
        lines.append(f"| {direction} | {' | '.join(row.get(how, '') for how in columns)} |")
    trained = [one for one in results["parts"] if "trained" in one]
    lines += ["", "| model | directions | parameters | updates | seconds |", "|---|---|---|---|---|"]
    for one in trained:
        count = len(one["trained"].split(","))
        told = (one["part"], count, f"{one['parameters']:,}", one["updates"], f"{one['seconds']:.0f}")
        lines.append(f"| {' | '.join(map(str, told))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--minutes", type=float, default=2.5)
    parser.add_argument("--single-minutes", type=float, default=0.75)
    parser.add_argument("--held-out-minutes", type=float, default=1.5)
    parser.add_argument("--seconds", type=float, default=3600.0, help="for everything")
    parser.add_argument("--test", default="test_2016_flickr")
    parser.add_argument("--sentences", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="field=value of every run")
    experiment = Experiment(parser.parse_args())
    codes = ("cs", "de", "en", "fr")
    everything = [(src, tgt) for src in codes for tgt in codes if src != tgt]
    arguments = experiment.arguments
    many = experiment.train("many", ",".join(map(direction_name, everything)), arguments.minutes)
    for pair in SINGLES:
        if experiment.left() > 60 * arguments.single_minutes:
            single = experiment.train(
                f"single-{direction_name(pair)}", direction_name(pair), arguments.single_minutes
            )
            experiment.measure(f"single-{direction_name(pair)}", single, [pair])
    experiment.measure("many", many, [*SINGLES, *HELD_OUT])
    experiment.confidence("many", many, SINGLES[:2])
    if experiment.left() > 60 * arguments.held_out_minutes:
        known = [pair for pair in everything if pair not in HELD_OUT]
        held_out = experiment.train(
            "held out", ",".join(map(direction_name, known)), arguments.held_out_minutes
        )
        experiment.measure("held out", held_out, HELD_OUT, "zero-shot")
        experiment.measure("held out", held_out, HELD_OUT, "pivot")
    experiment.measure("many", many, [p for p in everything if p not in (*SINGLES, *HELD_OUT)])
    (experiment.out / "table.md").write_text(table(experiment.results), encoding="utf-8")
    print(table(experiment.results))


if __name__ == "__main__":
    run_script(main)
