"""Every writer against a power cut at every moment: the old content or the new one is found, never half."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from checkpoint.saved import assert_is, save, some_state, some_tensors
from dragoman import checkpoint
from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.model import CHECKPOINTS, load_model, read_best, write_best
from dragoman.cluster.storage import StoragePlace
from dragoman.data.corpus import Prepared
from dragoman.decode.search.config import SearchConfig
from dragoman.engines.export import export_ctranslate2
from dragoman.files import (
    new_directory,
    remove_unfinished,
    replace_file,
    replacing,
    sync_directory,
    write_new,
)
from dragoman.probe.embed import TextVectors
from dragoman.probe.vector_files import write_vectors
from dragoman.runs import corpus_job as corpus
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import SHORTLIST, Run
from dragoman.serve.corrections import Corrections
from dragoman.serve.dictionaries import Given
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.limits import Limits
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.display import NoDisplay
from dragoman.training.distill import write_text
from dragoman.training.session import train_run
from odd_inputs import tiny_translator
from powercut import PowerCuts

MakeConfig = Callable[..., RunConfig]


@dataclass(frozen=True)
class Case:
    begin: Callable[[Path], object]
    """Fills an empty directory."""
    write: Callable[[Path], object]
    check: Callable[[Path], str]
    """Says "old" or "new" about the directory after a power cut, or raises an exception."""

    def hold(self, tmp_path: Path, notice: bool = True) -> None:
        """And, if asked, show that it would be noticed if nothing were forced to disk."""
        for name in ("forced", "not forced") if notice else ("forced",):
            root = tmp_path / name
            root.mkdir()
            self.begin(root)
            forget = name == "not forced"
            cuts = PowerCuts(root, self.check, tmp_path / "found", forget)
            assert cuts.cut("before") == {"old"}, cuts.failures
            with cuts.watching():
                self.write(root)
            after = cuts.cut("after")
            if forget:
                assert cuts.failures and after != {"new"}
            else:
                assert not cuts.failures
                assert (cuts.outcomes, after) == ({"old", "new"}, {"new"})


def nothing(_root: Path) -> None: ...


def tree(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def appears(name: str, write: Callable[[Path], object], reference: Path) -> Case:
    """A directory that is not there before, and always has the same content."""
    reference.mkdir()
    write(reference)
    expected = tree(reference / name)
    assert expected

    def check(found: Path) -> str:
        if not (found / name).exists():
            return "old"
        assert tree(found / name) == expected
        return "new"

    return Case(nothing, write, check)


def changes(name: str, old: bytes, new: bytes, write: Callable[[Path], object]) -> Case:
    """One file."""
    told = {old: "old", new: "new"}
    return Case(
        lambda root: (root / name).write_bytes(old), write, lambda found: told[(found / name).read_bytes()]
    )


OLD, NEW = b"old " * 100, b"the new one " * 90


def test_a_file_is_replaced(tmp_path: Path) -> None:
    changes("file", OLD, NEW, lambda root: replace_file(root / "file", NEW)).hold(tmp_path)


def test_a_new_file_is_on_the_disk(tmp_path: Path) -> None:
    """It may be there in part until it is."""

    def write(root: Path) -> None:
        write_new(root / "file", [NEW[:100], NEW[100:]])
        sync_directory(root)

    def check(found: Path) -> str:
        return "new" if (found / "file").exists() and (found / "file").read_bytes() == NEW else "old"

    Case(nothing, write, check).hold(tmp_path, notice=False)


def test_a_stream_replaces_a_file(tmp_path: Path) -> None:
    def write(root: Path) -> None:
        with replacing(root / "file") as file:
            for start in range(0, len(NEW), 100):
                file.write(NEW[start : start + 100])
                file.flush()

    changes("file", OLD, NEW, write).hold(tmp_path)


def fill(directory: Path) -> None:
    write_new(directory / "a", [NEW])
    (directory / "folder").mkdir()
    (directory / "folder" / "b").write_bytes(NEW)  # by somebody who forces nothing to disk


def test_a_directory_appears(tmp_path: Path) -> None:
    def write(root: Path) -> None:
        with new_directory(root / "above" / "made") as directory:
            fill(directory)

    appears("above/made", write, tmp_path / "reference").hold(tmp_path)


@pytest.mark.parametrize("there", [False, True])
def test_a_directory_is_written_to_an_address_of_this_machine(tmp_path: Path, there: bool) -> None:
    pytest.importorskip("fsspec")
    local, copies = tmp_path / "local", iter(range(10**6))
    told = {}
    for name, files in (("old", {"a": OLD, "b": OLD[:7]}), ("new", {"a": NEW, "b": OLD[:7], "c": b"more"})):
        (local / name).mkdir(parents=True)
        for file, data in files.items():
            (local / name / file).write_bytes(data)
        told[name] = tree(local / name)

    def push(name: str) -> Callable[[Path], None]:
        return lambda root: StoragePlace(f"file://{root}/run").push(local / name)

    def check(found: Path) -> str:
        place, copy = StoragePlace(f"file://{found}/run"), tmp_path / f"copy-{next(copies)}"
        if not there and not place.is_directory():
            return "old"
        place.pull(copy)
        return next(name for name, files in told.items() if files == tree(copy))

    Case(push("old") if there else nothing, push("new"), check).hold(tmp_path, notice=False)


def test_a_directory_is_replaced(tmp_path: Path) -> None:
    def write(root: Path) -> None:
        with new_directory(root / "made", replace_existing=True) as directory:
            fill(directory)

    def begin(root: Path) -> None:
        (root / "made").mkdir()
        (root / "made" / "a").write_bytes(OLD)

    def check(found: Path) -> str:
        remove_unfinished(found / "made")  # as whoever reads or writes it does first
        content = tree(found / "made")
        assert content in ({"a": OLD}, {"a": NEW, "folder": None, "folder/b": NEW})
        return "old" if content == {"a": OLD} else "new"

    Case(begin, write, check).hold(tmp_path)


# --- checkpoints -------------------------------------------------------------------------------------


def check_checkpoints(root: Path) -> str:
    """The newest one is whole; it is not passed over in silence for an older one."""
    for name in checkpoint.names(root):
        assert_is(checkpoint.load_checkpoint(root / name), int(name))
    return {"0000001": "old", "0000002": "new"}[checkpoint.newest(root).name]


def test_a_checkpoint_is_saved(tmp_path: Path) -> None:
    Case(lambda root: save(root, 1), lambda root: save(root, 2), check_checkpoints).hold(tmp_path)


def test_a_checkpoint_is_replaced(tmp_path: Path) -> None:
    def save_as_mean(root: Path, number: int) -> None:
        checkpoint.save(root, "mean", some_tensors(number), some_state(number))

    def check(root: Path) -> str:
        found = checkpoint.load_checkpoint(root / "mean")
        number = int(found.state["progress"]["update"])
        assert_is(found, number)
        return {1: "old", 2: "new"}[number]

    Case(lambda root: save_as_mean(root, 1), lambda root: save_as_mean(root, 2), check).hold(tmp_path)


def test_checkpoints_are_removed(tmp_path: Path) -> None:
    def begin(root: Path) -> None:
        for number in (1, 2, 3):
            save(root, number)

    def check(root: Path) -> str:
        for name in checkpoint.names(root):
            assert_is(checkpoint.load_checkpoint(root / name), int(name))
        assert checkpoint.names(root)[-2:] == ["0000002", "0000003"]
        return "old" if len(checkpoint.names(root)) == 3 else "new"

    Case(begin, lambda root: checkpoint.prune(root, 2, ()), check).hold(tmp_path)


def test_a_damaged_checkpoint_is_moved_away(tmp_path: Path) -> None:
    def begin(root: Path) -> None:
        save(root, 1)
        save(root, 2)

    def check(root: Path) -> str:
        assert_is(checkpoint.load_checkpoint(root / "0000001"), 1)
        return "old" if (root / "0000002").exists() else "new"

    Case(begin, lambda root: checkpoint.set_aside(root / "0000002"), check).hold(tmp_path, notice=False)


# --- runs --------------------------------------------------------------------------------------------


def test_a_run_is_made(tmp_path: Path, make_config: MakeConfig, prepared: Prepared) -> None:
    appears(
        "run", lambda root: Run.create(root / "run", make_config(), prepared), tmp_path / "reference"
    ).hold(tmp_path)


def copied(trained: Run) -> Callable[[Path], object]:
    """Without what is not looked at here."""
    left_out = shutil.ignore_patterns("checkpoints", "data")
    return lambda root: shutil.copytree(trained.directory, root / "run", ignore=left_out)


def test_the_configuration_of_a_run_is_changed(tmp_path: Path, trained: Run) -> None:
    changed = replace(trained.config, search=SearchConfig(beam=7))

    def check(found: Path) -> str:
        return "new" if Run.open(found / "run").config == changed else "old"

    Case(copied(trained), lambda root: Run.open(root / "run").replace_config(changed), check).hold(tmp_path)


def test_the_best_checkpoint_is_named(tmp_path: Path) -> None:
    old, new = ({"name": name, "metric": "loss", "value": 1.0} for name in ("0000001", "averaged"))

    def check(found: Path) -> str:
        return "old" if read_best(found) == old else "new" if read_best(found) == new else "none"

    Case(lambda root: write_best(root, old), lambda root: write_best(root, new), check).hold(tmp_path)


def test_a_tokenizer_is_saved(tmp_path: Path, trained: Run) -> None:
    new = trained.tokenizers()[0]
    old = Tokenizer.train(["a b"], replace(new.config, vocab_size=262))

    def check(found: Path) -> str:
        return {old.sha256: "old", new.sha256: "new"}[Tokenizer.load(found / "t.json").sha256]

    Case(lambda root: old.save(root / "t.json"), lambda root: new.save(root / "t.json"), check).hold(tmp_path)


def test_a_shortlist_is_kept(tmp_path: Path, trained: Run) -> None:
    def begin(root: Path) -> None:
        Run.create(root / "run", trained.config, trained.prepared())

    def check(found: Path) -> str:
        if not (found / "run" / SHORTLIST).exists():
            return "old"
        Run.open(found / "run").shortlist()
        return "new"

    Case(begin, lambda root: Run.open(root / "run").shortlist(), check).hold(tmp_path)


def test_training_goes_on_from_what_is_found(
    tmp_path: Path, make_config: MakeConfig, prepared: Prepared
) -> None:
    """The newest checkpoint is whole, and the metrics that it counts on are there."""
    config = make_config("train.max_updates=2", "train.keep=2")
    reference = Run.create(tmp_path / "reference", config, prepared)
    train_run(reference, NoDisplay())
    metrics = (reference.directory / "metrics.jsonl").read_bytes()

    def check(found: Path) -> str:
        run, best = found / "run", read_best(found / "run")
        names = checkpoint.names(run / CHECKPOINTS)
        for name in names:
            length = checkpoint.load_checkpoint(run / CHECKPOINTS / name).state["progress"]["metrics_bytes"]
            assert (run / "metrics.jsonl").read_bytes()[:length] == metrics[:length]
        if best is not None:
            checkpoint.verify_checkpoint(run / CHECKPOINTS / best["name"])
        return "new" if names[-1:] == ["0000002"] else "old"

    Case(
        lambda root: Run.create(root / "run", config, prepared),
        lambda root: train_run(Run.open(root / "run"), NoDisplay()),
        check,
    ).hold(tmp_path, notice=False)


# --- what commands write -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_an_export_appears(tmp_path: Path, trained: Run, engine: str) -> None:
    loaded = load_model(trained.directory)

    def write(root: Path) -> None:
        if engine == "huggingface":
            export_huggingface(loaded, root / "out")
        else:
            export_ctranslate2(
                loaded, root / "out", search=trained.config.search, shortlist=trained.shortlist()
            )

    appears("out", write, tmp_path / "reference").hold(tmp_path)


def test_the_text_of_a_teacher_appears(tmp_path: Path, trained: Run) -> None:
    appears("text", lambda root: write_text(trained, root / "text"), tmp_path / "reference").hold(tmp_path)


def test_a_glossary_of_a_server_is_added(tmp_path: Path) -> None:
    def add(name: str) -> Callable[[Path], object]:
        given = [Given(("en", "de"), "a\tb", "tsv")]
        return lambda root: asyncio.run(Glossaries(Limits(), root / "g.json").create(name, given))

    def check(found: Path) -> str:
        names = [one.name for one in Glossaries(Limits(), found / "g.json")]
        return {("one",): "old", ("one", "two"): "new"}[tuple(names)]

    Case(add("one"), add("two"), check).hold(tmp_path)


def test_a_correction_of_a_server_is_added(tmp_path: Path) -> None:
    def add(text: str) -> Callable[[Path], object]:
        return lambda root: asyncio.run(Corrections(Limits(), root / "c.tmx").put(("en", "de"), text, "x"))

    def check(found: Path) -> str:
        texts = [one.source for one in Corrections(Limits(), found / "c.tmx")]
        return {("one",): "old", ("one", "two"): "new"}[tuple(texts)]

    Case(add("one"), add("two"), check).hold(tmp_path)


def test_vectors_are_replaced(tmp_path: Path) -> None:
    def vectors(value: int) -> Callable[[Path], object]:
        rows = np.full((2, 1, 64), value, dtype=np.float32)
        return lambda root: write_vectors(
            root / "v.npy", [(1, TextVectors(rows, ("a", f"b{value}"), (0,)))], False
        )

    def check(found: Path) -> str:
        rows = np.load(found / "v.npy")
        labels = (found / "v.tsv").read_text("utf-8")
        assert rows.shape == (2, 64)
        assert labels in ("1\ta\n1\tb1\n", "1\ta\n1\tb2\n")
        return {1: "old", 2: "new"}[int(rows.min())]

    Case(vectors(1), vectors(2), check).hold(tmp_path)


def test_a_corpus_goes_on_from_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "LINES_AT_ONCE", 2)
    translator = tiny_translator()
    texts, task = (
        ["a b", "b", "c c a"],
        corpus.CorpusTask(SearchConfig(beam=1, max_extra=3), "text", max_tokens=50),
    )
    corpus.translate_corpus(translator, texts, tmp_path / "reference", task)
    expected = (tmp_path / "reference").read_bytes()

    def check(found: Path) -> str:
        outcome = "new" if (found / "out").exists() else "old"
        corpus.translate_corpus(translator, texts, found / "out", task)
        assert (found / "out").read_bytes() == expected
        return outcome

    def write(root: Path) -> None:
        corpus.translate_corpus(translator, texts, root / "out", task)

    Case(nothing, write, check).hold(tmp_path, notice=False)
