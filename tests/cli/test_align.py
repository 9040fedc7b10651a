"""Alignment, protection and streaming as a person types them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import dragoman
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.evaluate.alignment import read_gold, score_alignments


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, train_small: Callable[..., Path]) -> Path:
    return train_small(tmp_path_factory.mktemp("align"))


def dragoman_command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_align_prints_links_and_their_error_rate(
    run: Path, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    table, gold, out = tmp_path / "pairs.tsv", tmp_path / "gold.txt", tmp_path / "links.txt"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    gold.write_text("1-1 2-2 3-3 4p4 5-5 6-6\n" * len(pairs), encoding="utf-8")
    result = dragoman_command("align", run, table, "--gold", gold, "--gold-first", 1, "--output", out)
    assert result.exit_code == 0, result.output
    lines = out.read_text(encoding="utf-8").splitlines()
    found = [[(int(s), int(t)) for s, t in (link.split("-") for link in line.split())] for line in lines]
    assert all({t for _, t in links} == set(range(6)) for links in found)
    scores = score_alignments(found, read_gold(gold, first=1))
    assert result.stderr.startswith(f"alignment error rate {scores.error_rate:.1%}, ")
    by_python = dragoman.load(run).aligner.links_of_texts(pairs, batch_tokens=100)
    assert by_python == found


def test_a_run_without_its_data_still_aligns(run: Path, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(run, moved, ignore=shutil.ignore_patterns("data"))
    assert dragoman.load(moved).aligner.links_of_texts(pairs[:2], batch_tokens=100)


def test_translate_with_alignment(run: Path) -> None:
    plain = dragoman_command("translate", run, "the red cat and a dog")
    result = dragoman_command("translate", run, "the red cat and a dog", "--align")
    text, links = result.stdout.rstrip("\n").split("\t")
    assert text == plain.stdout.rstrip("\n")
    assert all(len(link.split("-")) == 2 for link in links.split())
    as_json = dragoman_command("translate", run, "the red cat and a dog", "--align", "--json")
    (found,) = json.loads(as_json.stdout)["translations"]
    assert " ".join(f"{s}-{t}" for s, t in found["alignment"]) == links


def test_markup_and_addresses_survive_by_default(run: Path) -> None:
    source = "the <b>red cat</b> and a {name} at http://x.de/y"
    (found,) = json.loads(dragoman_command("translate", run, source, "--json").stdout)["translations"]
    assert found["protection"] in ("placed", "copied")
    for span in ("<b>", "</b>", "{name}", "http://x.de/y"):
        assert found["text"].count(span) == 1
    (bare,) = json.loads(dragoman_command("translate", run, source, "--json", "--no-protect").stdout)[
        "translations"
    ]
    assert "protection" not in bare and "alignment" not in bare
    numbers = dragoman_command("translate", run, "the red cat and a 1,234.5 dog", "--protect-numbers")
    assert "1,234.5" in numbers.stdout


def test_streaming_prints_the_same_translations(run: Path) -> None:
    texts = ["the red cat and a dog", "", "an old {x} hill"]
    for beam in (1, 4):
        plain = dragoman_command("translate", run, *texts, "--beam", beam)
        streamed = dragoman_command("translate", run, *texts, "--beam", beam, "--stream")
        assert streamed.exit_code == 0, streamed.output
        assert streamed.stdout == plain.stdout


def test_streaming_refuses_what_needs_the_whole(run: Path) -> None:
    result = dragoman_command("translate", run, "the cat", "--stream", "--json", "--align")
    assert isinstance(result.exception, UserError)
    assert "--json, --align" in str(result.exception)
