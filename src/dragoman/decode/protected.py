"""Translate so that URLs, placeholders and markup come out as they went in.

    text ─ translate ─▶ all spans there? ── yes ─▶ done: `copied`
                              │ no
                              └─▶ cut out ─ translate again ─ put back by attention: `placed`, or `appended`

A model that was trained with markup keeps what it can do; the others are not trusted. A text without spans is
translated once, as ever.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from dragoman.decode.aligner import Aligner
from dragoman.decode.hypothesis import Hypothesis
from dragoman.text.protect import Protected, carried, protect, restore
from dragoman.text.spans import Kind
from dragoman.text.words import units

Translate = Callable[[Sequence[str]], list[list[Hypothesis]]]


def keep_spans(
    results: list[list[Hypothesis]],
    texts: Sequence[str],
    kinds: Collection[Kind],
    translate: Translate,
    aligner: Aligner,
    batch_tokens: int,
) -> list[list[Hypothesis]]:
    """The translations of `texts`, those that lost a span replaced. They are made again by `translate`."""
    results = list(results)
    lost: dict[int, Protected] = {}
    for number, text in enumerate(texts):
        protected = protect(text, kinds)
        if not protected.marks:
            continue
        if all(carried(protected, hypothesis.text) for hypothesis in results[number]):
            results[number] = [replace(found, protection="copied") for found in results[number]]
        else:
            lost[number] = protected
    again = translate([protected.text for protected in lost.values()]) if lost else []
    flat = [
        (protected, hypothesis)
        for protected, row in zip(lost.values(), again, strict=True)
        for hypothesis in row
    ]
    restored = iter(_restored(flat, aligner, batch_tokens))
    for number, row in zip(lost, again, strict=True):
        results[number] = [next(restored) for _ in row]
    return results


def _restored(
    pairs: Sequence[tuple[Protected, Hypothesis]], aligner: Aligner, batch_tokens: int
) -> list[Hypothesis]:
    sources = aligner.src_tokenizer.encode_batch([protected.text for protected, _ in pairs])
    ids = [(source, hypothesis.tokens) for source, (_, hypothesis) in zip(sources, pairs, strict=True)]
    weights = aligner.weights(ids, units, batch_tokens) if ids else []
    results: list[Hypothesis] = []
    for number, (protected, hypothesis) in enumerate(pairs):
        text, protection = restore(hypothesis.text, protected, None if weights is None else weights[number])
        results.append(replace(hypothesis, text=text, protection=protection))
    return results
