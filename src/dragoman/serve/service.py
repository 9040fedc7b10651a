"""Translates texts between all served languages: splits them, routes them, and joins the results."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dragoman.data.documents.translate import with_spaces
from dragoman.decode.confidence import Calibration
from dragoman.errors import UserError
from dragoman.serve.batcher import Answer, Batcher, Kindred, translator_threads
from dragoman.serve.checks import check_texts
from dragoman.serve.corrections import Corrections
from dragoman.serve.languages import LanguageCodes, base, name_of, resolve
from dragoman.serve.limits import Limits
from dragoman.serve.masks import TextWithMasks, mask
from dragoman.serve.memory import LEAST_SIMILAR, FuzzyMatch, TranslationMemory
from dragoman.serve.metrics import Metrics
from dragoman.serve.pieces import SplitMode, pieces_of, tags_broken
from dragoman.serve.refusal import Refusal
from dragoman.serve.translates import Translates
from dragoman.text.context import sentence_of
from dragoman.text.glossary import Glossary
from dragoman.text.identify import can_identify, identification_model, identify

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Served:
    """A translator of a language pair. `insists`: it applies glossaries itself."""

    languages: LanguageCodes
    translator: Translates
    insists: bool = False
    name: str = ""
    workers: int = 1
    """Number of batches that it can translate at once, in threads."""
    explains: Callable[[str, str | None], Any] | None = None
    """The function behind `explain.py`, if the translator can show its attention."""
    calibration: Calibration | None = None
    """Calibration of the sentence confidence, if the run or the export has one."""
    zero_shot: bool = False
    """Whether the model was trained without pairs of these languages."""
    reads_memory: bool = False
    """Whether the model also reads the translation of a similar sentence."""


@dataclass(frozen=True)
class Wish:
    """Options of a translation request."""

    n_best: int = 1
    align: bool = False
    glossary: Glossary | None = None
    ignored: tuple[str, ...] = ()
    """Names of XML or HTML elements that are left unchanged."""
    split: SplitMode = "sentences"
    patient: bool = False
    prefix: str = ""
    """Prefix of the translation of each sentence."""
    memory: bool = True
    """Whether exact matches in the translation memory are used instead of the model."""


@dataclass(frozen=True)
class Translated:
    """A translation of a text. Its n-th alternative is made of the n-th alternatives of its sentences."""

    text: str
    alternatives: tuple[str, ...] = ()
    sentences: tuple[tuple[str, Answer], ...] = field(default=(), repr=False)

    @property
    def from_memory(self) -> bool:
        """Whether no model was used."""
        return bool(self.sentences) and all(answer.from_memory for _, answer in self.sentences)


class Service:
    def __init__(
        self,
        served: Sequence[Served],
        *,
        pivot: str | None = None,
        memories: Mapping[LanguageCodes, TranslationMemory] | None = None,
        corrections: Corrections | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.metrics = Metrics()
        self.served: dict[LanguageCodes, Served] = {}
        for one in served:
            if one.languages in self.served:
                pair = "→".join(one.languages)
                raise UserError(f"{one.name}: {pair} is served already by {self.served[one.languages].name}")
            self.served[one.languages] = one
        if not self.served:
            raise UserError("expected at least one run to serve, found none")
        # The directions of one run share its model, and therefore its threads.
        names = {pair: one.name or str(pair) for pair, one in self.served.items()}
        threads = {names[pair]: translator_threads(one.workers) for pair, one in self.served.items()}
        self.batchers = {pair: self._batcher(one, threads[names[pair]]) for pair, one in self.served.items()}
        self.memories = dict(memories or {})
        self.corrections = corrections
        if can_identify():  # so that the first request does not wait for it
            threading.Thread(target=identification_model, daemon=True).start()
        self.pivot = self._checked(pivot)
        self.routes = self._routes()

    def _batcher(self, one: Served, threads: ThreadPoolExecutor) -> Batcher:
        return Batcher(one.translator, self.limits, self.metrics, one.workers, threads, one.calibration)

    def _checked(self, pivot: str | None) -> str | None:
        if pivot is None:
            return None
        sources = {src for src, _ in self.served}
        found = resolve(pivot, [tgt for _, tgt in self.served if tgt in sources])
        if found is None:
            raise UserError(f"--pivot {pivot}: no two of the runs meet in this language")
        return found

    def _routes(self) -> dict[LanguageCodes, tuple[LanguageCodes, ...]]:
        routes: dict[LanguageCodes, tuple[LanguageCodes, ...]] = {pair: (pair,) for pair in self.served}
        if self.pivot is not None:
            for src in [src for src, tgt in self.served if tgt == self.pivot]:
                for tgt in [tgt for src_, tgt in self.served if src_ == self.pivot]:
                    if src != tgt:
                        routes.setdefault((src, tgt), ((src, self.pivot), (self.pivot, tgt)))
        return routes

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(src for src, _ in self.routes))

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(tgt for _, tgt in self.routes))

    @property
    def waiting(self) -> int:
        return sum(batcher.waiting for batcher in self.batchers.values())

    @property
    def full(self) -> bool:
        """Whether some translator accepts no more sentences for now."""
        return any(batcher.full for batcher in self.batchers.values())

    def detect(self, text: str, target: str | None = None) -> list[tuple[str, float]]:
        """The likely languages of a text, among all source languages or those that translate into `target`. A
        text in another language gets a low confidence, even if there is only one source language."""
        tgt = None if target is None else resolve(target, self.targets)
        sources = [src for src, own in self.routes if own == tgt] or self.sources
        meant = {base(src): src for src in reversed(sources)}
        if not can_identify():
            raise Refusal(501, "Language identification needs the package py3langid on the server")
        return [(meant[code], sure) for code, sure in identify(text, list(meant)[::-1])]

    def pair(self, source: str, target: str) -> LanguageCodes:
        """The served language pair that a client means. Raises an error in LibreTranslate's wording if there
        is none."""
        src, tgt = resolve(source, self.sources), resolve(target, self.targets)
        for code, found in ((source, src), (target, tgt)):
            if found is None and resolve(code, [*self.sources, *self.targets]) is None:
                raise Refusal(400, f"{code} is not supported")
        if src is None or tgt is None or (src, tgt) not in self.routes:
            told = f"{name_of(target)} ({target}) is not available as a target language from"
            raise Refusal(400, f"{told} {name_of(source)} ({source})")
        return src, tgt

    def is_zero_shot(self, pair: LanguageCodes) -> bool:
        """Whether the model of this pair was trained without pairs of these languages."""
        return pair in self.served and self.served[pair].zero_shot

    def check(self, texts: Sequence[str]) -> None:
        check_texts(texts, self.limits, self.metrics)

    def known(self, pair: LanguageCodes) -> list[TranslationMemory]:
        """The translation memories of a language pair. Corrections come first."""
        learnt = self.corrections.memory(pair) if self.corrections is not None else None
        return [one for one in (learnt, self.memories.get(pair)) if one is not None]

    def exact(self, text: str, pair: LanguageCodes, wish: Wish) -> str | None:
        """The exact match of a text in the translation memory. None if the text has a term of the requested
        glossary, so that the model applies it."""
        if not wish.memory:
            return None
        found = (memory.exact(text) for memory in self.known(pair))
        target = next((target for target in found if target is not None), None)
        if target is not None and wish.glossary is not None and any(wish.glossary.matches(text)):
            return None
        return target

    def context(self, pair: LanguageCodes) -> int:
        """The number of preceding sentences that a sentence of a document is translated with."""
        own = getattr(self.served[self.routes[pair][0]].translator, "context", None)
        return 0 if own is None else own.source

    async def similar(
        self, text: str, pair: LanguageCodes, least: float = 70, most: int = 5
    ) -> list[FuzzyMatch]:
        """The similar sentences in all memories of this pair, best first."""
        memories = self.known(pair)
        rows = [await asyncio.to_thread(one.matches, text, least, most) for one in memories]
        found = dict.fromkeys(match for row in rows for match in row)
        return sorted(found, key=lambda match: -match.quality)[:most]

    async def translate(
        self, texts: Sequence[str], pair: LanguageCodes, wish: Wish | None = None
    ) -> list[Translated]:
        """Translate texts: exact matches from the memory, the others by the model."""
        wish = wish or Wish()
        known = [self._from_memory(text, pair, wish) for text in texts]
        others = [text for text, found in zip(texts, known, strict=True) if found is None]
        answers = iter(await self._by_model(others, pair, wish)) if others else iter(())
        return [next(answers) if found is None else found for found in known]

    def _from_memory(self, text: str, pair: LanguageCodes, wish: Wish) -> Translated | None:
        text = sentence_of(text)
        target = self.exact(text, pair, wish) if text.strip() else None
        if target is None:
            return None
        self.metrics.count("dragoman_memory_sentences_total")
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        sentence = (text.strip(), Answer((target,), from_memory=True))
        return Translated(text[:start] + target + text[end:], (), (sentence,))

    async def _by_model(self, texts: Sequence[str], pair: LanguageCodes, wish: Wish) -> list[Translated]:
        route = self.routes[pair]
        direct = len(route) == 1
        native = wish.glossary if direct and self.served[pair].insists else None
        masked = await _masked(texts, None if native else wish.glossary, wish.ignored)
        current = [one.text for one in masked]
        for leg in route[:-1]:
            kindred = Kindred()
            current = [one.text for one in await self._leg(current, leg, kindred, wish)]
        kindred = Kindred(wish.n_best, native, wish.align and direct, wish.prefix)
        found = await self._leg(current, route[-1], kindred, wish)
        return [_unmasked(one, own) for own, one in zip(masked, found, strict=True)]

    async def _leg(
        self, texts: Sequence[str], pair: LanguageCodes, kindred: Kindred, wish: Wish
    ) -> list[Translated]:
        """Translate sentence by sentence. If that breaks the nesting of tags, the text is translated as a
        whole."""
        pieces = await _each(lambda text: pieces_of(text, wish.split, base(pair[0])), texts)
        found = await self._join(pieces, pair, kindred, wish)
        tagged = [n for n, text in enumerate(texts) if len(pieces[n]) > 1 and "<" in text]
        lost = await _each(lambda n: tags_broken(texts[n], found[n].text), tagged)
        broken = [number for number, is_broken in zip(tagged, lost, strict=True) if is_broken]
        if broken:
            whole = [[texts[number]] for number in broken]
            again = await self._join(whole, pair, kindred, wish)
            for number, one in zip(broken, again, strict=True):
                found[number] = one
        return found

    async def _join(
        self, pieces: Sequence[Sequence[str]], pair: LanguageCodes, kindred: Kindred, wish: Wish
    ) -> list[Translated]:
        cores = list(dict.fromkeys(piece.strip() for row in pieces for piece in row))
        known = {core: Answer((sentence_of(core),)) for core in cores}
        wanted = [core for core in cores if any(map(str.isalnum, sentence_of(core)))]
        exact = {core: self.exact(sentence_of(core), pair, wish) for core in wanted}
        known |= {
            core: Answer((target,), from_memory=True) for core, target in exact.items() if target is not None
        }
        self.metrics.count("dragoman_memory_sentences_total", len(exact) - list(exact.values()).count(None))
        wanted = [core for core in wanted if exact[core] is None]
        similar = await self._beside(wanted, pair, wish)
        answers = await self.batchers[pair].ask(wanted, kindred, wish.patient, similar) if wanted else []
        known |= zip(wanted, answers, strict=True)
        return await _each(lambda row: _joined(row, known, kindred.n_best), pieces)

    async def _beside(self, texts: Sequence[str], pair: LanguageCodes, wish: Wish) -> dict[str, str]:
        """The best similar translation in the memory for each sentence, if the model reads it."""
        if not (wish.memory and self.served[pair].reads_memory):
            return {}
        rows = {text: await self.similar(text, pair, LEAST_SIMILAR, 1) for text in texts}
        return {text: row[0].target for text, row in rows.items() if row and row[0].quality < 100}

    def exchange(self, new: Served) -> None:
        """Replace the translator of a served pair. Work in progress finishes with the old one, whose threads
        then end. The run of the old one must not have other directions."""
        old = self.batchers[new.languages]
        self.served[new.languages] = new
        self.batchers[new.languages] = self._batcher(new, translator_threads(new.workers))
        old.retire()

    def close(self) -> None:
        for batcher in self.batchers.values():
            batcher.close()


def _unmasked(found: Translated, own: TextWithMasks) -> Translated:
    if not own.behind:
        return found
    sentences = tuple(
        (own.unmask(source), _unmasked_answer(answer, own)) for source, answer in found.sentences
    )
    return Translated(own.unmask(found.text), tuple(map(own.unmask, found.alternatives)), sentences)


def _unmasked_answer(answer: Answer, own: TextWithMasks) -> Answer:
    """The answer with placeholders replaced. Word indices refer to the model's output, so alignment and
    confidence are dropped if the text changes."""
    texts = tuple(map(own.unmask, answer.texts))
    return answer if texts == answer.texts else replace(answer, texts=texts, alignment=None, confidence=None)


async def _masked(
    texts: Sequence[str], glossary: Glossary | None, ignored: tuple[str, ...]
) -> list[TextWithMasks]:
    """Mask texts. With a glossary this runs in a thread, because it may take long."""
    if glossary is None:
        return await _each(lambda text: mask(text, None, ignored), texts)
    return await asyncio.to_thread(lambda: [mask(text, glossary, ignored) for text in texts])


async def _each(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Apply a function to each item, yielding to the event loop in between, because a request may have much
    text."""
    found: list[U] = []
    for item in items:
        if found:
            await asyncio.sleep(0)
        found.append(function(item))
    return found


def _joined(row: Sequence[str], known: Mapping[str, Answer], n_best: int) -> Translated:
    answers = [known[piece.strip()] for piece in row]
    texts = [
        "".join(
            with_spaces(piece, answer.texts[min(place, len(answer.texts) - 1)])
            for piece, answer in zip(row, answers, strict=True)
        )
        for place in range(n_best)
    ]
    others = tuple(text for text in dict.fromkeys(texts) if text != texts[0])
    sentences = tuple((piece.strip(), answer) for piece, answer in zip(row, answers, strict=True))
    return Translated(texts[0], others, tuple(one for one in sentences if one[0]))
