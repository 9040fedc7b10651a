"""The small corpus of `tools_table.py`: sentences made of parts, in three languages."""

import random

SUBJECTS = {
    **{"the dog": "der Hund", "the cat": "die Katze", "my friend": "mein Freund", "the child": "das Kind"},
    **{"our neighbour": "unser Nachbar", "the old woman": "die alte Frau", "nobody": "niemand"},
    **{"the bird": "der Vogel", "the small horse": "das kleine Pferd", "the teacher": "die Lehrerin"},
}
VERBS = {
    **{"sleeps": "schläft", "eats": "isst", "sings": "singt", "works": "arbeitet"},
    **{"waits": "wartet", "laughs": "lacht", "reads": "liest", "plays": "spielt"},
}
PLACES = {
    **{"in the garden": "im Garten", "on the roof": "auf dem Dach", "under the table": "unter dem Tisch"},
    **{
        "behind the house": "hinter dem Haus",
        "at the station": "am Bahnhof",
        "in the kitchen": "in der Küche",
    },
}
TIMES = {
    **{"today": "heute", "every day": "jeden Tag", "in the evening": "am Abend", "now": "jetzt"},
    **{"at 7 o'clock": "um 7 Uhr", "at 12 o'clock": "um 12 Uhr"},
}
ODD = (
    *("The dog sleeps", "THE CAT EATS.", "The cat, the dog and the bird.", "A zebra sings in Zürich."),
    *("the  bird   sings  now.", "“Nobody laughs!”", "The child reads 3,141.59 books.", "日本語のテキスト"),
    *("The teacher (at 7 o'clock) waits…", "Naïve café, déjà vu."),
)
FRENCH = dict(
    zip(
        [german for part in (SUBJECTS, VERBS, PLACES, TIMES) for german in part.values()],
        [
            *("le chien", "le chat", "mon ami", "l'enfant", "notre voisin", "la vieille femme", "personne"),
            *("l'oiseau", "le petit cheval", "le professeur", "dort", "mange", "chante", "travaille"),
            *("attend", "rit", "lit", "joue", "dans le jardin", "sur le toit", "sous la table"),
            *("derrière la maison", "à la gare", "dans la cuisine", "aujourd'hui", "chaque jour", "le soir"),
            *("maintenant", "à 7 heures", "à 12 heures"),
        ],
        strict=True,
    )
)
"""The third language of `languages`: each part of a German sentence in French."""


def pairs(count: int) -> list[tuple[str, str]]:
    chosen, draw = {}, random.Random(1)
    while len(chosen) < count:
        (src, tgt), verb, place, when = (
            draw.choice(list(part.items())) for part in (SUBJECTS, VERBS, PLACES, TIMES)
        )
        src, tgt = f"{src} {verb[0]} {place[0]} {when[0]}", f"{tgt} {verb[1]} {when[1]} {place[1]}"
        if draw.random() < 0.3:
            other, acts = draw.choice(list(SUBJECTS.items())), draw.choice(list(VERBS.items()))
            src, tgt = f"{src}, and {other[0]} {acts[0]}", f"{tgt}, und {other[1]} {acts[1]}"
        chosen[f"{src[0].upper()}{src[1:]}."] = f"{tgt[0].upper()}{tgt[1:]}."
    return list(chosen.items())


def in_french(german: str) -> str:
    """A sentence of `pairs` in the third language, part by part."""
    said, rest = [], german.removesuffix(".")
    while rest:
        rest = rest.removeprefix(", und ") if (joins := rest.startswith(", und ")) else rest.lstrip()
        part = max((p for p in FRENCH if rest.lower().startswith(p.lower())), key=len)
        said += [", et"] * joins + [FRENCH[part]]
        rest = rest[len(part) :]
    text = " ".join(said).replace(" ,", ",")
    return f"{text[0].upper()}{text[1:]}."
