"""`dragoman train memory.tmx` and `dragoman translate RUN guide.po`, as a person types them."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.conftest import OTHER, SETTINGS
from dragoman.cli.main import app
from dragoman.cli.texts import documents_among
from dragoman.data.documents import open_document
from dragoman.errors import UserError
from dragoman.text.spans import DEFAULT_KINDS, find

SMALL = {"model.num_layers": 1, "model.num_heads": 2, "model.ff_dim": 64}


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> Path:
    path = tmp_path_factory.mktemp("documents") / "memory.tmx"
    units = "".join(
        f'<tu><tuv xml:lang="en-GB"><seg>{src}</seg></tuv><tuv xml:lang="de-DE"><seg>{tgt}</seg></tuv></tu>\n'
        for src, tgt in pairs
    )
    text = f'<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en-GB"/><body>\n{units}</body></tmx>'
    path.write_text(text, encoding="utf-16")
    return path


@pytest.fixture(scope="module")
def run(memory: Path) -> Path:
    out = memory.parent / "run"
    fields = [f"{name}={value}" for name, value in (SETTINGS | OTHER | SMALL).items()]
    result = command("train", memory, "--out", out, "--quiet", *fields)
    assert result.exit_code == 0, result.output
    return out


def test_a_memory_is_a_corpus(memory: Path, pairs: list[tuple[str, str]]) -> None:
    result = command("corpus", memory)
    assert result.exit_code == 0, result.output
    assert re.search(rf"memory\.tmx +{len(pairs)}\n", result.stdout)
    assert re.search(r"^ +en +de$", result.stdout, re.MULTILINE)


PO = (
    'msgid "the red cat and a %s"\nmsgstr ""\n\n'
    '#, c-format\nmsgid "a <b>dog</b>.\\nthe old {x} hill"\nmsgstr ""\n'
)


def test_a_document_is_translated_in_place(run: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "guide.po", tmp_path / "out.po"
    source.write_text(PO, encoding="utf-8")
    result = command("translate", run, source, "--out", out)
    assert result.exit_code == 0, result.output
    assert "out.po: 2 units translated, 0 left as they were, 0 had a translation" in result.stderr
    written = out.read_text(encoding="utf-8")
    assert written.count("fuzzy") == 2
    assert re.sub(r'(?m)^msgstr (".*"\n?)+', 'msgstr ""\n', written.replace("#, fuzzy\n", "")) == PO.replace(
        "#, c-format", "#, fuzzy, c-format"
    )
    for line in (line for line in written.splitlines() if line.startswith("msgstr")):
        assert line
    spans = sorted(span.text for span in find(written, DEFAULT_KINDS))
    assert spans == sorted(["%s", "<b>", "</b>", "{x}"] * 2)
    again = command("translate", run, out, "--out", tmp_path / "again.po")
    assert "0 units translated, 0 left as they were, 2 had a translation" in again.stderr
    assert (tmp_path / "again.po").read_bytes() == out.read_bytes()


def test_languages_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "a.tmx", tmp_path / "b.tmx"
    source.write_text('<tmx><body><tu><tuv lang="en"><seg>the red cat</seg></tuv></tu></body></tmx>')
    assert command("translate", run, source, "-o", out).exit_code == 0
    assert '<tuv lang="de">' in out.read_text()
    assert [unit.state for unit in open_document(out, ("en", "de")).units] == ["done"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], r"name it with --out"),
        (["--out", "x.po", "--json", "--align"], r"--json, --align: cannot be used with a document"),
    ],
)
def test_what_does_not_fit_is_refused(run: Path, tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "a.po").write_text(PO)
    result = command("translate", run, tmp_path / "a.po", *options)
    assert result.exit_code != 0
    assert re.search(message, str(result.exception))


def test_a_sentence_with_a_suffix_is_a_text(run: Path) -> None:
    assert command("translate", run, "there is no such file.po").exit_code == 0


def test_several_documents_go_into_a_directory(run: Path, tmp_path: Path) -> None:
    for name in ("a.po", "b.html"):
        (tmp_path / name).write_text(PO if name == "a.po" else "<p>the red cat</p>\n")
    out = tmp_path / "out"
    out.mkdir()
    result = command("translate", run, tmp_path / "a.po", tmp_path / "b.html", "--out", out)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == ["a.po", "b.html"]
    assert (out / "b.html").read_text().startswith("<p>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["real.doc", "--out", "x.doc"], r"real.doc: such Word files are not supported; save it as DOCX"),
        (["gide.po", "--out", "x.po"], r"gide.po: there is no such file; did you mean 'guide.po'\?"),
        (["none.xyz", "--out", "none.de.xyz"], r"none.xyz: there is no such file"),
        (["sub/none.xyz"], r"sub/none.xyz: there is no such file; a text that looks like a file name can be"),
        (["a.en"], r"a.en: not a document .*use  --input a.en"),
        (["guide.po", "other.po", "--out", "x.po"], r"--out x.po: several documents .* into a directory"),
        (["guide.po", "guide.po", "--out", "."], r"--out \.: this would replace guide.po itself"),
        (["guide.po", "--out", "guide.po"], r"--out guide.po: this file is read as well"),
        (["guide.po", "a red cat", "--out", "x.po"], r"a document and a text \('a red cat'\)"),
        (["a red cat", "--out", "x.po"], r"--out x.po: sentences are written one a line"),
        (["--input", "pairs.tsv"], r"--input pairs.tsv: a line of this file is not a sentence; .* document"),
        (["--input", "pairs.csv.gz"], r"--input pairs.csv.gz: a line of this table is not a sentence"),
        (["--input", "real.doc"], r"real.doc: such Word files are not supported"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_file_is_never_translated_as_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """Each mistake is told before a run is opened, so there is none here."""
    monkeypatch.chdir(tmp_path)
    for name in ("real.doc", "guide.po", "other.po", "a.en", "pairs.tsv"):
        Path(name).write_text(PO)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = command("translate", "run", *arguments)
    assert isinstance(result.exception, UserError)
    assert re.search(message, str(result.exception)), result.exception
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "text", ["Hello.", "and/or", "see https://example.org/a.html", "https://example.org/a.html", "3.14"]
)
def test_what_is_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert documents_among([text], None) == []


def test_an_export_translates_documents_too(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    exported, source, out = tmp_path / "export", tmp_path / "a.html", tmp_path / "b.html"
    assert command("export", run, "--out", exported).exit_code == 0
    source.write_text("<p>the <b>red</b> cat {x}</p><hr>\n", encoding="utf-8")
    result = command("translate", exported, source, "--out", out)
    assert result.exit_code == 0, result.output
    written = out.read_text(encoding="utf-8")
    assert written.startswith("<p>") and written.endswith("</p><hr>\n")
    assert all(written.count(span) == 1 for span in ("<b>", "</b>", "{x}"))
    assert "1 units translated" in result.stderr
