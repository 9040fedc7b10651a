"""Fine-tuned runs: from scratch and from pre-trained ones, killed and resumed, asked; what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from drafted import make_config
from dragoman.checkpoint.model import find_checkpoint
from dragoman.cli.main import app
from dragoman.data.labelled.example import Example
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_predictor
from dragoman.training.api import changed_config, resume, train
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from dragoman.training.state import Training
from killing import train_until_killed
from until_learnt import learn_until

BERT = {"kind": "bert", "num_layers": 1, "model_dim": 32, "num_heads": 2, "ff_dim": 64, "max_positions": 64}
WORDS = ["the", "film", "was", "a", "story", "of", "man", "and", "sea", "with", "song"]
MOODS = {"pos": ["good", "great", "lovely"], "neg": ["bad", "awful", "dull"]}
LONG = {"optim.rate": 1e-2, "train.max_updates": 30, "train.validate_every": 15, "task.pooling": "mean"}
LONG |= {"schedule.name": "constant", "schedule.warmup": 5}


def sentence(number: int, label: str) -> list[str]:
    words = [WORDS[(number * 7 + place * 3) % len(WORDS)] for place in range(5)]
    words.insert(number % 6, MOODS[label][number % 3])
    return words


def labelled(count: int) -> list[tuple[list[str], str]]:
    return [(sentence(number, label), label) for number in range(count) for label in MOODS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tasks")
    rows = [(" ".join(words), label) for words, label in labelled(60)]
    pairs = [(row, rows[(number + 1 + number // 3) % len(rows)]) for number, row in enumerate(rows)]
    files = {
        "classify.tsv": [f"{text}\t{label}" for text, label in rows],
        "pair.tsv": [f"{a}\t{b}\t{'same' if x == y else 'other'}" for (a, x), (b, y) in pairs],
        "similarity.tsv": [f"{a}\t{b}\t{len(a.split()) - len(set(b))}" for (a, _), (b, _) in pairs],
        "regress.tsv": [f"{text}\t{3 + 2 * (label == 'pos')}.5" for text, label in rows],
        "choice.jsonl": [
            json.dumps({"prompt": a, "choices": [a, b, "no"][: 2 + n % 2], "label": n % 2})
            for n, ((a, _), (b, _)) in enumerate(pairs)
        ],
        "tag.conll": [
            "\n".join(f"{word} {'B-mood' if word in MOODS[label] else 'O'}" for word in words) + "\n"
            for words, label in labelled(60)
        ],
        "span.jsonl": [
            json.dumps({"question": "how?", "context": text, "answer": mood, "start": text.index(mood)})
            for text, label in rows
            for mood in MOODS[label]
            if mood in text.split()
        ],
        "text.txt": [text for text, _ in rows],
    }
    for name, lines in files.items():
        (root / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return root


def overrides(kind: str, **changes: Any) -> dict[str, Any]:
    model = {f"model.{name}": value for name, value in BERT.items()}
    return {
        "task.kind": kind,
        "task.max_length": 24,
        "tokenizer.vocab_size": 320,
        **model,
        **{"train.batch_tokens": 240, "train.max_updates": 4, "train.device": "cpu", "train.samples": 1},
        **{"train.validate_every": 2, "train.save_every": 2, "train.log_every": 1},
        **changes,
    }


@pytest.fixture(scope="module")
def classifier(folder: Path) -> Run:
    """Trained until it tells moods apart, which is asked every 30 updates. It took 30; the limit is 600."""
    run = train(
        folder / "classify.tsv", out=folder / "runs/c", overrides=overrides("classify", **LONG), quiet=True
    )

    def go_on() -> None:
        resume(run, {"train.max_updates": int(run.last or 0) + 30}, quiet=True)

    learn_until(lambda: tells_moods_apart(run), go_on, at_most=19)
    return run


def tells_moods_apart(run: Run) -> bool:
    return run.best is not None and run.best["value"] > 0.9 and moods(run)[0] == ["pos", "neg"]


def moods(run: Run) -> tuple[list[Any], list[float]]:
    """What it says of a new sentence of each mood, and the sums of the probabilities."""
    texts = [" ".join(sentence(71, label)) for label in ("pos", "neg")]
    found = open_predictor(run).predict([Example((text,), None, "here") for text in texts])
    return [one.value for one in found], [sum(one.probabilities.values()) for one in found]


def test_a_classifier_learns_from_scratch(classifier: Run) -> None:
    assert classifier.best is not None
    assert classifier.best["metric"] == "accuracy"
    assert moods(classifier) == (["pos", "neg"], pytest.approx([1.0, 1.0]))


@pytest.mark.parametrize("kind", ["pair", "similarity", "regress", "choice", "tag", "span"])
def test_every_task_trains_and_predicts(kind: str, folder: Path) -> None:
    (file,) = folder.glob(f"{kind}.*")
    run = train(file, out=folder / "runs" / kind, overrides=overrides(kind), quiet=True)
    assert run.best is not None
    done = CliRunner().invoke(app, ["predict", str(run.directory), str(file), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    lines = done.output.rstrip("\n").split("\n")
    assert len(lines) == 120
    if kind == "tag":
        assert len(lines[0].split("\t")[0].split()) == 6
    if kind == "span":
        answer, _, start, end, question = lines[0].split("\t")
        context = json.loads(file.read_text("utf-8").split("\n")[0])["context"]
        assert context[int(start) : int(end)] == answer
        assert question == "how?"
    done = CliRunner().invoke(app, ["predict", str(run.directory), str(file), "--metrics"])
    assert done.output.startswith("examples\t120\n")
    if kind == "regress":  # the error that is told is that of what is predicted
        found = dict(line.split("\t") for line in done.output.splitlines())
        given = [float(line.split("\t")[1]) for line in file.read_text("utf-8").splitlines()]
        said = [float(line.split("\t")[0]) for line in lines]
        error = sum((a - b) ** 2 for a, b in zip(said, given, strict=True)) / len(given)
        assert float(found["mse"]) == pytest.approx(error, abs=1e-3) and {"pearson", "spearman"} <= set(found)


def test_the_layers_of_a_frozen_elmo_are_mixed_and_the_shares_are_told(folder: Path) -> None:
    elmo = {"kind": "elmo", "model_dim": 8, "hidden_dim": 16, "max_characters": 6, "filters": [[1, 8]]}
    own = {"task.layers": "mix", "task.recurrent": 6, "transfer.freeze": ["network."], "optim.rate": 0.1}
    shared = {name: value for name, value in overrides("tag").items() if not name.startswith("model.")}
    changed = shared | own | {f"model.{name}": value for name, value in elmo.items()}
    run = train(folder / "tag.conll", out=folder / "runs/mixed", overrides=changed, quiet=True)
    shares = [v for k, v in run.metrics[-1].items() if k.startswith("layer_")]
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(1.0)
    assert shares != pytest.approx([1 / 3] * 3)
    assert "layers " in (run.directory / "log.txt").read_text("utf-8")
    assert "parameters are trained" in (run.directory / "log.txt").read_text("utf-8")
    done = CliRunner().invoke(app, ["predict", str(run.directory), str(folder / "tag.conll"), "--metrics"])
    assert "layer_2\t" in done.output
    assert "layers_scale\t" in done.output


def test_killed_and_resumed_it_is_bit_identical(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(folder / "tag.conll", out=tmp_path / "whole", overrides=overrides("tag"), quiet=True)
    killed = Run.create(tmp_path / "killed", whole.config, whole.corpus())
    train_until_killed(killed, 4, monkeypatch)
    train_run(killed, NoDisplay())
    assert killed.metrics == whole.metrics
    ours, theirs = (find_checkpoint(run.directory, "last") for run in (killed, whole))
    for part in ("model", "optim"):
        left, right = ours.read(part), theirs.read(part)
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)


def test_it_begins_with_a_pretrained_network_and_a_new_head(folder: Path, classifier: Run) -> None:
    own = [f"model.{name}={value}" for name, value in BERT.items() if name != "kind"]
    shared = ["train.max_updates=2", "train.device=cpu", "train.batch_tokens=400", "tokenizer.vocab_size=320"]
    arguments = ["pretrain", str(folder / "text.txt"), "--model", "bert-tiny", "--quiet", *own, *shared]
    done = CliRunner().invoke(app, [*arguments, "objective.block=24", "--out", str(folder / "runs/b")])
    assert done.exit_code == 0, done.output
    pretrained = find_checkpoint(folder / "runs/b")
    begun = pretrained.read(pretrained.state["weights"])
    arguments = ["finetune", str(folder / "runs/b"), str(folder / "classify.tsv"), "--task", "classify", "-q"]
    small = ["train.max_updates=1", "optim.rate=1e-9", "train.ema=0", "train.device=cpu"]
    done = CliRunner().invoke(
        app, [*arguments, "task.max_length=24", *small, "--out", str(folder / "runs/f")]
    )
    assert done.exit_code == 0, done.output
    run = Run.open(folder / "runs/f")
    assert run.tokenizers()[0].sha256 == Run.open(folder / "runs/b").tokenizers()[0].sha256
    found = find_checkpoint(run.directory).read("model")
    for name, tensor in begun.items():
        torch.testing.assert_close(found[f"network.{name}"], tensor, atol=1e-6, rtol=0)
    assert {name for name in found if name.startswith("head.")} == {"head.out.weight", "head.out.bias"}
    # The head goes along where it is the same, and is left where it is another.
    for kind, same in (("classify", True), ("tag", False)):
        (file,) = folder.glob(f"{kind}.*")
        config = make_config(
            [str(file)],
            overrides=overrides(kind, start=str(classifier.directory), **{"task.pooling": "mean"}),
            valid=[],
            display=NoDisplay(),
        )
        training = Training(config, classifier.corpus(), torch.device("cpu"))
        before = training.model.head.out.weight.clone()
        training.begin_with(find_checkpoint(classifier.directory))
        assert torch.equal(before, training.model.head.out.weight) != same


def test_what_cannot_be_is_refused(folder: Path, classifier: Run, tmp_path: Path) -> None:
    def config(kind: str, file: str = "classify.tsv", **changes: Any):
        given = overrides(kind, **changes)
        return make_config([str(folder / file)], overrides=given, valid=[], display=NoDisplay())

    with pytest.raises(
        UserError, match=r"train\.metric: the task classify has no pearson; choose one of accuracy"
    ):
        config("classify", **{"train.metric": "pearson"})
    with pytest.raises(UserError, match=r"task\.max_length: sequences of 99 pieces are longer than"):
        config("classify", **{"task.max_length": 99})
    with pytest.raises(
        UserError, match=r"objective\.name: a task is its own objective, found masked|learnt from"
    ):
        config("classify", **{"objective.name": "masked"})
    with pytest.raises(UserError, match=r"data\.shards: labelled examples are kept in memory"):
        config("classify", **{"data.shards.pairs": 10})
    with pytest.raises(UserError, match=r"task\.kind: expected one of classify, pair"):
        config("clasify")
    with pytest.raises(UserError, match="model that counts has no vectors"):
        plain = overrides("classify")
        kept = {name: value for name, value in plain.items() if not name.startswith("model.")}
        make_config(
            [str(folder / "classify.tsv")],
            overrides={**kept, "model.kind": "markov"},
            valid=[],
            display=NoDisplay(),
        )
    with pytest.raises(UserError, match=r"task\.labels: a list of labels is required"):
        resolve_config({"data": {"train": [{"files": ["x.tsv"]}]}, "model": BERT, "task": {"kind": "tag"},
                 "optim": {"rate": 1.0}, "train": {"max_updates": 1, "metric": "f1"}})  # fmt: skip
    with pytest.raises(UserError, match=r"task\.max_length: a run that has begun cannot change it"):
        changed_config(classifier, ["task.max_length=30"])
    (tmp_path / "valid.tsv").write_text("a b\tneutral\n")
    files = [str(folder / "classify.tsv"), "--task", "classify", "--valid", str(tmp_path / "valid.tsv"), "-q"]
    done = CliRunner().invoke(app, ["finetune", *files, "--out", str(tmp_path / "r")])
    assert str(done.exception).endswith(
        "valid.tsv:1: the label 'neutral' is not one of those that training has: neg, pos"
    )
    directory = str(classifier.directory)
    for arguments, message in (
        (["finetune", str(folder / "classify.tsv")], "--task: expected one of"),
        (["finetune", str(folder), "x.tsv", "--task", "tag"], "this directory is not a run"),
        (["finetune", directory, "x.tsv", "--task", "tag", "--model", "gpt-tiny"], "has its own model"),
        (["translate", directory, "x"], "fine-tuned for a task and does not translate"),
        (["predict", directory, "--set", "task.kind=tag"], "only task.text, task.second and task.label"),
        (["pretrain", str(folder / "text.txt"), "--model", "lstm"], "'lstm' has no default objective"),
        (["pretrain", str(folder / "text.txt"), "model.preset=lstm"], "'lstm' has no default objective"),
    ):
        assert message in str(CliRunner().invoke(app, arguments).exception)


def test_predictions_of_standard_input(classifier: Run) -> None:
    done = CliRunner().invoke(
        app,
        ["predict", str(classifier.directory), "--format", "jsonl"],
        input="a lovely film\nthe sea was awful\n",
    )
    records = [json.loads(line) for line in done.output.splitlines()]
    assert [record["texts"] for record in records] == [["a lovely film"], ["the sea was awful"]]
    assert set(records[0]["probabilities"]) == {"neg", "pos"}
    done = CliRunner().invoke(app, ["predict", str(classifier.directory)], input="a\n\n")
    assert "standard input:2: expected a text" in str(done.exception)
