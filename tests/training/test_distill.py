"""Distillation: the teacher's own text, the same bytes after an interruption, and a student that trains."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data.corpus import CorpusRange
from dragoman.decode.search.config import SearchConfig
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs import corpus_job as corpus
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_translator
from dragoman.training.api import train
from dragoman.training.distill import TeacherText, student_recipe, translate_text, write_recipe, write_text
from killing import Killed

MakeRun = Callable[..., Run]
SEARCH = SearchConfig(beam=2, max_ratio=1.0, max_extra=2)
FAST = ["train.max_updates=2", "schedule.warmup=1", "train.batch_tokens=400", "train.validate_every=2"]


@pytest.fixture
def teacher(make_run: MakeRun) -> Run:
    return make_run("train.max_updates=4")


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def translate(teacher: Run, text: TeacherText, kill_at: int | None = None) -> None:
    def progress(now: int, _of: int) -> None:
        if kill_at is not None and now >= kill_at:
            raise Killed

    translator = open_translator([teacher], device="cpu")
    translate_text(translator, text, SEARCH, max_tokens=256, batch_tokens=300, progress=progress)


def test_the_text_is_that_of_the_training_data(teacher: Run, tmp_path: Path) -> None:
    text = write_text(teacher, tmp_path / "text")
    (part,), prepared = text.parts, teacher.prepared()
    src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
    store = prepared.train
    assert lines(part.src) == [src.decode(store.src(i).tolist()) for i in range(len(store))]
    assert lines(part.original) == [tgt.decode(store.tgt(i).tolist()) for i in range(len(store))]
    assert text.valid is not None
    assert not set(lines(text.valid[0])) & set(lines(part.src))  # the student is validated on unseen pairs
    assert [s[::-1].upper() for s in lines(text.valid[0])] == lines(text.valid[1])


def test_interrupted_and_resumed_it_has_the_same_bytes(
    teacher: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "LINES_AT_ONCE", 50)
    ranges = (CorpusRange(0, 60, 2.0), CorpusRange(60, 60, 1.0), CorpusRange(60, 144, 1.0))
    prepared = teacher.prepared()
    prepared.train.corpora = ranges
    monkeypatch.setattr(Run, "prepared", lambda _run: prepared)
    undisturbed = write_text(teacher, tmp_path / "undisturbed")
    assert [(part.pairs, part.weight) for part in undisturbed.parts] == [(60, 2.0), (84, 1.0)]
    translate(teacher, undisturbed)
    text = write_text(teacher, tmp_path / "text")
    for kill_at in (55, 144):
        with pytest.raises(Killed):
            translate(teacher, text, kill_at)
        text = write_text(teacher, tmp_path / "text")
    translate(teacher, text)
    for ours, theirs in zip(text.parts, undisturbed.parts, strict=True):
        assert ours.synthetic.read_bytes() == theirs.synthetic.read_bytes()
        expected = open_translator([teacher], device="cpu").translate(lines(ours.src), search=SEARCH)
        assert lines(ours.synthetic) == expected


def test_the_student_trains_on_it_and_its_recipe_repeats_it(teacher: Run, tmp_path: Path) -> None:
    text = write_text(teacher, tmp_path / "text")
    translate(teacher, text)
    recipe = student_recipe(teacher, text, "transformer-tiny", keep_original=True)
    student = train(recipe, out=tmp_path / "student", overrides=FAST, quiet=True)
    files = [source.files for source in student.config.data.train]
    part = text.parts[0]
    assert files == [
        (str(part.src), str(part.synthetic)),
        (str(part.src), str(part.original)),
    ]
    assert student.config.tokenizer == teacher.config.tokenizer
    assert (student.config.data.src_lang, student.config.seed) == ("en", teacher.config.seed)
    assert student.config.model["model_dim"] == 128
    path = write_recipe(text, student.config)
    again = train(path, out=tmp_path / "student", quiet=True)  # the same configuration: nothing is left to do
    assert again.config == student.config == resolve_config(recipe | _chosen(student), FAST)


def _chosen(student: Run) -> dict[str, object]:
    from dragoman.config import to_dict

    plain = to_dict(student.config)
    return {name: plain[name] for name in ("objective", "optim", "schedule", "train")}


def test_another_teachers_text_is_refused(teacher: Run, tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="this is not the text of"):
        write_text(teacher, tmp_path / "text")
