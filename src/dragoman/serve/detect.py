"""Which of a few languages a text is in: by its script, and by the little words that every text has.

This is for `source: auto` of a server with several source languages. It is no language identifier for all the
world: it chooses among the languages that are served, and says how sure it is.
"""

import re
from collections.abc import Sequence

from dragoman.serve.languages import base

_LITTLE_WORDS = {
    "en": "the of and to in is that it for was on are as with his they be at this have from or by not but",
    "de": "der die und das in ist zu den von nicht mit es sich auf für eine ein im dem auch als ich sie wir",
    "fr": "le la les de et des un une est que dans qui il pour ne pas sur au avec ce plus se par nous vous",
    "es": "el la de que y en los las un una por con no es se para del al lo como más pero su le sus este hay",
    "it": "il di che la e un una in è per non con del si da sono le dei al come più ma gli lo nel della ho",
    "pt": "o a de que e do da em um uma para com não é os as se na no por mais dos das ao como mas foi ele",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om ook als dan maar bij wordt door",
    "sv": "och att det i en som är på för av med den till inte har de ett om jag så vi kan men från var sig",
    "da": "og i at det er en til på som for med af den ikke der de har et jeg om så vi men kan fra var sig",
    "nb": "og i det er en til på som for med av den ikke de har et jeg om så vi men kan fra var seg når hva",
    "fi": "ja on ei että se hän oli joka mutta ovat kun niin kuin myös tai sen minä ole jos mitä voi tämä",
    "pl": "i w na się nie z do to jest że o jak za po ale co dla od przez są tak był jego czy tylko tym może",
    "cs": "a v na se je že to s z do o i ale jako za pro k by si jsem tak už po jeho byl není jsou nebo když",
    "sk": "a v na sa je že to s z do o aj ale ako za pre k by si som tak už po jeho bol nie sú alebo keď",
    "hu": "a az és hogy nem is egy ez van de meg csak mint volt már még ha ki mert vagy el lehet kell azt",
    "ro": "și în de la a cu nu o pe este că un se din pentru mai ce sau care dar au fost am după sunt fi",
    "tr": "ve bir bu da de için ile ne çok olarak daha gibi var ben o ama kadar sonra değil mi en olan diye",
    "ru": "и в не на что он я с как а то это по но они к у за из мы так от же вы о для был только его",
    "uk": "і в не на що він я з як а то це по але вони до у за із ми так від же ви про для був тільки його",
    "bg": "и в не на че той аз с как а то това по но те към у за от ние така са вие за беше само да се",
}  # fmt: skip
_WORDS = {code: frozenset(words.split()) for code, words in _LITTLE_WORDS.items()}
_SCRIPTS = {
    "ja": "\u3040-\u30ff", "ko": "\uac00-\ud7af\u1100-\u11ff", "zh": "\u4e00-\u9fff", "th": "\u0e00-\u0e7f",
    "el": "\u0370-\u03ff", "he": "\u0590-\u05ff", "ar": "\u0600-\u06ff", "fa": "\u0600-\u06ff",
    "hi": "\u0900-\u097f", "ka": "\u10a0-\u10ff", "hy": "\u0530-\u058f", "ta": "\u0b80-\u0bff",
    "ru": "\u0400-\u04ff", "uk": "\u0400-\u04ff", "bg": "\u0400-\u04ff",
}  # fmt: skip
_LOOKED_AT = 2000


def detect(text: str, among: Sequence[str]) -> list[tuple[str, float]]:
    """The languages, best first, each with a confidence from 0 to 100. One alone is always sure."""
    if len(among) == 1:
        return [(among[0], 100.0)]
    head = text[:_LOOKED_AT]
    words = re.findall(r"\w+", head.casefold())
    points = {code: _points(base(code), head, words) for code in among}
    total = sum(points.values())
    shares = {code: 100.0 * own / total if total else 0.0 for code, own in points.items()}
    return sorted(((code, round(share, 1)) for code, share in shares.items()), key=lambda one: -one[1])


def _points(code: str, text: str, words: Sequence[str]) -> float:
    letters = max(1, sum(char.isalpha() for char in text))
    script = _SCRIPTS.get(code)
    own = len(re.findall(f"[{script}]", text)) / letters if script else 0.0
    if code == "zh" and re.search(f"[{_SCRIPTS['ja']}]", text):
        own = 0.0  # Japanese has Chinese characters too
    little = sum(word in _WORDS.get(code, ()) for word in words) / max(1, len(words))
    return own + 3 * little
