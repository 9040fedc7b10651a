"""Hypotheses as JSON lines."""

import json
from collections.abc import Sequence
from typing import Any


def as_json(
    source: str,
    hypotheses: list[Any],
    glossary: list[dict[str, Any]] | None = None,
    confidences: Sequence[float] | None = None,
    memory: dict[str, Any] | None = None,
) -> str:
    """One line; `glossary` are the terms of the source, with what the best translation calls them; `memory`
    is the sentence of a memory that was used."""
    sure = [None] * len(hypotheses) if confidences is None else confidences
    translations = [
        {
            "text": hypothesis.text,
            "score": hypothesis.score,
            "log_prob": hypothesis.log_prob,
            "finish_reason": hypothesis.finish_reason,
            "pieces": [*hypothesis.pieces, "</s>"] if hypothesis.token_scores else [],
            "token_scores": list(hypothesis.token_scores),
            **({} if confidence is None else {"confidence": confidence}),
            **({"alone": True} if hypothesis.alone else {}),
            **({} if hypothesis.exact is None else {"exact": hypothesis.exact}),
            **({} if hypothesis.alignment is None else {"alignment": hypothesis.alignment}),
            **({} if hypothesis.protection is None else {"protection": hypothesis.protection}),
        }
        for hypothesis, confidence in zip(hypotheses, sure, strict=True)
    ]
    entry: dict[str, Any] = {"source": source, "translations": translations}
    if glossary is not None:
        entry["glossary"] = glossary
    if memory is not None:
        entry["memory"] = memory
    if hypotheses[0].trace is not None:
        entry["trace"] = hypotheses[0].trace.as_dict()["steps"]
    return json.dumps(entry, ensure_ascii=False)
