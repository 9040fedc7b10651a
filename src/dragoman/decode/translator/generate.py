"""Text generation with a language model: the same search, with the prompt as prefix.

    lines before      prompt             what is searched for
    </s> … </s> <s> … </s>   <s> To be or     not to be </s>
    └─ the source ────────┘  └─ the prefix ┘

A hypothesis is one line, including its prompt. For the next line, the text so far is the source, as far as a
block reaches: a model that continues its source (`models/gpt.py`) sees it, any other starts each line without
context.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from dragoman.decode.rules.constraints import constraints_for
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import SampleSearch, SearchConfig
from dragoman.decode.search.job import Cancelled, Job, never
from dragoman.decode.search.sample import sample
from dragoman.decode.translator.hypothesis import EMPTY, Hypothesis, hypothesis_of
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.shapes import Int, Tensor
from dragoman.text.incremental import IncrementalDecoder
from dragoman.text.tokenizer import BOS_ID, EOS_ID


@dataclass(frozen=True)
class Prompt:
    text: str
    """How the line begins."""
    before: tuple[str, ...] = ()
    """The lines before it."""
    open: bool = False
    """The last word may go on."""

    @classmethod
    def of(cls, text: str, open: bool = False, before: Sequence[str] = ()) -> "Prompt":
        """A text of any number of lines, after those `before` it; the last of them is continued."""
        *own, last = text.split("\n")
        return cls(last, (*before, *own), open)


class Generator:
    def __init__(self, translator: Translator, block: int) -> None:
        """`block` is the context length in training, in tokens."""
        self.translator, self.block = translator, block
        self.search = translator.search
        self._reads_on = translator.model.abilities.continues_source

    def hypotheses(
        self,
        prompt: str,
        *,
        before: Sequence[str] = (),
        max_tokens: int = 64,
        prompt_open: bool = False,
        search: SearchConfig | None = None,
    ) -> list[Hypothesis]:
        """The n best lines that begin with `prompt`, best first, or n samples. They have at most `max_tokens`
        more tokens; with `prompt_open` its last word may continue. `before` are the preceding lines."""
        given = Prompt(prompt, tuple(before), prompt_open)
        return self.write([given], max_tokens=max_tokens, search=search)[0]

    def write(
        self,
        prompts: Sequence[Prompt],
        *,
        max_tokens: int = 64,
        search: SearchConfig | None = None,
        cancelled: Sequence[Cancelled] | None = None,
    ) -> list[list[Hypothesis]]:
        """Continuations of several prompts. Each result is the same as for the prompt alone."""
        settings = self._settings(search, max_tokens)
        asked = zip(prompts, cancelled or [never] * len(prompts), strict=True)
        return self.translator.search_jobs([self._job(*each, max_tokens) for each in asked], settings)

    def stream(
        self,
        prompt: Prompt,
        hear: Callable[[str], None],
        *,
        max_tokens: int = 64,
        search: SampleSearch,
        cancelled: Cancelled = never,
    ) -> Hypothesis:
        """One sample. Its text, which begins with the prompt, is told part by part while it is drawn."""
        settings = self._settings(replace(search, n_best=1), max_tokens)
        scorer, tokenizer = self.translator.scorer, self.translator.tgt_tokenizer
        decoder = IncrementalDecoder(tokenizer)

        def heard(last: Int[Tensor, "N"]) -> None:
            if (piece := int(last[0])) != EOS_ID:
                hear(decoder.push(piece))

        with torch.inference_mode():
            job = self._job(prompt, cancelled, max_tokens)
            batch = SearchBatch.of([job], settings, scorer.vocab, scorer.device)
            (found,) = sample(scorer, batch, settings, heard)
        hear(decoder.finish())
        return hypothesis_of(found[0], tokenizer, settings) if found else EMPTY

    def _settings(self, search: SearchConfig | None, max_tokens: int) -> Any:
        settings = search or self.search
        if settings.shortlist:
            raise UserError("search.shortlist: text has no source to make a list for; set it to false")
        if max_tokens < 1:
            raise UserError(f"max_tokens: expected at least 1, found {max_tokens}")
        return settings

    def _job(self, prompt: Prompt, cancelled: Cancelled, max_tokens: int) -> Job:
        tokenizer = self.translator.tgt_tokenizer
        constraints = constraints_for(tokenizer, prefix=prompt.text, prefix_open=prompt.open)
        taken = len(tokenizer.encode(prompt.text)) + max_tokens
        return Job((*self._source(prompt.before, taken), EOS_ID), constraints, cancelled, most=taken)

    def source_of(self, prompt: Prompt, max_tokens: int) -> list[int]:
        """What the model reads before the line of a prompt, without its last `</s>`."""
        return self._source(
            prompt.before, len(self.translator.tgt_tokenizer.encode(prompt.text)) + max_tokens
        )

    def lines(
        self, prompt: Prompt | str, count: int, *, max_tokens: int = 64, search: SearchConfig | None = None
    ) -> Iterator[str]:
        """The best line, then the best line after it, and so on, until `count` or an empty line, which ends a
        text. Each line is sampled with its own seed."""
        settings = search or self.search
        given = Prompt.of(prompt) if isinstance(prompt, str) else prompt
        for number in range(count):
            seeded = settings
            if isinstance(settings, SampleSearch):
                seeded = replace(settings, seed=settings.seed + number)
            best = self.write([given], max_tokens=max_tokens, search=seeded)[0][0].text
            if not best.strip():
                return
            given = Prompt("", (*given.before, best))
            yield best

    def _source(self, before: Sequence[str], taken: int) -> list[int]:
        """Lines as in a block, without the `</s>` of the last one; only as many as fit into a block beside
        the new line, and into half a block."""
        if not self._reads_on:
            return []
        room = max(self.block - taken, self.block // 2)
        source: list[int] = []
        for ids in reversed(self.translator.tgt_tokenizer.encode_batch(before)):
            if len(source) + len(ids) + 3 > room:
                break
            source = [BOS_ID, *ids, *([EOS_ID, *source] if source else [])]
        return [EOS_ID, *source] if source else []
