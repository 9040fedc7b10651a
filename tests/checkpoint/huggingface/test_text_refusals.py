"""BERT, GPT and GPT-2: what a directory may lack, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import dragoman
from checkpoint.huggingface.published_text import save_text_model
from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.huggingface.read import read_model
from dragoman.checkpoint.huggingface.write import config_fields
from dragoman.checkpoint.model import load_network, model_tensors
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.models.gpt import GptConfig

GPT2 = GptConfig(num_layers=1, model_dim=16, num_heads=2, ff_dim=64)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx: GPT-2 is read"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights: GPT-2 is read with true alone"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention: GPT-2 is read with false alone"),
        ("gpt2", {"activation_function": "tanh"}, "activation_function: expected one of relu"),
        ("gpt2", {"eos_token_id": None}, "pad_token_id: expected the id of a piece, found None"),
        ("gpt", {"afn": "gelu_new"}, "afn: expected one of gelu, relu"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type: BERT is read with"),
        ("bert", {"type_vocab_size": 3}, "type_vocab_size: BERT is read with 2 alone, found 3"),
        ("bert", {"is_decoder": True}, "is_decoder: BERT is read with false alone"),
        ("bert", {"hidden_act": "mish"}, "hidden_act: expected one of relu"),
        ("bert", {"num_hidden_layers": 3}, "lacks tensor 'bert.encoder.layer.2"),
    ],
)
def test_what_config_json_says(tmp_path: Path, name: str, fields: dict[str, Any], message: str) -> None:
    save_text_model(name, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    with pytest.raises(UserError, match=message):
        read_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "loader"), [("gpt2", "CausalLM"), ("gpt", "CausalLM"), ("bert", "PreTraining")]
)
def test_pickles(tmp_path: Path, name: str, loader: str) -> None:
    save_text_model(name, tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=f"pickle, which can run any code.*AutoModelFor{loader}.*NEW"):
        read_model(tmp_path)


def test_tokenizers(tmp_path: Path) -> None:
    for name in ("bert", "gpt"):
        save_text_model(name, tmp_path / name)
        path = tmp_path / name / "tokenizer.json"
        plain = json.loads(path.read_text())
        for content, message in (
            ([], "expected a mapping of fields"),
            ({**plain, "model": None}, "not what the library tokenizers writes"),
            ({**plain, "added_tokens": [], "model": {**plain["model"], "vocab": []}}, "a vocab of pieces"),
            ({**plain, "added_tokens": [{}]}, r"added_tokens\[0\]: expected the fields id, content"),
            ({**plain, "added_tokens": [3]}, r"added_tokens\[0\]: expected the fields"),
        ):
            path.write_text(json.dumps(content))
            with pytest.raises(UserError, match=rf"tokenizer\.json: .*{message}"):
                read_model(tmp_path / name)
        path.unlink()
        with pytest.raises(UserError, match=r"no tokenizer here \(expected tokenizer.json\).*AutoTokenizer"):
            read_model(tmp_path / name)


def test_a_projection_of_its_own_is_refused_for_bert(tmp_path: Path) -> None:
    save_text_model("bert", tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({**load_file(path), "cls.predictions.decoder.weight": torch.zeros(22, 16)}, path)
    with pytest.raises(UserError, match=r"decoder.weight' is not the same as .*word_embeddings"):
        read_model(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"output_bias": True}, "output_bias: GPT-2 knows only false"),
        ({"tie_embeddings": False}, "tie_embeddings: transformers' GPT reads with one matrix"),
        ({"norm": "post", "ff_dim": 32}, "ff_dim: GPT knows only 64"),
        ({"norm": "post", "activation": "gelu"}, "activation: transformers has no gelu for such a model"),
    ],
)
def test_wiring_without_a_counterpart(fields: dict[str, Any], message: str) -> None:
    config = replace(GPT2, **fields)
    with pytest.raises(UserError, match=message):
        config_fields(family_of("gpt", config), config, Vocab(24, 24, shared=True))
    assert config_fields(family_of("gpt", GPT2), GPT2, Vocab(24, 24, shared=True))["model_type"] == "gpt2"


def test_a_bare_bert_with_the_names_of_old(tmp_path: Path) -> None:
    """As the first BERT was published: no heads, norms that have a gamma and a beta."""
    theirs = save_text_model("bert", tmp_path)
    whole = read_model(tmp_path)
    assert whole.new == ()
    old = {}
    for name, tensor in theirs.bert.state_dict().items():
        if not name.startswith("pooler."):
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            )
            old[name] = tensor.contiguous()
    save_file({**old, "embeddings.position_ids": torch.arange(24)[None]}, tmp_path / "model.safetensors")
    bare, again = read_model(tmp_path), read_model(tmp_path)
    assert bare.new == ("pooler", "transform", "transform_norm", "projection", "next_sentence")
    one, other, full = (model_tensors(found.model) for found in (bare, again, whole))
    assert all(torch.equal(one[name], other[name]) for name in one), "what is new is the same every time"
    known = [name for name in one if not name.startswith(bare.new)]
    assert known and all(torch.equal(one[name], full[name]) for name in known)


def test_commands(tmp_path: Path) -> None:
    """An import is a run: it goes on from a prompt, and is trained further on text."""

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.output
        return done.output

    for name in ("gpt2", "bert"):
        save_text_model(name, tmp_path / name)
        assert "imported into" in run("import", tmp_path / name, "--out", tmp_path / f"run-{name}")
    said = run("generate", tmp_path / "run-gpt2", "the he", "--max-tokens", 4)
    assert said.startswith("the he")
    (tmp_path / "text.txt").write_text("the abc abcs\nabc there the\n\nthe the abc\n" * 8, "utf-8")
    for name, objective in (("gpt2", "causal"), ("bert", "masked")):
        overrides = {"start": str(tmp_path / f"run-{name}"), "objective.name": objective}
        overrides |= {"objective.block": 12, "train.max_updates": 1, "train.batch_tokens": 64}
        done = dragoman.train(
            tmp_path / "text.txt", out=tmp_path / f"more-{name}", overrides=overrides, quiet=True
        )
        before, after = load_network(tmp_path / f"run-{name}"), load_network(done.directory, which="last")
        assert after.tgt_tokenizer.sha256 == before.tgt_tokenizer.sha256
        run("export", tmp_path / f"more-{name}", "--to", "huggingface", "--out", tmp_path / f"out-{name}")
        theirs = transformers.AutoModel.from_pretrained(tmp_path / f"out-{name}")
        tensors = model_tensors(after.model)
        table = tensors["embedding.weight" if name == "bert" else "encoder.embedding.weight"]
        assert torch.equal(theirs.get_input_embeddings().weight, table)


def test_a_model_of_text_does_not_translate(tmp_path: Path) -> None:
    save_text_model("gpt", tmp_path / "in")
    done = CliRunner().invoke(app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    with pytest.raises(UserError, match="does not translate; use it with  dragoman"):
        dragoman.load(tmp_path / "run")
    done = CliRunner().invoke(
        app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / "other"), "--prefix", "a: "]
    )
    assert done.exit_code != 0
