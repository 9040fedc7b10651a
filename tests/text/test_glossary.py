"""Glossaries: files read strictly, terms found as whole words, the longest first."""

import re
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.text.glossary import Glossary, GlossaryEntry
from dragoman.text.word_boundaries import has_phrase, is_word_character, word_pattern

FILE = """\ufeff# source\ttarget\tcase\tnotes
heart attack\tHerzinfarkt|Myokardinfarkt\t\tmedicine

attack\tAngriff\r
IT\tEDV\texact
Levant  Inc.\t
bank\tUfer\tignore
"""


@pytest.fixture
def terms(tmp_path: Path) -> Glossary:
    path = tmp_path / "terms.tsv"
    path.write_text(FILE, encoding="utf-8")
    return Glossary.load(path)


def found(glossary: Glossary, text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(text[m.start : m.end], m.targets) for m in glossary.matches(text)]


def test_longest_whole_words_from_left_to_right(terms: Glossary) -> None:
    assert found(terms, "A heart attack, an attack and heart attacks.") == [
        ("heart attack", ("Herzinfarkt", "Myokardinfarkt")),
        ("attack", ("Angriff",)),
    ]
    assert found(terms, "counterattack, attack2, attack_, re-attack") == [("attack", ("Angriff",))]
    assert found(terms, "a heart\u00a0 attack") == [("heart\u00a0 attack", ("Herzinfarkt", "Myokardinfarkt"))]


def test_a_term_in_lower_case_may_begin_a_text_with_a_capital(terms: Glossary) -> None:
    assert found(terms, "«Attack now») ") == [("Attack", ("Angriff",))]
    assert found(terms, "The Attack") == []
    assert Glossary([GlossaryEntry("cat", ("kat",))]).matches("Cat")[0].targets == ("kat", "Kat")


def test_case_rules(terms: Glossary) -> None:
    assert found(terms, "IT and it") == [("IT", ("EDV",))]
    assert found(terms, "the BANK, a Bank") == [("BANK", ("Ufer",)), ("Bank", ("Ufer",))]


def test_a_term_without_target_stays_as_it_is(terms: Glossary) -> None:
    assert found(terms, "by Levant Inc. itself") == [("Levant Inc.", ("Levant Inc.",))]


def test_scripts_without_spaces_have_boundaries_everywhere() -> None:
    assert found(Glossary([GlossaryEntry("最新", ("newest",))]), "我的最新的船") == [("最新", ("newest",))]
    assert not is_word_character("船") and is_word_character("ß") and is_word_character("\u0301")
    assert has_phrase("我的猫在", "猫") and not has_phrase("который", "кот")


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "terms.csv"
    path.write_text('# a, comment\n"New York, NY",Neu-York\nHi,"Hallo, du"\n', encoding="utf-8")
    assert found(Glossary.load(path), "in New York, NY") == [("New York, NY", ("Neu-York",))]
    assert Glossary.load(path).entries[1].targets == ("Hallo, du",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "t.tsv",
            b"cat\tKatze\n\ndog\tHund\ncat\tKater\n",
            r"t\.tsv:4: 'cat' is there already \(.*t\.tsv:1\)",
        ),
        ("t.tsv", b"a  b\tx\na b\ty\n", r"t\.tsv:2: 'a b' is there already"),
        ("t.tsv", b"\tKatze\n", r"t\.tsv:1: the source term is empty"),
        ("t.tsv", b"cat\tKatze|\n", r"t\.tsv:1: 'Katze\|' has an empty variant"),
        ("t.tsv", b"cat\tKatze\tlower\n", r"t\.tsv:1: the case rule must be .* found 'lower'"),
        ("t.tsv", b"cat\tKatze\nd\xffg\tHund\n", r"t\.tsv:2: not valid UTF-8 \(0xFF\)"),
        ("t.tsv", b"# nothing\n", r"t\.tsv: the glossary has no terms"),
        ("t.csv", b'a,b\n"cat,Katze\n', r"t\.csv:2: not a line of CSV"),
    ],
)
def test_faults_are_named_by_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        Glossary.load(tmp_path / name)


def test_a_file_without_end() -> None:
    with pytest.raises(UserError, match="bytes are too many for a glossary"):
        Glossary.load(Path("/dev/zero"))  # which says that its size is 0


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        Glossary.load(tmp_path / "none.tsv")


def test_equal_to_a_search_with_regular_expressions() -> None:
    """Terms over a small alphabet, so that they share beginnings: a pattern with the longest first agrees."""
    terms = ["a", "a b", "a b c", "b", "c a", "c, a", "bb", "b-b"]
    glossary = Glossary([GlossaryEntry(term, ("x",), "exact") for term in terms])
    longest = "|".join(re.escape(term).replace(r"\ ", " +") for term in sorted(terms, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{longest})(?!\w)")
    units = ["a", "b", "c", " ", " ", ",", "-", "bb"]
    for seed in range(3000):
        text = "".join(units[(seed // 8**i + i * seed) % 8] for i in range(9))
        assert [text[m.start : m.end] for m in glossary.matches(text)] == pattern.findall(text), text


def test_words_are_runs_of_word_characters() -> None:
    characters = [chr(code) for code in (*range(0x30000), *range(0xE0000, 0xE0200))]
    of_pattern = "".join(word_pattern().findall("\n".join(characters)))
    assert of_pattern == "".join(filter(is_word_character, characters))
    assert word_pattern().findall("c\u0301a_va, 2nd 船x") == ["c\u0301a_va", "2nd", "x"]
