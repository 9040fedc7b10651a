"""`dragoman explain` for runs that do not translate: language models, networks that read, classifiers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.probe.explain import Explained
    from dragoman.probe.reading import Read
    from dragoman.runs.directory import Run
    from dragoman.text.tokenizer import Tokenizer

READ_FIGURES = ("alignment", "heads", "integrated")


@dataclass(frozen=True)
class Wanted:
    """The options of a request."""

    text: str
    figure: str
    ending: str
    """File suffix of the picture. Empty: no picture."""
    kind: str | None
    """Kind of attention: encoder, decoder or cross."""
    layer: int | None
    head: int | None
    words: bool


def explained_writing(run: "Run", text: str, checkpoint: str, device: str) -> "Explained":
    """A model that writes: GPT and UniLM find the text itself probable or not; T5 and BART fill its gaps."""
    from dragoman.probe.explain import explain_gaps, explain_sentence
    from dragoman.probe.fill import Filler

    if run.config.purpose == "generate":
        return explain_sentence(run.generator(checkpoint, device).translator, "", text)
    return explain_gaps(Filler(run, checkpoint, device), text)


def writes(run: "Run") -> bool:
    """Whether the run's model writes text, rather than only reads it."""
    if run.config.purpose == "read":
        return run.config.model_config[1].abilities.writes
    return run.config.purpose != "predict"


def read(run: "Run", text: str, checkpoint: str, device: str) -> tuple["Read", "Tokenizer"]:
    """A network that reads. A pair of texts has a tab between them."""
    from dragoman.probe.reader import RunReader

    reader = RunReader(run, checkpoint, device)
    return reader.read(text), reader.tokenizer


def picture(found: "Read", tokenizer: "Tokenizer", wanted: Wanted) -> bytes:
    import numpy as np

    from dragoman.probe.figures.weights import draw_heads, draw_heatmap
    from dragoman.probe.reading import attention_of
    from dragoman.probe.words import View, view

    endings = (wanted.ending,)
    if wanted.figure not in READ_FIGURES:
        raise UserError(
            f"--figure {wanted.figure}: not for a model that only reads; choose {', '.join(READ_FIGURES)}"
        )
    if wanted.figure == "integrated":
        if found.said is None or not found.shares:
            raise UserError("--figure integrated: only for runs fine-tuned to classify texts or pairs")
        row = np.array([found.shares])
        shown = View(
            row,
            (str(found.said.value),),
            found.units,
            np.zeros(row.shape, dtype=bool),
            "integrated gradients",
        )
        drawn = draw_heatmap(shown, endings, "label", "text", True, unit="contribution to log p of the label")
        return drawn[wanted.ending]
    chosen = attention_of(found, wanted.layer)
    if wanted.head is not None and wanted.head > len(chosen.weights):
        raise UserError(f"--head {wanted.head}: this attention has {len(chosen.weights)}, numbered from 1")
    tokenizers = (tokenizer, tokenizer) if wanted.words else None
    if wanted.figure == "heads":
        each = [
            [view(found.seen, seen, head, None, tokenizers) for head in range(len(seen.weights))]
            for seen in found.seen.attentions
        ]
        return draw_heads(each, endings)[wanted.ending]
    shown = view(found.seen, chosen, None if wanted.head is None else wanted.head - 1, None, tokenizers)
    return draw_heatmap(shown, endings, "from", "to")[wanted.ending]
