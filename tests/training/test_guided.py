"""Runs with guided alignment: resumed bit for bit, aligned by their head, refused where links are missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.config import apply_overrides, to_dict
from dragoman.data.alignment.links import pharaoh
from dragoman.data.corpus import Prepared, prepare
from dragoman.decode.alignment.attention import Look
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.runs.opening import pick_device
from dragoman.training.batches import Batches
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from toy import toy_pairs
from until_learnt import learn_until

GUIDED = ("objective.guided_alignment.weight=0.5", "objective.guided_alignment.head=1")
Make = Callable[..., Run]


@pytest.fixture(scope="module")
def alignment(corpus: tuple[str, str]) -> str:
    """The words of the toy corpus come in reverse order."""
    path = Path(corpus[0]).with_name("a.align")
    counts = [len(src.split()) for src, _ in toy_pairs(160)]
    lines = [" ".join(f"{n - 1 - t}-{t}" for t in range(n)) for n in counts]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def config_of(plain: dict[str, Any], alignment: str | None, *overrides: str) -> RunConfig:
    source = plain["data"]["train"][0] | {"alignment": alignment}
    return resolve_config(apply_overrides(plain | {"data": plain["data"] | {"train": [source]}}, overrides))


def prepared_for(config: RunConfig, cache: Path) -> Prepared:
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)


@pytest.fixture
def make(plain: dict[str, Any], alignment: str, cache: Path, tmp_path: Path) -> Make:
    def make(name: str, *overrides: str) -> Run:
        config = config_of(plain, alignment, *GUIDED, *overrides)
        run = Run.create(tmp_path / name, config, prepared_for(config, cache))
        train_run(run, NoDisplay())
        return run

    return make


def test_a_resumed_run_is_bit_identical(make: Make) -> None:
    """Also where the pieces, and so the links between them, are others in every epoch."""
    quick = ("tokenizer.dropout=0.3", "train.validate_every=50", "train.validate_sentences=0")
    whole = make("whole", *quick, "train.max_updates=12")
    parts = make("parts", *quick, "train.max_updates=7")
    parts.replace_config(whole.config)
    train_run(parts, NoDisplay())
    name = whole.last
    assert name == parts.last
    for file in ("model.safetensors", "optim.safetensors"):
        left, right = (run.checkpoints / str(name) / file for run in (whole, parts))
        assert left.read_bytes() == right.read_bytes(), file

    plain = make("plain", *quick, "train.max_updates=12", "objective.guided_alignment.weight=0")
    first, other = (run.metrics[0] for run in (whole, plain))
    assert first["loss"] > other["loss"]  # by the part of the links


def aligned(run: Run) -> list[list[tuple[int, int]]]:
    return run.translator("last", "cpu").aligner.links_of_texts(toy_pairs(160), batch_tokens=1000)


def share_right(found: list[list[tuple[int, int]]]) -> float:
    right = total = 0
    for (src, _), links in zip(toy_pairs(160), found, strict=True):
        count = len(src.split())
        right += sum((count - 1 - t, t) in links for t in range(count))
        total += count
    return right / total


def test_the_guided_head_aligns(make: Make) -> None:
    """It is the one that is asked, and it learns what it is told, whatever the model can translate: after 40
    to 80 updates. The limit is 1000."""
    quick = ("train.max_updates=40", "train.validate_every=40", "train.save_every=40", "model.dropout=0")
    run = make("learnt", *quick, "optim.rate=0.01", "model.model_dim=32", "train.batch_tokens=600")

    def go_on() -> None:
        goal = (run.config.train.max_updates or 0) + 40
        run.replace_config(
            resolve_config(apply_overrides(to_dict(run.config), [f"train.max_updates={goal}"]))
        )
        train_run(run, NoDisplay())

    learn_until(lambda: share_right(aligned(run)) > 0.9, go_on, at_most=24)
    aligner = run.translator("last", "cpu").aligner
    assert aligner.look == Look("decoder.layers.0.cross_attention", True, 1)
    assert "guided head 2" in str(aligner.look)
    pairs, found = toy_pairs(160), aligned(run)
    table = run.directory.with_name("pairs.tsv")
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs[:3]), encoding="utf-8")
    said = CliRunner().invoke(app, ["align", str(run.directory), str(table), "--checkpoint", "last"])
    assert said.stdout.splitlines() == [pharaoh(links) for links in found[:3]]
    assert said.stderr == "attention: decoder.layers.0.cross_attention, guided head 2, when a word is read\n"
    run.replace_config(
        resolve_config(apply_overrides(to_dict(run.config), ["objective.guided_alignment.weight=0"]))
    )
    look = Run.open(run.directory).translator("last", "cpu").aligner.look
    assert look is not None and look.guided_head is None


def test_switched_off_nothing_is_loaded(
    plain: dict[str, Any], alignment: str, cache: Path, make_config: Callable[..., RunConfig]
) -> None:
    """Links that nobody asks for change no batch; the same pairs come in the same order."""
    off, on = config_of(plain, alignment), config_of(plain, alignment, *GUIDED)
    prepared, device = prepared_for(off, cache), pick_device("cpu")
    without = next(Batches(off, prepared, device).updates(0, 0)).micro_batches[0]
    with_links = next(Batches(on, prepared, device).updates(0, 0)).micro_batches[0]
    assert without.batch.links is None and with_links.batch.links is not None
    assert without.pairs.tolist() == with_links.pairs.tolist()
    config = make_config()
    plainly = next(Batches(config, prepared_for(config, cache), device).updates(0, 0)).micro_batches[0]
    assert plainly.batch.src_ids.equal(without.batch.src_ids)


def test_what_is_missing_is_named(plain: dict[str, Any], alignment: str) -> None:
    with pytest.raises(UserError, match=r"guided_alignment\.weight: no corpus .* dragoman align-corpus"):
        config_of(plain, None, *GUIDED)
    with pytest.raises(UserError, match=r"objective\.guided_alignment\.weight: links are about"):
        config_of(plain, alignment, *GUIDED, "objective.teacher_forcing=0.5")
    with pytest.raises(UserError, match=r"objective\.guided_alignment\.weight: expected .* found -1"):
        config_of(plain, alignment, "objective.guided_alignment.weight=-1")
