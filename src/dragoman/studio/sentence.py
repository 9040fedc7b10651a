"""One sentence through one model: what each view of the page asks for, as JSON can hold it."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import normalised
from dragoman.decode.search.trace import Trace
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.errors import UserError
from dragoman.probe.figures.beam import best_path
from dragoman.probe.heads import head_counts, importance, mask_heads
from dragoman.probe.inside import Inside
from dragoman.probe.words import sides_of
from dragoman.studio.packing import attentions_of, most_seen, number
from dragoman.studio.subject import Subject

MaskedHeads = Mapping[str, Sequence[int]]


def translate(subject: Subject, text: str, settings: SearchConfig, head: Sequence[int]) -> dict[str, Any]:
    """The n best, and for the first of them what else could have stood at each position."""
    found = subject.search(text, settings, head)
    return {
        "hypotheses": [_hypothesis(each) for each in found],
        "pieces": pieces_of(subject, subject.look(text, found[0].tokens)),
        "head": list(head),
        "prompt": subject.prompt(text),
    }


def positions(subject: Subject, text: str, target: Sequence[int]) -> dict[str, Any]:
    """For a translation given by its pieces: the probability and the alternatives of each."""
    return {"pieces": pieces_of(subject, subject.look(text, target))}


def attention(
    subject: Subject,
    text: str,
    target: Sequence[int] | None,
    masked: MaskedHeads,
    kind: str | None,
    beam: int,
    alpha: float,
) -> dict[str, Any]:
    """All weights for a translation; the best one where none is given. With heads switched off, the weights
    are those of the model without them, and `effect` says what changes."""
    settings = subject.settings(beam, 1, alpha)
    if target is None:
        target = subject.search(text, settings)[0].tokens
    seen = subject.look(text, target)
    effect = None
    if any(masked.values()):
        with mask_heads(subject.translator.model, masked):
            without = subject.look(text, target)
            anew = subject.search(text, settings)[0]
        effect = {
            "before": number(seen.log_prob),
            "after": number(without.log_prob),
            "scores": [number(score) for score in without.token_scores],
            "anew": _hypothesis(anew),
            "changed": anew.tokens != tuple(target),
        }
        own_scores, seen = [number(score) for score in seen.token_scores], without
    else:
        own_scores = [number(score) for score in seen.token_scores]
    look = subject.translator.aligner.look if seen.of("cross") else None
    start = most_seen(seen, None if look is None else look.module)
    return {
        "ids": list(target),
        "text": subject.tokenizers[1].decode(target),
        "sides": sides_of(seen, subject.tokenizers),
        "scores": own_scores,
        "attentions": attentions_of(seen, kind, head_counts(subject.translator.model)),
        "start": None
        if start is None
        else {
            "module": start.module,
            "head": None if look is None else look.guided_head,
            "when_read": look is not None and look.when_read,
        },
        "effect": effect,
    }


def weigh_heads(subject: Subject, text: str, target: Sequence[int]) -> dict[str, Any]:
    """The drop of log p when each single head is switched off."""
    source = subject.source(text)
    subject.check(target)
    if not head_counts(subject.translator.model):
        raise UserError("heads: this model has no attention whose heads could be switched off")
    found = importance(subject.translator.model, source, target, subject.translator.device)
    return {"falls": {name: [number(fall) for fall in falls] for name, falls in found.items()}}


def beam_tree(subject: Subject, text: str, beam: int, alpha: float) -> dict[str, Any]:
    """The search as it was recorded, and what it found, with the scores by which it could be ranked."""
    settings = subject.settings(beam, beam, alpha, record=True)
    found = subject.search(text, settings)
    trace, tokenizer = found[0].trace, subject.tokenizers[1]
    if trace is None or not trace.steps:
        raise UserError("beam: nothing was searched, so there is no tree to draw")
    finals = [
        _hypothesis(each)
        | {
            "raw": number(each.log_prob),
            "normalised": number(
                normalised(each.log_prob, len(each.tokens) + 1, alpha, settings.length_penalty)
            ),
            "path": best_path(trace, (*each.tokens, tokenizer.eos_id)),
        }
        for each in found
    ]
    return {"steps": _steps_of(trace), "finals": finals, "beam": beam, "alpha": alpha}


def _hypothesis(found: Hypothesis) -> dict[str, Any]:
    return {
        "text": found.text,
        "ids": list(found.tokens),
        "score": number(found.score),
        "log_prob": number(found.log_prob),
        "length": len(found.token_scores),
        "reason": found.finish_reason,
    }


def pieces_of(subject: Subject, seen: Inside) -> list[dict[str, Any]]:
    """The output pieces, with `</s>` at the end."""
    tokenizer = subject.tokenizers[1]
    return [
        {
            "id": token,
            "piece": piece,
            "score": number(score),
            "others": [
                {"id": other, "piece": tokenizer.pieces([other])[0], "score": number(own)}
                for other, own in others
            ],
        }
        for token, piece, score, others in zip(
            seen.tgt_ids, seen.written, seen.token_scores, seen.alternatives, strict=True
        )
    ]


def _steps_of(trace: Trace) -> list[list[dict[str, Any]]]:
    return [
        [
            {
                "parent": each.parent,
                "piece": each.piece,
                "score": number(each.log_prob),
                "sum": number(each.sum),
                "fate": each.fate,
            }
            for each in step
        ]
        for step in trace.steps
    ]
