"""A model that writes, at one of the checkpoints of its run.

A run on pairs translates. A causal language model continues a prompt: its source is empty, and its output
starts with the prompt. A model trained to fill gaps (T5, BART) reads a text with gaps and writes the missing
parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman.decode.rules.constraints import Constraints, constraints_for
from dragoman.decode.search.config import BeamSearch, SampleSearch, SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.translator.generate import Generator
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.probe.fill import Filler
from dragoman.probe.inside import Inside, look_inside
from dragoman.runs.directory import Run
from dragoman.studio.limits import MOST_WRITTEN, check_text

_GOES_ON = 48  # pieces that a language model writes after its prompt
_ALTERNATIVES = 8


@dataclass(frozen=True)
class Subject:
    run: Run
    translator: Translator
    generator: Generator | None
    checkpoint: str
    filler: Filler | None = None

    @property
    def tokenizers(self) -> tuple[Any, Any]:
        return self.translator.src_tokenizer, self.translator.tgt_tokenizer

    def source(self, text: str) -> list[int]:
        """The pieces that the encoder reads, without `</s>`."""
        found = check_text(text, self.tokenizers[0])
        if self.filler is not None:
            return self.filler.source(text)
        return [] if self.generator is not None else found

    def prompt(self, text: str) -> int:
        """Number of output pieces that belong to the prompt."""
        return 0 if self.generator is None else len(self.tokenizers[1].encode(text))

    def settings(self, beam: int, n_best: int, alpha: float, record: bool = False) -> BeamSearch:
        """Settings of a plain beam search over the whole vocabulary, which can be recorded."""
        plain = self.translator.search.converted(BeamSearch, n_best=1)
        return plain.plain(beam=beam, n_best=min(n_best, beam), alpha=alpha, record=record, shortlist=False)

    def draws(self, count: int, temperature: float, top_k: int, top_p: float, seed: int) -> SampleSearch:
        """Sampling instead of beam search."""
        return self.translator.search.converted(
            SampleSearch,
            n_best=count,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            shortlist=False,
        )

    def beginning(self, text: str) -> list[int]:
        """The pieces of a forced prefix."""
        return list(constraints_for(self.tokenizers[1], prefix=text).head)

    def search(self, text: str, settings: SearchConfig, head: Sequence[int] = ()) -> list[Hypothesis]:
        """The best translations, or continuations of `text`; `head` is a forced prefix."""
        source = self.source(text)
        self.check(head)
        if self.generator is not None and not head:
            return self.generator.hypotheses(text, max_tokens=_GOES_ON, search=settings)
        if self.generator is not None:
            settings = replace(settings, max_ratio=0.0, max_extra=len(head) + _GOES_ON, max_length=None)
        constraints = Constraints(head=tuple(head), spelling=self.tokenizers[1].spelling)
        job = Job((*source, self.tokenizers[0].eos_id), constraints)
        return self.translator.search_jobs([job], settings)[0]

    def look(self, text: str, target: Sequence[int]) -> Inside:
        """Record a hypothesis given by its pieces."""
        source = self.source(text)
        self.check(target)
        translator = self.translator
        return look_inside(
            translator.model,
            source,
            target,
            self.tokenizers,
            translator.device,
            num_alternatives=_ALTERNATIVES,
        )

    def check(self, target: Sequence[int]) -> None:
        """Pieces sent by a browser."""
        tokenizer = self.tokenizers[1]
        if len(target) > MOST_WRITTEN:
            raise UserError(f"target: at most {MOST_WRITTEN} pieces, found {len(target)}")
        for piece in target:
            if not 0 <= piece < tokenizer.size or piece in (
                tokenizer.pad_id,
                tokenizer.bos_id,
                tokenizer.eos_id,
            ):
                raise UserError(f"target: {piece} is no piece that can be written")
