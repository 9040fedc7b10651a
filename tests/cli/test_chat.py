"""`dragoman chat` asks the model with the last turns; `evaluate` looks at replies."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.data.formats.dialogue import context
from dragoman.decode.search.config import SampleSearch
from dragoman.evaluate.metrics import distinct, perplexities
from dragoman.runs.directory import Run

TURNS = ["the red cat", "the blue dog and a hill", "a new fish"]


@pytest.fixture(scope="module")
def run(train_small: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("chat"))


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text("".join(f"{turn}\n" for turn in TURNS * 40), encoding="utf-8")
    small: dict[str, Any] = {"model.preset": "gpt-tiny", "model.model_dim": 32, "model.num_layers": 1}
    small |= {"objective.name": "causal", "objective.block": 64, "tokenizer.vocab_size": 320}
    small |= {"train.max_updates": 2, "train.validate_every": 2, "schedule.warmup": 1}
    return dragoman.train(folder / "text.txt", out=folder / "run", overrides=small, quiet=True).directory


def chat(run: Path, lines: list[str], *options: str) -> list[str]:
    done = CliRunner().invoke(app, ["chat", str(run), *options], input="".join(f"{line}\n" for line in lines))
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_replies_are_translations_of_the_last_turns(run: Path, turns: int) -> None:
    translator = Run.open(run).translator()
    said: list[str] = []
    for turn in TURNS:
        said.append(turn)
        said += translator.translate([context(said, turns)])
    found = chat(run, TURNS, "--method", "beam", "--turns", str(turns))
    assert found == said[1::2]
    assert found[0] == "THE RED CAT"
    again = chat(run, [TURNS[0], "/new", *TURNS], "--method", "beam", "--turns", str(turns))
    assert again == [found[0], *found]


def test_replies_are_drawn_with_stated_settings(run: Path) -> None:
    search = SampleSearch(temperature=0.7, top_p=0.9, seed=2, max_length=9)
    first = Run.open(run).translator().translate([TURNS[0]], search=search)
    assert chat(run, TURNS[:1], "--set", "search.max_length=9") == first


def test_a_language_model_goes_on_from_the_last_turns(gpt: Path) -> None:
    generator = Run.open(gpt).generator()
    said: list[str] = []
    for turn in TURNS[:2]:
        said.append(turn)
        search = SampleSearch(temperature=0.7, top_p=0.9, seed=1 + len(said))
        said.append(generator.hypotheses("", before=said[-2:], max_tokens=12, search=search)[0].text)
    replies = chat(gpt, TURNS[:2], "--turns", "2", "--max-tokens", "12")
    assert replies == [text.replace("\n", " ") for text in said[1::2]]


def test_perplexity_and_distinct_n_by_hand(run: Path, tmp_path: Path) -> None:
    assert distinct(["a b a", "a b"], 1) == pytest.approx(100 * 2 / 5)
    assert distinct(["a b a", "a b"], 2) == pytest.approx(100 * 2 / 3)
    assert distinct(["a", ""], 2) == 0
    translator = Run.open(run).translator()
    texts = ["THE RED CAT", "A DOG"]
    scored = translator.score([("the red cat", texts[0]), ("a dog", texts[1])])
    by_token, by_word = perplexities(scored, texts)
    nll = -sum(sum(one.token_scores) for one in scored)
    assert by_token == pytest.approx(math.exp(nll / sum(len(one.token_scores) for one in scored)))
    assert by_word == pytest.approx(math.exp(nll / (4 + 3)))
    test = tmp_path / "test.dialogues"
    test.write_text("the red cat __eou__ THE RED CAT __eou__ A DOG\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["evaluate", str(run), str(test), "--bootstrap", "0"])
    assert done.exit_code == 0, done.output
    assert "perplexity of the real replies:" in done.stdout
    assert "(the real replies: 100.00%)" in done.stdout
