"""Hypotheses as JSON lines."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.text.glossary import Glossary


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


def applied_terms(glossary: "Glossary", source: str, text: str) -> list[dict[str, Any]]:
    """The glossary's terms in a source, each with the variant that the translation has, or a form of it."""
    from dragoman.text.forms import form_in
    from dragoman.text.word_boundaries import has_phrase

    return [
        {
            "source": match.entry.source,
            "start": match.start,
            "end": match.end,
            "target": next((target for target in match.targets if has_phrase(text, target)), None)
            or next((form for target in match.targets if (form := form_in(text, target))), None),
        }
        for match in glossary.matches(source)
    ]
