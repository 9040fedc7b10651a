"""Text generation with a language model: the same search, with the prompt as prefix.

    lines before      prompt             what is searched for
    </s> … </s> <s> … </s>   <s> To be or     not to be </s>
    └─ the source ────────┘  └─ the prefix ┘

A hypothesis is one line, including its prompt. For the next line, the text so far is the source, as far as a
block reaches: a model that continues its source (`models/gpt.py`) sees it, any other starts each line without
context.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman.decode.rules.constraints import constraints_for
from dragoman.decode.search.config import SampleSearch, SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.text.tokenizer import BOS_ID, EOS_ID


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
        settings = search or self.search
        if settings.shortlist:
            raise UserError("search.shortlist: text has no source to make a list for; set it to false")
        if max_tokens < 1:
            raise UserError(f"max_tokens: expected at least 1, found {max_tokens}")
        tokenizer = self.translator.tgt_tokenizer
        constraints = constraints_for(tokenizer, prefix=prompt, prefix_open=prompt_open)
        taken = len(tokenizer.encode(prompt)) + max_tokens
        settings = replace(settings, max_ratio=0.0, max_extra=taken, max_length=None)
        job = Job((*self._source(before, taken), EOS_ID), constraints)
        return self.translator.search_jobs([job], settings)[0]

    def lines(
        self, prompt: str, count: int, *, max_tokens: int = 64, search: SearchConfig | None = None
    ) -> Iterator[str]:
        """The best line, then the best line after it, and so on, until `count` or an empty line, which ends a
        text. Each line is sampled with its own seed."""
        settings, written = search or self.search, []
        for number in range(count):
            seeded = settings
            if isinstance(settings, SampleSearch):
                seeded = replace(settings, seed=settings.seed + number)
            given = prompt if number == 0 else ""
            best = self.hypotheses(given, before=written, max_tokens=max_tokens, search=seeded)[0].text
            if not best.strip():
                return
            written.append(best)
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
