"""Vectors of text: every network, alone and in batches, by hand and beside transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from typer.testing import CliRunner

from battery.models import CASES
from checkpoint.huggingface.published_text import save_text_model
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.models import build_network
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.bert import BertConfig
from dragoman.probe.embed import Embedder
from dragoman.text.tokenizer import BOS_ID, EOS_ID, Tokenizer, TokenizerConfig
from dragoman.training.import_published import import_run

TEXTS = ["a cat sat", "", "the cat, on a mat", "mat"]
BERT = ("bert", BertConfig(2, 16, 4, 24, max_positions=64))
KINDS = {name: CASES[name][:2] for name in ("transformer", "lstm-none", "convs2s", "gpt")} | {"bert": BERT}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS * 3, TokenizerConfig(vocab_size=290, min_frequency=1))


def network(name: str, tokenizer: Tokenizer):
    torch.manual_seed(0)
    return build_network(*KINDS[name], Vocab(tokenizer.size, tokenizer.size, shared=True)).eval()


def row(ids: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    made = torch.tensor([ids])
    return made, torch.ones_like(made, dtype=torch.bool), torch.zeros_like(made)


@pytest.mark.parametrize("causal", [False, True], ids=["reads", "causal"])
@pytest.mark.parametrize("name", KINDS)
def test_every_network_by_hand_and_in_batches(name: str, causal: bool, tokenizer: Tokenizer) -> None:
    if causal and name == "bert":
        pytest.skip("it is no language model")
    model = network(name, tokenizer)
    embedder = Embedder(model, tokenizer, layer=None, pool="none", causal=causal)
    found = embedder.embed(TEXTS)
    for text, vectors in zip(TEXTS, found, strict=True):
        ids = tokenizer.encode(text)
        before = [EOS_ID, BOS_ID] if causal else [BOS_ID] if name == "bert" else []
        with torch.no_grad():
            if causal and name != "gpt":
                assert isinstance(model, EncoderDecoder)
                memory = model.encode(*row([EOS_ID])[:2])
                before, layers = [BOS_ID], [model.decode(row([BOS_ID, *ids])[0], memory)]
            else:
                layers = model.read_layers(*row([*before, *ids, *([] if causal else [EOS_ID])]))
        expected = torch.stack(layers, dim=2)[0, len(before) : len(before) + len(ids)]
        np.testing.assert_allclose(vectors.rows, expected, atol=1e-5)
        assert vectors.labels == tuple(tokenizer.pieces(ids))
        assert vectors.layers == tuple(range(len(layers)))
    alone = [embedder.embed([text])[0] for text in TEXTS]
    small = embedder.embed(TEXTS, batch_tokens=1)
    for one, two, three in zip(found, alone, small, strict=True):
        np.testing.assert_allclose(one.rows, two.rows, atol=1e-5)
        np.testing.assert_allclose(one.rows, three.rows, atol=1e-5)


def test_pooling_and_words_by_hand(tokenizer: Tokenizer) -> None:
    model = network("bert", tokenizer)
    text = TEXTS[2]
    ids = tokenizer.encode(text)
    with torch.no_grad():
        hidden = model.read_layers(*row([BOS_ID, *ids, EOS_ID]))[1][0].numpy()
    by = {
        pool: Embedder(model, tokenizer, layer=1, pool=pool).embed([text])[0]
        for pool in ("mean", "first", "last")
    }
    np.testing.assert_allclose(by["mean"].rows[0, 0], hidden[1:-1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(by["first"].rows[0, 0], hidden[0], atol=1e-6)
    np.testing.assert_allclose(by["last"].rows[0, 0], hidden[-1], atol=1e-6)
    assert by["mean"].labels == (text,) and by["mean"].layers == (1,)
    empty = Embedder(model, tokenizer, layer=1).embed([""])[0]
    with torch.no_grad():
        marks = model.read_layers(*row([BOS_ID, EOS_ID]))[1][0].numpy()
    np.testing.assert_allclose(empty.rows[0, 0], marks.mean(axis=0), atol=1e-6)
    words = Embedder(model, tokenizer, layer=1, pool="none", by="word").embed([text])[0]
    assert words.labels == ("the", "cat", ",", "on", "a", "mat")
    pieces, place, inner = tokenizer.pieces(ids), 0, hidden[1:-1]
    for number, word in enumerate(words.labels):
        first, spelt = place, ""
        while spelt.replace("▁", "") != word:
            spelt += pieces[place]
            place += 1
        np.testing.assert_allclose(words.rows[number, 0], inner[first:place].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_layers_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """And the command writes them."""
    theirs = save_text_model(name, tmp_path / "in")
    run = import_run(tmp_path / "in", tmp_path / "run").directory
    (tmp_path / "text.txt").write_text("abc the\nabc\n", "utf-8")
    command = ["embed", str(run), str(tmp_path / "text.txt"), "--layer", "all", "--pool", "none"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "v.npy")])
    assert done.exit_code == 0, done.output
    found = np.load(tmp_path / "v.npy")
    published = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "in" / "tokenizer.json"))
    expected, labels = [], []
    for line, text in enumerate(("abc the", "abc"), 1):
        ids = published(text, add_special_tokens=False).input_ids
        around = ([4], [5]) if name == "bert" else ([theirs.config.eos_token_id] * 2, [])
        with torch.no_grad():
            base = theirs.bert if name == "bert" else theirs.transformer
            hidden = base(
                torch.tensor([[*around[0], *ids, *around[1]]]), output_hidden_states=True
            ).hidden_states
        inner = slice(len(around[0]), len(around[0]) + len(ids))
        expected.append(torch.stack(hidden, dim=2)[0, inner])
        labels += [f"{line}\t{piece}" for piece in published.convert_ids_to_tokens(ids)]
    np.testing.assert_allclose(found, torch.cat(expected), atol=1e-5)
    assert (tmp_path / "v.tsv").read_text("utf-8").splitlines() == labels
    parquet = pytest.importorskip("pyarrow.parquet")
    done = CliRunner().invoke(app, [*command[:3], "--layer", "1", "--out", str(tmp_path / "v.parquet")])
    assert done.exit_code == 0, done.output
    table = parquet.read_table(tmp_path / "v.parquet").to_pydict()
    assert (table["line"], table["label"], table["layer"]) == ([1, 2], ["abc the", "abc"], [1, 1])
    np.testing.assert_allclose(table["vector"][1], found[-len(ids) :, 1].mean(axis=0), atol=1e-5)


def test_refusals(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = network("gpt", tokenizer)
    with pytest.raises(
        UserError, match="--layer: expected a number from 0, the embeddings, to 2, or all, found"
    ):
        Embedder(model, tokenizer, layer=9).embed(["a"])
    with pytest.raises(UserError, match="--pool: expected one of mean, first, last, none, found 'max'"):
        Embedder(model, tokenizer, pool="max")
    counted = build_network(*CASES["markov"])
    with pytest.raises(UserError, match="a model that counts has no vectors"):
        Embedder(counted, tokenizer)
    save_text_model("gpt", tmp_path / "in")
    run = import_run(tmp_path / "in", tmp_path / "run").directory
    (tmp_path / "text.txt").write_text("abc\n", "utf-8")
    for arguments, message in (
        (["--out", "v.csv"], "--out: expected a name that ends in .npy or .parquet, found 'v.csv'"),
        (["--layer", "top"], "--layer: expected all or a whole number, found 'top'"),
        (["--by", "word"], "--by: one vector a line has no words; use --pool none"),
    ):
        done = CliRunner().invoke(app, ["embed", str(run), str(tmp_path / "text.txt"), *arguments])
        assert isinstance(done.exception, UserError) and message in str(done.exception)
