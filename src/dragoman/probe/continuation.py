"""The pieces of a continuation with their probabilities, and what else could have stood in their places."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.data.batch import collate
from dragoman.decode.search.scorer import log_probs
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.text.incremental import IncrementalDecoder
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class PieceInPlace:
    text: str
    """The part of the text that this piece added: nothing, if it ends inside a character."""
    log_prob: float
    best: tuple[tuple[str, float], ...]
    """The most probable pieces there, with their log-probabilities."""
    begin: int
    """Where the part begins in the continuation."""


def scored_pieces(
    translator: Translator, source: Sequence[int], found: Hypothesis, begin: int, end: int, count: int
) -> list[PieceInPlace]:
    """The pieces of the text from `begin` to `end` of a line, each with the `count` most probable ones.
    `source` is what the model read before the line, without its last `</s>`."""
    tokenizer = translator.tgt_tokenizer
    best = _most_probable(translator, source, found.tokens, count)
    decoder, place, parts = IncrementalDecoder(tokenizer), 0, list[PieceInPlace]()
    for number, token in enumerate(found.tokens):
        part = decoder.push(token)
        if number == len(found.tokens) - 1:
            part += decoder.finish()
        first, place = place, place + len(part)
        if (place > begin or first >= begin) and (first < end or (first == place == end)):
            own = part[max(0, begin - first) : max(0, end - first)]
            parts.append(PieceInPlace(own, found.token_scores[number], best[number], max(0, first - begin)))
    return parts


def _most_probable(
    translator: Translator, source: Sequence[int], tokens: Sequence[int], count: int
) -> list[tuple[tuple[str, float], ...]]:
    """For each token the most probable ones in its place, by one pass over all of them."""
    if not count or not tokens:
        return [()] * len(tokens)
    model, tokenizer = translator.model, translator.tgt_tokenizer
    batch = collate([(source, tokens)], translator.device)
    with torch.inference_mode():
        hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)[0, : len(tokens)]
        values, ids = log_probs(model.project(hidden)).topk(min(count, tokenizer.size), dim=1)
    return [
        tuple((spelling(tokenizer, token), value) for token, value in zip(row, scores, strict=True))
        for row, scores in zip(ids.tolist(), values.tolist(), strict=True)
    ]


def spelling(tokenizer: Tokenizer, token: int) -> str:
    """What a piece adds to a text; the name of one that adds nothing, such as `</s>`."""
    return tokenizer.bytes_of(token).decode("utf-8", errors="replace") or tokenizer.pieces([token])[0]
