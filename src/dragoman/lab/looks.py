"""What experiments measure of a run: translations, losses over time, gradients, speed."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean

import numpy as np

from dragoman.decode.search.config import BeamSearch
from dragoman.decode.translator.translator import Translator
from dragoman.lab.bench import Bench
from dragoman.lab.statistics import Numbers
from dragoman.lab.tasks import TaskPair
from dragoman.probe.attribution import attribute
from dragoman.probe.inside import inside_texts
from dragoman.runs.directory import Run
from dragoman.runs.records import read_file


@lru_cache(maxsize=4)
def _translator(directory: str, device: str) -> Translator:
    return Run.open(directory).translator("last", device)


def translator_of(run: Run, device: str = "auto") -> Translator:
    """Of the last checkpoint: what training ended with, not what was best on the way."""
    return _translator(str(run.directory), device)


def translate(
    run: Run, pairs: Sequence[TaskPair], device: str = "auto", beam: int = 1, alpha: float = 1.0
) -> list[str]:
    search = BeamSearch(beam=beam, alpha=alpha, n_best=1, loop_guard=False)
    found = translator_of(run, device).hypotheses([source for source, _ in pairs], search=search)
    return [best.text for best, *_ in found]


def symbols_right(output: str, reference: str) -> float:
    """Percent of the reference's words that stand at their place in the output."""
    found, wanted = output.split(), reference.split()
    return 100 * fmean(place < len(found) and found[place] == word for place, word in enumerate(wanted))


def right(run: Run, pairs: Sequence[TaskPair], device: str = "auto") -> float:
    """Mean percent of words at their place."""
    outputs = translate(run, pairs, device)
    return fmean(symbols_right(output, pair[1]) for output, pair in zip(outputs, pairs, strict=True))


def exact(run: Run, pairs: Sequence[TaskPair], device: str = "auto") -> float:
    """Percent of sentences that are right to the letter."""
    outputs = translate(run, pairs, device)
    return 100 * fmean(output == pair[1] for output, pair in zip(outputs, pairs, strict=True))


def right_by_length(bench: Bench, edges: Sequence[int]) -> Numbers:
    """Percent of words at their place for sources of at most so many words, and more than the edge before."""

    def look(run: Run, pairs: Sequence[TaskPair]) -> dict[str, float]:
        scores: dict[str, list[float]] = {str(edge): [] for edge in edges}
        for output, (source, reference) in zip(translate(run, pairs, bench.device), pairs, strict=True):
            edge = next((edge for edge in edges if len(source.split()) <= edge), None)
            if edge is not None:
                scores[str(edge)].append(symbols_right(output, reference))
        return {edge: fmean(found) for edge, found in scores.items() if found}

    return bench.on_test(look)


def over_time(run: Run, field: str = "loss", kind: str = "valid") -> dict[str, float]:
    """A field of what a run has written down, by update."""
    records = [record for record in run.metrics if record.get("kind") == kind]
    return {str(record["update"]): record[field] for record in records if record.get(field) is not None}


def final(run: Run, field: str = "loss") -> float:
    """The last validation's."""
    return list(over_time(run, field).values())[-1]


def parameters(run: Run) -> int:
    model = translator_of(run, "cpu").model
    return sum(weight.numel() for weight in model.parameters())


def microseconds_a_token(run: Run) -> float:
    """Of the last stretch of training that the run has timed."""
    records = [json.loads(line) for line in read_file(run.directory / "timing.jsonl").splitlines()]
    speeds = [record["tokens_per_second"] for record in records if record.get("tokens_per_second")]
    return 1e6 / speeds[-1]


def gradient_by_distance(run: Run, pairs: Sequence[TaskPair]) -> dict[int, float]:
    """‖∂ log p(first target word) / ∂ source word‖ by the word's distance from the end of the source, as a
    share of that of the last word. The geometric mean over the pairs."""
    translator = translator_of(run, "cpu")
    found: dict[int, list[float]] = {}
    for source, target in pairs:
        ids = translator.src_tokenizer.encode(source), translator.tgt_tokenizer.encode(target)
        row = attribute(translator.model, *ids, method="gradient").source[0][: len(ids[0])][::-1]
        for distance, size in enumerate(row):
            found.setdefault(distance, []).append(float(np.log(max(size, 1e-30) / max(row[0], 1e-30))))
    return {distance: float(np.exp(fmean(logs))) for distance, logs in sorted(found.items())}


def attention_on(run: Run, pair: TaskPair, wanted: Mapping[int, int]) -> float:
    """Percent of target words whose greatest weight, the mean over layers and heads, is on the wanted
    source word."""
    seen = inside_texts(translator_of(run, "cpu"), *pair)
    weights = np.mean([attention.mean.double().numpy() for attention in seen.of("cross")], axis=0)
    return 100 * fmean(int(weights[row].argmax()) == column for row, column in wanted.items())
