"""DeepL's dialect: `/v2/translate`, `/v2/languages`, `/v3/languages`, `/v2/usage`."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from dragoman.serve.documents import Documents
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.hints import hints
from dragoman.serve.languages import VARIANTS, LanguageCodes, base, name_of
from dragoman.serve.pieces import SplitMode
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Translated, Wish
from dragoman.text.spans import find

_UNLIMITED = 1_000_000_000_000
"""The value that DeepL itself reports for pay-as-you-go accounts."""
_SPLITS: dict[str, SplitMode] = {"0": "none", "1": "sentences", "nonewlines": "no_lines"}


def router_of(service: Service, documents: Documents, glossaries: Glossaries, probe: bool) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/v2/translate")
    async def translate(request: Request) -> JSONResponse:
        fields = await read_fields(request)
        return JSONResponse({"translations": await _translate(service, documents, glossaries, fields, probe)})

    @router.get("/v2/languages")
    @router.post("/v2/languages")
    async def languages(request: Request) -> list[dict[str, Any]]:
        kind = (await read_fields(request)).text("type", "source")
        if kind not in ("source", "target"):
            raise Refusal(400, "Value for 'type' must be source or target")
        if kind == "source":
            return [
                {"language": code, "name": name_of(code)}
                for code in dict.fromkeys(base(src).upper() for src in service.sources)
            ]
        return [
            {"language": code, "name": name_of(code), "supports_formality": False}
            for code in _target_codes(service)
        ]

    @router.get("/v3/languages")
    async def all_languages(request: Request) -> list[dict[str, Any]]:
        (await read_fields(request)).text("resource", "translate_text")
        sources = {base(src) for src in service.sources}
        targets = [_mixed_case(code) for code in _target_codes(service)]
        return [
            {
                "lang": code,
                "name": name_of(code),
                "usable_as_source": code in sources,
                "usable_as_target": code in targets,
                "status": "stable",
                "features": {name: {"status": "stable"} for name in ("glossary", "tag_handling")},
            }
            for code in dict.fromkeys([*sorted(sources), *targets])
        ]

    @router.get("/v2/usage")
    async def usage() -> dict[str, int]:
        count = service.metrics.value("dragoman_characters_total")
        return {"character_count": count, "character_limit": _UNLIMITED}

    return router


def _target_codes(service: Service) -> list[str]:
    found: dict[str, None] = {}
    for target in service.targets:
        code = base(target)
        own = VARIANTS.get(code, (code.upper(),))
        found |= dict.fromkeys([*(["ZH"] if code == "zh" else []), *own])
    return list(found)


def _mixed_case(code: str) -> str:
    language, _, rest = code.partition("-")
    region = rest if len(rest) == 2 else rest.capitalize()
    return f"{language.lower()}-{region}" if rest else language.lower()


async def _translate(
    service: Service, documents: Documents, glossaries: Glossaries, fields: Fields, probe: bool
) -> list[dict[str, Any]]:
    if fields.get("text") is None:
        raise Refusal(400, "Parameter 'text' not specified.")
    texts = fields.texts("text")
    target = fields.text("target_lang", "")
    if not target:
        raise Refusal(400, "Value for 'target_lang' not supported.")
    source = fields.text("source_lang", "") if fields.get("source_lang") is not None else ""
    service.check(texts)
    model = _checked(fields)
    if probe and texts == ["test"] and _unserved_probe(service, source, target):
        return [_told(texts[0], "EN", texts[0], model)]
    sources = [source or service.detect(text, target)[0][0] for text in texts]
    pairs = [pair_of(service, own, target) for own in sources]
    wish = Wish(
        split=_split(fields),
        ignored=fields.names("ignore_tags"),
        glossary=await glossaries.wanted(fields, source, target),
    )
    results: list[dict[str, Any]] = []
    for group in dict.fromkeys(pairs):
        own = [text for text, pair in zip(texts, pairs, strict=True) if pair == group]
        found = iter(await _by_markup(service, documents, own, group, wish, fields))
        results += [
            {"place": place} | _told(texts[place], base(group[0]).upper(), next(found).text, model)
            for place, pair in enumerate(pairs)
            if pair == group
        ]
    results.sort(key=lambda one: one["place"])
    for one, matches in zip(results, await hints(service, fields, texts, pairs), strict=False):
        one["matches"] = matches
    return [{name: value for name, value in one.items() if name != "place"} for one in results]


def pair_of(service: Service, source: str, target: str) -> LanguageCodes:
    """The language pair, or DeepL's own error message if it is not supported."""
    try:
        return service.pair(source, target)
    except Refusal as refusal:
        known = {base(code) for code in service.targets}
        field = "source_lang" if base(target) in known else "target_lang"
        raise Refusal(400, f"Value for '{field}' not supported. {refusal.message}.") from None


def _told(text: str, source: str, translation: str, model: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {"detected_source_language": source, "text": translation}
    told["billed_characters"] = len(text)
    return told if model is None else told | {"model_type_used": model}


def _checked(fields: Fields) -> str | None:
    """Refuse options that would change the translation but are not supported. Returns the requested model, or
    None."""
    formality = fields.text("formality", "default")
    if formality not in ("default", "prefer_more", "prefer_less"):
        raise Refusal(400, "'formality' is not supported for given 'target_lang'.")
    for name in ("style_id", "custom_instructions", "translation_memory_id"):
        if fields.get(name):
            raise Refusal(400, f"'{name}' is not supported by this server.")
    if fields.text("tag_handling", "") not in ("", "xml", "html"):
        raise Refusal(400, "Value for 'tag_handling' not supported.")
    model = fields.text("model_type", "")
    return model.removeprefix("prefer_") if model else None


def _split(fields: Fields) -> SplitMode:
    html = fields.get("tag_handling") == "html"
    told = fields.text("split_sentences", "nonewlines" if html else "1")
    if told not in _SPLITS:
        raise Refusal(400, "Value for 'split_sentences' not supported.")
    return _SPLITS[told]


def _unserved_probe(service: Service, source: str, target: str) -> bool:
    served = {(base(src), base(tgt)) for src, tgt in service.routes}
    return base(source or "en") == "en" and base(target) == "de" and ("en", "de") not in served


async def _by_markup(
    service: Service,
    documents: Documents,
    texts: Sequence[str],
    pair: LanguageCodes,
    wish: Wish,
    fields: Fields,
) -> list[Translated]:
    if fields.get("tag_handling") == "html":
        return [await documents.html(text, pair, wish) for text in texts]
    splitting = {name.lower() for name in fields.names("splitting_tags")}
    if fields.get("tag_handling") != "xml" or not splitting:
        return await service.translate(texts, pair, wish)
    rows = [_cut(text, splitting) for text in texts]
    found = iter(
        await service.translate([piece for row in rows for piece, is_tag in row if not is_tag], pair, wish)
    )
    return [
        Translated("".join(piece if is_tag else next(found).text for piece, is_tag in row)) for row in rows
    ]


def _cut(text: str, names: set[str]) -> list[tuple[str, bool]]:
    """The text divided at the tags with these names. Tags are separate pieces."""
    pieces: list[tuple[str, bool]] = []
    at = 0
    for span in find(text, ("tag",)):
        name = span.text.strip("<>/").split()[0].lower() if span.text.strip("<>/") else ""
        if name in names:
            pieces += [(text[at : span.start], False), (span.text, True)]
            at = span.end
    return [*pieces, (text[at:], False)]
