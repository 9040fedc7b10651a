"""Codes of languages: their names, their other spellings, and which served one a client means."""

from collections.abc import Iterable

_TABLE = """
af afr Afrikaans;ar ara Arabic;az aze Azerbaijani;be bel Belarusian;bg bul Bulgarian;bn ben Bengali;
bs bos Bosnian;ca cat Catalan;cs ces Czech;cy cym Welsh;da dan Danish;de deu German;el ell Greek;
en eng English;eo epo Esperanto;es spa Spanish;et est Estonian;eu eus Basque;fa fas Persian;fi fin Finnish;
fr fra French;ga gle Irish;gl glg Galician;gu guj Gujarati;he heb Hebrew;hi hin Hindi;hr hrv Croatian;
hu hun Hungarian;hy hye Armenian;id ind Indonesian;is isl Icelandic;it ita Italian;ja jpn Japanese;
ka kat Georgian;kk kaz Kazakh;km khm Khmer;ko kor Korean;ku kur Kurdish;la lat Latin;lb ltz Luxembourgish;
lt lit Lithuanian;lv lav Latvian;mk mkd Macedonian;ml mal Malayalam;mn mon Mongolian;mr mar Marathi;
ms msa Malay;mt mlt Maltese;my mya Burmese;nb nob Norwegian Bokmål;ne nep Nepali;nl nld Dutch;
nn nno Norwegian Nynorsk;no nor Norwegian;oc oci Occitan;pa pan Punjabi;pl pol Polish;pt por Portuguese;
ro ron Romanian;ru rus Russian;sk slk Slovak;sl slv Slovenian;sq sqi Albanian;sr srp Serbian;sv swe Swedish;
sw swa Swahili;ta tam Tamil;te tel Telugu;th tha Thai;tl tgl Tagalog;tr tur Turkish;uk ukr Ukrainian;
ur urd Urdu;uz uzb Uzbek;vi vie Vietnamese;zh zho Chinese
"""
_ROWS = [row.split(None, 2) for row in _TABLE.replace("\n", "").split(";")]
_NAMES = {code: name for code, _, name in _ROWS}
_SHORT = {long: code for code, long, _ in _ROWS} | {"ger": "de", "fre": "fr", "dut": "nl", "chi": "zh"}
VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH-HANS", "ZH-HANT")}
"""What DeepL's clients insist on as targets; a model of the base language stands for each."""
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
    """The language of a code without region or script, in two letters where there are any."""
    first = code.replace("_", "-").partition("-")[0].lower()
    return _SHORT.get(first, first)


def name_of(code: str) -> str:
    return _VARIANT_NAMES.get(code.upper()) or _NAMES.get(base(code), code)


def resolve(code: str, served: Iterable[str]) -> str | None:
    """The served code that is meant: the same, whatever its case, else one of the same language."""
    asked = code.replace("_", "-").lower()
    known = list(served)
    same = [each for each in known if each.replace("_", "-").lower() == asked]
    wanted = {base(code), _SAME.get(base(code), "")}
    return next(iter([*same, *(each for each in known if base(each) in wanted)]), None)
