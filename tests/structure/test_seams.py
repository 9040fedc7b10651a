"""The seams: training knows neither models nor objectives, and something new goes in at one place."""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dragoman import models
from dragoman.learning import LEARNING
from dragoman.learning.causal import Causal
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Vocab
from dragoman.models.rnn import RnnConfig
from dragoman.nn import scores
from dragoman.nn.linear import Projection, TokenEmbedding
from dragoman.runs.directory import Run
from dragoman.runs.opening import load
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.training.api import train

PACKAGE = Path(__file__).parents[2] / "src" / "dragoman"
MODEL_CLASSES = {
    *("Bert", "Elmo", "Vit", "Markov", "TaskNetwork", "EncoderDecoder"),
    *("GptDecoder", "UnilmDecoder", "UlmfitDecoder", "RnnDecoder", "TransformerDecoder", "ConvDecoder"),
    *(config.__name__ for config, _ in {**models.MODELS, **models.READERS}.values()),
}
SMALL = ["tokenizer.vocab_size=300", "train.max_updates=2", "train.validate_every=2", "train.save_every=2"]


def _trees(room: str) -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text("utf-8"))) for path in sorted((PACKAGE / room).rglob("*.py"))]


def test_training_names_no_model_and_no_objective() -> None:
    """`translate` alone may stand as the default of a field, and `train` is also a section's name."""
    objectives = set(LEARNING) - {"translate", "task", "prefix"}
    found = []
    for path, tree in _trees("training"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in objectives:
                found.append(f"{path.name}:{node.lineno} {node.value!r}")
            if isinstance(node, ast.Name) and node.id in MODEL_CLASSES:
                found.append(f"{path.name}:{node.lineno} {node.id}")
            if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("objective.name"):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert found == []


def test_search_names_no_model() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path, tree in _trees("decode")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in MODEL_CLASSES - {"EncoderDecoder", "TaskNetwork"}
    ]
    assert found == []


def test_no_behaviour_hangs_on_the_name_of_a_preset() -> None:
    """Names of presets are looked up, never cut into parts."""
    source = (PACKAGE / "models" / "presets.py").read_text("utf-8")
    assert not {"partition", "split", "startswith", "removeprefix"} & {
        node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)
    }


def test_every_way_of_learning_is_listed_under_its_name() -> None:
    assert {name: learning.name for name, learning in LEARNING.items()} == {name: name for name in LEARNING}


@pytest.fixture
def pairs(tmp_path: Path) -> tuple[str, str]:
    files = tmp_path / "a.en", tmp_path / "a.de"
    words = ["one", "two", "three", "four", "five", "six"]
    lines = [f"{a} {b}" for a in words for b in words]
    files[0].write_text("".join(f"{line}\n" for line in lines), "utf-8")
    files[1].write_text("".join(f"{line.upper()}\n" for line in lines), "utf-8")
    return str(files[0]), str(files[1])


def _trained(files: tuple[str, ...], out: Path, *overrides: str) -> Run:
    return train(*files, out=out, overrides=[*SMALL, *overrides], quiet=True)


class SquaredDistance(nn.Module):
    """A throw-away score: −|q − h|²."""

    takes = ("query_dim", "memory_dim")

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory_dim, query_dim)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M D"]:
        return self.key(memory)

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M D"]) -> Float[Tensor, "B Q M"]:
        return -torch.cdist(query, keys).square()


@pytest.mark.parametrize("family", ["rnn", "convs2s"])
def test_a_new_score_is_a_class_and_a_line(
    family: str, pairs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scores.SCORES, "squared_distance", SquaredDistance)
    chosen = [f"model.kind={family}", "model.model_dim=16", "model.attention=squared_distance"]
    run = _trained(pairs, tmp_path / "run", *chosen, "optim.rate=0.001")
    used = [m for m in run.translator(device="cpu").model.modules() if isinstance(m, SquaredDistance)]
    assert used
    assert load(run.directory, device="cpu").translate(["one two"])


@dataclass(frozen=True)
class BagConfig:
    """A throw-away model: the target is guessed from the mean of the source's vectors."""

    model_dim: int = 16

    @property
    def abilities(self) -> Abilities:
        return Abilities(step_gradients=True)


class BagEncoder(nn.Module):
    def __init__(self, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        return Memory(self.embedding(src_ids), src_mask)


@dataclass(frozen=True)
class BagState:
    summary: Float[Tensor, "N D"]
    beams: int = 1

    def expand(self, k: int) -> "BagState":
        return BagState(self.summary.repeat_interleave(k, dim=0), self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> "BagState":
        return BagState(self.summary[order], self.beams)

    def keep(self, sentences: Int[Tensor, "A"]) -> "BagState":
        rows = (sentences[:, None] * self.beams + torch.arange(self.beams)).flatten()
        return BagState(self.summary[rows], self.beams)


class BagDecoder(nn.Module):
    def __init__(self, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        return self.embedding(tgt_in) + memory.summary[:, None]

    def start(self, memory: Memory) -> BagState:
        return BagState(memory.summary)

    def step(self, last_ids: Int[Tensor, "N"], state: BagState) -> tuple[Float[Tensor, "N D"], BagState]:
        return self.embedding(last_ids[:, None])[:, 0] + state.summary, state


def bag(config: BagConfig, vocab: Vocab) -> EncoderDecoder:
    src = TokenEmbedding(vocab.src_size, config.model_dim, vocab.pad_id, True)
    tgt = TokenEmbedding(vocab.tgt_size, config.model_dim, vocab.pad_id, True)
    projection = Projection(tgt.weight, bias=False)
    return EncoderDecoder(vocab, BagEncoder(src), BagDecoder(tgt), projection, config.abilities)


def test_a_new_model_is_a_file_and_a_line(
    pairs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(models.MODELS, "bag", (BagConfig, bag))
    run = _trained(pairs, tmp_path / "run", "model.kind=bag", "optim.rate=0.001", "search.beam=3")
    assert run.last == "0000002"
    assert load(run.directory, device="cpu").translate(["one two", "three"])


class Backwards(Causal):
    """A throw-away way of learning: a language model of text read backwards."""

    name = "backwards"
    next_step = "read it backwards with:  dragoman generate {run}"

    def text_examples(self, config: Any, store: Any, tokenizer: Any) -> Any:
        examples = super().text_examples(config, store, tokenizer)
        examples.blocks = _Reversed(examples.blocks)
        return examples


class _Reversed:
    def __init__(self, blocks: Any) -> None:
        self.blocks = blocks

    def __getitem__(self, index: int) -> Any:
        return self.blocks[index][::-1].copy()

    def __len__(self) -> int:
        return len(self.blocks)


def test_a_new_objective_is_a_file_and_a_line(
    pairs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LEARNING, "backwards", Backwards())
    chosen = ["objective.name=backwards", "objective.block=8", "model.preset=gpt-tiny"]
    run = _trained(pairs[:1], tmp_path / "run", *chosen)
    assert run.config.purpose == "generate"
    assert Backwards.next_step.format(run=run.directory) in (run.directory / "log.txt").read_text("utf-8")
    assert run.generator(device="cpu").hypotheses("one", max_tokens=2)


def test_rnn_config_knows_every_score() -> None:
    for name in scores.SCORES:
        assert RnnConfig(attention=name, bidirectional=True).attention == name
