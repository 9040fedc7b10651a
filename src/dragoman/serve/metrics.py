"""Counters in the text format of Prometheus. No label contains client input."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

_EDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_HELP = {
    "dragoman_requests_total": "Requests that were answered.",
    "dragoman_characters_total": "Characters of the texts that clients sent.",
    "dragoman_translated_sentences_total": "Sentences and texts that a model was given.",
    "dragoman_cached_sentences_total": "Sentences and texts whose answer was remembered.",
    "dragoman_memory_sentences_total": "Sentences that the translation memory had.",
    "dragoman_batches_total": "Batches that models were given.",
    "dragoman_wrong_keys_total": "Requests with a key that is none of ours.",
    "dragoman_dropped_connections_total": "Connections that were closed to make room for others.",
    "dragoman_malformed_requests_total": "Connections on which no HTTP came, or more than is allowed of it.",
}


class Metrics:
    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter({(name, ""): 0 for name in _HELP})
        del self._counts["dragoman_requests_total", ""]  # it always has labels
        self._times = [0] * (len(_EDGES) + 1)
        self._seconds = 0.0

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        told = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
        self._counts[name, told] += amount

    def value(self, name: str) -> int:
        return sum(count for (own, _), count in self._counts.items() if own == name)

    def request(self, dialect: str, status: int, seconds: float) -> None:
        self.count("dragoman_requests_total", dialect=dialect, status=str(status))
        self._times[bisect_left(_EDGES, seconds)] += 1
        self._seconds += seconds

    def exposition(self, gauges: Mapping[str, float]) -> str:
        lines: list[str] = []
        for name, help_text in _HELP.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} counter"]
            for (own, labels), count in sorted(self._counts.items()):
                if own == name:
                    lines.append(f"{name}{{{labels}}} {count}" if labels else f"{name} {count}")
        time = "dragoman_request_seconds"
        lines += [
            f"# HELP {time} Time from a request's first byte to its answer.",
            f"# TYPE {time} histogram",
        ]
        total = 0
        for edge, count in zip((*map(str, _EDGES), "+Inf"), self._times, strict=True):
            total += count
            lines.append(f'{time}_bucket{{le="{edge}"}} {total}')
        lines += [f"{time}_sum {self._seconds:.6f}", f"{time}_count {total}"]
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"
