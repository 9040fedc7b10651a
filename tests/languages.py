"""Sentences of three languages, and a run that learns to translate between them."""

from itertools import permutations, product
from pathlib import Path
from typing import Any

from dragoman.data.corpus import prepare
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from toy import toy_config

LANGUAGES = ("en", "de", "fr")
_WHO = [
    ("The man", "Der Mann", "L'homme"),
    ("The woman", "Die Frau", "La femme"),
    ("The dog", "Der Hund", "Le chien"),
    ("The child", "Das Kind", "L'enfant"),
]
_DOES = [
    ("sleeps", "schläft", "dort"),
    ("sings", "singt", "chante"),
    ("is running", "läuft gerade", "court"),
    ("eats an apple", "isst einen Apfel", "mange une pomme"),
]
_WHERE = [
    ("in the house", "im Haus", "dans la maison"),
    ("on the street", "auf der Straße", "dans la rue"),
    ("with his friends", "mit seinen Freunden", "avec ses amis"),
]
SENTENCES = {
    code: [f"{who[place]} {does[place]} {where[place]}." for who, does, where in product(_WHO, _DOES, _WHERE)]
    for place, code in enumerate(LANGUAGES)
}
HELD_BACK = (("de", "fr"), ("fr", "de"))
"""Directions that the run is not trained in."""
TRAINED = tuple(pair for pair in permutations(LANGUAGES, 2) if pair not in HELD_BACK)


def write_languages(directory: Path, stem: str = "train") -> list[str]:
    """A plain file of each language."""
    directory.mkdir(exist_ok=True)
    paths = [directory / f"{stem}.{code}" for code in LANGUAGES]
    for path, code in zip(paths, LANGUAGES, strict=True):
        path.write_text("".join(f"{line}\n" for line in SENTENCES[code]), encoding="utf-8")
    return list(map(str, paths))


def languages_config(files: list[str]) -> dict[str, Any]:
    """A configuration of all directions between the languages of these files but those held back."""
    by_code = {Path(file).suffix[1:]: file for file in files}
    plain = toy_config(("", ""))
    train = [
        {"files": [by_code[src], by_code[tgt]], "src_lang": src, "tgt_lang": tgt} for src, tgt in TRAINED
    ]
    plain["data"] = {"train": train, "valid_size": 16, "temperature": 5.0}
    plain["train"] |= {"max_updates": 6, "save_every": 2, "validate_every": 3, "log_every": 1}
    return plain


def languages_run(directory: Path, plain: dict[str, Any], cache: Path) -> Run:
    config = resolve_config(plain)
    prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)
    return Run.create(directory, config, prepared)
