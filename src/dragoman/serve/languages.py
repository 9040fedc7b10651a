"""Language codes: names, alternative spellings, and which served language a client means."""

from collections.abc import Iterable

from dragoman.data.formats.language_codes import NAMES, TWO_LETTERS

LanguageCodes = tuple[str, str]
"""Source and target language."""
VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH-HANS", "ZH-HANT")}
"""Target codes that DeepL's clients require. A model of the base language serves all its variants."""
_VARIANT_NAMES = {
    "EN-GB": "English (British)",
    "EN-US": "English (American)",
    "PT-BR": "Portuguese (Brazilian)",
    "PT-PT": "Portuguese (European)",
    "ZH-HANS": "Chinese (simplified)",
    "ZH-HANT": "Chinese (traditional)",
}
_SAME = {"nb": "no", "no": "nb", "iw": "he", "in": "id"}


def base(code: str) -> str:
    """The language of a code without region or script, as a two-letter code if there is one."""
    first = code.replace("_", "-").partition("-")[0].lower()
    return TWO_LETTERS.get(first, first)


def name_of(code: str) -> str:
    return _VARIANT_NAMES.get(code.upper()) or NAMES.get(base(code), code)


def resolve(code: str, served: Iterable[str]) -> str | None:
    """The served code that is meant: an equal one, ignoring case, else one of the same language."""
    asked = code.replace("_", "-").lower()
    known = list(served)
    same = [each for each in known if each.replace("_", "-").lower() == asked]
    wanted = {base(code), _SAME.get(base(code), "")}
    return next(iter([*same, *(each for each in known if base(each) in wanted)]), None)
