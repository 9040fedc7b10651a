"""What every translator offers: text in, hypotheses out, whichever engine searches. Plain Python."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence

from dragoman.decode.alignment.aligner import Aligner
from dragoman.decode.rules.constraints import Constraints, constraints_of_texts
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.cancel import Wanted, some_of
from dragoman.decode.translator.hypothesis import Hypothesis, refuse_string
from dragoman.decode.translator.protected import aligned, keep_spans
from dragoman.text.glossary import Glossary
from dragoman.text.spans import SpanKind
from dragoman.text.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
"""Told how many sentences are done, of how many."""


class Surface(ABC):
    """A text without anything but white space is translated as the empty text, without asking the model."""

    default_batch_tokens: int

    def __init__(self, aligner: Aligner, search: SearchConfig) -> None:
        self.aligner, self.search = aligner, search
        self.src_tokenizer: Tokenizer = aligner.src_tokenizer
        self.tgt_tokenizer: Tokenizer = aligner.tgt_tokenizer

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int | None = None,
        protect: Collection[SpanKind] = (),
        wanted: Sequence[Wanted] | None = None,
    ) -> list[str]:
        """The best translation of each text."""
        found = self.hypotheses(
            texts, search=search, batch_tokens=batch_tokens, protect=protect, wanted=wanted
        )
        return [best.text for best, *_ in found]

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        prefixes: Sequence[str] | None = None,
        prefix_open: bool = False,
        required: Sequence[Sequence[str | Sequence[str]]] | None = None,
        forbidden: Sequence[str] | Sequence[Sequence[str]] = (),
        glossary: Glossary | None = None,
        protect: Collection[SpanKind] = (),
        align: bool = False,
        batch_tokens: int | None = None,
        progress: Progress | None = None,
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first, with their scores.

        `prefixes` are what the translations begin with; `prefix_open` lets the last word of each go on.
        `required` has for every text the phrases that must come, each one phrase or several variants of it;
        `glossary` adds those of the terms that a text has. `forbidden` are phrases for all texts, or a list
        of phrases for each. A phrase is always matched as whole words, in the case given. `protect` names
        what has to come out as it went in (`text/spans.py`); by default the model is alone. `align` adds word
        alignments. Where a text is not `wanted` any more, its search is given up and what is told of it is
        worth nothing.
        """
        refuse_string(texts)
        settings, size = search or self.search, batch_tokens or self.default_batch_tokens
        constraints = constraints_of_texts(
            self.tgt_tokenizer, texts, prefixes, prefix_open, required, forbidden, glossary
        )
        found = self._hypotheses(texts, settings, constraints, size, progress, wanted)
        if protect:

            def again(numbers: Sequence[int], cut: Sequence[str]) -> list[list[Hypothesis]]:
                own = [constraints[number] for number in numbers]
                return self._hypotheses(cut, settings, own, size, wanted=some_of(wanted, numbers))

            found = keep_spans(found, texts, protect, again, self.aligner, size)
        return aligned(found, texts, protect, self.aligner, size) if align else found

    @abstractmethod
    def _hypotheses(
        self,
        texts: Sequence[str],
        settings: SearchConfig,
        constraints: Sequence[Constraints],
        batch_tokens: int,
        progress: Progress | None = None,
        wanted: Sequence[Wanted] | None = None,
    ) -> list[list[Hypothesis]]:
        """By the model alone, neither protected nor aligned; at least one of each text, wanted or not."""
