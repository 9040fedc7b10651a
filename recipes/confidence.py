"""How well confidences find bad translations: by chrF on held-out text, and by the scores of people.

    python recipes/confidence.py RUN --source test.en --reference test.de [--human DIR] [--sentences 1000]
    python recipes/confidence.py RUN --train DATA --minutes 10 …

With `--train`, RUN is trained first, on train and dev in en and de of DATA. The run is calibrated on its
validation set, as `translate --confidence` does it. Printed for the held-out text: correlation with chrF, AUC
(the probability that one of the worst tenth has the lower confidence), calibration error, and the same of
single numbers. DIR has train and test with .src, .mt and .zmean, translations of another system that people
have scored (MLQE-PE): the run scores them, once with its own calibration and once with one that is fitted to
the scores of `train`.
"""

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import dragoman
from dragoman.data.formats import read_lines
from dragoman.decode.confidence import Calibration, features
from dragoman.decode.translator.translator import Translator
from dragoman.errors import run_script
from dragoman.evaluate.confidence import auc, calibration_of, measure
from dragoman.evaluate.labels import pearson, spearman
from dragoman.evaluate.metrics import sentence_chrf
from dragoman.runs.directory import Run

_WORST = 0.1
QUICK = ["train.validations=5", "train.tune_search=false", "train.report=false", "train.samples=0"]


def row(name: str, sure: Sequence[float], scores: Sequence[float]) -> str:
    bad = np.asarray(scores) <= np.quantile(scores, _WORST)
    told = pearson(sure, scores), spearman(sure, scores), auc(np.asarray(sure), bad)
    return f"| {name} | {' | '.join(f'{value:.3f}' for value in told)} |"


def by_chrf(run: Run, translator: Translator, source: Path, reference: Path, most: int) -> list[str]:
    calibration = calibration_of(run, device=str(translator.device))
    texts, references = ([*islice(read_lines(path), most)] for path in (source, reference))
    found = [best for best, *_ in translator.hypotheses(texts)]
    scores = [sentence_chrf(best.text, right) for best, right in zip(found, references, strict=True)]
    sure = [calibration.confidence(text, best) for text, best in zip(texts, found, strict=True)]
    measured = measure(sure, scores, calibration.threshold)
    return [
        row("confidence", sure, scores),
        row("mean log-probability", [float(np.mean(best.token_scores or 0)) for best in found], scores),
        row("sum of log-probabilities", [best.log_prob for best in found], scores),
        row("shorter is better", [-float(len(text)) for text in texts], scores),
        f"calibration error {measured.calibration_error:.3f} on {len(texts):,} sentences",
    ]


def by_people(run: Run, translator: Translator, directory: Path, most: int) -> list[str]:
    rows: dict[str, list[list[float]]] = {}
    scores: dict[str, list[float]] = {}
    sure: list[float] = []
    own = calibration_of(run, device=str(translator.device))
    for part in ("train", "test"):
        src, mt, zmean = (
            [*islice(read_lines(next(directory.glob(f"{part}.{kind}*"))), most)]
            for kind in ("src", "mt", "zmean")
        )
        found = translator.score(list(zip(src, mt, strict=True)))
        rows[part] = [features(text, one) for text, one in zip(src, found, strict=True)]
        scores[part] = [float(value) for value in zmean]
        sure = [own.confidence(text, one) for text, one in zip(src, found, strict=True)]
    fitted = Calibration.fitted(rows["train"], scores["train"])
    fitted_sure = [fitted.of_features(one) for one in rows["test"]]
    return [
        row("confidence", sure, scores["test"]),
        row("the same numbers, fitted to people", fitted_sure, scores["test"]),
        row("mean log-probability", [one[0] for one in rows["test"]], scores["test"]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--set", action="append", default=[], help="field=value of the training")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--human", type=Path)
    parser.add_argument("--sentences", type=int, default=1000, help="most of each part")
    arguments = parser.parse_args()
    if arguments.train is not None:
        train, dev = (
            [str(next(arguments.train.glob(f"{part}.{code}*"))) for code in ("en", "de")]
            for part in ("train", "dev")
        )
        overrides = [*QUICK, *arguments.set]
        dragoman.train(*train, out=arguments.run, valid=dev, minutes=arguments.minutes, overrides=overrides)
    run, translator = Run.open(arguments.run), dragoman.load(arguments.run)
    assert isinstance(translator, Translator)
    most = arguments.sentences
    lines = ["| | Pearson | Spearman | AUC of the worst tenth |", "|---|---|---|---|"]
    lines += by_chrf(run, translator, arguments.source, arguments.reference, most)
    print("\n".join(lines), flush=True)
    if arguments.human is not None:
        print(
            "Scores of people:\n" + "\n".join(by_people(run, translator, arguments.human, most)), flush=True
        )


if __name__ == "__main__":
    run_script(main)
