import gzip
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from data.conftest import MakePairs, WriteCorpus
from dragoman.cli.corpus import Reason, corpus
from dragoman.cli.corpus_tables import share
from dragoman.data import report as report_module
from dragoman.data.config import CleanConfig, DataConfig, SourceConfig
from dragoman.data.corpus import prepare
from dragoman.data.drop_reasons import REASONS, is_copy, is_empty
from dragoman.data.report import OVERLAP, analyse, histogram
from dragoman.data.scan import scan
from dragoman.data.text_hashes import normalise
from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig


@pytest.fixture
def run() -> Callable[..., str]:
    """Run the command with these arguments; return what it prints."""
    app = typer.Typer()
    app.command()(corpus)

    def invoke(*arguments: str) -> str:
        result = CliRunner().invoke(app, list(arguments))
        if result.exception is not None:
            raise result.exception
        return result.stdout

    return invoke


def test_counts_against_plain_python(
    write_corpus: WriteCorpus, make_pairs: MakePairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_module, "_CHUNK", 64)
    pairs = [*make_pairs(700), ("a " * 400, "b"), ("c", "d " * 90)]
    source = write_corpus(pairs)
    tokenizer = Tokenizer.train((text for pair in pairs for text in pair), TokenizerConfig(vocab_size=500))
    lengths = np.array([[len(tokenizer.encode(text)) for text in pair] for pair in pairs])
    for clean in (
        CleanConfig(),
        CleanConfig(max_length=50, max_ratio=2, drop_duplicates=False, drop_copies=True),
    ):
        report = analyse([source], clean=clean, tokenizers=(tokenizer, tokenizer))
        longer, shorter = lengths.max(axis=1), lengths.min(axis=1)
        empty = np.array([is_empty(*pair) for pair in pairs])
        expected = {
            "empty": empty,
            "copy": ~empty & np.array([is_copy(*pair) for pair in pairs]),
            "duplicate": ~empty & np.array([pair in pairs[:index] for index, pair in enumerate(pairs)]),
            "too_long": ~empty & (longer > clean.max_length),
        }
        odd = (longer > 12) & (longer > clean.max_ratio * np.maximum(shorter, 1))
        expected["ratio"] = ~empty & odd & ~expected["too_long"]
        assert {reason: report.found[reason] for reason in expected} == {
            reason: int(own.sum()) for reason, own in expected.items()
        }
        assert report.pairs == len(pairs)
        assert report.corpora == ((" ".join(source.files), len(pairs)),)
        assert report.src.words == sum(len(src.split()) for src, _ in pairs)
        assert report.tgt.characters == sum(len(tgt) for _, tgt in pairs)
        assert report.src.tokens == lengths[:, 0].sum()
        assert report.src.longest == lengths[:, 0].max()
        assert report.tgt.median == np.percentile(lengths[:, 1], 50, method="inverted_cdf")
        assert report.tgt.percentile_99 == np.percentile(lengths[:, 1], 99, method="inverted_cdf")
        for side, own in ((report.src, lengths[:, 0]), (report.tgt, lengths[:, 1])):
            for low, high, count in side.histogram:
                assert count == ((own >= low) & (own <= (high if high is not None else own.max()))).sum()
            assert sum(count for _, _, count in side.histogram) == len(pairs)


@pytest.mark.parametrize(
    "clean", [CleanConfig(), CleanConfig(max_length=25, max_ratio=1.5, drop_copies=True)]
)
def test_it_says_what_training_drops(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs, clean: CleanConfig
) -> None:
    source = write_corpus(make_pairs(500))
    data = DataConfig((source,), valid_size=0, clean=clean)
    prepared = prepare(data, TokenizerConfig(vocab_size=600), seed=1, cache=tmp_path / "cache")
    report = analyse([source], clean=clean, tokenizers=(prepared.src_tokenizer, prepared.tgt_tokenizer))
    assert {reason: count for reason, count in report.dropped.items() if count} == prepared.dropped
    assert report.kept == len(prepared.train)


def naive_overlap(
    train: list[tuple[str, str]], test: list[tuple[str, str]], change: Callable[[str], str]
) -> list[int]:
    filled = [(change(src), change(tgt)) for src, tgt in train if not is_empty(src, tgt)]
    sources, targets = {src for src, _ in filled}, {tgt for _, tgt in filled}
    changed = [(change(src), change(tgt)) for src, tgt in test]
    return [
        sum(src in sources for src, _ in changed),
        sum(tgt in targets for _, tgt in changed),
        sum(pair in set(filled) for pair in changed),
    ]


def test_overlap_against_a_naive_computation(
    write_corpus: WriteCorpus, make_pairs: MakePairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_module, "_CHUNK", 100)
    rng = random.Random(1)
    train = make_pairs(600)
    test = make_pairs(80, seed=9)
    for src, tgt in rng.sample(train, 60):
        test.append(
            rng.choice(
                [(src, tgt), (src, "other"), ("other", tgt), (src.upper() + "?", f" {tgt}…"), (tgt, src)]
            )
        )
    sources = [write_corpus(train), write_corpus(test, "test")]
    shown: list[int] = []
    report = analyse(
        sources[:1],
        test=sources[1:],
        lines=OVERLAP,
        show_line=lambda origin, _: shown.append(int(origin.rpartition(":")[2])),
    ).overlap
    assert report is not None
    assert report.pairs == 140
    exact, normalised = report.exact, report.normalised
    assert [exact.src, exact.tgt, exact.pair] == naive_overlap(train, test, str)
    assert [normalised.src, normalised.tgt, normalised.pair] == naive_overlap(train, test, normalise)
    assert exact.src > 10
    assert normalised.src > exact.src
    tested = {normalise(src) for src, _ in test}
    assert shown == [
        line
        for line, pair in enumerate(train, start=1)
        if not is_empty(*pair) and normalise(pair[0]) in tested
    ]


def test_histogram_steps_are_round_and_complete() -> None:
    counts = np.zeros(3000, dtype=np.int64)
    counts[[0, 1, 7, 95, 100, 101, 2500]] = [4, 1, 2, 3, 5, 6, 7]
    rows = histogram(counts, high=95)
    assert rows[0] == (0, 0, 4)
    assert rows[1] == (1, 10, 3)
    assert rows[-2:] == ((91, 100, 8), (101, None, 13))
    assert histogram(np.array([3]), high=0) == ((0, 0, 3), (1, 1, 0))


def test_command_prints_plain_text_in_a_pipe(
    run: Callable[..., str], write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    pairs = make_pairs(300)
    files = write_corpus(pairs).files
    test = write_corpus(pairs[:30], "test").files
    printed = run(*files, "--test", test[0], "--test", test[1])
    empty = sum(is_empty(*pair) for pair in pairs)
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert f"{files[0]} {files[1]} 300" in lines
    assert (
        f"words {sum(len(s.split()) for s, _ in pairs):,} {sum(len(t.split()) for _, t in pairs):,}" in lines
    )
    assert any(
        re.fullmatch(rf"empty {empty} \d+\.\d\d% {empty} one side has no text", line) for line in lines
    )
    assert any(line.startswith("both, as a pair ") for line in lines)
    assert "Test pairs found in the corpus (of 30)" in lines
    assert any(line.startswith("tokens en") for line in lines)  # languages are told by the suffixes
    assert "\x1b" not in printed
    assert "│" not in printed
    assert all(line == line.rstrip() for line in printed.splitlines())


def test_command_prints_json(
    run: Callable[..., str], write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    pairs = make_pairs(100)
    files = write_corpus(pairs, zipped=True).files
    printed = json.loads(run(*files, "--json", "--max-length", "20", "--keep-duplicates", "--drop-copies"))
    assert printed["pairs"] == 100
    assert printed["found"]["empty"] == sum(is_empty(*pair) for pair in pairs)
    assert printed["dropped"]["duplicate"] == 0 < printed["found"]["duplicate"]
    assert printed["dropped"]["copy"] > 0
    assert printed["dropped"]["too_long"] > 0
    assert printed["overlap"] is None
    assert printed["src"]["language"] == "en"


def test_command_lists_lines(run: Callable[..., str], write_corpus: WriteCorpus) -> None:
    pairs = [
        ("a b", "c"),
        ("a b", "c"),
        ("x\u2028y\\", "\tz"),
        ("", "q"),
        ("x\u2028y\\", "\tz"),
        ("same", "same"),
    ]
    files = write_corpus(pairs).files
    assert run(*files, "--lines", "duplicate").split("\n") == [
        f"{files[0]}:2\ta b\tc",
        f"{files[0]}:5\tx\u2028y\\\\\t\\tz",
        "",
    ]
    assert run(*files, "--lines", "empty") == f"{files[0]}:4\t\tq\n"
    assert run(*files, "--lines", "ratio") == ""
    printed = json.loads(run(*files, "--lines", "copy", "--json"))
    assert printed == {"origin": f"{files[0]}:6", "src": "same", "tgt": "same"}
    test = write_corpus([("A B!", "")], "test").files
    assert len(run(*files, "--lines", "overlap", "--test", test[0], "--test", test[1]).splitlines()) == 2
    with pytest.raises(UserError, match="--lines overlap: name the test set with --test"):
        run(*files, "--lines", "overlap")


def test_command_reads_tables_and_tokenizers(
    tmp_path: Path, run: Callable[..., str], make_pairs: MakePairs
) -> None:
    pairs = make_pairs(50, faults=False)
    table = tmp_path / "t.csv"
    table.write_text(
        "id,a,b\n" + "".join(f'{n},"{s}","{t}"\n' for n, (s, t) in enumerate(pairs)), encoding="utf-8"
    )
    tokenizer = Tokenizer.train([], TokenizerConfig(kind="byte"))
    tokenizer.save(tmp_path / "tokenizer.json")
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        printed = json.loads(run(str(table), "--src", "a", "--tgt", "b", "--json", "--tokenizer", str(path)))
        assert printed["pairs"] == 50
        assert printed["src"]["tokens"] == sum(len(src.encode()) for src, _ in pairs)


def test_command_survives_a_corpus_of_nothing(run: Callable[..., str], write_corpus: WriteCorpus) -> None:
    printed = run(*write_corpus([("", ""), ("", "")]).files)
    assert "kept" in printed
    with pytest.raises(UserError, match="there is no such file"):
        run("no.en", "no.de")


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (0, 0, ""),
        (0, 9, ""),
        (1, 3, "33.33%"),
        (9, 9, "100.00%"),
        (1, 10**6, "<0.01%"),
        (10**6 - 1, 10**6, ">99.99%"),
    ],
)
def test_shares(part: int, whole: int, expected: str) -> None:
    assert share(part, whole) == expected


def test_reasons_of_the_command_are_those_of_cleaning() -> None:
    assert [reason.value for reason in Reason] == [*REASONS, OVERLAP]


def test_importing_the_command_is_light() -> None:
    code = (
        "import sys, dragoman.cli.corpus;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'tokenizers', 'rich.table', 'yaml')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("zipped", [False, True])
def test_reading_tells_how_much_is_to_come(tmp_path: Path, zipped: bool) -> None:
    """An estimate from the bytes that are read, close to the truth and never below what is done."""
    pairs, path = 60_000, tmp_path / "a.tsv"
    chance = random.Random(1)
    text = "".join(f"{chance.random()} some words\t{chance.random()} andere Worte\n" for _ in range(pairs))
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    told: list[tuple[int, int | None]] = []
    with tempfile.TemporaryDirectory() as scratch:
        data = DataConfig((SourceConfig((str(path),)),))
        scan(data, Path(scratch), lambda _stage, done, total: told.append((done, total)))
    assert told[-1] == (pairs, pairs) and len(told) > 3
    for done, total in told:
        assert total is not None and done <= total and 0.3 * pairs < total < 1.7 * pairs
