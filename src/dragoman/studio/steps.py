"""Inside one head: six steps for one token, from what it reads to what the head writes."""

from collections.abc import Sequence
from typing import Any

from dragoman.errors import UserError
from dragoman.probe.inputs import inputs_of
from dragoman.probe.inside import Inside, Seen
from dragoman.probe.score_steps import score_steps
from dragoman.probe.six_steps import steps_of
from dragoman.probe.vectors import AttentionVectors, contexts_of, vectors_of
from dragoman.shapes import Float, Tensor
from dragoman.studio.packing import numbers
from dragoman.studio.subject import Subject

_NAMES = ("query", "keys", "values", "scores", "scaled", "weights", "weighted", "summed")
_SCORED = (
    "One score function in the place of many heads: it compares the state of the decoder with every source "
    "position. Softmax, weighting and sum are the same as in a Transformer."
)
_COPIED = "Where the model copies from: these weights are the share of each source piece in what is copied."
_COUNTED = (
    "This model counts. The query is the last word, as a one-hot vector. The keys are columns of a matrix, "
    "one for each earlier word: 0 if that word and the last one together inform about the next, else −∞. The "
    "softmax gives all visible words the same weight. The values are their votes: how often each word came "
    "next."
)


def one_head(
    subject: Subject, text: str, target: Sequence[int], module: str, head: int, position: int
) -> dict[str, Any]:
    seen = subject.look(text, target)
    own = seen.named(module)
    for name, asked, there in (
        ("head", head, own.weights.size(0)),
        ("position", position, own.weights.size(1)),
    ):
        if not 0 <= asked < there:
            raise UserError(f"{name}: {asked} is not there; they are numbered from 0 to {there - 1}")
    rows, columns = seen.labels(own.kind)
    vectors = vectors_of(*_pair(subject, seen)).get(module)
    steps = (
        _of_memory(subject, seen, own, position)
        if vectors is None
        else _of_vectors(subject, seen, own, vectors, head, position)
    )
    return {
        "rows": rows,
        "columns": columns,
        "kind": own.kind,
        "layer": own.layer,
        "matrix": numbers(own.weights[head].double().numpy()),
        **steps,
    }


def _pair(subject: Subject, seen: Inside) -> tuple[Any, list[int], list[int], Any]:
    translator = subject.translator
    return translator.model, list(seen.src_ids[:-1]), list(seen.tgt_ids[:-1]), translator.device


def _of_vectors(
    subject: Subject, seen: Inside, own: Seen, vectors: AttentionVectors, head: int, position: int
) -> dict[str, Any]:
    # A model that has read the source in the same sequence has queries for it too.
    before = vectors.query.size(1) - own.weights.size(1)
    place = before + position
    steps = steps_of(vectors, head, place)
    model, src_ids, tgt_ids, device = _pair(subject, seen)
    inputs = inputs_of(model, src_ids, tgt_ids, own.module, device)
    parts = {"embedded": inputs.embedded, "position": inputs.position}
    made_of = {name: None if part is None else _row(part, position) for name, part in parts.items()}
    out = vectors.out.weight.detach().double().cpu().unflatten(1, (len(vectors.value), -1))  # D H W
    return {
        **{name: numbers(getattr(steps, name)) for name in _NAMES},
        "inputs": made_of | {"read": _row(inputs.read, place)},
        "bias": None if vectors.bias is None else _row(vectors.bias[head], place),
        "scale": vectors.scale,
        "visible": vectors.visible[before:].tolist(),
        "output": numbers(out[:, head].numpy() @ steps.summed),
    }


def _of_memory(subject: Subject, seen: Inside, own: Seen, position: int) -> dict[str, Any]:
    """Recurrent and convolutional decoders: the vectors that are summed are the memory itself."""
    memory = contexts_of(*_pair(subject, seen)).get(own.module)
    weights = own.weights[0, position].double().numpy()
    rows, columns = own.weights.shape[1:]
    ahead = columns - rows if own.kind == "joint" else columns  # of the first row: all after it is hidden
    told = {
        "weights": numbers(weights),
        "visible": [[column <= row + ahead for column in range(columns)] for row in range(rows)],
    }
    if memory is None:
        return told | {"why": _COPIED if own.kind == "copy" else _COUNTED}
    model, src_ids, tgt_ids, device = _pair(subject, seen)
    score = score_steps(model, src_ids, tgt_ids, own.module, position, device)
    values = memory.double().cpu().numpy()
    weighted = weights[:, None] * values
    return told | {
        "why": _SCORED,
        "score": {
            "formula": score.formula,
            "query": numbers(score.query),
            "asked": None if score.asked is None else numbers(score.asked),
            "keys": numbers(score.keys) if score.keys.shape[1] else None,
            "inner": None if score.inner is None else numbers(score.inner),
            "scores": numbers(score.scores),
        },
        "values": numbers(values),
        "weighted": numbers(weighted),
        "summed": numbers(weighted.sum(axis=0)),
    }


def _row(part: Float[Tensor, "Q D"], number: int) -> list[Any]:
    return numbers(part[number].double().cpu().numpy())
