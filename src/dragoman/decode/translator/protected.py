"""Translations that keep URLs, placeholders and markup as they are (`keep_spans`), and word alignments of
such translations (`aligned`).

    text ─ translate ─▶ all spans there? ── yes ─▶ done: `copied`
                              │ no
                              └─▶ remove ─ translate again ─ insert by attention: `placed`, or `appended`

So a model that has learnt to copy spans is left to do it. Only texts that lose a span are translated twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from dragoman.decode.alignment.aligner import Aligner, AlignmentTask
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.text.protect import Protected, carried, protect, restore, words_without_spans
from dragoman.text.spans import SpanKind, find
from dragoman.text.word_boundaries import units, words

TranslateNumbered = Callable[[Sequence[int], Sequence[str]], list[list[Hypothesis]]]
"""Translates the texts with these indices again, in their new form."""


def keep_spans(
    results: list[list[Hypothesis]],
    texts: Sequence[str],
    kinds: Collection[SpanKind],
    translate: TranslateNumbered,
    aligner: Aligner,
    batch_tokens: int,
) -> list[list[Hypothesis]]:
    """The translations of `texts`. Where one lost a span, `translate` makes it again without its spans, and
    they are put back."""
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
    again = translate(list(lost), [protected.text for protected in lost.values()]) if lost else []
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
    tasks = [
        aligner.task(source, hypothesis.tokens, units)
        for source, (_, hypothesis) in zip(sources, pairs, strict=True)
    ]
    weights = aligner.weights(tasks, batch_tokens) if tasks else []
    results: list[Hypothesis] = []
    for number, (protected, hypothesis) in enumerate(pairs):
        text, protection = restore(hypothesis.text, protected, None if weights is None else weights[number])
        results.append(replace(hypothesis, text=text, protection=protection))
    return results


def aligned_hypotheses(
    found: Sequence[Sequence[Hypothesis]],
    texts: Sequence[str],
    kinds: Collection[SpanKind],
    aligner: Aligner,
    batch_tokens: int,
) -> list[list[Hypothesis]]:
    """The hypotheses with their word alignments."""
    rows = zip(texts, found, strict=True)
    tasks = [alignment_task(text, one, kinds, aligner) for text, row in rows for one in row]
    links = iter(aligner.links(tasks, batch_tokens))
    return [[replace(one, alignment=tuple(next(links))) for one in row] for row in found]


def alignment_task(
    source: str, hypothesis: Hypothesis, kinds: Collection[SpanKind], aligner: Aligner
) -> AlignmentTask:
    """The alignment task of a hypothesis: the words of its text, by the tokens that the model read and wrote.

    If spans were inserted into the text, the words are aligned without them, and spans that are words of
    their own are linked to each other.
    """
    if hypothesis.protection not in ("placed", "appended"):
        return aligner.task(aligner.src_tokenizer.encode(source), hypothesis.tokens)
    protected = protect(source, kinds)
    wrote = aligner.tgt_tokenizer.decode(hypothesis.tokens)
    src_words = words_without_spans(source, protected.text, kinds)
    tgt_words = words_without_spans(hypothesis.text, wrote, kinds)
    if src_words is None or tgt_words is None:  # spans that the model invented were removed from its text
        src_ids = aligner.src_tokenizer.encode(source)
        return aligner.task(src_ids, aligner.tgt_tokenizer.encode(hypothesis.text))
    known = tuple(_same_spans(source, hypothesis.text, kinds))
    src_ids = aligner.src_tokenizer.encode(protected.text)
    return AlignmentTask(src_ids, hypothesis.tokens, src_words, tgt_words, known)


def _same_spans(source: str, target: str, kinds: Collection[SpanKind]) -> Iterator[tuple[int, int]]:
    """The words of the same spans on both sides; tags are not words."""
    in_target: dict[str, list[range]] = {}
    for span, covered in _spans_in_words(target, kinds):
        in_target.setdefault(span, []).append(covered)
    for span, covered in _spans_in_words(source, kinds):
        if in_target.get(span):
            yield from zip(covered, in_target[span].pop(0), strict=True)


def _spans_in_words(text: str, kinds: Collection[SpanKind]) -> Iterator[tuple[str, range]]:
    starts = [start for start, _ in words(text)]
    for span in find(text, kinds):
        if span.kind != "tag":
            yield span.text, range(bisect_right(starts, span.start) - 1, bisect_left(starts, span.end))
