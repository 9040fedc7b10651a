"""Languages by their words and letters; and what is no language at all."""

import sys
from pathlib import Path

import pytest

from dragoman.data.config import SourceConfig
from dragoman.data.languages import languages_of
from dragoman.errors import UserError
from dragoman.text import identify as identification
from dragoman.text.identify import identification_model, identify, known_languages, language_of

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
    assert len(found) == len(known_languages()) and sum(sure for _, sure in found) > 90


def test_the_numbers_are_those_of_py3langid() -> None:
    """Many texts at once, as py3langid tells them one by one."""
    langid = pytest.importorskip("py3langid.langid")
    reference = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    model = identification_model()
    reference.set_languages(list(model.columns))
    texts = [*TEXTS.values(), "ICH BIN DA", "Ово је српски", "Ovo je srpski jezik"]
    for text, shares in zip(texts, model.probabilities(texts), strict=True):
        own = {code: shares[columns].sum() for code, columns in model.columns.items()}
        assert own == pytest.approx(dict(reference.rank(f" {text} ")), abs=1e-5), text


def test_a_text_is_not_in_the_only_language_there_is() -> None:
    for text in (TEXTS["de"], TEXTS["fr"], TEXTS["ja"], TEXTS["el"]):
        assert identify(text, ["en"])[0] == ("en", pytest.approx(0, abs=1))
    assert identify(TEXTS["en"], ["en"])[0][1] > 95
    assert identify("東京都知事選挙が七月七日に実施", ["zh", "ko"])[0][1] < 20


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
    assert identify(text, ["zh", "ja"])[0][0] == expected
    assert identify(text, ["ja", "zh", "ko", "en"])[0][0] == expected


def test_codes_are_given_back_as_they_came() -> None:
    assert identify(TEXTS["pt"], ["de-AT", "pt_BR"])[0][0] == "pt_BR"
    assert identify("Hvorfor er det ikke noe her?", ["sv", "no"])[0][0] == "no"
    assert identify("Hvorfor er det ikke noe her?", ["sv", "nb"])[0][0] == "nb"
    assert identify("whatever", ["xx"]) == [("xx", 0.0)]
    assert [code for code, _ in identify(TEXTS["de"], ["xx", "de"])] == ["de", "xx"]


@pytest.mark.parametrize("text", ["", "123", "…", "😀 !"])
def test_what_has_no_letters_is_in_no_language(text: str) -> None:
    assert identify(text, ["de", "en"]) == [("de", 0.0), ("en", 0.0)]
    assert language_of([text] * 50) is None


def test_a_corpus_is_named_only_where_it_is_one() -> None:
    assert language_of([TEXTS["de"]] * 3) == "de"
    assert language_of([TEXTS["ja"]] * 2) == "ja"
    assert language_of([]) is None
    assert language_of(["a b c d e", "x y z a"] * 20) is None
    assert language_of(["walk twice and jump left"[n:] for n in range(5)] + ["qzx vvw kkj"] * 40) is None
    assert language_of([TEXTS["de"], TEXTS["fr"], TEXTS["pl"], TEXTS["hu"]]) is None
    assert language_of(["Tom", "Mary", "PM Construction Services"] * 9) is None


def test_without_the_package_a_corpus_has_no_names_for_its_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.tsv").write_text(f"{TEXTS['en']}\t{TEXTS['fr']}\n" * 6, "utf-8")
    monkeypatch.setattr(identification, "_loaded", [])
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    assert languages_of(SourceConfig((str(tmp_path / "pairs.tsv"),))) is None
    with pytest.raises(UserError, match="needs the package 'py3langid'"):
        identify("text", ["en"])


def test_columns_are_named_after_source_and_target(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("de,en\nx,y\n", "utf-8")
    assert languages_of(SourceConfig((str(table),), src="de", tgt="en")) == ("de", "en")
    assert languages_of(SourceConfig((str(table),), src="en", tgt="de")) == ("en", "de")


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
