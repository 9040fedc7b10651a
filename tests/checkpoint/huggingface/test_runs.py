"""An imported model is a run: every command works with it, and training goes on from its weights."""

import json
from pathlib import Path

import pytest
import torch
import transformers
import yaml
from typer.testing import CliRunner

import dragoman
from checkpoint.huggingface.conftest import numbers_in
from checkpoint.huggingface.published import save
from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.model import LoadedModel, load_model, model_description, model_tensors, vocab_of
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.norm import NormPlace
from dragoman.nn.positions import SinusoidLayout
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from dragoman.training.import_published import import_run

TEXTS = ["abc d", "abc ab d", "d cd ab", "bc a"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("commands")
    save("t5", root / "in")
    command = ["import", str(root / "in"), "--out", str(root / "run"), "--prefix", "d: "]
    done = CliRunner().invoke(app, [*command, "--src-lang", "en", "--tgt-lang", "de"])
    assert done.exit_code == 0, done.output
    assert "imported into" in done.output
    (root / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a in TEXTS for b in TEXTS), "utf-8")
    return root / "run"


@pytest.mark.parametrize("command", ["translate", "score", "align", "evaluate"])
def test_commands(run: Path, command: str) -> None:
    files = TEXTS if command == "translate" else [str(run.parent / "pairs.tsv")]
    options = ["--bootstrap", "0"] if command == "evaluate" else []
    done = CliRunner().invoke(app, [command, str(run), *files, *options])
    assert done.exit_code == 0, done.output
    assert done.output.strip()


def test_the_prefix_is_put_before_every_source(run: Path) -> None:
    loaded = load_model(run)
    assert loaded.src_tokenizer.encode("abc") == loaded.tgt_tokenizer.encode("d: abc")
    assert loaded.model.vocab.shared


def test_an_imported_run_is_not_resumed_but_begun_with(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"imported and has no training data.*start="):
        dragoman.resume(run)
    overrides = {
        "start": str(run),
        "train.max_updates": 1,
        "train.save_every": 1,
        "train.batch_tokens": 200,
        "optim.rate": 1e-9,
        "data.valid_size": 2,
        "data.clean.drop_duplicates": False,
    }
    trained = dragoman.train(run.parent / "pairs.tsv", out=tmp_path / "run", overrides=overrides, quiet=True)
    before, after = load_model(run), load_model(trained.directory, which="last")
    assert after.src_tokenizer.sha256 == before.src_tokenizer.sha256
    assert after.tgt_tokenizer.sha256 == before.tgt_tokenizer.sha256
    ours, theirs = model_tensors(before.model), model_tensors(after.model)
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-7) for name in ours)
    more = dragoman.resume(trained, {"train.max_updates": 3, "optim.rate": 0.01}, quiet=True)
    moved = load_model(more.directory, which="last")
    table = model_tensors(moved.model)["encoder.embedding.weight"]
    assert not torch.allclose(table, ours["encoder.embedding.weight"])
    out = export_huggingface(moved, tmp_path / "out")
    loaded = transformers.AutoModelForSeq2SeqLM.from_pretrained(out)
    assert torch.equal(loaded.get_input_embeddings().weight, table)  # T5 keeps our numbers


def test_an_export_has_a_model_card_with_what_was_measured(run: Path, tmp_path: Path) -> None:
    measured = run / "evaluation" / "news"
    measured.mkdir(parents=True)
    metric = {"name": "BLEU", "value": 41.25, "signature": "nrefs:1|case:mixed", "half_width": None}
    (measured / "report.json").write_text(json.dumps({"metrics": [metric]}), "utf-8")
    (run / "evaluation" / "damaged").mkdir()
    (run / "evaluation" / "damaged" / "report.json").write_text("{", "utf-8")
    done = CliRunner().invoke(
        app, ["export", str(run), "--to", "huggingface", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    _, head, text = (tmp_path / "out" / "README.md").read_text("utf-8").split("---\n", 2)
    assert yaml.safe_load(head)["language"] == ["en", "de"]
    assert yaml.safe_load(head)["pipeline_tag"] == "translation"
    assert "# English to German" in text
    assert "| news | BLEU | 41.25 | `nrefs:1|case:mixed` |" in text
    assert import_run(tmp_path / "out", tmp_path / "again").directory.exists()  # the manifest is whole


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_ctranslate2_runs_an_import(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    save(name, tmp_path / "in")
    run = import_run(tmp_path / "in", tmp_path / "run").directory
    done = CliRunner().invoke(app, ["export", str(run), "--out", str(tmp_path / "fast")])
    assert done.exit_code == 0, done.output
    ours, fast = dragoman.load(run, device="cpu"), dragoman.load(tmp_path / "fast")
    pairs = [(source, target) for source in TEXTS for target in TEXTS]
    for one, other in zip(fast.score(pairs), ours.score(pairs), strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize(("joint", "norm"), [(True, "post"), (False, "post"), (True, "pre")])
def test_a_model_of_ours_with_our_tokenizer(
    joint: bool, norm: NormPlace, layout: SinusoidLayout, tmp_path: Path
) -> None:
    texts = [
        "The cat sat on the mat, 12 times.",
        "größer «Ünï» …  zwei  Leerzeichen",
        "<b>tags</b> \U0001f600",
    ]
    config = TokenizerConfig(vocab_size=330, joint=joint, min_frequency=1, specials=("<2de>",))
    src, tgt = (Tokenizer.train(texts * 2, config), Tokenizer.train(texts[:2] * 2, config))
    tgt = src if joint else tgt
    torch.manual_seed(0)
    options = TransformerConfig(
        num_layers=1, model_dim=16, num_heads=2, ff_dim=16, norm=norm, position_layout=layout
    )
    vocab = vocab_of(src, tgt)
    model = build_model("transformer", options, vocab).eval()
    with torch.no_grad():  # each dimension has a norm and a bias of its own
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += torch.randn_like(parameter) / 4
    loaded = LoadedModel(
        model, src, tgt, "x", {"model": model_description("transformer", options, vocab, src, tgt)}
    )
    out = export_huggingface(loaded, tmp_path / "out")
    order, start = numbers_in(out, src.size)
    for folder, tokenizer in ((out, src), (out if joint else out / "target", tgt)):
        theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        numbers = order if joint else torch.arange(tokenizer.size)
        for text in [*texts, "", " ", "ein neues Wort: xyz\t!"]:
            ids = numbers[torch.tensor([*tokenizer.encode(text), 2])].tolist()
            assert theirs(text).input_ids == ids, text
            decoded = theirs.decode(ids[:-1], clean_up_tokenization_spaces=False)
            assert decoded == tokenizer.decode(tokenizer.encode(text))
    peer = transformers.AutoModelForSeq2SeqLM.from_pretrained(out).eval()
    read, written = torch.tensor([[3, 262, 270, 2]]), torch.tensor([[1, 262, 270, 3]])
    given = order[written] if joint else written
    given[:, 0] = start
    said = [n for n in range(tgt.size) if n > 1 or not joint]
    with torch.no_grad():
        ours = model.project(model(read, read != 0, written))
        told = peer(input_ids=order[read] if joint else read, decoder_input_ids=given).logits
    told = told[..., order] if joint else told
    torch.testing.assert_close(told[..., said], ours[..., said], atol=1e-5, rtol=1e-5)
    again = load_model(import_run(out, tmp_path / "run").directory)
    assert again.src_tokenizer.sha256 == src.sha256
    with torch.no_grad():
        found = again.model.project(again.model(read, read != 0, written))
    torch.testing.assert_close(found, ours, atol=1e-5, rtol=1e-5)
    if layout == "halves":
        theirs = again.model.state_dict()
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.state_dict().items())
