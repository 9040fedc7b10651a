"""The run directory: whole or not there, checked when opened, used without its data, changed with care."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from dragoman import checkpoint
from dragoman.checkpoint.model import load_into, load_model, model_tensors
from dragoman.data.corpus import Prepared, prepare
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.kernels import int8
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.runs.opening import load, pick_device
from dragoman.training.api import resume
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from toy import PARTS_OF_A_RUN

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, make_config: MakeConfig, prepared: Prepared) -> Run:
    run = Run.create(tmp_path_factory.mktemp("trained") / "run", make_config("train.ema=0.5"), prepared)
    train_run(run, NoDisplay())
    return run


@pytest.fixture
def copy(trained: Run, tmp_path: Path) -> Path:
    return shutil.copytree(trained.directory, tmp_path / "copy")


def test_what_a_run_holds(trained: Run) -> None:
    assert {p.name for p in trained.directory.iterdir()} == {".lock", *PARTS_OF_A_RUN}
    again = Run.open(trained.directory)
    assert again.config == trained.config
    assert again.best == trained.best
    src, tgt = again.tokenizers()
    assert src is tgt


def test_translating_needs_no_training_data(copy: Path) -> None:
    expected = load(copy).translate(["ab cd", "e"])
    shutil.rmtree(copy / "data")
    assert load(copy).translate(["ab cd", "e"]) == expected
    with pytest.raises(UserError, match="the training data are gone"):
        resume(copy, quiet=True)


def test_a_checkpoint_can_be_chosen(copy: Path) -> None:
    for which in ("best", "last", "0000020"):
        assert load_model(copy, which=which).name == "0000020"
    for which in ("0000099", "../checkpoints", "fastest"):
        with pytest.raises(UserError, match="there is no checkpoint"):
            load_model(copy, which=which)


def test_weights_of_half_the_size_translate_nearly_the_same(copy: Path) -> None:
    exact, half = load(copy), load(copy, precision="bfloat16")
    assert isinstance(half, Translator)
    assert {p.dtype for p in half.model.parameters()} == {torch.bfloat16}
    pairs = [("ab cd", "ab"), ("e", "cd e")]
    for one, other in zip(exact.score(pairs), half.score(pairs), strict=True):
        assert other.log_prob == pytest.approx(one.log_prob, rel=0.05)
    assert half.translate(["ab cd"])
    with pytest.raises(UserError, match="precision: expected one of float32, bfloat16, int8, found 'int4'"):
        load(copy, precision="int4")


@pytest.mark.skipif(not int8.available, reason="this torch has no products of int8")
def test_products_of_whole_numbers_translate_nearly_the_same(copy: Path) -> None:
    exact, small = load(copy), load(copy, precision="int8")
    assert isinstance(small, Translator)
    pairs = [("ab cd", "ab"), ("e", "cd e")]
    for one, other in zip(exact.score(pairs), small.score(pairs), strict=True):
        assert other.log_prob != one.log_prob
        assert other.log_prob == pytest.approx(one.log_prob, rel=0.05)
    alone, together = small.translate(["ab cd"]), small.translate(["e", "ab cd", "b"])
    assert together[1] == alone[0]


def test_without_a_best_the_last_is_served(copy: Path) -> None:
    (copy / "best.json").unlink()
    assert load_model(copy).name == "0000020"
    (copy / "best.json").write_text("{")
    with pytest.raises(UserError, match=r"best\.json: damaged"):
        load_model(copy)


def test_every_flipped_bit_of_best_json_is_found(copy: Path) -> None:
    path = copy / "best.json"
    clean = path.read_bytes()
    expected = load_model(copy).name
    for position in range(len(clean)):
        damaged = bytearray(clean)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            assert load_model(copy).name == expected  # a space, or the loss, which nothing is chosen by
        except UserError as error:
            assert "best.json" in str(error) or "no such checkpoint" in str(error)


def test_another_tokenizer_is_refused_by_name(copy: Path) -> None:
    path = copy / "tokenizer.json"
    other = json.loads(path.read_bytes())
    from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

    Tokenizer.train(["other words"], TokenizerConfig(vocab_size=300)).save(path)
    assert json.loads(path.read_bytes()) != other
    with pytest.raises(UserError, match=r"tokenizer\.json: changed"):
        load(copy)
    with pytest.raises(
        UserError, match=r"tokenizer\.json: this is not the tokenizer that the model was trained"
    ):
        load_model(copy)


@pytest.mark.parametrize("name", ["config.yaml", "tokenizer.json"])
def test_a_changed_file_is_refused_by_name(copy: Path, name: str) -> None:
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data + b" ")
    with pytest.raises(UserError, match=f"{name}: changed"):
        Run.open(copy)
    (copy / name).unlink()
    with pytest.raises(UserError, match=f"{name}: this file of the run is missing"):
        Run.open(copy)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1, "files": {"../x": []}, "fingerprint": "f"}'])
def test_a_strange_manifest_is_one_sentence(copy: Path, text: str) -> None:
    (copy / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=r"manifest\.json: "):
        Run.open(copy)


def test_what_is_not_a_run_is_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="run directory"):
            Run.open(path)
    with pytest.raises(UserError, match="no trained model here"):
        load_model(tmp_path)


def test_a_damaged_best_is_refused_and_named(copy: Path) -> None:
    file = copy / "checkpoints" / "0000020" / "ema.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"0000020/ema\.safetensors: damaged"):
        load(copy)


def test_a_run_is_made_as_a_whole(tmp_path: Path, make_config: MakeConfig, prepared: Prepared) -> None:
    out = tmp_path / "run"
    real = os.rename

    def crash(*_paths: object) -> None:
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", lambda a, b: crash() if Path(b) == out else real(a, b))
        with pytest.raises(SystemExit):
            Run.create(out, make_config(), prepared)
    assert not out.exists()
    out.mkdir()
    Run.create(out, make_config(), prepared)
    assert Run.open(out).last is None
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    with pytest.raises(UserError, match="this exists already"):
        Run.create(out, make_config(), prepared)


def test_only_one_process_trains_a_run(make_run: MakeRun) -> None:
    run = make_run(train=False)
    with run.locked(), pytest.raises(UserError, match="another process is training this run"):
        train_run(Run.open(run.directory), NoDisplay())


def test_another_corpus_is_refused(copy: Path, make_config: MakeConfig, cache: Path, tmp_path: Path) -> None:
    for name in ("b.en", "b.de"):
        (tmp_path / name).write_text("".join(f"{'xyz'[i % 3] * (i + 1)}\n" for i in range(20)))
    config = make_config(f"data.train=[{{files: [{tmp_path}/b.en, {tmp_path}/b.de]}}]")
    other = prepare(config.data, config.tokenizer, seed=5, cache=cache)
    shutil.rmtree(copy / "data")
    other.link_into(copy / "data")
    with pytest.raises(UserError, match="another corpus"):
        resume(copy, quiet=True)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["fingerprint"] = other.fingerprint
    del manifest["seal"]  # as an earlier version wrote it
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="0000020: it was trained on another corpus"):
        resume(copy, quiet=True)


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_directory_that_is_no_run_is_not_resumed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"not a run|root of all"):
        resume(name, quiet=True)


def test_resume_changes_how_not_what(copy: Path) -> None:
    run = resume(copy, ["train.max_updates=25", "optim.rate=1e-3", "search.beam=2"], quiet=True)
    assert run.outcome is not None
    assert run.outcome.update == 25
    again = Run.open(copy)
    assert (again.config.train.max_updates, again.config.optim.rate, again.config.search.beam) == (
        25,
        1e-3,
        2,
    )
    for assignment in ("seed=9", "model.num_layers=2", "tokenizer.dropout=0.1", "train.batch_tokens=100"):
        with pytest.raises(
            UserError, match=f"^{assignment.split('=')[0]}: a run that has begun cannot change it"
        ):
            resume(copy, [assignment], quiet=True)
    with pytest.raises(UserError, match=r"optimizer's state: lacks tensor 'momentum_buffer"):
        resume(copy, ["optim.name=sgd"], quiet=True)


def test_a_kill_while_the_configuration_is_exchanged_leaves_a_run(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.open(copy)
    changed = make_changed(run)
    real, count = os.replace, 0
    for fatal in (1, 2, 3):

        def crash(a: Path, b: Path, fatal: int = fatal) -> None:
            nonlocal count
            count += 1
            if count == fatal:
                raise SystemExit
            real(a, b)

        count = 0
        monkeypatch.setattr(os, "replace", crash)
        with pytest.raises(SystemExit):
            run.replace_config(changed)
        monkeypatch.undo()
        found = Run.open(copy).config.train.max_updates
        assert found == (20 if fatal < 3 else 21)
    with Run.open(copy).locked():  # the next writer ends what was begun
        listed = json.loads((copy / "manifest.json").read_bytes())["files"]["config.yaml"]
        assert listed == [hashlib.sha256((copy / "config.yaml").read_bytes()).hexdigest()]


def make_changed(run: Run) -> RunConfig:
    from dragoman.training.api import changed_config

    return changed_config(run, ["train.max_updates=21"])


def test_the_environment_is_compared(copy: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        resume(copy, ["train.max_updates=21"], quiet=True)
    finally:
        torch.set_num_threads(threads)
    assert f"not bit for bit as before: threads {threads} → {threads + 1}" in (copy / "log.txt").read_text()


def test_a_device_that_is_not_there_is_told() -> None:
    assert pick_device("cpu").type == "cpu"
    for name in ("gpu", "cuda:99", "meta2"):
        with pytest.raises(UserError, match=f"device: '{name}'"):
            pick_device(name)


# --- tied weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tie", "shared"), [(True, True), (True, False), (False, False)])
def test_tied_weights_are_stored_once_and_stay_tied(tmp_path: Path, tie: bool, shared: bool) -> None:
    config = TransformerConfig(num_layers=1, model_dim=8, num_heads=2, ff_dim=8, tie_embeddings=tie)
    vocab = Vocab(20, 20, shared)
    torch.manual_seed(1)
    first = build_model("transformer", config, vocab)
    torch.manual_seed(2)
    second = build_model("transformer", config, vocab)
    stored = model_tensors(first)
    matrices = [name for name, tensor in stored.items() if tensor.shape == (20, 8)]
    assert len(matrices) == (1 if tie and shared else 2 if tie else 3)
    path = checkpoint.save(tmp_path, "0000001", {"model": stored}, {})
    load_into(second, checkpoint.load_checkpoint(path).read("model"), path)
    for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    pointers = [model.state_dict(keep_vars=True) for model in (first, second)]
    ties = [[id(t) for t in entries.values()] for entries in pointers]
    assert [ids.index(i) for ids in ties[:1] for i in ids] == [ids.index(i) for ids in ties[1:] for i in ids]


def test_weights_of_another_shape_are_refused() -> None:
    model = build_model(
        "transformer",
        TransformerConfig(num_layers=1, model_dim=8, num_heads=2, ff_dim=8),
        Vocab(20, 20, True),
    )
    tensors = model_tensors(model)
    name = next(iter(tensors))
    with pytest.raises(UserError, match=f"'{name}' has the shape"):
        load_into(model, tensors | {name: torch.zeros(3)}, "file")
    with pytest.raises(UserError, match="unknown tensor 'extra'"):
        load_into(model, tensors | {"extra": torch.zeros(3)}, "file")
