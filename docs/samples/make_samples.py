"""Write the sample data of the tutorials:  python docs/samples/make_samples.py

All of it is made from small tables by rules, so that everybody may use it and the right answer is known.
"""

import random
from itertools import product
from pathlib import Path

HERE = Path(__file__).parent

# English instructions with their German translations: imperative, then passive with the verb at the end.
VERBS = [
    ("Attach", "attached", "Befestigen", "befestigt"),
    ("Check", "checked", "Prüfen", "geprüft"),
    ("Remove", "removed", "Entfernen", "entfernt"),
    ("Clean", "cleaned", "Reinigen", "gereinigt"),
    ("Replace", "replaced", "Ersetzen", "ersetzt"),
    ("Measure", "measured", "Messen", "gemessen"),
    ("Open", "opened", "Öffnen", "geöffnet"),
]
PARTS = [
    ("filter", "der Filter", "den Filter"),
    ("cover", "der Deckel", "den Deckel"),
    ("handle", "der Griff", "den Griff"),
    ("sensor", "der Sensor", "den Sensor"),
    ("pump", "die Pumpe", "die Pumpe"),
    ("lamp", "die Lampe", "die Lampe"),
    ("battery", "die Batterie", "die Batterie"),
    ("left panel", "die linke Platte", "die linke Platte"),
    ("cable", "das Kabel", "das Kabel"),
    ("valve", "das Ventil", "das Ventil"),
    ("housing", "das Gehäuse", "das Gehäuse"),
    ("rear wheel", "das Hinterrad", "das Hinterrad"),
]
HOW = [
    ("every week", "jede Woche"),
    ("once a year", "einmal im Jahr"),
    ("carefully", "vorsichtig"),
    ("with both hands", "mit beiden Händen"),
    ("with a dry cloth", "mit einem trockenen Tuch"),
    ("after ten minutes", "nach zehn Minuten"),
    ("at room temperature", "bei Raumtemperatur"),
    ("without tools", "ohne Werkzeug"),
]


def instructions() -> list[tuple[str, str]]:
    pairs = []
    for (do, done, tun, getan), (part, subject, thing), (how, wie) in product(VERBS, PARTS, HOW):
        pairs.append((f"{do} the {part} {how}.", f"{tun} Sie {thing} {wie}."))
        must = f"{subject[0].upper()}{subject[1:]} muss {wie} {getan} werden."
        pairs.append((f"The {part} must be {done} {how}.", must))
    random.Random(1).shuffle(pairs)
    return pairs


# Turkish nouns whose forms follow from vowel harmony and the last consonant alone.
TURKISH_NOUNS = """\
ev okul göz yol kız deniz masa oda araba kapı köy gün el baş taş kuş arkadaş otobüs telefon kalem
defter öğretmen doktor orman göl ada anne baba kardeş yıldız bulut at et süt top ip dil diş kol yüz
bahçe pencere köprü gemi tren şeker tuz elma üzüm limon koyun keçi aslan kaplan kedi fare yılan
ceket palto şapka çanta ayna halı lamba radyo müze banka lokanta pazar cadde meydan hastane eczane
kütüphane sinema tiyatro fabrika büro adres film gazete dergi roman şarkı oyun oyuncu yazar ressam
şoför garson asker polis avukat adam insan
"""
VOWELS, ROUND, FRONT = "aıoueiöü", "ouöü", "eiöü"
FORMS = [
    "N;PL",
    "N;SG;DAT",
    "N;PL;DAT",
    "N;SG;LOC",
    "N;PL;LOC",
    "N;SG;ABL",
    "N;PL;ABL",
    "N;SG;POSS1",
    "N;PL;POSS1",
]


def inflected(noun: str, form: str) -> str:
    word = noun + ("ler" if _last_vowel(noun) in FRONT else "lar") * ("PL" in form)
    last = _last_vowel(word)
    low, after_vowel = "e" if last in FRONT else "a", word[-1] in VOWELS
    if "DAT" in form:
        return word + "y" * after_vowel + low
    if "POSS1" in form:
        high = ("ü" if last in ROUND else "i") if last in FRONT else ("u" if last in ROUND else "ı")
        return word + high * (not after_vowel) + "m"
    if "LOC" in form or "ABL" in form:
        return word + ("t" if word[-1] in "pçtkfhsş" else "d") + low + "n" * ("ABL" in form)
    return word


def _last_vowel(word: str) -> str:
    return next(letter for letter in reversed(word) if letter in VOWELS)


def inflections() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """For training and for testing. No noun is in both."""
    nouns = TURKISH_NOUNS.split()
    random.Random(1).shuffle(nouns)
    tables = [[(f"{form} {noun}", inflected(noun, form)) for form in FORMS] for noun in nouns]
    test = [pair for table in tables[:12] for pair in table]
    train = [pair for table in tables[12:] for pair in table]
    random.Random(2).shuffle(train)
    return train, test


NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen"""
ONES = NUMBER_WORDS.split()
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spelt(number: int) -> str:
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10 - 2] + ("-" + ONES[number % 10] if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = number % size
    joint = " and " if rest < 100 else " "
    return f"{spelt(number // size)} {name}" + (joint + spelt(rest) if rest else "")


def numbers() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    chosen = random.Random(1).sample(range(10_000), 3200)
    pairs = [(spelt(number), str(number)) for number in chosen]
    return pairs[200:], pairs[:200]


UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>\n'
PO = 'msgid ""\nmsgstr "Language: de\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n'


def files() -> dict[str, str]:
    pairs = instructions()
    manual = [source for source, _ in pairs[1100:1106]]
    train, test = inflections()
    some, others = numbers()
    return {
        "memory.tmx": '<tmx version="1.4"><header srclang="en"/><body>\n'
        + "".join(UNIT.format(*pair) for pair in pairs[:1000])
        + "</body></tmx>\n",
        "memory-test.tsv": _table(pairs[1000:1100], "en\tde"),
        "manual.po": PO + "\n".join(f'msgid "{source}"\nmsgstr ""\n' for source in manual),
        "inflection.tsv": _table(train),
        "inflection-test.tsv": _table(test),
        "numbers.tsv": _table(some),
        "numbers-test.tsv": _table(others),
    }


def _table(pairs: list[tuple[str, str]], header: str = "src\ttgt") -> str:
    return header + "\n" + "".join(f"{source}\t{target}\n" for source, target in pairs)


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text, "utf-8", newline="\n")
