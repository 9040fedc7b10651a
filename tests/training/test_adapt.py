"""Learning from a translation memory: what is learnt, rehearsed and held out, and what is not deployed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.training import adapt
from dragoman.training.adapt import (
    AdaptVerdict,
    Parts,
    RunsCompared,
    adapt_config,
    compare_runs,
    make_parts,
    read_memory,
    write_parts,
)

MakeRun = Callable[..., Run]


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run("train.max_updates=4")


def memory_file(path: Path, count: int = 20) -> str:
    path.write_text("".join(f"new {n} text\tNEU {n}\n" for n in range(count)), "utf-8")
    return str(path)


def test_the_last_translation_of_a_text_counts(run: Run, tmp_path: Path) -> None:
    file = memory_file(tmp_path / "a.tsv")
    more = tmp_path / "b.tsv"
    more.write_text("new 3 text\tANDERS\n", "utf-8")
    found = read_memory(run, [file, str(more)])
    assert len(found) == 20 and found[-1] == ("new 3 text", "ANDERS")
    with pytest.raises(UserError, match="1 pairs are too few"):
        read_memory(run, [str(more)])


def test_what_is_held_out_stays_held_out_when_the_memory_grows(run: Run, tmp_path: Path) -> None:
    small = make_parts(run, read_memory(run, [memory_file(tmp_path / "a.tsv", 20)]), 0.2)
    large = make_parts(run, read_memory(run, [memory_file(tmp_path / "b.tsv", 60)]), 0.2)
    assert (len(small.held_out), len(large.held_out)) == (4, 12)
    for parts in (small, large):
        assert not set(parts.learnt) & set(parts.held_out)
    growing = make_parts(run, read_memory(run, [memory_file(tmp_path / "c.tsv", 60)]), 0.5)
    assert set(large.held_out) <= set(growing.held_out)


def test_pairs_that_contradict_the_memory_are_not_rehearsed(run: Run) -> None:
    prepared = run.prepared()
    own = [prepared.src_tokenizer.decode(prepared.train.src(n).tolist()) for n in range(10)]
    valid = prepared.src_tokenizer.decode(prepared.valid.src(0).tolist())
    parts = make_parts(run, [*((text, "corrected") for text in own), (valid, "corrected")], 0.2)
    assert not {source for source, _ in [*parts.rehearsed, *parts.before]} & {*own, valid}
    assert parts.rehearsed and parts.before


def test_a_share_of_every_epoch_is_the_memory(run: Run, tmp_path: Path) -> None:
    parts = make_parts(run, read_memory(run, [memory_file(tmp_path / "a.tsv")]), 0.2)
    write_parts(parts, tmp_path / "corpus")
    config = resolve_config(adapt_recipe(run, parts, tmp_path / "corpus", 0.25))
    rehearsed, learnt = config.data.train
    drawn = [rehearsed.weight * len(parts.rehearsed), learnt.weight * len(parts.learnt)]
    assert drawn[1] / sum(drawn) == pytest.approx(0.25)
    assert config.train.validate_every == config.train.max_updates == 6
    assert [len(Path(file).read_text("utf-8").splitlines()) for file in learnt.files] == [16, 16]


def adapt_recipe(run: Run, parts: Parts, corpus: Path, share: float) -> dict[str, object]:
    given = adapt_config(run, parts, corpus, share, 6)
    return {**given, "model": run.config.model, "tokenizer": {"vocab_size": 300}}


def test_a_run_without_pairs_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapt, "_some", lambda *_: [("new 1 text", "x")])
    parts = make_parts(run, [(f"new {n} text", "NEU") for n in range(9)], 0.2)
    with pytest.raises(UserError, match="all its pairs are in the memory"):
        adapt_config(run, parts, Path("corpus"), 0.5, 3)


class Says:
    """A translator of given translations."""

    def __init__(self, said: dict[str, str]) -> None:
        self.said = said

    def translate(self, texts: list[str]) -> list[str]:
        return [self.said.get(text, "nothing of the kind") for text in texts]


RIGHT = {"a cat": "eine Katze", "a dog": "ein Hund", "a house": "ein Haus", "a tree": "ein Baum"}
PARTS = Parts(
    [],
    [],
    [("a cat", "eine Katze"), ("a dog", "ein Hund")],
    [("a house", "ein Haus"), ("a tree", "ein Baum")],
)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (["a house", "a tree"], list(RIGHT), None),
        (["a house", "a tree"], ["a cat", "a house", "a tree"], None),
        (list(RIGHT), list(RIGHT), "no better on the memory"),
        (["a house", "a tree"], ["a cat", "a dog", "a tree"], "forgotten too much"),
        (["a cat"], ["a house"], "no better on the memory"),
    ],
)
def test_nothing_worse_is_better(old: list[str], new: list[str], reason: str | None) -> None:
    first, second = (Says({text: RIGHT[text] for text in known}) for known in (old, new))
    verdict = compare_runs(first, second, PARTS, 0.5)  # type: ignore[arg-type]
    assert (verdict.reason is None) == (reason is None)
    assert reason is None or reason in str(verdict.reason)


def test_what_got_better_and_worse_is_told() -> None:
    pairs = [("a", "one two three"), ("b", "four five six"), ("c", "seven")]
    side = RunsCompared(pairs, ["one", "four five six", "seven"], ["one two three", "four", "seven"])
    (lost, worse), (gained, better) = side.changed()
    assert (worse, better) == (1, 0) and lost < 0 < gained
    assert side.scores(side.old)["exact"] == side.scores(side.new)["exact"]


@pytest.mark.parametrize("better", [True, False])
def test_the_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, better: bool) -> None:
    """Whether the new run is better is said by the test: two updates teach nothing."""
    gained = RunsCompared([("a", "x y z")], ["x"], ["x y z" if better else ""])
    monkeypatch.setattr(adapt, "compare_runs", lambda *_: AdaptVerdict(gained, RunsCompared([], [], []), 0.5))
    before = sorted(path.name for path in run.directory.rglob("*"))
    command = ["adapt", str(run.directory), memory_file(tmp_path / "a.tsv"), "--updates", "2", "-q"]
    command += ["-o", str(tmp_path / "new"), "train.batch_tokens=400"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == (0 if better else 1), found.output
    assert Run.exists(tmp_path / "new") == better and Run.exists(tmp_path / "new-trial") != better
    assert ("better: " if better else "keep using") in found.output
    assert before == sorted(path.name for path in run.directory.rglob("*"))
    again = CliRunner().invoke(app, command)
    assert again.exit_code != 0 if better else again.exit_code == 1


def test_nothing_stays_of_a_training_that_does_not_begin(run: Run, tmp_path: Path) -> None:
    memory = memory_file(tmp_path / "a.tsv")
    before = sorted(tmp_path.rglob("*"))
    for mistake in (["no.such=1"], ["train.batch_tokens=-1"], ["--device", "gpu9"]):
        found = CliRunner().invoke(
            app, ["adapt", str(run.directory), memory, "-o", f"{tmp_path}/new", *mistake]
        )
        assert isinstance(found.exception, UserError), found.output
        assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_of_somebody_else_stays(run: Run, tmp_path: Path) -> None:
    """The corpora go beside the new run; what lies there already may be anybody's."""
    memory = memory_file(tmp_path / "a.tsv")
    theirs = tmp_path / "new-corpus"
    theirs.mkdir()
    (theirs / "learnt.src").touch()  # of an earlier call
    (theirs / "treasure.txt").write_text("gold")
    found = CliRunner().invoke(app, ["adapt", str(run.directory), memory, "-o", str(tmp_path / "new")])
    assert "it holds 'treasure.txt'; choose another directory with --out" in str(found.exception)
    assert sorted(path.name for path in theirs.iterdir()) == ["learnt.src", "treasure.txt"]


def test_the_device_is_that_of_the_training(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def plan_and_train(*_: object, overrides: list[str], **__: object) -> None:
        asked.append(overrides)

    monkeypatch.setattr("dragoman.training.api.plan_and_train", plan_and_train)
    command = [
        "adapt",
        str(run.directory),
        memory_file(tmp_path / "a.tsv"),
        "-o",
        str(tmp_path / "new"),
        "-q",
    ]
    for more in ([], ["--device", "cpu"], ["--device", "cpu", "train.device=auto"]):
        assert CliRunner().invoke(app, [*command, *more]).exit_code == 1  # nothing was trained
    assert asked == [[], ["train.device=cpu"], ["train.device=auto"]]
