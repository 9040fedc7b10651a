"""ROUGE from the package `rouge-score` (Lin 2004): the overlap of an output with its reference in words,
pairs of words, and longest common subsequence. It only sees Latin letters and digits, and uses English
stemming."""

import importlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from dragoman.errors import missing_extra
from dragoman.evaluate.sums import SumMetric

KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rouge": "ROUGE-L"}


class Rouge(SumMetric):
    """The mean F1 over sentences."""

    def __init__(self, kind: str = "rouge") -> None:
        super().__init__()
        try:
            package = importlib.import_module("rouge_score.rouge_scorer")
        except ModuleNotFoundError:
            raise missing_extra("rouge_score", "rouge", "ROUGE") from None
        self.name, self._own = KINDS[kind], "rougeL" if kind == "rouge" else kind
        self._scorer = package.RougeScorer([self._own], use_stemmer=True)
        self.variant = {"stem": "yes", "rouge-score": _version()}

    def numbers(self, hypothesis: str, reference: str) -> list[float]:
        return [self._scorer.score(reference, hypothesis)[self._own].fmeasure, 1.0]

    def score(self, sums: Sequence[float]) -> float:
        return 100 * sums[0] / sums[1]


def _version() -> str:
    try:
        return version("rouge-score")
    except PackageNotFoundError:  # the package is next to ours and not installed
        return "unknown"
