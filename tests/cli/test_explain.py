"""`dragoman explain` on a small run: text, every picture, the page, mistakes; heads against gold links."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from dragoman.cli import explain as command
from dragoman.cli.main import app
from dragoman.cli.serve import _explainer
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.evaluate.alignment import GoldLinks
from dragoman.probe.explain import Explained, draw_figure, explain_sentence
from dragoman.probe.figures.pieces import visible_spaces
from dragoman.probe.head_alignments import align_heads
from dragoman.probe.inside import inside_hypothesis, inside_texts
from dragoman.runs.directory import Run
from dragoman.serve.limits import Limits

SENTENCE = "the red cat and a dog"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, train_small: Callable[..., Path]) -> Path:
    return train_small(tmp_path_factory.mktemp("explain"))


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return Run.open(run).translator(device="cpu")


@pytest.fixture(scope="module")
def short(translator: Translator) -> Explained:
    return explain_sentence(translator, "the red", search=search_with(translator, 2))


def search_with(translator: Translator, beam: int) -> SearchConfig:
    return replace(translator.search, beam=beam, record=True)


def explain(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments), "--device", "cpu"])


def test_scores_and_links_as_text(run: Path) -> None:
    result = explain(run, SENTENCE)
    assert result.exit_code == 0, result.output
    first, heading, *lines = result.stdout.splitlines()
    assert first == SENTENCE.upper()
    assert heading == "  piece, probability ← source piece with the most attention, its weight"
    assert lines[-1].split()[0] == "</s>"
    assert all(re.fullmatch(r"  \S+ +\d+\.\d\d%(  ← \S+ \d\.\d\d)?", line) for line in lines), lines
    assert sum("←" in line for line in lines) >= len(lines) - 1


def test_what_a_server_tells_is_what_is_inside(translator: Translator) -> None:
    explains = _explainer(translator, Limits())
    told, seen = explains(SENTENCE, "THE RED"), inside_texts(translator, SENTENCE, "THE RED")
    assert told.text == "THE RED" and tuple(told.written) == seen.written
    assert told.scores == pytest.approx(seen.token_scores)
    assert [one.kind for one in told.attentions] == [one.kind for one in seen.attentions]
    for one, own in zip(told.attentions, seen.attentions, strict=True):
        assert torch.allclose(torch.tensor(one.weights), own.weights, rtol=0, atol=1e-5)
        assert all(sum(row) == pytest.approx(1, abs=1e-4) for head in one.weights for row in head)
    assert sum(one.aligns for one in told.attentions) == 1
    assert explains(SENTENCE, None).text == SENTENCE.upper()


def test_a_server_explains_no_more_than_its_limits(translator: Translator) -> None:
    """By pieces, whatever the script: a character may be three of them. And by the size of the answer."""
    explains = _explainer(translator, Limits(explained_pieces=20))
    with pytest.raises(UserError, match=r"text: at most 20 pieces, found \d\d; take one sentence"):
        explains("\u4e00" * 10 + "\U0001f642" * 3, None)
    with pytest.raises(UserError, match="translation: at most 20 pieces"):
        explains("the", "\u4e00" * 20)
    assert len(explains("the red", None).written) <= 21
    size = sum(seen.weights.numel() for seen in inside_texts(translator, SENTENCE, "THE RED").attentions)
    assert _explainer(translator, Limits(explained_weights=size))(SENTENCE, "THE RED").attentions
    with pytest.raises(UserError, match=f"{size:,} weights are more than the {size - 1:,} of an answer"):
        _explainer(translator, Limits(explained_weights=size - 1))(SENTENCE, "THE RED")


def test_a_picture(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    result = explain(run, SENTENCE, "--attention", "encoder", "--layer", 1, "--head", 2, "--out", out)
    assert result.exit_code == 0, result.output
    drawn = out.read_text("utf-8")
    assert ">encoder attention, layer 1, head 2</text>" in drawn and ">target</text>" not in drawn


@pytest.mark.parametrize(
    ("figure", "title"),
    [
        ("alignment", "cross attention, layer 1, mean of heads"),
        ("heads", "cross attention, all heads"),
        ("norms", "‖weight × value‖"),
        ("rollout", "attention rollout to the source"),
        ("gradient", "gradient norm"),
        ("integrated", "integrated gradients"),
        ("importance", "drop of log p without the head"),
        ("beam", "the translation"),
    ],
)
def test_every_picture(short: Explained, figure: str, title: str) -> None:
    words = figure == "integrated"
    svg = draw_figure(figure, "svg", short, short.translator.model, [], words).decode()
    assert f">{title}</text>" in svg
    assert (">› RED</text>" in svg) is words or figure == "beam"


def test_two_pictures_of_one_attention_name_their_rows_alike(short: Explained) -> None:
    """A position is called «read › written», in the map of an alignment and in those of all heads."""
    rows = list(short.shown().rows)
    assert rows and set(rows) <= set(short.seen.steps)
    for figure in ("alignment", "heads", "norms", "rollout", "gradient"):
        svg = html.unescape(draw_figure(figure, "svg", short, short.translator.model, []).decode())
        assert all(f">{visible_spaces(row)}</text>" in svg for row in rows), figure


def test_pictures_without_a_sentence(run: Path, tmp_path: Path) -> None:
    for figure, ending, first in (("positions", "svg", b"<?xml"), ("curves", "pdf", b"%PDF")):
        out = tmp_path / f"{figure}.{ending}"
        assert explain(run, "--figure", figure, "--out", out).exit_code == 0
        assert out.read_bytes().startswith(first)


def test_the_page(run: Path, tmp_path: Path) -> None:
    pages = [tmp_path / "found.html", tmp_path / "given.html"]
    assert explain(run, SENTENCE, "--html", pages[0], "--n-best", 3).exit_code == 0
    assert explain(run, SENTENCE, "--target", "A <b>DOG", "--html", pages[1]).exit_code == 0
    found, given = (
        json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])
        for page in pages
    )
    assert found["translation"] == SENTENCE.upper() and len(found["best"]) == 3
    steps, path = found["beam"]["steps"], found["beam"]["path"]
    assert [steps[n][index]["piece"] for n, index in enumerate(path)] == found["written"]
    assert given["translation"] == "A <b>DOG" and given["beam"] is None and given["best"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a sentence"),
        (["  "], "the sentence is blank"),
        (["a", "--out", "x.gif"], "--out x.gif: expected a name that ends in .png, .svg or .pdf"),
        (["a", "--out", "no/such/x.svg"], "--out no/such/x.svg"),
        (["a", "--html", "."], "--html ."),
        (["a", "--figure", "beam", "--target", "b"], "--figure beam: a given translation"),
        (["--figure", "curves"], "--figure curves: give --out"),
    ],
)
def test_mistakes_are_told_in_one_sentence(run: Path, arguments: list[str], message: str) -> None:
    result = explain(run, *arguments)
    assert isinstance(result.exception, UserError), result.output
    assert message in str(result.exception)


def test_attentions_that_are_not_there(short: Explained) -> None:
    with pytest.raises(UserError, match="--layer 9: there are 1, numbered from 1"):
        short.looking_at(None, 9, None)
    with pytest.raises(UserError, match="--head 9: this attention has 2, numbered from 1"):
        short.looking_at("decoder", 1, 9)


def test_a_search_that_cannot_be_recorded_has_no_tree(translator: Translator) -> None:
    grouped = replace(translator.search, beam=2, groups=2, diversity=0.5)
    found = explain_sentence(translator, "the red", search=grouped)
    assert '"beam": null' in found.page("run")
    with pytest.raises(UserError, match="only a beam search in one group"):
        draw_figure("beam", "svg", found, None, [])


def test_without_matplotlib_there_are_text_and_page_and_no_picture(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _name: None)
    assert explain(run, SENTENCE, "--html", tmp_path / "page.html").exit_code == 0
    result = explain(run, SENTENCE, "--out", tmp_path / "x.svg")
    assert isinstance(result.exception, UserError) and "[plots]" in str(result.exception)


def test_the_same_hypothesis_has_the_same_weights_however_it_was_found(translator: Translator) -> None:
    searches = [translator.search, *(search_with(translator, beam) for beam in (1, 4))]
    found = [translator.hypotheses([SENTENCE], search=search)[0][0] for search in searches]
    assert len({each.text for each in found}) == 1
    views = [inside_hypothesis(translator, SENTENCE, each) for each in found]
    views.append(inside_texts(translator, SENTENCE, found[0].text))
    for other in views[1:]:
        for first, second in zip(views[0].attentions, other.attentions, strict=True):
            assert (first.weights - second.weights).abs().max() <= 1e-6


def test_heads_against_gold(translator: Translator, pairs: list[tuple[str, str]]) -> None:
    """Word n belongs to word n."""
    some = pairs[:6]
    gold = [GoldLinks(links := frozenset((n, n) for n in range(len(src.split()))), links) for src, _ in some]
    found = align_heads(translator, some, gold)
    assert {(each.head, each.when_read) for each in found} == {(h, r) for h in (0, 1) for r in (False, True)}
    rates = [each.scores.error_rate for each in found]
    assert rates == sorted(rates) and rates[0] < 0.5


def test_the_gradient_over_a_test_set(run: Path, tmp_path: Path) -> None:
    table = tmp_path / "test.tsv"
    table.write_text("src\ttgt\nthe red cat\tTHE RED CAT\na dog\tA DOG\n", encoding="utf-8")
    options = ["--test", str(table), "--figure", "gradient"]
    out = tmp_path / "gradient.svg"
    result = CliRunner().invoke(app, ["explain", str(run), *options, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert all(text in out.read_text("utf-8") for text in ("over 2 pairs", "part of the source", "90–100%"))
    for wrong, message in (
        (["--test", str(table), "--out", str(out)], "--test: it is for --figure gradient"),
        (options, "--test: give --out"),
    ):
        error = CliRunner().invoke(app, ["explain", str(run), *wrong]).exception
        assert isinstance(error, UserError) and message in str(error)
