"""Metrics computed from sums over sentences, like those of sacreBLEU, with intervals, significance tests and
signatures."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature


class SumMetric(Metric):
    """A metric: its name, the signature of its variant, the statistics of a sentence, and the score of summed
    statistics."""

    name: str
    variant: dict[str, str]

    @abstractmethod
    def numbers(self, hypothesis: str, reference: str) -> list[float]: ...

    @abstractmethod
    def score(self, sums: Sequence[float]) -> float:
        """The score from summed statistics, from 0 to 100."""
        ...

    def _aggregate_and_compute(self, stats: list[list[Any]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Sequence[Any]) -> Score:
        return Score(self.name, float(self.score(stats)))

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"reference": refs[0]}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[Any]:
        return self.numbers(hypothesis, ref_kwargs["reference"])

    def get_signature(self) -> Signature:
        signature = super().get_signature()
        for name, value in self.variant.items():
            signature.update(name, value)
        return signature
