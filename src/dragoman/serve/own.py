"""The native API: `/api/v1`, described by `/openapi.json`."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dragoman.serve.dictionaries import glossary_of
from dragoman.serve.difference import differences
from dragoman.serve.documents import Documents, supported
from dragoman.serve.languages import LanguageCodes, name_of
from dragoman.serve.memory import FuzzyMatch
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Translated, Wish
from dragoman.text.word_boundaries import words


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TranslateRequest(Closed):
    texts: Annotated[list[str], Field(min_length=1, description="Texts of any number of sentences.")]
    source: Annotated[str, Field(description="Code of a language, or `auto`.")] = "auto"
    target: Annotated[str | None, Field(description="Optional if there is only one target language.")] = None
    format: Literal["text", "html"] = "text"
    split: Annotated[
        Literal["sentences", "no_lines", "none"],
        Field(description="`no_lines`: line ends do not end sentences."),
    ] = "sentences"
    alternatives: Annotated[int, Field(ge=0, le=16, description="Further translations of each text.")] = 0
    details: Annotated[bool, Field(description="Sentences with scores and word alignments.")] = False
    memory: Annotated[
        bool | None,
        Field(
            description="Without it, what the memory has word for word is answered from it. `true`: and "
            "similar sentences are returned; `false`: the memory is not used."
        ),
    ] = None
    glossary: Annotated[
        dict[str, str], Field(description="Source terms and their translations.", max_length=1000)
    ] = {}


class Changed(BaseModel):
    kind: Annotated[
        Literal["same", "removed", "added"],
        Field(description="`removed`: only in the source of the match; `added`: only in the text."),
    ]
    text: str


class Match(BaseModel):
    source: str
    target: str
    quality: Annotated[float, Field(description="Similarity of the source, 0 to 100.")]
    difference: Annotated[
        list[Changed], Field(description="Word differences from the source of the match to the text.")
    ]


class Sentence(BaseModel):
    source: str
    text: str
    score: float | None
    alignment: Annotated[
        list[tuple[int, int]] | None, Field(description="Aligned words of source and translation.")
    ]
    source_words: Annotated[
        list[tuple[int, int]], Field(description="Start and end of each word, in characters.")
    ] = []
    text_words: list[tuple[int, int]] = []
    confidence: Annotated[
        list[float] | None,
        Field(
            description="The probability that the model gave to the least probable piece of each word of the "
            "text: how sure it was, not whether it is right."
        ),
    ] = None
    sentence_confidence: Annotated[
        float | None,
        Field(
            description="The probability, calibrated on the validation set, that the translation is not "
            "among the worst quarter; null where the model has no calibration."
        ),
    ] = None
    from_memory: bool = False


class Translation(BaseModel):
    text: str
    source: str
    target: str
    from_memory: bool = False
    zero_shot: bool = False
    alternatives: list[str] = []
    sentences: list[Sentence] = []
    matches: list[Match] = []


class TranslateResponse(BaseModel):
    translations: list[Translation]


class LanguagePair(BaseModel):
    source: str
    target: str
    source_name: str
    target_name: str
    via: str | None
    zero_shot: Annotated[
        bool, Field(description="The model was trained without pairs of these two languages.")
    ] = False
    memory: Annotated[int, Field(description="Sentences in the translation memory.")]


class Info(BaseModel):
    pairs: list[LanguagePair]
    characters: int
    texts: int
    document_bytes: int
    document_suffixes: list[str]
    corrections: Annotated[bool, Field(description="Whether this server takes corrections.")]


class DetectRequest(Closed):
    text: str


class Detected(BaseModel):
    language: str
    confidence: float


class Status(BaseModel):
    status: Literal["ok"]


class Error(BaseModel):
    error: str


ERRORS = {code: {"model": Error} for code in (400, 401, 408, 413, 421, 429, 500, 503)}


def router_of(service: Service, documents: Documents) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={**ERRORS}, tags=["dragoman"])

    @router.get("/languages")
    async def languages() -> Info:
        """The served languages, and the limits of requests."""
        return _info(service)

    @router.post("/detect")
    async def detect(asked: DetectRequest) -> list[Detected]:
        """The likely languages of a text among the served source languages, best first."""
        service.check([asked.text])
        return [Detected(language=code, confidence=sure) for code, sure in service.detect(asked.text)]

    @router.post("/translate")
    async def translate(asked: TranslateRequest) -> TranslateResponse:
        """Translate texts. Tags, placeholders and addresses are left unchanged."""
        service.check(asked.texts)
        limit = service.limits.alternatives
        if asked.alternatives > limit:
            raise Refusal(400, f"alternatives: expected at most {limit}, found {asked.alternatives}")
        wish = Wish(
            n_best=asked.alternatives + 1,
            align=asked.details,
            glossary=await asyncio.to_thread(glossary_of, asked.glossary) if asked.glossary else None,
            split=asked.split,
            memory=asked.memory is not False,
        )
        found: list[Translation] = []
        for pair, texts in _by_pair(service, asked):
            found += await _translate(service, documents, asked, pair, texts, wish)
        return TranslateResponse(translations=found)

    @router.get("/memory")
    async def memory(source: str, target: str, text: str, least: float = 70, most: int = 5) -> list[Match]:
        """Similar sentences of the translation memory, best first."""
        service.check([text])
        pair = service.pair(source, target)
        found = await service.similar(text, pair, least, max(0, min(most, 100)))
        return [_match(one, text) for one in found]

    return router


def _by_pair(service: Service, asked: TranslateRequest) -> list[tuple[LanguageCodes, list[str]]]:
    """Group consecutive texts of the same language pair. The order is kept."""
    groups: list[tuple[LanguageCodes, list[str]]] = []
    for text in asked.texts:
        source = service.detect(text, asked.target)[0][0] if asked.source == "auto" else asked.source
        target = asked.target
        if target is None:
            targets = [tgt for src, tgt in service.routes if src == source]
            if len(targets) != 1:
                raise Refusal(400, f"target: expected one of {', '.join(targets or service.targets)}")
            target = targets[0]
        pair = service.pair(source, target)
        if groups and groups[-1][0] == pair:
            groups[-1][1].append(text)
        else:
            groups.append((pair, [text]))
    return groups


async def _translate(
    service: Service,
    documents: Documents,
    asked: TranslateRequest,
    pair: LanguageCodes,
    texts: list[str],
    wish: Wish,
) -> list[Translation]:
    if asked.format == "html":
        translated = [await documents.html(text, pair, wish) for text in texts]
    else:
        translated = await service.translate(texts, pair, wish)
    zero_shot = service.is_zero_shot(pair)
    found = [_translation(one, pair, asked.details, zero_shot) for one in translated]
    if asked.memory:
        for text, one in zip(texts, found, strict=True):
            one.matches = [_match(match, text) for match in await service.similar(text, pair)]
    return found


def _translation(one: Translated, pair: LanguageCodes, details: bool, zero_shot: bool = False) -> Translation:
    sentences = [
        Sentence(
            source=source,
            text=answer.texts[0],
            score=answer.scores[0] if answer.scores else None,
            alignment=None if answer.alignment is None else list(answer.alignment),
            source_words=list(words(source)),
            text_words=list(words(answer.texts[0])),
            confidence=None if answer.confidence is None else [round(one, 4) for one in answer.confidence],
            sentence_confidence=_rounded(answer.sentence_confidence),
            from_memory=answer.from_memory,
        )
        for source, answer in (one.sentences if details else ())
    ]
    return Translation(
        text=one.text,
        source=pair[0],
        target=pair[1],
        from_memory=one.from_memory,
        zero_shot=zero_shot,
        alternatives=list(one.alternatives),
        sentences=sentences,
    )


def _rounded(confidence: float | None) -> float | None:
    return None if confidence is None else round(confidence, 4)


def _match(one: FuzzyMatch, text: str) -> Match:
    changed = [Changed(kind=part.kind, text=part.text) for part in differences(one.source, text)]
    return Match(source=one.source, target=one.target, quality=one.quality, difference=changed)


def _info(service: Service) -> Info:
    pairs = [
        LanguagePair(
            source=src,
            target=tgt,
            source_name=name_of(src),
            target_name=name_of(tgt),
            via=None if len(route) == 1 else route[0][1],
            zero_shot=service.is_zero_shot((src, tgt)),
            memory=sum(map(len, service.known((src, tgt)))),
        )
        for (src, tgt), route in service.routes.items()
    ]
    limits = service.limits
    return Info(
        pairs=pairs,
        characters=limits.characters,
        texts=limits.texts,
        document_bytes=limits.document_bytes,
        document_suffixes=supported(),
        corrections=service.corrections is not None,
    )
