"""Measurements of runs for experiments: translations, losses over time, gradients, speed."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from statistics import fmean

import numpy as np
import torch
from safetensors.numpy import load_file
from torch.nn import functional

from dragoman.data.batch import collate
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.translator.translator import Translator
from dragoman.lab.bench import Bench
from dragoman.lab.statistics import Numbers
from dragoman.lab.tasks import TaskPair
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention_kernels import open_tap
from dragoman.probe.attribution import attribute
from dragoman.probe.inside import inside_texts
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_generator
from dragoman.runs.records import read_file


@lru_cache(maxsize=4)
def _translator(directory: str, device: str) -> Translator:
    run = Run.open(directory)
    if run.config.purpose == "generate":
        return open_generator(run, "last", device).translator
    return run.translator("last", device)


def translator_of(run: Run, device: str = "auto") -> Translator:
    """The translator of the last checkpoint, not of the best one. The source of a language model is
    empty."""
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
    """Microseconds per token, from the last timed part of training."""
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
    weights = cross_weights(run, pair)
    return 100 * fmean(int(weights[row].argmax()) == column for row, column in wanted.items())


def cross_weights(run: Run, pair: TaskPair) -> np.ndarray:
    """Weights of each target word on the source words, the mean over layers and heads."""
    seen = inside_texts(translator_of(run, "cpu"), *pair)
    return np.mean([attention.mean.double().numpy() for attention in seen.of("cross")], axis=0)


def self_weights(run: Run, source: str) -> dict[str, np.ndarray]:
    """For every encoder head: the weights of each source word on the source words."""
    seen = inside_texts(translator_of(run, "cpu"), source, source)
    return {
        f"layer {attention.layer} head {number}": head.double().numpy()
        for attention in seen.of("encoder")
        for number, head in enumerate(attention.weights, 1)
    }


def source_gradients(run: Run, pair: TaskPair) -> np.ndarray:
    """‖∂ log p(target word) / ∂ source word‖, a row a target word."""
    translator = translator_of(run, "cpu")
    ids = translator.src_tokenizer.encode(pair[0]), translator.tgt_tokenizer.encode(pair[1])
    return attribute(translator.model, *ids, method="gradient").source


def noise_norms(run: Run, pairs: Sequence[TaskPair], batch: int) -> list[float]:
    """‖g − ḡ‖ of the gradient g of the loss of each batch, with the mean ḡ over all batches."""
    translator = translator_of(run, "cpu")
    model, gradients = translator.model, []
    weights = [weight.requires_grad_() for weight in model.parameters()]
    for begin in range(0, len(pairs) - batch + 1, batch):
        ids = [
            (translator.src_tokenizer.encode(source), translator.tgt_tokenizer.encode(target))
            for source, target in pairs[begin : begin + batch]
        ]
        rows = collate(ids, None)
        logits = model.project(model(rows.src_ids, rows.src_mask, rows.tgt_in))
        loss = functional.cross_entropy(logits[rows.tgt_mask], rows.tgt_out[rows.tgt_mask])
        found = torch.autograd.grad(loss, weights, allow_unused=True)
        gradients.append(torch.cat([part.flatten() for part in found if part is not None]))
    model.requires_grad_(False)
    stack = torch.stack(gradients)
    return (stack - stack.mean(dim=0)).norm(dim=1).tolist()


def kept_bytes(model: EncoderDecoder, length: int, watched: bool) -> int:
    """Bytes that autograd keeps of one sentence of this length, weights of the model left out. `watched`:
    attention computes its weights one by one, as for a picture, and keeps them."""
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    seen: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.randint(3, 60, (1, length))
    with ExitStack() as stack:
        if watched:
            stack.enter_context(open_tap(lambda _module, _weights: None))
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor))
        out = model(ids, torch.ones_like(ids, dtype=torch.bool), ids)
    assert out.requires_grad
    return sum(seen.values())


def tensor_of(run: Run, name: str) -> np.ndarray:
    """A tensor of the last checkpoint, by the end of its name."""
    assert run.last is not None
    found = load_file(run.checkpoints / run.last / "model.safetensors")
    return next(tensor for key, tensor in found.items() if key.endswith(name)).astype(np.float64)
