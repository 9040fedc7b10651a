"""Alignment files: what is refused, and that links stay with their pairs on the way into a store."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.config import to_dict
from dragoman.data.alignment.links import parse_links, pharaoh
from dragoman.data.config import CleanConfig, DataConfig, SourceConfig
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.fingerprint import fingerprint
from dragoman.data.scan import read_corpus
from dragoman.errors import UserError
from dragoman.text.tokenizer import TokenizerConfig

WriteCorpus = Callable[..., SourceConfig]
TOKENIZER = TokenizerConfig(vocab_size=330)


def aligned(source: SourceConfig, path: Path, lines: list[str]) -> SourceConfig:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return dataclasses.replace(source, alignment=str(path))


def test_lines_of_links() -> None:
    assert list(parse_links(" 0-0 10-2 ", "x:1")) == [(0, "-", 0), (10, "-", 2)]
    assert list(parse_links("1p2 3P1", "x:1", first=1, marks="-pP")) == [(0, "p", 1), (2, "P", 0)]
    assert pharaoh([(0, 0), (3, 1)]) == "0-0 3-1"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", "1-2"], r"a\.align:2: the link 1-2 .* 2 source and 2 target words"),
        (["0-0", "2-0"], r"a\.align:2: the link 2-0 "),
        (["0-0", "0_1"], r"a\.align:2: expected links such as 1-2, found '0_1'"),
        (["0p0", ""], r"a\.align:1: expected links such as 1-2, found '0p0'"),
        (["-1-0", ""], r"a\.align:1: expected .* '-1-0'"),
        (["99999999999999999999-0", ""], r"a\.align:1: expected"),
        (["0-0"], r"a\.align has 1 lines but .*a\.en has 2 pairs"),
        (["0-0", "0-0", ""], r"a\.align has 3 lines but .*a\.en has 2 pairs"),
    ],
)
def test_a_bad_file_is_named(
    write_corpus: WriteCorpus, tmp_path: Path, lines: list[str], message: str
) -> None:
    source = write_corpus([("a b c", "x"), ("a b", "x y")])
    source = aligned(source, tmp_path / "a.align", lines)
    with pytest.raises(UserError, match=message):
        list(read_corpus(DataConfig((source,)), source))
    with pytest.raises(UserError, match=message):
        prepare(DataConfig((source,)), TOKENIZER, seed=1, cache=tmp_path / "cache")


def test_a_missing_or_misplaced_file_is_named(write_corpus: WriteCorpus, tmp_path: Path) -> None:
    source = dataclasses.replace(write_corpus([("a", "b")]), alignment=str(tmp_path / "none.align"))
    with pytest.raises(UserError, match=r"none\.align: there is no such file"):
        prepare(DataConfig((source,)), TOKENIZER, seed=1, cache=tmp_path / "cache")
    with pytest.raises(UserError, match=r"valid\[0\]\.alignment: only training"):
        DataConfig((source,), valid=(source,))


def numbered(pair: tuple[str, str]) -> list[tuple[int, int]]:
    """Links that can be told from the text alone, so that it shows which pair they belong to."""
    src, tgt = len(pair[0].split()), len(pair[1].split())
    seed = sum(map(ord, pair[0] + pair[1]))
    return [] if not src or not tgt else sorted({(seed * k % src, seed * k * k % tgt) for k in range(4)})


def test_links_stay_with_their_pairs(
    write_corpus: WriteCorpus,
    make_pairs: Callable[..., list[tuple[str, str]]],
    decoded: Callable[..., list[tuple[str, str]]],
    tmp_path: Path,
) -> None:
    """Through empties, copies, duplicates, long pairs, the split, and a corpus that has no links."""
    first, second, third = make_pairs(300), make_pairs(40, seed=7), make_pairs(50, seed=8)
    sources = (
        aligned(write_corpus(first), tmp_path / "a.align", [pharaoh(numbered(pair)) for pair in first]),
        write_corpus(second, name="b"),
        aligned(
            write_corpus(third, name="c"), tmp_path / "c.align", [pharaoh(numbered(pair)) for pair in third]
        ),
    )
    clean = CleanConfig(max_length=60, drop_copies=True)
    data = DataConfig(sources, valid_size=20, clean=clean)
    prepared = prepare(data, TOKENIZER, seed=3, cache=tmp_path / "cache")
    assert prepared.dropped.keys() >= {"empty", "copy", "duplicate", "too_long"}
    store = prepared.train
    assert store.linked and not prepared.valid.linked
    for number, pair in enumerate(decoded(prepared)):
        expected = [] if "b.en" in store.origin(number) else numbered(pair)
        assert [tuple(link) for link in store.links(number).tolist()] == expected
    again = Prepared.open(prepared.directory)
    assert again.train.links(5).tolist() == store.links(5).tolist()


def test_without_links_nothing_is_written(
    write_corpus: WriteCorpus, make_pairs: Callable[..., list[tuple[str, str]]], tmp_path: Path
) -> None:
    source = write_corpus(pairs := make_pairs(60, faults=False))
    data = DataConfig((source,), valid_size=5)
    prepared = prepare(data, TOKENIZER, seed=1, cache=tmp_path / "cache")
    assert not prepared.train.linked and not list(prepared.directory.glob("*.links.*"))
    linked = DataConfig((aligned(source, tmp_path / "a.align", ["0-0"] * len(pairs)),), valid_size=5)
    names = {fingerprint(each, TOKENIZER, 1, lambda *_: None)[0] for each in (data, linked)}
    assert prepared.fingerprint in names and len(names) == 2
    assert "alignment" in to_dict(source)
