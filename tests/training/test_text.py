"""Runs on text: prepared, trained, killed and resumed, continued from a prompt; and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from drafted import make_config
from dragoman.checkpoint.model import load_model, load_network
from dragoman.cli.main import app
from dragoman.config import to_dict
from dragoman.data.corpus import Prepared, prepare
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.learning.resolve import resolve_config
from dragoman.learning.validation import TextSize, text_size
from dragoman.models.bert import Bert
from dragoman.models.elmo import Elmo, spelling_table
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from dragoman.training.state import Training
from killing import assert_same_checkpoint, train_until_killed
from toy import toy_pairs

GPT = {"kind": "gpt", "num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32, "max_positions": 64}
ELMO = {"kind": "elmo", "model_dim": 8, "hidden_dim": 16, "max_characters": 6, "filters": [[1, 8], [2, 8]]}
ULMFIT = {"kind": "ulmfit", "model_dim": 16, "hidden_dim": 24}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    lines = [source for source, _ in toy_pairs(200)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{line}\n" + "\n" * (i % 7 == 0) for i, line in enumerate(lines)), "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


def plain(text: str, **changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "data": {"train": [{"files": [text], "format": "text"}], "valid_size": 15},
        "tokenizer": {"vocab_size": 300},
        "model": GPT,
        "objective": {"name": "causal", "block": 24},
        "optim": {"rate": 3e-3},
        "schedule": {"warmup": 10},
        "train": {
            **{"max_updates": 6, "batch_tokens": 200, "accumulate": 2, "device": "cpu"},
            **{"log_every": 1, "validate_every": 3, "save_every": 2},
        },
    }
    for name, value in changes.items():
        whole[name] = whole[name] | value if isinstance(whole[name], dict) else value
    return whole


def prepared_for(config: RunConfig, cache: Path) -> Prepared:
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)


def test_text_is_kept_in_its_order_and_its_end_is_held_out(text: str, cache: Path) -> None:
    prepared = prepared_for(resolve_config(plain(text)), cache)
    lines = [line for line in Path(text).read_text("utf-8").split("\n") if line]
    stores, tokenizer = (prepared.train, prepared.valid), prepared.tgt_tokenizer
    found = [tokenizer.decode(store.tgt(i).tolist()) for store in stores for i in range(len(store))]
    assert found == lines
    assert len(prepared.valid) == 15
    assert prepared.dropped == {"empty": 29}
    assert not prepared.train.src_lengths.any()


def test_lines_that_come_twice_and_long_lines_stay(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("a b\n" * 20 + "a b c d " * 500 + "\n" + "a b\n" * 20, "utf-8")
    prepared = prepared_for(resolve_config(plain(str(path))), cache)
    assert len(prepared.train) + len(prepared.valid) == 41
    assert prepared.train.tgt_lengths.max() > 1000
    assert prepared.dropped == {}


@pytest.mark.parametrize("name", ["causal", "masked", "bidirectional", "unilm"])
def test_killed_and_resumed_it_is_bit_identical_and_does_what_it_can(
    name: str, text: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {
        "causal": GPT,
        "masked": GPT | {"kind": "bert"},
        "bidirectional": ELMO,
        "unilm": GPT | {"kind": "unilm"},
    }[name]
    config = resolve_config(plain(text, objective={"name": name}) | {"model": model})
    prepared = prepared_for(config, cache)
    whole, killed = (Run.create(tmp_path / name, config, prepared) for name in ("whole", "killed"))
    train_run(whole, NoDisplay())
    train_until_killed(killed, 5, monkeypatch)
    train_run(Run.open(killed.directory), NoDisplay())
    assert_same_checkpoint(whole, killed, "0000006")
    valid = [record for record in whole.metrics if record["kind"] == "valid"]
    assert len(valid) == 2
    known = {"kind", "update", "loss", "perplexity", "accuracy"}
    own = {"masked": {"next_sentence"}, "causal": {"word_perplexity", "bits_per_byte"}}
    assert set(valid[0]) == known | own.get(name, set())
    if name in ("causal", "unilm"):
        _goes_on(whole)
    else:
        _only_reads(whole)


@pytest.mark.parametrize("name", ["causal", "prefix", "spans", "denoise", "masked", "unilm", "bidirectional"])
def test_every_objective_has_a_loss_of_frequencies(name: str, text: str, cache: Path) -> None:
    """Less than that of knowing nothing, and more than none."""
    own = {"masked": GPT | {"kind": "bert"}, "unilm": GPT | {"kind": "unilm"}, "bidirectional": ELMO}
    config = resolve_config(plain(text, objective={"name": name}) | {"model": own.get(name, GPT)})
    prepared = prepared_for(config, cache)
    found = learning_of(config).validator(config, prepared, torch.device("cpu")).frequency_loss
    assert 0.5 < found < math.log(prepared.tgt_tokenizer.size)


def test_rates_do_not_depend_on_the_pieces(text: str, cache: Path) -> None:
    size = text_size(prepared_for(resolve_config(plain(text)), cache))
    lines = [line for line in Path(text).read_text("utf-8").split("\n") if line][-15:]
    assert size == TextSize(
        sum(len(line.split()) + 1 for line in lines), sum(len(line) + 1 for line in lines)
    )
    rates = TextSize(words=4, bytes=20).rates(4 * math.log(10))
    assert rates["word_perplexity"] == pytest.approx(10)
    assert rates["bits_per_byte"] == pytest.approx(0.2 * math.log2(10))


def _only_reads(run: Run) -> None:
    loaded = load_network(run.directory)
    assert isinstance(loaded.model, Bert | Elmo)
    if isinstance(loaded.model, Elmo):
        pieces = range(loaded.tgt_tokenizer.size)
        spelt = spelling_table([loaded.tgt_tokenizer.bytes_of(piece) for piece in pieces], 6)
        assert torch.equal(loaded.model.embedding.table, spelt)
    ids = torch.tensor([[1, *loaded.tgt_tokenizer.encode("ab cd"), 2]])
    hidden = loaded.model.read(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids))
    assert hidden.shape == (*ids.shape, 16)
    with pytest.raises(UserError, match="its model reads and does not write"):
        load_model(run.directory)
    with pytest.raises(UserError, match="cannot generate text"):
        run.generator()


@pytest.mark.parametrize(
    ("name", "steps"), [("spans", ["infill"]), ("denoise", ["permute", "infill", "rotate"])]
)
def test_an_encoder_and_a_decoder_learn_to_undo_noise(
    name: str, steps: list[str], text: str, cache: Path, tmp_path: Path
) -> None:
    objective = {"name": name, "noise": {"steps": steps}}
    model = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32}
    config = resolve_config(plain(text, objective=objective, train={"max_updates": 2}) | {"model": model})
    assert resolve_config(to_dict(config)) == config
    prepared = prepared_for(config, cache)
    examples = learning_of(config).examples(config, prepared)
    both, alone = examples.batch(np.array([0, 3]), 1), examples.batch(np.array([3]), 1)
    n = int(alone.src_mask.sum())
    assert both.src_ids[1, :n].tolist() == alone.src_ids[0].tolist()
    assert alone.src_ids.tolist() != examples.batch(np.array([3]), 2).src_ids.tolist()
    hidden = "<mask>" if name == "denoise" else "<extra_id_0>"
    assert hidden in prepared.tgt_tokenizer.pieces(alone.src_ids[0].tolist())
    run = Run.create(tmp_path / "run", config, prepared)
    train_run(run, NoDisplay())
    assert [record["kind"] for record in run.metrics] == ["train", "train", "valid"]


@pytest.mark.parametrize(
    ("name", "model"),
    [("causal", {"kind": "rnn", "model_dim": 16}), ("causal", ULMFIT), ("prefix", GPT)],
    ids=["rnn", "ulmfit", "prefix"],
)
def test_any_model_is_a_language_model(
    name: str, model: dict[str, Any], text: str, cache: Path, tmp_path: Path
) -> None:
    penalties = {"activation_penalty": 2, "temporal_penalty": 1} if model["kind"] == "ulmfit" else {}
    objective = {"name": name, **penalties}
    config = resolve_config(plain(text, objective=objective, train={"max_updates": 2}) | {"model": model})
    run = Run.create(tmp_path / "run", config, prepared_for(config, cache))
    train_run(run, NoDisplay())
    lines = list(run.generator(device="cpu").lines("ab", 2, max_tokens=4))
    assert lines[0].startswith("ab")


def _goes_on(run: Run) -> None:
    runner = CliRunner()
    beam = ["generate", str(run.directory), "ab c", "--method", "beam", "--n-best", "2", "--max-tokens", "5"]
    found = runner.invoke(app, [*beam, "--device", "cpu"])
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("ab c") for line in lines)
    again = [
        runner.invoke(app, ["generate", str(run.directory), "--lines", "3", "--seed", "4"]) for _ in "ab"
    ]
    assert again[0].output == again[1].output
    with pytest.raises(UserError, match="does not translate"):
        run.translator()
    with pytest.raises(UserError, match="--lines: expected at least 1, found 0"):
        runner.invoke(app, ["generate", str(run.directory), "--lines", "0"], catch_exceptions=False)
    generator = run.generator(device="cpu")
    best = generator.hypotheses("ab c", max_tokens=5)[0]
    (scored,) = generator.translator.score_ids([([], best.tokens)], search=generator.search)
    assert scored.log_prob == pytest.approx(best.log_prob, abs=1e-4)


def test_files_on_the_command_line_are_text_where_the_objective_says_so(text: str) -> None:
    config = make_config(
        [text], overrides=["objective.name=causal", "train.device=cpu"], valid=[text], display=NoDisplay()
    )
    assert [source.format for source in (*config.data.train, *config.data.valid)] == ["text", "text"]
    assert config.model["kind"] == "gpt"
    assert config.objective.label_smoothing == 0
    assert config.train.metric == "loss"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": {"name": "translate"}}, "objective.name: translate learns from pairs"),
        ({"objective": {"block": 64}}, "objective.block: a block of 64 pieces needs 1 more places"),
        ({"objective": {"name": "masked"}}, "objective.name: masked does not go with model.kind gpt"),
        ({"objective": {"name": "unilm"}}, "objective.name: unilm does not go with model.kind gpt"),
        (
            {"objective": {"name": "unilm", "r_drop": 1}, "model": {"kind": "unilm"}},
            "objective.r_drop: it does nothing for unilm, found 1.0; leave it out",
        ),
        (
            {"objective": {"name": "unilm", "block": 63}, "model": {"kind": "unilm"}},
            "objective.block: a block of 63 pieces needs 2 more places",
        ),
        (
            {"objective": {"mask_shares": [1, 1]}},
            r"objective.mask_shares: expected three .* found \[1.0, 1.0\]",
        ),
        (
            {"objective": {"r_drop": 1, "activation_penalty": 1}},
            "objective.activation_penalty: penalties go with plain teacher forcing alone",
        ),
        ({"objective": {"noise": {"share": 2}}}, "objective.noise.share: expected a share above 0"),
        (
            {"objective": {"noise": {"whole_words": True}}, "tokenizer": {"kind": "char"}},
            "objective.noise.whole_words: words are told by their mark",
        ),
        ({"objective": {"block": 1}}, "objective.block: expected a whole number of at least 2, found 1"),
        ({"tokenizer": {"joint": False}}, "tokenizer.joint: text has one side"),
        ({"tokenizer": {"dropout": 0.1}}, "tokenizer.dropout: text has one side"),
        ({"train": {"metric": "bleu"}}, "train.metric: text is not translated, so there is no bleu"),
        ({"data": {"valid": [{"files": ["a", "b"]}]}}, r"data.valid\[0\].format: text and pairs do not"),
    ],
)
def test_what_does_not_go_with_text_is_refused(text: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolve_config(plain(text, **changes))


def test_penalties_are_refused_where_nothing_tells_dropout(text: str, cache: Path) -> None:
    config = resolve_config(plain(text, objective={"activation_penalty": 1}))
    with pytest.raises(UserError, match=r"objective.activation_penalty: penalties are for model.kind ulmfit"):
        Training(config, prepared_for(config, cache), torch.device("cpu"))


def test_pairs_do_not_go_with_an_objective_for_text() -> None:
    data = {"train": [{"files": ["a.en", "a.de"]}]}
    with pytest.raises(
        UserError, match=r"objective.name: causal learns from text; set data.train\[\].format"
    ):
        resolve_config({**plain("text.txt"), "data": data})


def test_a_text_is_counted_by_no_other_objective() -> None:
    with pytest.raises(UserError, match=r"model\.kind: a model that counts .* causal, found spans"):
        resolve_config({**plain("text.txt", objective={"name": "spans"}), "model": {"kind": "markov"}})
