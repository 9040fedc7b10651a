"""Whole corpora: what a translator says line by line, the same bytes after an interruption at any chunk."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.runs import corpus_job as module
from dragoman.runs.corpus_job import CorpusTask, translate_corpus
from killing import Killed
from odd_inputs import tiny_translator

TEXTS = ["a b c", "", "b", "  ", "c c a", "a" * 300, "b a", "c", "a c b a", "a\u2028b", "cc"]
SEARCH = SearchConfig(beam=2, max_ratio=1.0, max_extra=3)
TASK = CorpusTask(SEARCH, "text", max_tokens=50, prefix="<BT> ")


@pytest.fixture(scope="module")
def translator() -> Translator:
    return tiny_translator()


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES_AT_ONCE", 3)


def expected(translator: Translator) -> bytes:
    said = translator.translate([text if len(text) < 100 else "" for text in TEXTS], search=SEARCH)
    lines = [text.replace("\n", " ").replace("\0", " ") for text in said]
    return "".join(f"<BT> {line}\n" if line else "\n" for line in lines).encode()


def until(count: int) -> Iterator[str]:
    yield from TEXTS[:count]
    raise Killed


def test_every_line_has_its_translation(translator: Translator, tmp_path: Path) -> None:
    out, seen = tmp_path / "out", []
    done = translate_corpus(
        translator, TEXTS, out, TASK, progress=lambda now, of: seen.append((now, of)), total=len(TEXTS)
    )
    assert out.read_bytes() == expected(translator)
    assert (done.lines, done.bytes, done.too_long) == (len(TEXTS), out.stat().st_size, 1)
    assert done.finished
    assert seen[-1] == (len(TEXTS), len(TEXTS)) and seen == sorted(seen)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.json"]
    assert translate_corpus(translator, until(0), out, TASK) == done  # nothing is read or translated again


@pytest.mark.parametrize("count", [0, 2, 3, 7, 11])
def test_an_interrupted_file_goes_on_and_has_the_same_bytes(
    count: int, translator: Translator, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(Killed):
        translate_corpus(translator, until(count), out, TASK)
    assert not out.exists()
    whole = count // 3 * 3
    assert json.loads((tmp_path / "out.json").read_bytes())["done"]["lines"] == whole
    with (tmp_path / "out.part").open("ab") as file:
        file.write(b"half a li")  # written, but not in the journal yet
    asked: list[str] = []
    hypotheses = translator.hypotheses

    def watched(texts: list[str], **options: object) -> object:
        asked.extend(texts)
        return hypotheses(texts, **options)  # type: ignore[arg-type]

    translator.hypotheses = watched  # type: ignore[assignment, method-assign]
    try:
        done = translate_corpus(translator, TEXTS, out, TASK)
    finally:
        del translator.hypotheses  # type: ignore[method-assign]
    assert asked == [text for text in TEXTS[whole:] if len(text) < 100]
    assert out.read_bytes() == expected(translator)
    assert done.lines == len(TEXTS) and done.finished


def test_a_kill_between_the_rename_and_the_journal(translator: Translator, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = translate_corpus(translator, TEXTS, out, TASK)
    journal = tmp_path / "out.json"
    data = json.loads(journal.read_bytes())
    del data["seal"]  # as an earlier version wrote it
    journal.write_text(json.dumps(data | {"done": data["done"] | {"finished": False}}), encoding="utf-8")
    assert translate_corpus(translator, until(0), out, TASK) == done
    assert json.loads(journal.read_bytes())["done"]["finished"]


@pytest.mark.parametrize("finished", [False, True])
def test_lines_that_have_changed_are_refused(translator: Translator, tmp_path: Path, finished: bool) -> None:
    out = tmp_path / "out"
    if finished:
        translate_corpus(translator, TEXTS, out, TASK)
    else:
        with pytest.raises(Killed):
            translate_corpus(translator, until(4), out, TASK)
    file = out if finished else tmp_path / "out.part"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=rf"{file.name}: changed: its SHA-256"):
        translate_corpus(translator, TEXTS, out, TASK)


def test_a_journal_that_has_changed_is_refused(translator: Translator, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        translate_corpus(translator, until(4), tmp_path / "out", TASK)
    journal = tmp_path / "out.json"
    data = json.loads(journal.read_bytes())
    data["done"]["lines"] += 1
    journal.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UserError, match=r"out\.json: damaged"):
        translate_corpus(translator, TEXTS, tmp_path / "out", TASK)


def test_what_was_begun_otherwise_is_refused(translator: Translator, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Killed):
        translate_corpus(translator, until(4), out, TASK)
    for task, message in (
        (CorpusTask(replace(SEARCH, beam=3), "text", 50, "<BT> "), r"begun with search\.beam 2, not 3"),
        (CorpusTask(SEARCH, "other", 50, "<BT> "), "begun with text text, not other"),
        (CorpusTask(SEARCH, "text", 50), "begun with prefix <BT> , not "),
    ):
        with pytest.raises(UserError, match=message):
            translate_corpus(translator, TEXTS, out, task)
    weight = next(translator.model.parameters())
    before = weight.data.clone()
    weight.data.add_(1.0)
    with pytest.raises(UserError, match="begun with models"):
        translate_corpus(translator, TEXTS, out, TASK)
    weight.data.copy_(before)
    (tmp_path / "out.part").write_bytes(b"")
    with pytest.raises(UserError, match=r"out\.part: shorter than out\.json says"):
        translate_corpus(translator, TEXTS, out, TASK)
    (tmp_path / "out.json").write_bytes(b"{")
    with pytest.raises(UserError, match=r"out\.json: damaged"):
        translate_corpus(translator, TEXTS, out, TASK)


def test_files_that_are_there_are_not_overwritten(translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious\n", encoding="utf-8")
    with pytest.raises(UserError, match="there is a file already"):
        translate_corpus(translator, TEXTS, tmp_path / "mine", TASK)
    with pytest.raises(UserError, match="cannot be written"):
        translate_corpus(translator, TEXTS, tmp_path / "no" / "such", TASK)
