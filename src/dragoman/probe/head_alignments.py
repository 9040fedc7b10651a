"""Every head as a word aligner: its alignment error rate, where people have marked the links."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.decode.alignment.aligner import Links, links_of, members, pieces_by_pieces, words_by_words
from dragoman.decode.alignment.attention import source_attention
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.evaluate.alignment import AlignmentScores, GoldLinks, score_alignments
from dragoman.probe.heads import head_counts
from dragoman.text.incremental import offsets


@dataclass(frozen=True)
class HeadAlignment:
    module: str
    head: int
    when_read: bool
    """Weights of the step that reads a word, or of the one that predicts it."""
    scores: AlignmentScores


def align_heads(
    translator: Translator, pairs: Sequence[tuple[str, str]], gold: Sequence[GoldLinks]
) -> list[HeadAlignment]:
    """Every head of every attention to the source, at both steps, best first. Words are what white space
    separates; links are made as `dragoman align` makes them."""
    aligner = translator.aligner
    tasks = [
        aligner.task(*ids)
        for ids in zip(
            aligner.src_tokenizer.encode_batch([src for src, _ in pairs]),
            aligner.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs]),
            strict=True,
        )
    ]
    of_words = [
        (
            members(offsets(aligner.src_tokenizer, task.src_ids), task.src_words),
            members(offsets(aligner.tgt_tokenizer, task.tgt_ids), task.tgt_words),
        )
        for task in tasks
    ]
    found: dict[tuple[str, int, bool], list[Links]] = {}
    for head in range(max(head_counts(translator.model).values(), default=0)):
        for task, (of_src, of_tgt) in zip(tasks, of_words, strict=True):
            pair = (task.src_ids, task.tgt_ids)
            for name, (weights,) in source_attention(
                translator.model, [pair], translator.device, head
            ).items():
                for when_read in (False, True):
                    links = links_of(words_by_words(pieces_by_pieces(weights, when_read), of_src, of_tgt))
                    found.setdefault((name, head, when_read), []).append(links)
    if not found:
        raise UserError("gold: this model has no attention to its source, so it aligns nothing")
    scored = [HeadAlignment(*key, score_alignments(links, gold)) for key, links in found.items()]
    return sorted(scored, key=lambda each: (each.scores.error_rate, each.module, each.head, each.when_read))
