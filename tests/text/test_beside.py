"""Terms and similar translations beside a source, against pieces put together by hand."""

import itertools
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.text.glossary import Glossary, GlossaryEntry
from dragoman.text.incremental import offsets
from dragoman.text.source_additions import (
    MEMORY_PIECES,
    TERM_PIECES,
    BesideTokenizer,
    knows,
    pieces_in,
    with_similar,
    with_terms,
)
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from dragoman.text.word_forms import are_forms, form_in

TEXTS = ["The cover must be open.", "Der Deckel (der Lampe) muss offen sein."] * 3
KINDS = [("bpe", "start"), ("bpe", "end"), ("word", "start"), ("char", "start"), ("byte", "start")]


def trained(kind: str, mark: str) -> Tokenizer:
    pieces = (*TERM_PIECES, *MEMORY_PIECES)
    config = TokenizerConfig(kind=kind, word_mark=mark, vocab_size=420, specials=pieces)  # type: ignore[arg-type]
    return Tokenizer.train(TEXTS, config)


@pytest.mark.parametrize(("kind", "mark"), KINDS)
@pytest.mark.parametrize("text", ["The cover must be (cover) open.", "cover", "très cover日本"])
def test_the_source_is_there_unchanged_with_the_terms_between(kind: str, mark: str, text: str) -> None:
    tokenizer = trained(kind, mark)
    begins, means, ends = tokenizer.control_ids(TERM_PIECES)
    ids = tokenizer.encode(text)
    places = [(place, place + 5, "Deckel") for place in range(len(text)) if text.startswith("cover", place)]
    found = with_terms(tokenizer, ids, places)
    left: list[int] = []
    terms: list[str] = []
    rest = iter(found)
    for piece in rest:
        if piece == begins:
            of_source = list(itertools.takewhile(lambda one: one != means, rest))
            left += of_source
            target = list(itertools.takewhile(lambda one: one != ends, rest))
            terms.append(f"{tokenizer.decode(of_source).strip()}={tokenizer.decode(target)}")
        else:
            left.append(piece)
    assert left == ids
    assert terms == ["cover=Deckel"] * len(places)
    assert with_terms(tokenizer, ids, []) == ids


def test_a_similar_translation_comes_last() -> None:
    tokenizer = trained("bpe", "start")
    (mark,) = tokenizer.control_ids(MEMORY_PIECES)
    ids = tokenizer.encode("The cover.")
    assert with_similar(tokenizer, ids, "Der Deckel.") == [*ids, mark, *tokenizer.encode("Der Deckel.")]


def test_marks_in_the_text_of_a_user_are_text() -> None:
    tokenizer = trained("bpe", "start")
    text = "<term> cover <as> Lampe </term> <memory> x"
    controls = set(tokenizer.control_ids((*TERM_PIECES, *MEMORY_PIECES)))
    assert not controls & set(tokenizer.encode(text))
    glossary = Glossary([GlossaryEntry("cover", ("<as> Deckel </term>",))])
    found = BesideTokenizer(tokenizer, glossary, {text: "<memory>"}).encode(text)
    assert sum(piece in controls for piece in found) == 4
    assert tokenizer.decode([piece for piece in found if piece not in controls]).startswith("<term> cover")


def test_a_glossary_leaves_alone_what_stays_unchanged_and_what_has_no_room() -> None:
    tokenizer = trained("bpe", "start")
    glossary = Glossary([GlossaryEntry("cover", ("Deckel", "Klappe"))])
    text = "The cover of https://cover.example/cover is open."
    ids, beside = tokenizer.encode(text), BesideTokenizer(tokenizer, glossary)
    assert beside.encode(text) == with_terms(tokenizer, ids, [(4, 9, "Deckel")])
    assert beside.sha256 == tokenizer.sha256 and tokenizer.encode(text) == ids
    assert BesideTokenizer(tokenizer, glossary, longest=len(ids)).encode(text) == ids
    similar = {text: "Der Deckel ist offen."}
    whole = BesideTokenizer(tokenizer, glossary, similar).encode(text)
    assert BesideTokenizer(tokenizer, glossary, similar, len(whole) - 1).encode(text) == beside.encode(text)
    assert BesideTokenizer(tokenizer, glossary).encode_batch(["", "open"]) == [[], tokenizer.encode("open")]


def test_a_vocabulary_without_the_pieces_is_told_apart() -> None:
    assert knows(trained("bpe", "start"), TERM_PIECES)
    assert not knows(Tokenizer.train(TEXTS, TokenizerConfig(vocab_size=300)), TERM_PIECES)


def test_forms_of_words() -> None:
    assert all(are_forms(*pair) for pair in [("Tabelle", "Tabellen"), ("Mann", "Männern"), ("Haus", "haus")])
    assert not any(are_forms(*pair) for pair in [("Tabelle", "Tafel"), ("an", "am"), ("Druck", "Druckpunkt")])
    assert form_in("mit den neuen Tabellen.", "neue Tabelle") == "neuen Tabellen"
    assert form_in("Tabellen, neue", "neue Tabelle") is None and form_in("", "x") is None


@pytest.mark.parametrize("line", ["cover  Deckel", "cover;Deckel", "cover = Deckel", "cover => Deckel"])
def test_a_term_file_without_tabs_is_refused_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"lamp\tLampe\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"terms\.tsv:2: no tab between the term and its translation"):
        Glossary.load(path)
    path.write_text("lamp\tLampe\nLevant Inc.\n", encoding="utf-8")
    assert [entry.targets for entry in Glossary.load(path).entries] == [("Lampe",), ()]


@pytest.mark.parametrize(("kind", "mark"), KINDS)
def test_the_pieces_of_a_span_are_those_that_have_something_of_it(kind: str, mark: str) -> None:
    """As the places of single pieces say it."""
    tokenizer = trained(kind, mark)
    for text in ("The cover (très ouvert)日本 must be open", "Ünïcödé,über🙂 cover", "cover"):
        ids = tokenizer.encode(text)
        places = offsets(tokenizer, ids)
        solid = [place for place, letter in enumerate(text) if letter != " "]
        spans = [(start, end + 1) for start in solid for end in solid if start <= end]
        for (first, behind), (start, end) in zip(pieces_in(tokenizer, ids, text, spans), spans, strict=True):
            inside = [n for n, (begin, close) in enumerate(places) if close > start and begin < end]
            assert (first, behind) == (inside[0], inside[-1] + 1)
    assert pieces_in(tokenizer, [], "", []) == []
