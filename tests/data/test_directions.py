"""Corpora of several languages: which directions files have, and how they are prepared."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import to_dict
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.directions import Directions, parse_directions
from dragoman.data.formats import read_pairs
from dragoman.data.languages import corpora_by_direction, corpora_in
from dragoman.data.sampler import CorpusRange, tempered
from dragoman.data.scan import balanced_texts, scan
from dragoman.data.store import load_pairs_dropout
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from languages import LANGUAGES, SENTENCES, TRAINED, languages_config, write_languages

ALL = set(permutations(LANGUAGES, 2))


def table(path: Path, rows: list[list[str]], sign: str = "\t") -> str:
    path.write_text("".join(sign.join(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def memory(path: Path) -> str:
    units = (
        "".join(f'<tuv xml:lang="{code}"><seg>{SENTENCES[code][n]}</seg></tuv>' for code in LANGUAGES)
        for n in range(len(SENTENCES["en"]))
    )
    body = "".join(f"<tu>{unit}</tu>" for unit in units)
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>', encoding="utf-8")
    return str(path)


def rows_with_languages() -> list[list[str]]:
    pairs = [("en", "de"), ("fr", "en"), ("de", "fr")]
    rows = [[src, SENTENCES[src][n], tgt, SENTENCES[tgt][n]] for src, tgt in pairs for n in range(48)]
    return [["src_lang", "src", "tgt_lang", "tgt"], *rows]


@pytest.mark.parametrize("format", ["plain", "tmx", "header", "rows"])
def test_files_of_several_languages_have_all_directions(tmp_path: Path, format: str) -> None:
    if format == "plain":
        files = write_languages(tmp_path)
    elif format == "tmx":
        files = [memory(tmp_path / "memory.tmx")]
    elif format == "header":
        names = [["en", "text_de", "French"]]
        files = [table(tmp_path / "a.tsv", [*names, *map(list, zip(*SENTENCES.values(), strict=True))])]
    else:
        files = [table(tmp_path / "a.tsv", rows_with_languages())]
    found = corpora_by_direction(files)
    assert {(source.src_lang, source.tgt_lang) for source in found} == ALL
    for source in found:
        assert source.src_lang is not None and source.tgt_lang is not None
        read = [(pair.src, pair.tgt) for pair in read_pairs(source, source.src_lang, source.tgt_lang)]
        assert read == list(zip(SENTENCES[source.src_lang], SENTENCES[source.tgt_lang], strict=True))
    chosen = corpora_by_direction(files, "de-en,en-fr")
    assert [(source.src_lang, source.tgt_lang) for source in chosen] == [("de", "en"), ("en", "fr")]


def test_a_directory_tells_its_parts_by_their_names(tmp_path: Path) -> None:
    for stem in ("train", "news", "dev", "test_2016"):
        write_languages(tmp_path, stem)
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    found = {
        part: sorted({Path(file).stem for file in files}) for part, files in corpora_in(tmp_path).items()
    }
    assert found == {"train": ["news", "train"], "valid": ["dev"], "test": ["test_2016"]}
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no corpus in it"):
        corpora_in(tmp_path / "empty")


def prepared_of(tmp_path: Path, **fields: object) -> Prepared:
    plain = languages_config(write_languages(tmp_path / "text"))
    plain["data"] |= fields
    config = resolve_config(plain)
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=tmp_path / "cache")


@pytest.mark.parametrize("pieces", ["target", "both"])
def test_every_source_begins_with_the_pieces_of_its_direction(tmp_path: Path, pieces: str) -> None:
    prepared = prepared_of(tmp_path, language_pieces=pieces)
    store, tokenizer = prepared.train, prepared.src_tokenizer
    for (src, tgt), corpus in zip(TRAINED, store.corpora, strict=True):
        expected = [f"<to:{tgt}>", f"<from:{src}>"][: 2 if pieces == "both" else 1]
        for number in range(corpus.start, corpus.end):
            ids = store.src(number).tolist()
            opening = tokenizer.opening_of(ids)
            assert tokenizer.pieces(opening) == expected
            assert tokenizer.decode(ids) in SENTENCES[src]
            assert tokenizer.opened_with(opening).encode(tokenizer.decode(ids)) == ids
            assert tokenizer.decode(store.tgt(number).tolist()) in SENTENCES[tgt]
    ((cut, _),) = load_pairs_dropout(store, [3], tokenizer, tokenizer, rate=1.0, seed=1, epoch=1)
    assert tokenizer.opening_of(cut) == tokenizer.opening_of(store.src(3))
    assert len(cut) > len(store.src(3))


def test_a_held_out_sentence_is_seen_on_no_side_of_any_direction(tmp_path: Path) -> None:
    prepared = prepared_of(tmp_path)
    tokenizer = prepared.src_tokenizer

    def sentences(store: object) -> list[set[str]]:
        pairs = range(len(store))  # type: ignore[arg-type]
        return [{tokenizer.decode(side(n).tolist()) for n in pairs} for side in (store.src, store.tgt)]  # type: ignore[attr-defined]

    trained, held_out = sentences(prepared.train), sentences(prepared.valid)
    assert not (trained[0] | trained[1]) & (held_out[0] | held_out[1])
    assert [corpus.end - corpus.start for corpus in prepared.valid.corpora] == [4] * len(TRAINED)


def test_small_languages_are_repeated_for_the_vocabulary(tmp_path: Path) -> None:
    files = write_languages(tmp_path)
    small = Path(files[2])
    small.write_text("\n".join(SENTENCES["fr"][:6]) + "\n", encoding="utf-8")
    few = tmp_path / "few.en"
    few.write_text("\n".join(SENTENCES["en"][:6]) + "\n", encoding="utf-8")
    train = (
        SourceConfig((files[0], files[1]), src_lang="en", tgt_lang="de"),
        SourceConfig((str(few), files[2]), src_lang="en", tgt_lang="fr"),
    )
    shares = {}
    for temperature in (1.0, 5.0, 100.0):
        data = DataConfig(train, temperature=temperature)
        scratch = tmp_path / str(temperature)
        scratch.mkdir()
        texts = list(
            balanced_texts(data, scan(data, scratch, lambda *_: None), lambda *_: None, ("src", "tgt"))
        )
        shares[temperature] = sum(text in SENTENCES["fr"] for text in texts)
        assert sum(text in SENTENCES["de"] for text in texts) == 48
    assert shares[1.0] == 6 < shares[5.0] < shares[100.0]


def test_a_direction_is_mixed_as_one_however_many_corpora_it_has() -> None:
    corpora = [CorpusRange(0, 900), CorpusRange(900, 1000), CorpusRange(1000, 1100)]
    draws = [corpus.draws for corpus in tempered(corpora, 1e9, [0, 0, 1])]
    assert draws == [495, 55, 550]
    assert [corpus.draws for corpus in tempered(corpora, 1e9)] == [367, 367, 367]


def test_runs_of_one_direction_are_written_as_before() -> None:
    assert list(to_dict(SourceConfig(("a", "b")))) == [
        *("files", "format", "weight", "src", "tgt", "alignment"),
    ]
    assert "language_pieces" not in to_dict(DataConfig((SourceConfig(("a", "b")),)))
    assert DataConfig((SourceConfig(("a", "b")),)).directions is None


def test_a_person_chooses_a_direction() -> None:
    known = Directions(TRAINED)
    assert known.zero_shot == (("de", "fr"), ("fr", "de"))
    assert known.chosen("de", None) == ("en", "de")
    assert known.chosen("en", None) == ("und", "en")  # the model need not know
    assert known.chosen("EN", "fr") == ("fr", "en")
    assert known.chosen("fr", "de", zero_shot=True) == ("de", "fr")
    for to, source, told in (
        (None, None, "--to: name the target language; it translates en-de, en-fr, de-en, fr-en"),
        ("it", None, "--to it: this model does not know it"),
        ("en", "it", "--from it: this model does not know it"),
        ("fr", "de", "de-fr: no pairs of this direction were trained; --zero-shot translates anyway"),
        ("en", "en", "en-en: this model has no such direction"),
    ):
        with pytest.raises(UserError, match=told):
            known.chosen(to, source)
    with pytest.raises(
        UserError, match="--from: several languages are translated into en; give one of de, fr"
    ):
        Directions(TRAINED, "both").chosen("en", None)
    with pytest.raises(UserError, match="--directions de-fr: no corpus has it; there are en-de"):
        parse_directions("de-fr", [("en", "de")])


def test_what_is_wrong_is_told_in_one_sentence(tmp_path: Path) -> None:
    files = write_languages(tmp_path)
    alone = tmp_path / "alone.de"
    alone.write_text("Hallo\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"alone\.de: there is no alone in another language"):
        corpora_by_direction([*files, str(alone)])
    rows = rows_with_languages()
    swapped = [rows[0], *([row[2], row[1], row[0], row[3]] for row in rows[1:])]
    with pytest.raises(UserError, match=r"a\.tsv: said to be in 'de', but it reads like 'en'"):
        corpora_by_direction([table(tmp_path / "a.tsv", swapped)])
    broken = [*rows[:3], ["", *rows[3][1:]]]
    with pytest.raises(
        UserError, match=r"b\.tsv:4: expected the code of a language in the column 'src_lang'"
    ):
        corpora_by_direction([table(tmp_path / "b.tsv", broken)])
    named = SourceConfig((table(tmp_path / "c.tsv", rows),), src_lang="en", tgt_lang="cs")
    with pytest.raises(UserError, match=r"c\.tsv: no row has the languages 'en' and 'cs'"):
        list(read_pairs(named, "en", "cs"))
    with pytest.raises(UserError, match="name both languages of a corpus"):
        SourceConfig(("a", "b"), src_lang="en")
    pair = SourceConfig(("a", "b"), src_lang="en", tgt_lang="de")
    with pytest.raises(UserError, match="either all corpora name their languages, or none does"):
        DataConfig((pair, SourceConfig(("a", "b"))))
    with pytest.raises(UserError, match=r"valid\[0\].src_lang: de-en is not learnt; there is en-de"):
        DataConfig((pair,), valid=(SourceConfig(("b", "a"), src_lang="de", tgt_lang="en"),))
    plain = languages_config(files)
    plain["objective"] = {"name": "bidirectional"}
    with pytest.raises(UserError, match=r"objective\.name"):
        resolve_config(plain)


@pytest.mark.parametrize("trained", [(), (("en",),), (("en", "de"), ("en", "fr", "de"))])
def test_directions_are_pairs_of_languages(trained: Any) -> None:
    with pytest.raises(UserError, match="expected directions, each a source and a target language"):
        Directions(trained)
