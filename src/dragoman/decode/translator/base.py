"""The interface of all translators: text in, hypotheses out, with any engine. Plain Python."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal, Self, TypeVar

from dragoman.decode.alignment.aligner import Aligner
from dragoman.decode.rules.constraints import FREE, Constraints, constraints_of_texts
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Cancelled, Job, never
from dragoman.decode.translator.hypothesis import Hypothesis, Partial, refuse_string, sentence_in
from dragoman.decode.translator.protected import aligned_hypotheses, keep_spans
from dragoman.errors import UserError
from dragoman.text.all_capitals import in_lower_case
from dragoman.text.context import ContextConfig, fitted, last_sentences, sentence_of, with_sentence
from dragoman.text.glossary import Glossary
from dragoman.text.source_additions import MEMORY_PIECES, TERM_PIECES, BesideTokenizer, knows
from dragoman.text.spans import SpanKind, find
from dragoman.text.tokenizer import EOS_ID, Tokenizer

T = TypeVar("T")
SentenceProgress = Callable[[int, int], None]
"""Called with the number of finished sentences and the total."""
TermUse = Literal["annotate", "constrain"]
"""How a glossary is used: its terms are written beside the source, in a model that was trained with that, or
the search insists on them."""


class BaseTranslator(ABC):
    """A translator. A text of white space only is translated as the empty text, without running the model."""

    default_batch_tokens: int
    longest_source: int | None = None
    """Maximum number of tokens of a source without `</s>`, if there is a limit."""
    context: ContextConfig | None = None
    """How many preceding sentences a text may have (`text/context.py`), if the model was trained so."""

    def __init__(self, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, search: SearchConfig) -> None:
        self.src_tokenizer, self.tgt_tokenizer, self.search = src_tokenizer, tgt_tokenizer, search
        self.cut_source: int | None = None
        """Pieces of a source that are read; None: all."""

    @cached_property
    @abstractmethod
    def aligner(self) -> Aligner: ...

    def with_opening(self, opening: Sequence[int]) -> Self:
        """The same translator, with these control pieces before every source: they tell a model of several
        languages what is asked of it. Both share the model."""
        opened = copy.copy(self)
        opened.src_tokenizer = self.src_tokenizer.opened_with(opening)
        aligner = copy.copy(self.aligner)
        aligner.src_tokenizer = opened.src_tokenizer
        opened.aligner = aligner
        return opened

    @property
    def annotates(self) -> bool:
        """Whether the model was trained with terms beside the source (`objective.terms`)."""
        return knows(self.src_tokenizer, TERM_PIECES)

    @property
    def reads_memory(self) -> bool:
        """Whether it was trained with similar translations beside the source (`objective.fuzzy`)."""
        return knows(self.src_tokenizer, MEMORY_PIECES)

    def beside(self, glossary: Glossary | None, similar: Mapping[str, str] | None) -> Self:
        """The same translator, which reads the terms of a glossary beside each source, and the translation
        that `similar` has for it. Words are still aligned to the source alone."""
        if glossary is not None and not self.annotates:
            raise UserError(
                "terms: this model was not trained with terms beside the source (objective.terms); choose "
                "constrain or placeholder"
            )
        if similar and not self.reads_memory:
            raise UserError(
                "similar: this model was not trained with similar translations beside the source "
                "(objective.fuzzy); leave them out"
            )
        changed = copy.copy(self)
        changed.aligner = self.aligner
        changed.src_tokenizer = BesideTokenizer(self.src_tokenizer, glossary, similar, self.longest_source)
        return changed

    def by_opening(
        self,
        texts: Sequence[str],
        openings: Sequence[tuple[int, ...]],
        ask: Callable[[Self, list[str]], Sequence[T]],
    ) -> list[T]:
        """The results of `ask` for each text, with the text's own opening."""
        results: dict[int, T] = {}
        for opening in dict.fromkeys(openings):
            numbers = [number for number, each in enumerate(openings) if each == opening]
            translator = self.with_opening(opening) if opening else self
            results |= zip(numbers, ask(translator, [texts[number] for number in numbers]), strict=True)
        return [results[number] for number in range(len(texts))]

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int | None = None,
        protect: Collection[SpanKind] = (),
        cancelled: Sequence[Cancelled] | None = None,
    ) -> list[str]:
        """The best translation of each text."""
        hypotheses = self.hypotheses(
            texts,
            search=search,
            batch_tokens=batch_tokens,
            protect=protect,
            cancelled=cancelled,
            scored=False,
        )
        return [best.text for best, *_ in hypotheses]

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
        terms: TermUse | None = None,
        similar: Mapping[str, str] | None = None,
        protect: Collection[SpanKind] = (),
        align: bool = False,
        batch_tokens: int | None = None,
        progress: SentenceProgress | None = None,
        cancelled: Sequence[Cancelled] | None = None,
        scored: bool = True,
    ) -> list[list[Hypothesis]]:
        """The n best translations of each text, best first, with their scores.

        Each translation begins with its text in `prefixes`; with `prefix_open` the last word of a prefix may
        continue. `required` has, for every text, the phrases that must occur, each one phrase or a list of
        variants; `glossary` adds the terms found in a text, or writes them beside it: `terms` says which, by
        default what the model was trained for. `similar` has for some of the texts the translation of a
        similar one. `forbidden` are phrases for all texts, or a list of phrases for each. Phrases match as
        whole words, case-sensitively. `protect` names kinds of spans that must stay unchanged
        (`text/spans.py`); none by default. `align` adds word alignments. If a text is `cancelled`, its search
        stops and its result is meaningless. Without `scored` an engine may omit the scores if that is faster.
        A text may have the sentences before it in front of it (`text/context.py`), if the model was trained
        so; the hypotheses are of the text itself.

        Without constraints, a text in capitals that the vocabulary hardly knows is translated in lower case,
        and its hypotheses are written in capitals (`text/all_capitals.py`).
        """
        refuse_string(texts)
        free = prefixes is None and required is None and not forbidden and not (glossary or similar)
        if free and self.context is None and (lower := self._in_lower_case(texts)):
            found = self.hypotheses(
                [lower.get(number, text) for number, text in enumerate(texts)],
                search=search,
                protect=protect,
                align=align,
                batch_tokens=batch_tokens,
                progress=progress,
                cancelled=cancelled,
                scored=scored,
            )
            for number in lower:
                found[number] = [replace(every, text=every.text.upper()) for every in found[number]]
            return found
        config, size = search or self.search, batch_tokens or self.default_batch_tokens
        reader, texts_in_context = self, texts
        if self.context is not None:
            texts = list(map(sentence_of, texts))
        annotates = glossary is not None and (terms == "annotate" if terms else self.annotates)
        if annotates or similar:
            reader = self.beside(glossary if annotates else None, similar)
            glossary = None if annotates else glossary
        is_constrained = bool(
            prefixes is not None or required is not None or forbidden or glossary is not None
        )
        constraints = [FREE] * len(texts)
        if is_constrained:
            constraints = constraints_of_texts(
                self.tgt_tokenizer, texts, prefixes, prefix_open, required, forbidden, glossary
            )
        cancellations = cancelled or [never] * len(texts)
        search_jobs = partial(self.search_jobs, config=config, batch_tokens=size, scored=scored)
        hypotheses = reader._in_context(
            texts_in_context, constraints, cancellations, partial(search_jobs, progress=progress), config
        )
        if protect and any(find(text, protect) for text in texts):

            def translate_again(numbers: Sequence[int], parts: Sequence[str]) -> list[list[Hypothesis]]:
                parts_in_context = [
                    with_sentence(texts_in_context[number], text)
                    for number, text in zip(numbers, parts, strict=True)
                ]
                constraints_of_cut = [constraints[number] for number in numbers]
                return reader._in_context(
                    parts_in_context,
                    constraints_of_cut,
                    [cancellations[number] for number in numbers],
                    search_jobs,
                    config,
                )

            hypotheses = keep_spans(hypotheses, texts, protect, translate_again, self.aligner, size)
        return aligned_hypotheses(hypotheses, texts, protect, self.aligner, size) if align else hypotheses

    def _in_context(
        self,
        texts: Sequence[str],
        constraints: Sequence[Constraints],
        cancelled: Sequence[Cancelled],
        search_jobs: Callable[[Sequence[Job]], list[list[Hypothesis]]],
        config: SearchConfig,
    ) -> list[list[Hypothesis]]:
        """Hypotheses of the texts themselves. Where an output does not have the sentences that it should, its
        text is translated alone; and so it is where constraints could be met by a sentence before it."""
        context, separator = self.context, self.tgt_tokenizer.separator
        if context is None or separator is None:
            return search_jobs(self.jobs(texts, constraints, cancelled))
        if context.target:
            texts = [
                sentence_of(text) if constraints_of_text.writes_something else text
                for text, constraints_of_text in zip(texts, constraints, strict=True)
            ]
        jobs = self.jobs(texts, constraints, cancelled)
        hypotheses = search_jobs(jobs)
        lost_numbers: list[int] = []
        for number, job in enumerate(jobs):
            count = job.source.count(self.src_tokenizer.separator or 0)
            if not count:
                continue
            expected = min(count, context.target)
            best, *others = (
                sentence_in(one, separator, expected, self.tgt_tokenizer, config)
                for one in hypotheses[number]
            )
            if best is None:
                lost_numbers.append(number)
            else:
                hypotheses[number] = [best, *(one for one in others if one is not None)]
        if lost_numbers:
            alone = [sentence_of(texts[number]) for number in lost_numbers]
            constraints_of_text = [constraints[number] for number in lost_numbers]
            alone_hypotheses = search_jobs(
                self.jobs(alone, constraints_of_text, [cancelled[number] for number in lost_numbers])
            )
            for number, row in zip(lost_numbers, alone_hypotheses, strict=True):
                hypotheses[number] = [replace(one, alone=True) for one in row]
        return hypotheses

    def encoded_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Sources and translations in ids, a translation with as many sentences before it as the model would
        have written."""
        sources = self._sources([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        separators = self.src_tokenizer.separator, self.tgt_tokenizer.separator
        if self.context is None or separators[0] is None or separators[1] is None:
            return list(zip(sources, targets, strict=True))
        most = self.context.target
        counts = [min(most, ids.count(separators[0])) for ids in sources]
        cut = [
            last_sentences(ids, separators[1], count + 1) for ids, count in zip(targets, counts, strict=True)
        ]
        return list(zip(sources, cut, strict=True))

    def own_sentences(self, scored: Sequence[Hypothesis], search: SearchConfig) -> list[Hypothesis]:
        """Scored translations without the sentences before them."""
        separator = self.tgt_tokenizer.separator
        if self.context is None or separator is None:
            return list(scored)
        counts = [one.tokens.count(separator) for one in scored]
        return [
            sentence_in(one, separator, count, self.tgt_tokenizer, search) or one
            for one, count in zip(scored, counts, strict=True)
        ]

    def _sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids, with the context that fits."""
        tokenizer = self.src_tokenizer
        rows = tokenizer.encode_batch(texts)
        if self.context is None or tokenizer.separator is None:
            return rows
        opening, most = len(tokenizer.opening), self.context.max_tokens
        return [fitted(ids, tokenizer.separator, opening, most) for ids in rows]

    def jobs(
        self, texts: Sequence[str], constraints: Sequence[Constraints], cancelled: Sequence[Cancelled]
    ) -> list[Job]:
        """The job of each text. Its source is empty if the model need not run."""
        sources = [ids[: self.cut_source] for ids in self._sources(texts)]
        if self.context is not None:
            texts = list(map(sentence_of, texts))
        return [
            Job((*ids, EOS_ID), self._in_its_language(constraints_of_text), is_cancelled)
            if text.strip() or self._asks_about_blank(constraints_of_text)
            else Job((), constraints_of_text, is_cancelled)
            for text, ids, constraints_of_text, is_cancelled in zip(
                texts, sources, constraints, cancelled, strict=True
            )
        ]

    def _in_lower_case(self, texts: Sequence[str]) -> dict[int, str]:
        """The texts in capitals that are better translated in lower case, by number."""

        def count_pieces(text: str) -> int:
            return len(self.src_tokenizer.encode(text))

        capitals = [number for number, text in enumerate(texts) if text.isupper()]
        found = {number: in_lower_case(texts[number], count_pieces) for number in capitals}
        return {number: text for number, text in found.items() if text is not None}

    def _in_its_language(self, constraints: Constraints) -> Constraints:
        """Constraints with the pieces that every translation begins with. A prefix already has them."""
        tokenizer = self.tgt_tokenizer
        if not tokenizer.forced or constraints.head:
            return constraints
        return replace(constraints, head=tokenizer.forced, spelling=tokenizer.spelling)

    def _asks_about_blank(self, constraints: Constraints) -> bool:
        """Whether the model runs for a blank text, because constraints require output."""
        return constraints.writes_something

    @abstractmethod
    def search_jobs(
        self,
        jobs: Sequence[Job],
        config: SearchConfig,
        batch_tokens: int,
        progress: SentenceProgress | None = None,
        scored: bool = True,
    ) -> list[list[Hypothesis]]:
        """Hypotheses of the model, without protection and alignment; at least one per job, cancelled or
        not."""

    @abstractmethod
    def stream(self, text: str, *, search: SearchConfig | None = None) -> Iterator[Partial]:
        """Stream one translation: each part as soon as it is final."""
