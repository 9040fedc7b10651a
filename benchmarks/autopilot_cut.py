"""Tasks cut from data sets: text is spoilt and restored, words are taken apart, sets are turned round.

No choice of the autopilot was tuned on them before they were planned and measured for the first time.
"""

import gzip
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

from autopilot_made import HELD_BACK, Pair, write_parts

Rows = Iterable[Pair]


def _lines(path: Path) -> list[str]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def _captions(data: Path, language: str = "en") -> list[str]:
    return _lines(data / f"multi30k/train.{language}.gz")


def _words(data: Path) -> list[str]:
    entries = (line.split(" ")[0] for line in _lines(data / "cmudict/cmudict.dict.gz"))
    return [word for word in entries if word.isalpha() and len(word) > 3]


def _sides(data: Path, folder: str, src: str, tgt: str, part: str = "train") -> list[Pair]:
    rows = (_lines(data / folder / f"{part}.{side}.gz") for side in (src, tgt))
    return list(zip(*rows, strict=True))


def typos(data: Path) -> Rows:
    """Words with one or two typing errors."""
    dice = Random(1)
    for word in _words(data):
        letters = list(word)
        for _ in range(dice.choice((1, 1, 2))):
            place = dice.randrange(len(letters) - 1)
            kind = dice.randrange(4)
            if kind == 0:
                letters[place], letters[place + 1] = letters[place + 1], letters[place]
            elif kind == 1 and len(letters) > 2:
                del letters[place]
            elif kind == 2:
                letters.insert(place, letters[place])
            else:
                letters[place] = dice.choice("abcdefghijklmnopqrstuvwxyz")
        yield "".join(letters), word


def plurals(data: Path) -> Rows:
    for word in _words(data):
        if word.endswith(("s", "x", "ch", "sh")):
            yield word, f"{word}es"
        elif word.endswith("y") and word[-2] not in "aeiou":
            yield word, f"{word[:-1]}ies"
        else:
            yield word, f"{word}s"


def capitals(data: Path) -> Rows:
    """Case and punctuation restored."""
    for line in _captions(data, "de"):
        yield " ".join(re.findall(r"\w+", line.lower())), " ".join(line.split())


def accents(data: Path) -> Rows:
    for line in _captions(data, "cs"):
        plain = unicodedata.normalize("NFD", line)
        yield "".join(c for c in plain if not unicodedata.combining(c)), line


def spaces(data: Path) -> Rows:
    """Words found in text without spaces."""
    for line in _captions(data):
        text = line.lower().rstrip(" .")
        yield text.replace(" ", ""), text


def keywords(data: Path) -> Rows:
    rows = [re.findall(r"\w+", line.lower()) for line in _captions(data)]
    seen = Counter(word for row in rows for word in row)
    for line, row in zip(_captions(data), rows, strict=True):
        yield line, ", ".join(sorted(dict.fromkeys(row), key=lambda word: (seen[word], word))[:3])


def bigrams(data: Path) -> Rows:
    for line in _captions(data):
        words = line.lower().split()[:6]
        yield " ".join(words), " ".join(f"{a}_{b}" for a, b in pairwise(words)) or "none"


def polarity(data: Path) -> Rows:
    for line in _lines(data / "sst2/train.tsv"):
        text, label = line.split("\t")
        yield text, ("negative", "positive")[int(label)]


def languages(data: Path) -> Rows:
    codes = ("en", "de", "fr", "cs")
    for number, rows in enumerate(zip(*(_captions(data, code) for code in codes), strict=True)):
        yield rows[number % 4], codes[number % 4]


def names(data: Path) -> Rows:
    """One tag for each word: B, I or O."""
    for sentence in "\n".join(_lines(data / "wnut17/wnut17train.conll")).split("\n\t\n"):
        rows = [line.split("\t") for line in sentence.split("\n") if line.strip()]
        if all(len(row) == 2 for row in rows):
            yield " ".join(word for word, _ in rows), " ".join(tag for _, tag in rows)


def emoji(data: Path) -> Rows:
    signs = {
        **{
            "man": "👨",
            "woman": "👩",
            "dog": "🐕",
            "boy": "👦",
            "girl": "👧",
            "ball": "⚽",
            "water": "💧",
            "car": "🚗",
        },
        **{"guitar": "🎸", "bike": "🚲", "horse": "🐎", "snow": "❄️", "beach": "🏖️", "tree": "🌳", "food": "🍽️"},
    }
    for line in _captions(data):
        found = [signs[word] for word in re.findall(r"\w+", line.lower()) if word in signs]
        if found:
            yield line, " ".join(found)


def inverse_sounds(data: Path) -> Rows:
    return ((b, a) for a, b in _sides(data, "g2p-sigmorphon2020/fre", "src", "tgt"))


def inverse_spelling(data: Path) -> Rows:
    return ((b, a) for a, b in _sides(data, "histnorm/german-ridges", "src", "tgt"))


def inverse_inflection(data: Path) -> Rows:
    for src, form in _sides(data, "inflection-sigmorphon2018/turkish", "src", "tgt", "train-high"):
        tags, lemma = src.split(" ", 1)
        yield form, f"{lemma} {tags}"


def inverse_names(data: Path) -> Rows:
    return ((b, a) for a, b in _sides(data, "translit-ar-en", "ar", "en"))


def scan_by_length(data: Path) -> Rows:
    for line in _lines(data / "scan/tasks_train_length.txt.gz"):
        src, tgt = line.removeprefix("IN:").split("OUT:")
        yield src.strip(), tgt.strip()


def little_swahili(data: Path) -> Rows:
    return _sides(data, "tico19", "en", "sw", "all")


def terms_to_hindi(data: Path) -> Rows:
    for line in _lines(data / "tico19/terms.en-hi.tsv.gz"):
        yield tuple(line.split("\t")[:2])  # type: ignore[misc]


def chinese_to_japanese(data: Path) -> Rows:
    return _sides(data, "libreoffice-10way", "zh", "ja")


def turkish_to_russian(data: Path) -> Rows:
    return _sides(data, "libreoffice-10way", "tr", "ru")


def guarani(data: Path) -> Rows:
    return _sides(data, "americasnlp2021/es-gn", "gn", "es")


def replies(data: Path) -> Rows:
    for line in _lines(data / "dailydialog/train.dialogues.gz"):
        turns = [turn.strip() for turn in line.split("__eou__") if turn.strip()]
        yield from pairwise(turns)


def fields_of_names(data: Path) -> Rows:
    """A name of three parts to its parts with labels."""
    dice, words = Random(2), [word.capitalize() for word in _words(data)]
    titles = ("Dr", "Mr", "Mrs", "Prof")
    for number in range(4000):
        title, first, last = titles[number % 4], dice.choice(words), dice.choice(words)
        form = dice.choice(
            (f"{last}, {title} {first}", f"{title} {first} {last}", f"{last} {first} ({title})")
        )
        yield form, f"title={title}|first={first}|last={last}"


CUTS: dict[str, tuple[Callable[[Path], Rows], int]] = {
    "typos 20k": (typos, 20_000),
    "plurals 50": (plurals, 50),
    "plurals 200": (plurals, 200),
    "capitals 10k": (capitals, 10_000),
    "accents 10k": (accents, 10_000),
    "spaces 10k": (spaces, 10_000),
    "keywords 10k": (keywords, 10_000),
    "bigrams 3k": (bigrams, 3000),
    "polarity 6k": (polarity, 6000),
    "languages 400": (languages, 400),
    "names 2k": (names, 2000),
    "emoji 3k": (emoji, 3000),
    "sounds to letters 2k": (inverse_sounds, 2600),
    "modern to old 10k": (inverse_spelling, 10_500),
    "forms to lemmas 8k": (inverse_inflection, 8000),
    "names to Arabic 11k": (inverse_names, 11_000),
    "SCAN length 15k": (scan_by_length, 15_000),
    "en-sw 2k": (little_swahili, 2000),
    "terms en-hi 400": (terms_to_hindi, 400),
    "zh-ja 9k": (chinese_to_japanese, 9000),
    "tr-ru 9k": (turkish_to_russian, 9000),
    "gn-es 13k": (guarani, 13_400),
    "replies 50k": (replies, 50_000),
    "fields of names 2k": (fields_of_names, 2000),
}
"""With the number of pairs for training."""


def cut_writer(name: str) -> Callable[[Path, Path], None]:
    def write(data: Path, out: Path) -> None:
        write_parts(cut(name, data, HELD_BACK), out)

    return write


def cut(name: str, data: Path, held_back: int) -> dict[str, list[Pair]]:
    """Different pairs in an order of its own. The last `held_back` test, those before them validate; fewer if
    there are few."""
    make, count = CUTS[name]
    rows = [pair for pair in dict.fromkeys(make(data)) if all(side.strip() for side in pair)]
    Random(name).shuffle(rows)
    held_back = min(held_back, max(1, (len(rows) - count) // 2))
    rows = rows[: count + 2 * held_back]
    return {
        "train": rows[: -2 * held_back],
        "dev": rows[-2 * held_back : -held_back],
        "test": rows[-held_back:],
    }
