"""Evaluate a translator on a test set: translations, scores, and overlap with the training data."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.base import BaseTranslator
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS
from dragoman.evaluate.metrics import Metric, corpus_metrics, exact_match

BOOTSTRAP = 1000


@dataclass(frozen=True)
class Evaluation:
    metrics: list[Metric]
    exact: float
    """Percentage of exact matches."""
    hypotheses: list[str]
    seconds: float
    search: SearchConfig
    cut_off: int
    """Translations that were cut at the length limit."""
    loops: int
    """Translations that were stuck in a loop and were redone."""
    alone: int = 0
    """Translations without the sentences before, since the output with them had the wrong separators."""

    def report(self) -> dict[str, Any]:
        """Everything but the texts, JSON-compatible."""
        return {
            "sentences": len(self.hypotheses),
            "metrics": [asdict(metric) for metric in self.metrics],
            "exact_match": self.exact,
            "cut_off": self.cut_off,
            "loops": self.loops,
            **({"alone": self.alone} if self.alone else {}),
            "search": asdict(self.search),
        }


def evaluate_testset(
    translator: BaseTranslator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    search: SearchConfig | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    tokenize: str = "13a",
    lowercase: bool = False,
    bootstrap: int = BOOTSTRAP,
    further: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Translate the sources and score the results against the references, also by `further` metrics."""
    began = time.monotonic()
    settings = search or translator.search
    found = translator.hypotheses(sources, search=settings, batch_tokens=batch_tokens, progress=progress)
    seconds = time.monotonic() - began
    hypotheses = [best.text for best, *_ in found]
    metrics = corpus_metrics(
        hypotheses,
        references,
        tokenize=tokenize,
        lowercase=lowercase,
        bootstrap=bootstrap,
        further=further,
    )
    reasons = Counter(best.finish_reason for best, *_ in found)
    exact = exact_match(hypotheses, references)
    alone = sum(best.alone for best, *_ in found)
    lengths, loops = reasons["length"], reasons["loop"]
    return Evaluation(metrics, exact, hypotheses, seconds, settings, lengths, loops, alone)
