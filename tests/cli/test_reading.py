"""`dragoman explain` and `dragoman fill` for models that do not translate. They are hardly trained: no test
asks what they have learnt, only that what is printed is what the model computes."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

from dragoman.cli.main import app
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.examples import Labelled, collate_rows
from dragoman.errors import UserError
from dragoman.models.bert import Bert
from dragoman.probe.attribution import in_place_of
from dragoman.probe.fill import Filler, _spans, _whole
from dragoman.probe.guess import BothWaysGuesser, MaskedGuesser
from dragoman.probe.reading import contributions, read_example
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_predictor
from dragoman.text.tokenizer import BOS_ID, EOS_ID

WORDS = ["red", "blue", "old", "new", "cat", "dog", "fish", "hill"]
TEXT = "the red cat"
FIELDS = [
    *("tokenizer.vocab_size=320", "train.max_updates=2", "train.validate_every=2", "train.batch_tokens=400"),
    *("train.samples=0", "train.validate_sentences=0", "train.device=cpu", "data.valid_size=8"),
]
SMALL = ["model.num_layers=1", "model.model_dim=16", "model.num_heads=2", "model.ff_dim=32"]


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reading")
    lines = [f"the {a} {b} and the {c}" for a in WORDS[:4] for b in WORDS[4:] for c in WORDS[4:]]
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "labels.tsv").write_text(
        "".join(f"{line}\t{'good' if 'red' in line else 'bad'}\n" for line in lines)
    )
    for name in ("bert", "gpt", "t5", "bart"):
        text = [
            folder / "text.txt",
            "--model",
            f"{name}-tiny",
            "-o",
            folder / name,
            "-q",
            "objective.block=64",
        ]
        result = command("pretrain", *text, *FIELDS, *SMALL)
        assert result.exit_code == 0, result.exception
    result = command(
        "pretrain", folder / "text.txt", "--model", "elmo-tiny", "-o", folder / "elmo", "-q", *FIELDS
    )
    assert result.exit_code == 0, result.exception
    own = [field for field in FIELDS if not field.startswith("tokenizer")]
    labels = [folder / "labels.tsv", "--task", "classify", "-o", folder / "labels", "-q", *own]
    result = command("finetune", folder / "bert", *labels)
    assert result.exit_code == 0, result.exception
    return folder


@pytest.mark.parametrize("name", ["bert", "gpt", "elmo", "labels"])
def test_every_model_is_explained(runs: Path, tmp_path: Path, name: str) -> None:
    page = tmp_path / "page.html"
    result = command("explain", runs / name, TEXT, "--html", page)
    assert result.exit_code == 0, result.exception
    assert "%" in result.stdout and TEXT in page.read_text("utf-8")
    for figure in () if name == "elmo" else ("alignment", "heads"):
        out = tmp_path / f"{figure}.svg"
        assert command("explain", runs / name, TEXT, "--figure", figure, "-o", out).exit_code == 0
        assert "head 2" in out.read_text("utf-8") if figure == "heads" else out.stat().st_size > 0


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_gaps_are_explained(runs: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "heads.svg"
    result = command("explain", runs / name, "the <mask> cat", "--figure", "heads", "-o", out)
    assert result.exit_code == 0, result.exception
    assert " ← " in result.stdout and out.stat().st_size > 0


def test_a_layer_and_a_head_of_a_language_model(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.svg"
    result = command("explain", runs / "gpt", TEXT, "--layer", 1, "--head", 2, "-o", out)
    assert result.exit_code == 0, result.exception
    assert "layer 1, head 2" in out.read_text("utf-8")


@pytest.mark.parametrize("name", ["bert", "elmo", "t5", "bart"])
def test_gaps_are_filled(runs: Path, name: str) -> None:
    result = command("fill", runs / name, "the <mask> cat and [MASK].", "--n-best", 3)
    assert result.exit_code == 0, result.exception
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    chances = [float(row[0]) for row in rows]
    assert 1 <= len(rows) <= 3 and all(len(row) == 3 for row in rows)
    assert chances == sorted(chances, reverse=True) and chances[-1] >= 0 and chances[0] <= 1
    told = json.loads(command("fill", runs / name, "the <mask> cat", "--json").stdout)
    assert told["source"] == "the <mask> cat" and len(told["fillings"]) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fill", "bert", TEXT], "there is no gap; write <mask>"),
        (["fill", "gpt", "a <mask>"], "the objective «causal» and does not fill gaps; use a run that was"),
        (["fill", "labels", "a <mask>"], "does not fill gaps"),
        (["fill", "t5", "<mask> " * 30], "this model has learnt with at most"),
        (["explain", "t5", TEXT], "write <mask> where something is missing"),
        (["explain", "elmo", TEXT, "-o", "x.svg"], "no attention to show"),
        (["explain", "bert", TEXT, "--target", "x"], "--target: this run does not translate"),
        (["explain", "bert", TEXT, "-o", "x.svg", "--figure", "beam"], "not for a model that only reads"),
        (["explain", "bert", TEXT, "-o", "x.svg", "--layer", 9], "--layer 9: there are 1, numbered from 1"),
        (["explain", "bert", TEXT, "-o", "x.svg", "--head", 9], "--head 9: this attention has 2"),
        (["explain", "bert", TEXT, "-o", "x.svg", "--figure", "integrated"], "fine-tuned to classify"),
    ],
)  # fmt: skip
def test_what_a_model_has_not_is_told(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = command(arguments[0], runs / arguments[1], *arguments[2:])
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)


def test_a_masked_guess_is_the_networks_own(runs: Path) -> None:
    filler = Filler(Run.open(runs / "bert"), device="cpu")
    guesser = filler.guesser
    assert isinstance(guesser, MaskedGuesser) and isinstance(guesser.network, Bert)
    ids = filler.tokenizer.encode(TEXT)
    found = guesser.guess([ids, ids], [0, 2])
    for row, place in ((0, 0), (1, 2)):
        read = torch.tensor([[BOS_ID, *ids, EOS_ID]])
        read[0, place + 1] = guesser.blank
        with torch.no_grad():
            hidden = guesser.network.read(read, read >= 0, torch.zeros_like(read))
            logits = guesser.network.project(hidden)[0, place + 1]
        logits[[0, BOS_ID, EOS_ID, guesser.blank]] = -math.inf
        assert torch.allclose(found[row], logits.log_softmax(dim=0), atol=1e-5)


def test_both_sides_do_not_see_the_gap(runs: Path) -> None:
    filler = Filler(Run.open(runs / "elmo"), device="cpu")
    guesser = filler.guesser
    assert isinstance(guesser, BothWaysGuesser)
    ids = filler.tokenizer.encode("the old dog")
    other = [*ids[:1], ids[0], *ids[2:]]
    first, second = guesser.guess([ids], [1]), guesser.guess([other], [1])
    assert torch.equal(first, second) and first.exp().sum().item() == pytest.approx(1, abs=1e-4)


def test_two_gaps_are_filled_together(runs: Path) -> None:
    """The probability is the chain rule's: of the first piece, and of the second given the first."""
    filler = Filler(Run.open(runs / "bert"), device="cpu")
    assert filler.guesser is not None
    best = filler.fill("the <mask> cat <mask>", 2)[0]
    tokenizer, blank = filler.tokenizer, filler.guesser.blank
    before, after = tokenizer.encode("the"), tokenizer.encode("cat")
    open_row = [*before, blank, *after, blank]
    first = filler.guesser.guess([open_row], [len(before)])[0]
    candidates = []
    for piece in first.topk(2).indices.tolist():
        row = [*before, piece, *after, blank]
        second = filler.guesser.guess([row], [len(row) - 1])[0]
        candidates += [(first[piece] + value).exp().item() for value in second.topk(2).values]
    assert best.probability == pytest.approx(max(candidates), rel=1e-4)


def test_what_a_model_writes_is_put_into_the_gaps(runs: Path) -> None:
    t5 = Filler(Run.open(runs / "t5"), device="cpu")
    tokenizer = t5.tokenizer
    marks = [tokenizer.config.first_pieces.index(f"<extra_id_{number}>") for number in range(3)]
    written = [marks[0], *tokenizer.encode("red old"), marks[1], *tokenizer.encode("dog"), marks[2], 300]
    parts = ["the ", " cat and the ", "."]
    assert _spans(tokenizer, parts, written) == (("red old", "dog"), "the red old cat and the dog.")
    assert t5.source("the <mask> cat") == [*tokenizer.encode("the"), marks[0], *tokenizer.encode("cat")]
    whole = tokenizer.encode("the red old cat and the dog.")
    assert _whole(tokenizer, parts, whole) == (("red old", "dog"), "the red old cat and the dog.")
    assert _whole(tokenizer, parts, tokenizer.encode("a hill")) == ((), "a hill")


def test_contributions_are_complete(runs: Path) -> None:
    """Integrated gradients add up to log p(label), less what it is without any embedding."""
    predictor = open_predictor(runs / "labels", device="cpu")
    predictor.model.double()
    example = Example((TEXT,), None, "")
    batch = collate_rows(Labelled([example], predictor.task, predictor.tokenizer).items, predictor.task)
    shares = contributions(predictor, batch, 1, steps=64)
    embedding = predictor.model.network.embedding  # type: ignore[union-attr]
    nothing = torch.zeros_like(embedding(batch.ids))
    with torch.no_grad():
        there = predictor.model(batch).log_softmax(dim=-1)[0, 1].item()
        with in_place_of([embedding], [nothing]):
            without = predictor.model(batch).log_softmax(dim=-1)[0, 1].item()
    assert shares.sum() == pytest.approx(there - without, abs=1e-3)
    read = read_example(predictor, [TEXT])
    assert read.units == ("<s>", "the", "red", "cat", "</s>") and len(read.shares) == 5
