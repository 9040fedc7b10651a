"""BLEU, chrF and TER by sacreBLEU, and metrics of single tasks beside them: each with its signature and an
optional bootstrap interval."""

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF, CHRFScore
from sacrebleu.metrics.ter import TER

from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.errors import UserError, missing_extra
from dragoman.evaluate import brackets
from dragoman.evaluate.brackets import Brackets
from dragoman.evaluate.sums import SumMetric

TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""BLEU tokenizers of sacreBLEU that need no other packages."""


class _Chrf(CHRF):
    """sacreBLEU returns a Python 0.0 if nothing matches and NumPy floats otherwise; their mean would fail."""

    def _compute_score_from_stats(self, stats: list[int]) -> CHRFScore:
        found = super()._compute_score_from_stats(stats)
        found.score = float(found.score)
        return found


ROUGE_KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rouge": "ROUGE-L"}


class Rouge(SumMetric):
    """ROUGE from the package `rouge-score` (Lin 2004): the overlap of an output with its reference in words,
    pairs of words, and longest common subsequence. It only sees Latin letters and digits, and uses English
    stemming. The value is the mean F1 over sentences."""

    def __init__(self, kind: str = "rouge") -> None:
        super().__init__()
        try:
            package = importlib.import_module("rouge_score.rouge_scorer")
        except ModuleNotFoundError:
            raise missing_extra("rouge_score", "rouge", "ROUGE") from None
        self.name, self._own = ROUGE_KINDS[kind], "rougeL" if kind == "rouge" else kind
        self._scorer = package.RougeScorer([self._own], use_stemmer=True)
        self.variant = {"stem": "yes", "rouge-score": _rouge_version()}

    def numbers(self, hypothesis: str, reference: str) -> list[float]:
        return [self._scorer.score(reference, hypothesis)[self._own].fmeasure, 1.0]

    def score(self, sums: Sequence[float]) -> float:
        return 100 * sums[0] / sums[1]


def _rouge_version() -> str:
    try:
        return version("rouge-score")
    except PackageNotFoundError:  # the package is next to ours and not installed
        return "unknown"


SacreScorer = BLEU | CHRF | TER | SumMetric
_FURTHER = {"rouge": (Rouge, ROUGE_KINDS), "brackets": (Brackets, brackets.KINDS)}
FURTHER = tuple(_FURTHER)
"""Metrics of single tasks; each stands for one or more scorers, one of which has its name."""


@dataclass(frozen=True)
class Metric:
    name: str
    value: float
    half_width: float | None
    """Half width of the 95% bootstrap interval around its mean (Koehn 2004); None without bootstrap."""
    mean: float | None
    """Mean of the bootstrap samples."""
    higher_is_better: bool
    signature: str


def corpus_metrics(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    bootstrap: int = 0,
    further: Sequence[str] = (),
) -> list[Metric]:
    """BLEU, chrF and TER of a whole test set, and these further metrics."""
    check_same_count(hypotheses, references)
    scorers = make_scorers(tokenize, lowercase, further)
    return [measure(scorer, hypotheses, references, bootstrap) for scorer in scorers.values()]


def check_same_count(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise UserError(f"{len(hypotheses)} translations cannot be held against {len(references)} references")
    if not references:
        raise UserError("there is no sentence to evaluate")


def make_scorers(
    tokenize: str = "13a", lowercase: bool = False, further: Sequence[str] = ()
) -> dict[str, SacreScorer]:
    """sacreBLEU's metric objects by our short names, and those of further metrics."""
    if tokenize not in TOKENIZERS:
        raise UserError(f"tokenize: expected one of {', '.join(TOKENIZERS)}, found '{tokenize}'")
    scorers: dict[str, SacreScorer] = {
        "bleu": BLEU(tokenize=tokenize, lowercase=lowercase, force=True),
        "chrf": _Chrf(lowercase=lowercase),
        "ter": TER(case_sensitive=not lowercase),
    }
    for name in further:
        kind, variants = _FURTHER[name]
        scorers |= {variant: kind(variant) for variant in variants}
    return scorers


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return BLEU(force=True).corpus_score(list(hypotheses), [list(references)]).score


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return CHRF().corpus_score(list(hypotheses), [list(references)]).score


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF of one sentence, from 0 to 100."""
    return CHRF().sentence_score(hypothesis, [reference]).score


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Percentage of exact matches."""
    right = sum(ours == theirs for ours, theirs in zip(hypotheses, references, strict=True))
    return 100 * right / len(references)


def further_score(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The value of one of `FURTHER`."""
    return measure(make_scorers(further=[name])[name], hypotheses, references).value


SCORES: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
    "bleu": bleu,
    "chrf": chrf,
    "exact": exact_match,
    **{name: partial(further_score, name) for name in FURTHER},
}
"""Metrics by which checkpoints are selected and the search is tuned, from 0 to 100."""
NAMES = {"bleu": "BLEU", "chrf": "chrF", "exact": "exact match", "rouge": "ROUGE-L", "brackets": "bracket F1"}


def measure(
    scorer: SacreScorer, hypotheses: Sequence[str], references: Sequence[str], bootstrap: int = 0
) -> Metric:
    """One metric over the given sentences, with the interval of `bootstrap` samples."""
    found = scorer.corpus_score(list(hypotheses), [list(references)], n_bootstrap=max(1, bootstrap))
    mean, half_width = (float(found._mean), float(found._ci)) if bootstrap > 1 else (None, None)
    higher_is_better = not isinstance(scorer, TER)  # TER counts edits
    return Metric(
        found.name, found.score, half_width, mean, higher_is_better, signature=str(scorer.get_signature())
    )


def distinct(texts: Sequence[str], n: int) -> float:
    """Distinct n-grams of words as a percentage of all n-grams (Li et al. 2016)."""
    rows = [text.split() for text in texts]
    grams = [tuple(row[start : start + n]) for row in rows for start in range(len(row) - n + 1)]
    return 100 * len(set(grams)) / len(grams) if grams else 0.0


def perplexities(scored: Sequence[Hypothesis], texts: Sequence[str]) -> tuple[float, float]:
    """Perplexity per token, and per word, where the end of each text counts as a word."""
    nll = -sum(one.log_prob for one in scored)
    tokens = sum(len(one.tokens) + 1 for one in scored)
    words = sum(len(text.split()) + 1 for text in texts)
    return math.exp(min(700.0, nll / tokens)), math.exp(min(700.0, nll / words))
