"""One sentence as a page to look into: a single file that opens from disk and asks nobody for anything.

    Inside, vectors, hypotheses ─ JSON ─▶ page.html with its style and its script inside

All text is data, set as text: what a sentence contains is never markup. The page's own policy allows the two
blocks that it came with, by their hashes, and nothing else.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import torch

from dragoman.decode.search.trace import Trace
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.drawing import assets, bundled
from dragoman.probe.figures.beam import best_path
from dragoman.probe.inside import Inside, Seen
from dragoman.probe.reading import Read
from dragoman.probe.vectors import AttentionVectors, Caught
from dragoman.probe.words import sides_of
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import Tokenizer

_MOST_NUMBERS = 3_000_000  # of queries, keys and values in a page: some 16 MB
_STEPS = 65535
_SCORED = "This attention has no queries, keys and values of the Transformer's kind, and no six steps."
_TOO_MANY = "The vectors of this attention were left out: the sentence is too long for one page."


def make_page(
    source: str,
    seen: Inside,
    vectors: Caught,
    tokenizers: tuple[Tokenizer, Tokenizer],
    found: Sequence[Hypothesis] = (),
    start: Seen | None = None,
    head: int | None = None,
    about: str = "",
    when_read: bool = False,
) -> str:
    """`found` are the hypotheses of the search, best first, of which `seen` is the first; none for a given
    translation. `start` and `head` are what the page shows at first; `when_read`: whether
    rows of words are called by the word that was read."""
    tgt_tokenizer = tokenizers[1]
    data = {
        "source": source,
        "translation": tgt_tokenizer.decode(seen.tgt_ids[:-1]),
        "about": about,
        "written": seen.written,
        "scores": [_short(score) for score in seen.token_scores],
        "alternatives": _alternatives(seen, tgt_tokenizer),
        "best": [{"text": each.text, "score": each.score, "log_prob": each.log_prob} for each in found],
        "attentions": _attentions(seen, vectors),
        "sides": sides_of(seen, tokenizers),
        "when_read": when_read,
        "start": seen.attentions.index(start) if start is not None else 0,
        "head": -1 if head is None else head,
        "beam": _beam(found[0].trace, seen) if found and found[0].trace else None,
    }
    return fill_template(data)


def make_reading_page(found: Read, tokenizer: Tokenizer, about: str) -> str:
    """The page for an encoder: its predictions at each position, or what it says of the text and why, and its
    attention."""
    seen, said = found.seen, found.said
    data = {
        "source": found.text,
        "translation": "" if said is None else _in_words(said.value),
        "labels": [] if said is None else sorted(said.probabilities.items(), key=lambda each: -each[1]),
        "units": list(zip(found.units, found.shares, strict=True)),
        "about": about,
        "written": seen.written,
        "scores": [_short(score) for score in seen.token_scores],
        "alternatives": _alternatives(seen, tokenizer),
        "best": [],
        "attentions": _attentions(seen, {}),
        "sides": sides_of(seen, (tokenizer, tokenizer)),
        "when_read": False,
        "start": max(0, len(seen.attentions) - 1),
        "head": -1,
        "beam": None,
    }
    return fill_template(data)


def _in_words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def fill_template(data: dict[str, Any]) -> str:
    """The page around its data."""
    style = assets()["design.css"] + probe_asset("page.css")
    script = "\n".join(
        [
            '"use strict";',
            probe_asset("numbers.js"),
            bundled("heatmap", "tree", "bipartite", "weights", "controls", "export"),
            probe_asset("page.js"),
        ]
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"  # the cells of a heat-map are a picture
    )
    # Inside a script element only < could end it, and the separators of lines are no part of JSON's own text.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    page = probe_asset("page.html")
    for name, content in (("POLICY", policy), ("STYLE", style), ("SCRIPT", script), ("DATA", text)):
        before, after = page.split(f"@{name}@")
        page = before + content + after
    return page


def probe_asset(name: str) -> str:
    return (files("dragoman.probe") / "assets" / name).read_text("utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _alternatives(seen: Inside, tokenizer: Tokenizer) -> list[list[tuple[str, float]]]:
    return [
        [(tokenizer.pieces([token])[0], _short(score)) for token, score in options]
        for options in seen.alternatives
    ]


def _short(score: float) -> float:
    """JSON has no −∞, which a piece that can never come has."""
    return max(round(score, 5), -999.0)


def _attentions(seen: Inside, vectors: Caught) -> list[dict[str, Any]]:
    room = _MOST_NUMBERS
    found: list[dict[str, Any]] = []
    for each in seen.attentions:
        rows, columns = seen.labels(each.kind)
        own, why = vectors.get(each.module), _SCORED
        if own is not None:
            room -= own.query.numel() + own.key.numel() + own.value.numel()
            own, why = (own, "") if room >= 0 else (None, _TOO_MANY)
        found.append(
            {
                "kind": each.kind,
                "layer": each.layer,
                "heads": len(each.weights),
                "rows": rows,
                "read": seen.src if each.kind == "encoder" else seen.read,
                "columns": columns,
                "masked": each.kind in ("decoder", "joint"),
                "module": each.module,
                "weights": _in_steps(each.weights),
                "steps": _STEPS,
                "vectors": None if own is None else _vectors(own, causal=each.kind == "decoder"),
                "why": why,
            }
        )
    return found


def _vectors(own: AttentionVectors, causal: bool) -> dict[str, Any]:
    heads, queries, width = own.query.shape
    return {
        "size": heads,
        "queries": queries,
        "memory": own.key.size(1),
        "width": width,
        "outWidth": own.value.size(3),
        "valuesEach": own.value.size(1),
        "scale": own.scale,
        "causal": causal,
        "query": _encoded(own.query),
        "key": _encoded(own.key),
        "value": _encoded(own.value),
        "bias": None if own.bias is None else _encoded(own.bias),
    }


def _in_steps(weights: Float[Tensor, "H Q M"]) -> str:
    """Encode weights in steps from 0 to 1, two bytes each: exact to 1e-5, and 0 stays 0."""
    array = (weights.double() * _STEPS).round().numpy().astype("<u2")
    return base64.b64encode(array.tobytes()).decode()


def _encoded(values: Tensor) -> str:
    """Little-endian float32, as the browsers of today hold it."""
    array = values.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4", copy=False)
    return base64.b64encode(array.tobytes()).decode()


def _beam(trace: Trace, seen: Inside) -> dict[str, Any] | None:
    if not trace.steps:
        return None
    steps = [
        [
            {
                "parent": each.parent,
                "piece": str(each.token) if each.piece is None else each.piece,
                "score": round(each.log_prob, 4),
                "sum": round(each.sum, 4),
                "fate": each.fate,
            }
            for each in step
        ]
        for step in trace.steps
    ]
    return {"steps": steps, "path": best_path(trace, seen.tgt_ids)}
