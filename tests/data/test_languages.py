"""Languages by their words and letters; and what is no language at all."""

from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.languages import languages_of
from dragoman.text.identify import KNOWN, identify, language_of
from dragoman.text.language_words import FREQUENT, SCRIPTS

TEXTS = {
    "en": "The book that you wanted is on the table.",
    "de": "Das Buch, das du wolltest, liegt auf dem Tisch.",
    "fr": "Le livre que tu voulais est sur la table.",
    "es": "El libro que querías está en la mesa.",
    "it": "Il libro che volevi è sul tavolo.",
    "pt": "O livro que você queria está na mesa.",
    "nl": "Het boek dat je wilde ligt op de tafel.",
    "sv": "Det är en bok som jag inte har läst än.",
    "fi": "Kirja, jonka halusit, on pöydällä.",
    "pl": "Książka, którą chciałeś, leży na stole.",
    "cs": "Kniha, kterou jsi chtěl, leží na stole.",
    "hu": "A könyv, amit akartál, az asztalon van.",
    "tr": "İstediğin kitap masanın üstünde duruyor.",
    "ru": "Книга, которую ты хотел, лежит на столе.",
    "uk": "Книга, яку ти хотів, лежить на столі.",
    "bg": "Книгата, която искаше, е на масата.",
    "vi": "Quyển sách mà bạn muốn ở trên bàn.",
    "ar": "الكتاب الذي كنت تريده على الطاولة.",
    "fa": "کتابی که می خواستی روی میز است.",
    "hi": "जो किताब तुम चाहते थे वह मेज पर है।",
    "ja": "あなたが欲しかった本は机の上にあります。",
    "zh": "你想要的书在桌子上。",
    "ko": "네가 원하던 책은 책상 위에 있다.",
    "el": "Το βιβλίο που ήθελες είναι στο τραπέζι.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_one_sentence_is_told_from_all_languages(language: str) -> None:
    found = identify(TEXTS[language])
    assert found[0][0] == language and found[0][1] > 50, found[:3]
    assert len(found) == len(KNOWN) and sum(sure for _, sure in found) == pytest.approx(100, abs=3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都知事選挙が七月七日に実施", "ja"),  # one kana among Chinese characters
        ("日本語", "zh"),  # none: it may be either, and Chinese has no other letters
        ("我的船是最新的", "zh"),
        ("ひらがな", "ja"),
    ],
)
def test_japanese_has_chinese_characters_too(text: str, expected: str) -> None:
    assert identify(text, ["zh", "ja"])[0] == (expected, 100.0)
    assert identify(text, ["ja", "zh", "ko", "en"])[0][0] == expected
    assert language_of([text]) == expected
    alone = identify(text, [expected, "ko"])
    assert alone == [(expected, 100.0), ("ko", 0.0)]


def test_a_text_with_kana_is_not_chinese() -> None:
    text = "東京都知事選挙が七月七日に実施"
    assert identify(text, ["zh", "ko"]) == [("zh", 0.0), ("ko", 0.0)]
    assert identify(text, ["ja", "en"]) == [("ja", 100.0), ("en", 0.0)]


def test_every_list_is_of_its_own_language() -> None:
    """Most words of a list, one after another, read as that language and no other."""
    for code, words in FREQUENT.items():
        assert identify(words)[0][0] == code
        assert len(set(words.split())) >= 20 and words == words.lower()
    assert not set(FREQUENT) & set(SCRIPTS)


def test_codes_are_given_back_as_they_came() -> None:
    assert identify(TEXTS["pt"], ["de-AT", "pt_BR"])[0][0] == "pt_BR"
    assert identify("Hvorfor er det ikke noe her?", ["sv", "no"])[0][0] == "no"
    assert identify("whatever", ["xx"]) == [("xx", 100.0)]
    assert identify(TEXTS["de"], ["xx", "de"]) == [("de", 100.0), ("xx", 0.0)]


@pytest.mark.parametrize("text", ["", "123", "…", "😀 !"])
def test_what_has_no_letters_is_in_no_language(text: str) -> None:
    assert identify(text, ["de", "en"]) == [("de", 0.0), ("en", 0.0)]
    assert language_of([text] * 50) is None


def test_a_corpus_is_named_only_where_it_is_one() -> None:
    assert language_of([TEXTS["de"]] * 3) == "de"
    assert language_of([TEXTS["ja"]]) == "ja"
    assert language_of(["a b c d e", "x y z a"] * 20) is None
    assert language_of(["walk twice and jump left"[n:] for n in range(5)] + ["qzx vvw kkj"] * 40) is None
    assert language_of([TEXTS["de"], TEXTS["fr"], TEXTS["pl"], TEXTS["hu"]]) is None
    assert language_of(["Tom", "Mary", "PM Construction Services"] * 9) is None


def test_the_languages_of_files_that_do_not_say(tmp_path: Path) -> None:
    rows = [(TEXTS["en"], TEXTS["fr"]), ("We are here.", "Nous sommes ici.")] * 3
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in rows), "utf-8")
    assert languages_of(SourceConfig((str(table),))) == ("en", "fr")
    for name, side in (("a.source", 1), ("a.target", 0)):
        (tmp_path / name).write_text("".join(f"{row[side]}\n" for row in rows), "utf-8")
    plain = SourceConfig((str(tmp_path / "a.source"), str(tmp_path / "a.target")))
    assert languages_of(plain) == ("fr", "en")
    same = SourceConfig((str(tmp_path / "a.source"), str(tmp_path / "a.source")))
    assert languages_of(same) is None
