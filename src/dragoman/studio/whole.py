"""The whole model for one sentence: every stage on the way from the source to the next word."""

from collections.abc import Sequence
from typing import Any

import torch

from dragoman.errors import UserError
from dragoman.models.markov import Markov
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.probe.forward_pass import ModelStage, walk
from dragoman.probe.inside import Inside
from dragoman.studio.packing import number, numbers
from dragoman.studio.subject import Subject

_FEW = 8
_BEST = 8


def whole_model(
    subject: Subject, text: str, target: Sequence[int], position: int, stage: int | None
) -> dict[str, Any]:
    """All stages with their first numbers, or one of them with all of them; and what is predicted at one
    target position."""
    seen = subject.look(text, target)
    if not 0 <= position < len(seen.written):
        raise UserError(
            f"position: {position} is not there; they are numbered from 0 to {len(seen.written) - 1}"
        )
    translator = subject.translator
    found = walk(translator.model, list(seen.src_ids[:-1]), list(seen.tgt_ids[:-1]), translator.device)
    if stage is not None:
        if stage >= len(found.stages):
            raise UserError(f"stage: {stage} is not there; there are {len(found.stages)}")
        return _described(found.stages[stage], seen, subject, None)
    logits = found.logits[position]
    best = logits.topk(min(_BEST, len(logits)))
    shares = torch.softmax(logits.double(), dim=-1)[best.indices]
    pieces = subject.tokenizers[1].pieces(best.indices.tolist())
    return {
        "stages": [_described(each, seen, subject, _FEW) for each in found.stages],
        "position": position,
        "written": seen.written[position],
        "read": seen.read[position],
        "logits": [
            {"piece": piece, "logit": number(logit), "probability": number(share)}
            for piece, logit, share in zip(pieces, best.values.tolist(), shares.tolist(), strict=True)
        ],
        "vocabulary": len(logits),
        "projects": translator.model.projection is not None,
        "counts": isinstance(translator.model, Markov),
    }


def _described(stage: ModelStage, seen: Inside, subject: Subject, few: int | None) -> dict[str, Any]:
    module = dict(subject.translator.model.named_modules()).get(stage.module)
    heads = module.num_heads if isinstance(module, SelfAttention | CrossAttention) else None
    before = stage.before
    return {
        "module": stage.module,
        "kind": stage.kind,
        "half": stage.half,
        "heads": heads,
        "rows": _labels(stage, seen),
        "width": stage.given.size(1),
        "given": numbers(stage.given[:, :few].double().numpy()),
        "before": None if before is None else numbers(before[:, :few].double().numpy()),
        "before_width": None if before is None else before.size(1),
        "gates": {name: numbers(values[:, :few].double().numpy()) for name, values in stage.gates.items()},
        "backward": stage.backward,
    }


def _labels(stage: ModelStage, seen: Inside) -> list[str]:
    """Labels of the positions of a stage."""
    count, own = len(stage.given), seen.src if stage.half == "encoder" else seen.steps
    if count == len(own):
        return list(own)
    if count == len(seen.src) + len(seen.steps):  # source and target are one sequence
        return [*seen.src, *seen.steps]
    return ["the sentence"] if count == 1 else [str(place + 1) for place in range(count)]
