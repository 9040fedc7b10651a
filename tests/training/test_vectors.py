"""Runs on images and series: trained, killed and resumed, asked; what is refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from drafted import make_config
from dragoman.checkpoint.model import find_checkpoint
from dragoman.cli.main import app
from dragoman.data.batch import VectorBatch
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.vectors.config import SeriesInput
from dragoman.data.vectors.examples import Windows
from dragoman.data.vectors.patches import image_patches, scaled_pixels
from dragoman.data.vectors.series import read_series
from dragoman.data.vectors.stack import parts_of
from dragoman.errors import UserError
from dragoman.learning.vectors import VectorValidator, windows_of
from dragoman.probe.patches import look_at
from dragoman.probe.record import record
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_predictor, open_vector_predictor
from dragoman.training.api import train
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from killing import assert_same_checkpoint, train_until_killed

_SIZES = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8, "dropout": 0.1}
SMALL = {f"model.{name}": value for name, value in _SIZES.items()}
HALVES = {f"model.{half}.{name}": value for half in ("encoder", "decoder") for name, value in _SIZES.items()}
FILES = {"image": "a.images.npy", "series": "s.csv", "forecast": "f.csv", "caption": "c.images.npy"}
OWN: dict[str, dict[str, Any]] = {
    "image": {"task.image.shift": 1, "task.image.flip": True},
    "series": {},
    "caption": {"task.image.shift": 1, "tokenizer.vocab_size": 300, "train.validate_sentences": 4},
    "forecast": {"task.series.horizon": 4, "task.series.window": 16, "task.series.patch": 4},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(1)
    labels = np.arange(60) % 3
    images = rng.integers(0, 60, size=(60, 4, 6), dtype=np.uint8)
    images[np.arange(60), labels] = 250  # the bright row is the label
    np.save(root / "a.images.npy", images)
    np.save(root / "a.labels.npy", labels)
    np.save(root / "c.images.npy", images)
    np.save(root / "c.labels.npy", np.array([f"row {label} is bright" for label in labels]))
    rows = [
        ",".join([*(f"{value:.3f}" for value in rng.normal(label, 1, size=5)), "abc"[label]])
        for label in labels
    ]
    (root / "s.csv").write_text("\n".join(["1,2,3,4,5,label", *rows]) + "\n", "utf-8")
    steps = np.arange(120)
    waves = np.stack([np.sin(steps / 2), 5 + 3 * np.cos(steps / 2)], axis=1) + rng.normal(0, 0.1, (120, 2))
    body = [f"2026-01-01 {n // 60:02}:{n % 60:02}:00,{x:.4f},{y:.4f}" for n, (x, y) in enumerate(waves)]
    body[7] = body[7].rsplit(",", 1)[0] + ","  # a missing value
    (root / "f.csv").write_text("\n".join(["date,a,b", *body]) + "\n", "utf-8")
    return root


def overrides(kind: str, **changes: Any) -> dict[str, Any]:
    return {
        "task.kind": kind,
        **OWN[kind],
        **(SMALL if kind != "caption" else HALVES),
        **{"train.batch_tokens": 200, "train.max_updates": 4, "train.device": "cpu", "train.samples": 1},
        **{"train.validate_every": 2, "train.save_every": 2, "train.log_every": 1},
        **changes,
    }


def trained(folder: Path, kind: str, **changes: Any) -> Run:
    out = folder / "runs" / f"{kind}{len(changes)}"
    return train(folder / FILES[kind], out=out, overrides=overrides(kind, **changes), quiet=True)


@pytest.mark.parametrize("kind", list(FILES))
def test_killed_and_resumed_it_is_bit_identical(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(folder, kind)
    killed = Run.create(tmp_path / "killed", whole.config, whole.corpus())
    train_until_killed(killed, 3, monkeypatch)
    train_run(killed, NoDisplay())
    assert killed.metrics == whole.metrics
    assert_same_checkpoint(whole, killed, "0000004")


@pytest.mark.parametrize("kind", ["image", "series"])
def test_labels_are_predicted_and_scored(kind: str, folder: Path) -> None:
    run, file = trained(folder, kind), str(folder / FILES[kind])
    done = CliRunner().invoke(app, ["predict", str(run.directory), file, "--device", "cpu"])
    assert done.exit_code == 0, done.output
    lines = [line.split("\t") for line in done.output.rstrip("\n").split("\n")]
    assert len(lines) == 60
    assert {label for label, _, _ in lines} <= set(run.config.task.labels if run.config.task else ())
    scored = CliRunner().invoke(app, ["evaluate", str(run.directory), file, "--device", "cpu"])
    truth = [str(n % 3) if kind == "image" else "abc"[n % 3] for n in range(60)]
    right = sum(label == known for (label, _, _), known in zip(lines, truth, strict=True)) / 60
    assert f"accuracy\t{right:.4f}" in scored.output
    again = CliRunner().invoke(app, ["predict", str(run.directory), file, "--metrics", "--device", "cpu"])
    assert again.output == scored.output


def test_captions_are_written_and_scored(folder: Path, tmp_path: Path) -> None:
    run, file = trained(folder, "caption"), str(folder / "c.images.npy")
    done = CliRunner().invoke(app, ["predict", str(run.directory), file, "--format", "jsonl"])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.output.rstrip("\n").split("\n")]
    assert len(lines) == 60
    assert lines[0].keys() == {"caption", "probability", "name"}
    scored = CliRunner().invoke(app, ["evaluate", str(run.directory), file])
    right = sum(line["caption"] == f"row {n % 3} is bright" for n, line in enumerate(lines)) / 60
    assert f"exact\t{100 * right:.2f}" in scored.output
    seen = CliRunner().invoke(
        app, ["explain", str(run.directory), f"{file}[1]", "--out", str(tmp_path / "a.svg")]
    )
    assert seen.exit_code == 0, seen.output
    assert "&lt;/s&gt;" in (tmp_path / "a.svg").read_text("utf-8")
    assert len(seen.stdout.rstrip("\n").split("\n")) >= 1


def test_an_image_is_explained_by_its_patches(folder: Path) -> None:
    """Rollout by hand: half of the attention and half of the residual connection, layer by layer."""
    run, file = trained(folder, "image", **{"model.num_layers": 2}), str(folder / "a.images.npy")
    found = look_at(run, f"{file}[2]", device="cpu")
    assert found.maps.shape == (1, 2, 3)
    predictor = open_vector_predictor(run, device="cpu")
    assert predictor.task.image is not None
    pixels = scaled_pixels(found.image[None], predictor.task.image)
    batch = VectorBatch(
        torch.from_numpy(image_patches(pixels, 2)), torch.ones(1, 7, dtype=torch.bool), torch.zeros(1), 1
    )
    with torch.no_grad(), record(predictor.model) as seen:
        scores = predictor.model(batch)
    whole = torch.eye(7)
    for (weights,) in seen.values():
        whole = (weights[0].mean(dim=0) + torch.eye(7)) / 2 @ whole
    expected = whole[0, 1:] / whole[0, 1:].sum()
    np.testing.assert_allclose(found.maps[0].ravel(), expected.numpy(), atol=1e-6)
    assert found.probabilities[0] == pytest.approx(scores.softmax(dim=1).max().item(), abs=1e-6)
    one = look_at(run, f"{file}[2]", device="cpu", layer=1, head=2)
    first = next(iter(seen.values()))[0][0, 1, 0, 1:]
    np.testing.assert_allclose(one.maps[0].ravel(), (first / first.sum()).numpy(), atol=1e-6)
    with pytest.raises(UserError, match=r"an array of several images; say which one"):
        look_at(run, file, device="cpu")
    with pytest.raises(UserError, match="has 60 images, numbered from 0"):
        look_at(run, f"{file}[60]", device="cpu")
    with pytest.raises(UserError, match="--layer 3: this model has 2"):
        look_at(run, f"{file}[2]", device="cpu", layer=3)


def test_what_is_seen_in_training_is_in_the_configuration(folder: Path) -> None:
    run = trained(folder, "image")
    assert run.config.task is not None and run.config.task.image is not None
    image, pixels = run.config.task.image, np.load(folder / "a.images.npy") / 255
    assert (image.height, image.width, image.channels, image.patch) == (4, 6, 1, 2)
    assert (image.mean[0], image.std[0]) == pytest.approx((pixels.mean(), pixels.std()), abs=1e-6)
    assert run.config.model["input_dim"] == 4
    assert run.config.task.labels == ("0", "1", "2")


def test_a_forecast_follows_the_series(folder: Path, tmp_path: Path) -> None:
    """By the command and by hand: the window is normalised, read, and put back into the units of the data."""
    run = trained(folder, "forecast")
    done = CliRunner().invoke(
        app, ["predict", str(run.directory), str(folder / "f.csv"), "--plot", str(tmp_path / "f.svg")]
    )
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.split("\n") if line]
    assert lines[0] == "time\ta\tb"
    assert lines[1].startswith("2026-01-01 02:00:00\t")
    assert len(lines) == 5
    drawn = (tmp_path / "f.svg").read_text("utf-8")
    assert all(f">{name}<" in drawn for name in ("known", "forecast", "naive", "linear"))
    values = read_series(str(folder / "f.csv"), ()).values[-16:]
    model = open_vector_predictor(run, device="cpu").model
    for channel, name in enumerate("ab"):
        own = values[:, channel]
        patches = torch.tensor((own - own.mean()) / own.std(), dtype=torch.float32).unfold(0, 4, 2)[None]
        with torch.no_grad():
            mask = torch.ones(1, 8, dtype=torch.bool)
            layers = model.network.read_layers(patches, mask)  # type: ignore[operator]
            assert model.head.mix is not None and len(layers) == 2  # the embeddings, and one layer
            shares = model.head.mix.weights.softmax(0)
            read = model.head.mix.scale * (shares[0] * layers[0] + shares[1] * layers[1])
            said = model.head.out(read[:, 1:].flatten(1))[0].numpy() * own.std() + own.mean()
        found = [float(line.split("\t")[1 + channel]) for line in lines[1:]]
        np.testing.assert_allclose(found, said, rtol=1e-3, err_msg=name)


def test_what_cannot_be_forecast(folder: Path, tmp_path: Path) -> None:
    """A channel without a single known number, and numbers in other units."""
    run = trained(folder, "forecast")
    rows = (folder / "f.csv").read_text("utf-8").splitlines()[1:]
    wrong = {
        "unknown.csv": ("", r"unknown\.csv: the last 16 steps of column 'b' have no number"),
        "far.csv": ("1e29", "standard deviations from the mean of the training part: is it in other units"),
    }
    for name, (cell, told) in wrong.items():
        lines = ["date,a,b", *rows[:-16], *(f"{row.rpartition(',')[0]},{cell}" for row in rows[-16:])]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        done = CliRunner().invoke(app, ["predict", str(run.directory), str(tmp_path / name)])
        assert isinstance(done.exception, UserError) and re.search(told, str(done.exception))


def test_errors_stand_beside_baselines(folder: Path) -> None:
    run = trained(folder, "forecast", **{"task.series.quantiles": [0.1, 0.5, 0.9]})
    done = CliRunner().invoke(app, ["evaluate", str(run.directory), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    rows = {line.rsplit(None, 2)[0].strip(): line.split()[-2:] for line in done.output.split("\n")[2:6]}
    assert list(rows) == ["model", "naive", "seasonal naive", "linear"]
    assert float(rows["linear"][0]) < float(rows["naive"][0])
    assert "below quantile 0.9: " in done.output
    assert "21 windows, 4 steps each" in done.output  # a fifth of 120 steps, less the horizon, and one
    best = find_checkpoint(run.directory).read("model")
    assert best["head.out.weight"].shape == (4 * 3, 7 * 8)


def test_several_series_are_learnt_from_in_one_run(folder: Path, tmp_path: Path) -> None:
    """No window has steps of two of them."""
    lines = (folder / "f.csv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "g.csv").write_text("".join([lines[0], *lines[41:]]), "utf-8")
    files = [folder / "f.csv", tmp_path / "g.csv"]
    run = train(*files, out=tmp_path / "run", overrides=overrides("forecast"), quiet=True)
    prepared = run.corpus()
    assert isinstance(prepared, PreparedTask) and run.config.task is not None
    windows = [windows_of(prepared.arrays[part], run.config.task) for part in ("train", "valid", "test")]
    series = run.config.task.series
    assert series is not None
    alone = [parts_of(steps, series, "") for steps in (120, 80)]
    counts = [sum(part[name][1] - part[name][0] - 16 - 4 + 1 for part in alone) for name in alone[0]]
    assert [len(own) // own.turns for own in windows] == counts
    for own in windows:
        assert np.isfinite(np.nan_to_num(np.concatenate(own.cut(np.arange(len(own))), axis=1))).all()
    second = prepared.train[-1].origin
    assert second.startswith(str(tmp_path / "g.csv"))
    done = CliRunner().invoke(app, ["evaluate", str(run.directory), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert f"{counts[2]} windows" in done.output
    with pytest.raises(UserError, match=r"g\.csv: task\.series\.split divides every series"):
        train(
            files[0], valid=[str(files[1])], out=tmp_path / "o", overrides=overrides("forecast"), quiet=True
        )


def test_a_distribution_is_learnt_and_its_quantiles_are_said(folder: Path) -> None:
    changes = {"task.series.distribution": "student", "task.series.quantiles": [0.2, 0.5]}
    run = trained(folder, "forecast", **changes)
    done = CliRunner().invoke(app, ["predict", str(run.directory), str(folder / "f.csv")])
    assert done.exit_code == 0, done.output
    lines = [line.split("\t") for line in done.stdout.split("\n") if line]
    assert lines[0] == ["time", "a:0.2", "a:0.5", "b:0.2", "b:0.5"]
    assert all(float(low) < float(middle) for _, *row in lines[1:] for low, middle in (row[:2], row[2:]))
    best = find_checkpoint(run.directory).read("model")
    assert best["head.out.weight"].shape == (4 * 3, 7 * 8)  # three numbers for each of four steps


def test_images_bring_their_stem_and_small_ones_are_moved_and_turned(folder: Path) -> None:
    def settled(*more: tuple[str, Any], kind: str = "image") -> RunConfig:
        given = {"task.kind": kind, **dict(more)}
        return make_config([folder / FILES[kind]], overrides=given, valid=(), display=NoDisplay())

    plain = settled()
    assert plain.task is not None and plain.task.image is not None
    assert (plain.task.image.shift, plain.task.image.rotate) == (1, 10.0)
    stem = {"stem": "convolution", "channels": 1, "columns": 3}
    assert {name: plain.model[name] for name in stem} == stem
    still = settled(("task.image.shift", 0), ("task.image.rotate", 0.0)).task
    assert still is not None and still.image is not None
    assert (still.image.shift, still.image.rotate) == (0, 0.0)
    assert "stem" not in settled(("model.preset", "vit-tiny")).model
    caption = settled(kind="caption")
    assert caption.task is not None and caption.task.image is not None
    assert (caption.task.image.shift, caption.task.image.rotate) == (0, 0.0)  # it may say where something is
    assert {name: caption.model["encoder"][name] for name in stem} == stem


def test_a_run_is_begun_with_for_images_of_the_same_size_alone(folder: Path, tmp_path: Path) -> None:
    run = trained(folder, "image")
    images = np.zeros((12, 8, 6), dtype=np.uint8)
    np.save(tmp_path / "o.images.npy", images)
    np.save(tmp_path / "o.labels.npy", np.arange(12) % 3)
    given = {"task.kind": "image", "start": str(run.directory), "train.max_updates": 2}
    with pytest.raises(UserError, match=r"positions for images of 4 × 6 pixels .*, and these are of 8 × 6"):
        train(tmp_path / "o.images.npy", out=tmp_path / "run", overrides=given, quiet=True)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("image", {"model.kind": "bert"}, "task image needs a model that reads vectors; choose vit"),
        ("caption", {"objective.name": "vectors"}, "the task caption is learnt by captions, found vectors"),
        ("caption", {"model.encoder.input_dim": 9}, "vectors of this task have 4 numbers, found 9"),
        ("image", {"task.image.patch": 3}, "4 × 6 pixels cannot be cut into squares of 3"),
        ("image", {"model.input_dim": 9}, "vectors of this task have 4 numbers, found 9"),
        ("image", {"objective.name": "task"}, "the task image is learnt by vectors, found task"),
        ("forecast", {"task.series.split": [90, 40, 0]}, "split asks for 130 steps, and there are 120"),
        ("forecast", {"task.series.horizon": 90}, "which is too short for a horizon of 90|needs 106"),
        ("forecast", {"task.series.quantiles": [0.1]}, "the forecast is the median; add 0.5"),
        ("forecast", {"task.series.columns": ["c"]}, "there is no column 'c'; there are date, a, b"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    kind: str, changes: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    given = overrides(kind, **changes)
    if "model.kind" in changes:
        given = {name: value for name, value in given.items() if name != "model.dropout"}
    with pytest.raises(UserError, match=message):
        train(folder / FILES[kind], out=tmp_path / "run", overrides=given, quiet=True)
    assert not (tmp_path / "run").exists()


def test_text_and_vectors_are_kept_apart(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("good\tpos\nbad\tneg\n" * 20, "utf-8")
    given = {"task.kind": "classify", "model.kind": "vit", "train.max_updates": 2, "task.max_length": 16}
    with pytest.raises(UserError, match="this model reads vectors, and the task classify is about text"):
        train(tmp_path / "t.tsv", out=tmp_path / "run", overrides=given, quiet=True)
    with pytest.raises(UserError, match=r"this run reads images, not text; use it with  dragoman predict"):
        open_predictor(trained(folder, "image"))
    text = tmp_path / "text.txt"
    text.write_text("hello\n", "utf-8")
    asked = ["embed", str(trained(folder, "image").directory), str(text), "--out", str(tmp_path / "v.npz")]
    done = CliRunner().invoke(app, asked)
    assert "reads images or series, and embed is for text" in str(done.exception)
    two = [str(folder / "f.csv"), str(folder / "s.csv")]
    with pytest.raises(UserError, match=r"s\.csv: there is no column 'a'"):
        train(*two, out=tmp_path / "run", overrides=overrides("forecast"), quiet=True)


class Still(torch.nn.Module):
    """It says that everything stays at the mean of the window."""

    def forward(self, batch: VectorBatch) -> torch.Tensor:
        return torch.zeros(len(batch.targets), batch.targets[0].numel())


def test_errors_of_a_validation_are_means_over_all_known_steps(make_config: Callable[..., RunConfig]) -> None:
    values = np.random.default_rng(5).normal(size=(30, 2))
    values[20:22, 0] = np.nan
    series = SeriesInput(8, 2, 2, 4, ("a", "b"), mean=(0.0, 0.0), std=(1.0, 1.0))
    examples = [Example((), None, f"step {n}") for n in range(19)]
    windows = Windows(values, examples, TaskConfig("forecast", series=series))
    validator = VectorValidator(make_config("train.batch_tokens=40"), windows, torch.device("cpu"))
    found = validator.run(Still(), torch.autocast("cpu", enabled=False)).metrics
    missed = np.stack([
        values[at + 8 : at + 12] - np.nanmean(values[at : at + 8], axis=0) for at in range(19)
    ])  # fmt: skip
    assert windows.unchanged(np.arange(len(windows))).num_tokens == np.isfinite(missed).sum()
    assert found["mse"] == pytest.approx(np.nanmean(missed**2), rel=1e-5)
    assert found["loss"] == pytest.approx(found["mse"], rel=1e-5)
    assert found["mae"] == pytest.approx(np.nanmean(np.abs(missed)), rel=1e-5)
