import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from data.conftest import Decoded, MakePairs, WriteCorpus
from data.damage import reseal
from dragoman.data.corpus import CleanConfig, DataConfig, Prepared, SourceConfig, overlap, prepare
from dragoman.errors import UserError
from dragoman.text.tokenizer import TokenizerConfig

CHARS = TokenizerConfig(kind="char", vocab_size=400)
BPE = TokenizerConfig(vocab_size=500)


def test_cache_is_hit_by_content_and_missed_on_any_change(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    cache = tmp_path / "cache"
    source = write_corpus(make_pairs(120))
    data = DataConfig((source,), valid_size=5)
    stages: list[str] = []

    def run(data: DataConfig = data, tokenizer: TokenizerConfig = CHARS, seed: int = 1) -> tuple[str, bool]:
        stages.clear()
        prepared = prepare(
            data, tokenizer, seed=seed, cache=cache, progress=lambda stage, *_: stages.append(stage)
        )
        assert prepared.directory == cache / prepared.fingerprint
        return prepared.fingerprint, "encode" in stages

    first, made = run()
    assert made
    assert run() == (first, False)
    for file in source.files:  # other names and dates, same contents
        Path(file).rename(file + ".moved.en")
    moved = SourceConfig(tuple(file + ".moved.en" for file in source.files), format="plain")
    assert run(replace(data, train=(moved,))) == (first, False)

    data = replace(data, train=(moved,))
    others = [
        run(data, seed=2),
        run(data, replace(CHARS, vocab_size=401)),
        run(replace(data, valid_size=6)),
        run(replace(data, clean=CleanConfig(max_length=99))),
        run(replace(data, train=(replace(moved, weight=2.0),))),
    ]
    path = Path(moved.files[0])
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    others.append(run(data))
    assert len({first, *(name for name, _ in others)}) == 7
    assert all(made for _, made in others)
    assert {path.name for path in cache.iterdir()} == {first, *(name for name, _ in others)}


def test_a_damaged_cache_entry_is_made_again(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs, decoded: Decoded
) -> None:
    data = DataConfig((write_corpus(make_pairs(60)),), valid_size=5)
    prepared = prepare(data, CHARS, seed=1, cache=tmp_path / "cache")
    expected = decoded(prepared)
    ids = prepared.directory / "train.src.ids"
    whole = ids.read_bytes()
    ids.write_bytes(whole[:-2])
    with pytest.raises(
        UserError, match=r"train\.src\.ids: damaged: expected [\d,]+ bytes, the file has [\d,]+ bytes; give"
    ):
        Prepared.open(prepared.directory)
    assert decoded(prepare(data, CHARS, seed=1, cache=tmp_path / "cache")) == expected
    (prepared.directory / "seen.src").unlink()
    with pytest.raises(UserError, match=r"seen\.src: .* the file is missing"):
        Prepared.open(prepared.directory)
    with pytest.raises(UserError, match=r"seen\.src: .* the file is missing"):
        overlap(prepared.directory, ["x"], "src")
    with pytest.raises(UserError, match=r"no prepared corpus here \(meta\.json is missing\)"):
        overlap(tmp_path, ["x"], "src")


def test_open_refuses_what_is_not_a_prepared_corpus(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    with pytest.raises(UserError, match=r"no prepared corpus here \(meta\.json is missing\)"):
        Prepared.open(tmp_path)
    data = DataConfig((write_corpus(make_pairs(60)),), valid_size=5)
    prepared = prepare(data, CHARS, seed=1, cache=tmp_path / "cache")
    meta = prepared.directory / "meta.json"
    whole = meta.read_bytes()
    for change, message in (
        ({"version": 99}, "prepared in format 99"),
        ({"tokenizers": ["0" * 64]}, "not the tokenizer of this corpus"),
        ({"extra": 1}, "extra: unknown field"),
        ({"train": json.loads(whole)["train"] | {"pairs": 3}}, "what is said of 'train' contradicts itself"),
    ):
        reseal(prepared.directory, lambda plain, change=change: plain.update(change))
        with pytest.raises(UserError, match=message):
            Prepared.open(prepared.directory)
        meta.write_bytes(whole)
    for text in ("{", "[]", "1", "", "[" * 100_000, whole.decode().replace("1", "2", 1)):
        meta.write_text(text)
        with pytest.raises(
            UserError, match=r"meta\.json: damaged: it is not what was written; give the command"
        ):
            Prepared.open(prepared.directory)
    with meta.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match=r"meta\.json: damaged"):
        Prepared.open(prepared.directory)


def test_a_run_holds_its_data(
    tmp_path: Path,
    write_corpus: WriteCorpus,
    make_pairs: MakePairs,
    decoded: Decoded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import shutil

    data = DataConfig((write_corpus(make_pairs(80)),), valid_size=5)
    prepared = prepare(data, replace(BPE, joint=False), seed=1, cache=tmp_path / "cache")
    linked = prepared.link_into(tmp_path / "run" / "data")
    ids = "train.src.ids"
    assert (linked.directory / ids).stat().st_ino == (prepared.directory / ids).stat().st_ino
    assert decoded(prepared.link_into(tmp_path / "run" / "data")) == decoded(prepared)  # again is fine

    def no_links(*_: object) -> None:
        raise OSError("not on this file system")

    monkeypatch.setattr(os, "link", no_links)
    copied = prepared.link_into(tmp_path / "copy")
    other = prepare(replace(data, valid_size=6), BPE, seed=1, cache=tmp_path / "cache")
    with pytest.raises(UserError, match="holds another corpus already"):
        other.link_into(tmp_path / "copy")
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(UserError, match=r"data: cannot hold the prepared data \("):
        prepared.link_into(tmp_path / "file" / "data")
    expected = decoded(prepared)
    shutil.rmtree(tmp_path / "cache")
    assert decoded(linked) == decoded(copied) == expected
    assert decoded(Prepared.open(linked.directory), "valid") == decoded(copied, "valid")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["data"]


def test_bad_input_leaves_nothing_behind(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    source = write_corpus(make_pairs(50))
    path = Path(source.files[1])
    path.write_bytes(path.read_bytes() + b"one more\n")
    with pytest.raises(UserError, match=r"a\.en has 50 lines but .*a\.de has 51"):
        prepare(DataConfig((source,)), CHARS, seed=1, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    with pytest.raises(UserError, match="there is no such file"):
        prepare(DataConfig((SourceConfig(("no.en", "no.de")),)), CHARS, seed=1, cache=tmp_path / "cache")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="pipe: not an ordinary file; it has to be read more than once"):
        prepare(DataConfig((SourceConfig((str(pipe), str(pipe))),)), CHARS, seed=1, cache=tmp_path / "cache")


def test_a_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    source = write_corpus(make_pairs(100))
    path = Path(source.files[0])

    def progress(stage: str, *_: object) -> None:
        if stage == "encode":
            path.write_bytes(path.read_bytes().replace(b"a", b"bb"))

    with pytest.raises(UserError, match=r"a\.en: the file was changed while it was being read"):
        prepare(DataConfig((source,)), CHARS, seed=1, cache=tmp_path / "cache", progress=progress)
    assert list((tmp_path / "cache").iterdir()) == []


def test_cache_that_cannot_be_written(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(UserError, match="cannot write the prepared corpus"):
        prepare(DataConfig((write_corpus(make_pairs(20)),)), CHARS, seed=1, cache=tmp_path / "file")


_MEASURE = """
import resource, sys
from pathlib import Path
from dragoman.data import scan
from dragoman.data.corpus import *
from dragoman.text.tokenizer import TokenizerConfig
scan.SAMPLE_CHARACTERS = 200_000
data = DataConfig((SourceConfig(tuple(sys.argv[2:])),))
prepared = prepare(data, TokenizerConfig(vocab_size=600), seed=1, cache=Path(sys.argv[1]))
print(len(prepared.train), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_peak_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """Five times the corpus, 20 MB more of it, and a peak that is the same but for noise."""
    peaks = []
    for count in (15_000, 75_000):
        files = [tmp_path / f"{count}.{suffix}" for suffix in ("en", "de")]
        for file in files:
            with file.open("w", encoding="utf-8", newline="\n") as out:
                for n in range(count):
                    out.write(f"{n} is sentence {n * 7919 % 104729} of a corpus that is made of numbers\n")
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, str(tmp_path / "cache"), *map(str, files)],
            check=True,
            capture_output=True,
            text=True,
        )
        kept, peak = map(int, done.stdout.split())
        assert kept == count - 1000
        peaks.append(peak / 1024)
    assert peaks[1] - peaks[0] < 25
