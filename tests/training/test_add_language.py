"""A further language for a run that exists: its pieces, its weights, its corpora, and the command."""

from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import dragoman
from dragoman.checkpoint.model import load_model, model_tensors
from dragoman.cli.main import app
from dragoman.data.directions import Languages
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.text.extend_vocabulary import origins
from dragoman.text.tokenizer import Tokenizer
from dragoman.training import add_language
from dragoman.training.adapt import RunsCompared, read_memory
from dragoman.training.add_language import (
    LanguageVerdict,
    NewLanguage,
    gather_pairs,
    language_recipe,
    write_corpora,
)
from dragoman.training.display import NoDisplay
from dragoman.training.larger_vocabulary import larger_run, larger_tokenizer
from dragoman.training.session import train_run
from languages import SENTENCES, TRAINED, languages_config, languages_run, write_languages
from toy import toy_config, toy_pairs, write_pairs

CZECH = [
    f"{who} {does} {where}."
    for who in ("Muž", "Žena", "Pes", "Dítě")
    for does in ("spí", "zpívá", "běží", "jí jablko")
    for where in ("v domě", "na ulici", "se svými přáteli")
]
POLISH = [f"Kot numer {number} śpi na dachu naszego domu." for number in range(len(CZECH))]
NEW = (("en", "cs"), ("cs", "en"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """English, German and French in four directions, after a few updates."""
    directory = tmp_path_factory.mktemp("languages")
    plain = languages_config(write_languages(directory / "data"))
    plain["train"] |= {"max_updates": 2, "save_every": 2, "validate_every": 2}
    made = languages_run(directory / "run", plain, directory / "cache")
    train_run(made, NoDisplay())
    return made


@pytest.fixture
def czech(tmp_path: Path) -> Path:
    directory = tmp_path / "czech"
    directory.mkdir()
    for code, lines in (("en", SENTENCES["en"]), ("cs", CZECH)):
        (directory / f"train.{code}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return directory


def larger(run: Run, parts: NewLanguage, pieces: int) -> Tokenizer:
    return larger_tokenizer(run, parts.directions, parts.new_texts, pieces)


def test_the_larger_run_translates_as_before_from_the_same_ids(run: Run, czech: Path, tmp_path: Path) -> None:
    """Rows of known pieces are bit for bit what they were, and so is everything else; a new row is the mean
    of those that spelt its piece."""
    tokenizer = larger(run, gather_pairs(run, [str(czech)], "all", 0.1), 40)
    grown_run = larger_run(run, tokenizer, tmp_path / "larger")
    before, after = (load_model(one.directory) for one in (run, grown_run))
    old, new = model_tensors(before.model), model_tensors(after.model)
    made_of = origins(before.src_tokenizer, after.src_tokenizer)
    kept = [number for number, parts in enumerate(made_of) if len(parts) == 1]
    grown = [name for name in old if old[name].shape != new[name].shape]
    assert old.keys() == new.keys() and grown and len(kept) >= before.src_tokenizer.size
    for name in old:
        if name not in grown:
            assert torch.equal(old[name], new[name])
            continue
        assert torch.equal(new[name][kept], old[name][[made_of[number][0] for number in kept]])
        row = next(number for number, parts in enumerate(made_of) if len(parts) > 1)
        torch.testing.assert_close(new[name][row], old[name][made_of[row]].mean(dim=0))
    assert larger_run(run, tokenizer, grown_run.directory).directory == grown_run.directory
    other = larger(run, gather_pairs(run, [str(czech)], "en-cs", 0.1), 5)
    with pytest.raises(UserError, match="made for other corpora"):
        larger_run(run, other, grown_run.directory)


def test_a_larger_run_of_other_weights_is_not_taken(
    run: Run, czech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs can share their tokenizer, and a run can be trained further between two calls."""
    tokenizer = larger(run, gather_pairs(run, [str(czech)], "all", 0.1), 40)
    larger_run(run, tokenizer, tmp_path / "larger")
    loaded = load_model(run.directory)
    next(iter(model_tensors(loaded.model).values()))[0] += 1
    monkeypatch.setattr("dragoman.training.larger_vocabulary.load_model", lambda _: loaded)
    with pytest.raises(UserError, match="made from other weights; remove it"):
        larger_run(run, tokenizer, tmp_path / "larger")


def test_what_is_held_out_is_in_no_direction(run: Run, czech: Path) -> None:
    (czech / "train.de").write_text("".join(f"{line}\n" for line in SENTENCES["de"]), "utf-8")
    parts = gather_pairs(run, [str(czech)], "all", 0.25)
    assert set(parts.learnt) == {("en", "cs"), ("cs", "en"), ("de", "cs"), ("cs", "de")}

    def czech_of(corpora: dict[Languages, list[tuple[str, str]]]) -> set[str]:
        return {texts[pair.index("cs")] for pair, own in corpora.items() for texts in own}

    held_out = czech_of(parts.held_out)
    assert len(held_out) == 12 and not held_out & czech_of(parts.learnt)
    assert set(parts.rehearsed) == set(parts.before) == set(TRAINED)
    for (src, tgt), own in parts.rehearsed.items():
        translations = dict(zip(SENTENCES[src], SENTENCES[tgt], strict=True))
        assert own and all(translations[source] == target for source, target in own)


def test_validation_files_of_a_directory_are_held_out(run: Run, czech: Path) -> None:
    for code, line in (("en", "A cat."), ("cs", "Kočka.")):
        (czech / f"val.{code}").write_text(f"{line}\n", "utf-8")
    parts = gather_pairs(run, [str(czech)], "en-cs", 0.25)
    assert parts.held_out == {("en", "cs"): [("A cat.", "Kočka.")]}
    assert len(parts.learnt["en", "cs"]) == len(CZECH)


def test_shares_of_new_and_old_directions(run: Run, czech: Path, tmp_path: Path) -> None:
    parts = gather_pairs(run, [str(czech)], "all", 0.1)
    write_corpora(parts, tmp_path / "corpus")
    begun = larger_run(run, larger(run, parts, 20), tmp_path / "larger")
    plain = language_recipe(run, begun, parts, tmp_path / "corpus", 0.4, 6)
    config = resolve_config({**plain, "model": run.config.model, "tokenizer": {"vocab_size": 900}})
    directions = config.data.directions
    assert directions is not None and set(directions.trained) == {*TRAINED, *NEW}
    assert directions.trained[: len(TRAINED)] == TRAINED
    drawn: dict[Languages, float] = {}
    for source in config.data.train:
        lines = Path(source.files[0]).read_text("utf-8").splitlines()
        drawn[config.data.languages_of(source)] = source.weight * len(lines)
    whole = sum(drawn.values())
    for pair, count in drawn.items():
        assert count / whole == pytest.approx(0.4 / 2 if pair in NEW else 0.6 / len(TRAINED))


def test_a_run_of_one_direction_takes_a_language(tmp_path: Path) -> None:
    """It then has control pieces, in its old direction too."""
    files = write_pairs(tmp_path, toy_pairs(60))
    plain: dict[str, Any] = toy_config(files)
    plain["data"] |= {"src_lang": "en", "tgt_lang": "de"}
    plain["train"] |= {"max_updates": 1, "save_every": 1, "validate_every": 1}
    made = languages_run(tmp_path / "run", plain, tmp_path / "cache")
    train_run(made, NoDisplay())
    third = tmp_path / "third.tsv"
    third.write_text("en\tcs\n" + "".join(f"a {n}\tž {n}\n" for n in range(20)), "utf-8")
    parts = gather_pairs(made, [str(third)], "en-cs", 0.1)
    assert parts.directions == (("en", "de"), ("en", "cs"))
    tokenizer = larger(made, parts, 10)
    assert tokenizer.config.specials[-2:] == ("<to:de>", "<to:cs>")
    larger_run(made, tokenizer, tmp_path / "larger")


@pytest.mark.parametrize(
    ("files", "directions", "told"),
    [
        ({"train.en": SENTENCES["en"], "train.de": SENTENCES["de"]}, "all", "no direction that .* lacks"),
        ({"train.cs": CZECH, "train.pl": POLISH}, "all", "has no language of"),
        ({"train.en": SENTENCES["en"], "train.cs": CZECH}, "en-it", "no corpus has it"),
        ({"train.en": SENTENCES["en"][:8], "train.cs": CZECH[:8]}, "all", "are too few"),
    ],
)
def test_what_cannot_be_added_is_refused(
    run: Run, tmp_path: Path, files: dict[str, list[str]], directions: str, told: str
) -> None:
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    with pytest.raises(UserError, match=told):
        gather_pairs(run, [str(tmp_path / name) for name in files], directions, 0.1)


def test_corrections_are_for_one_direction(run: Run, tmp_path: Path) -> None:
    (tmp_path / "memory.tsv").write_text("a dog\tein Hund\n", "utf-8")
    with pytest.raises(UserError, match=r"a run of several languages .* does not learn from corrections"):
        read_memory(run, [str(tmp_path / "memory.tsv")])


def test_old_directions_that_lose_are_told() -> None:
    def side(old: str, new: str) -> RunsCompared:
        return RunsCompared([("a", "one two three")], [old], [new])

    same, lost = side("one two three", "one two three"), side("one two three", "four")
    pairs = ("en", "de"), ("de", "en")
    assert LanguageVerdict(dict.fromkeys(pairs, same), {}, 1.0).reason is None
    verdict = LanguageVerdict({pairs[0]: same, pairs[1]: lost}, {}, 1.0)
    assert verdict.lost > 10 and "lost too much" in str(verdict.reason)
    assert LanguageVerdict({}, {}, 1.0).reason is None


@pytest.mark.parametrize("good", [True, False])
def test_the_command(
    run: Run, czech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: bool
) -> None:
    """Whether the new run is good enough is said by the test: two updates teach nothing."""
    judged: list[NewLanguage] = []

    def compare(_old: Run, _new: Run, parts: NewLanguage, tolerance: float, _device: str) -> LanguageVerdict:
        judged.append(parts)
        one = RunsCompared([("a", "x y z")], ["x y z"], ["x y z" if good else ""])
        return LanguageVerdict({("en", "de"): one}, {("en", "cs"): one}, tolerance)

    monkeypatch.setattr(add_language, "compare_directions", compare)
    before = sorted(path.name for path in run.directory.rglob("*"))
    command = ["add-language", str(run.directory), str(czech), "--updates", "2", "-q", "--pieces", "30"]
    command += ["-o", str(tmp_path / "new"), "--device", "cpu", "train.batch_tokens=400"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == (0 if good else 1), found.output
    assert Run.exists(tmp_path / "new") == good and Run.exists(tmp_path / "new-trial") != good
    assert ("written: " if good else "keep using") in found.output and len(judged) == 1
    assert before == sorted(path.name for path in run.directory.rglob("*"))
    if not good:
        return
    translator = dragoman.load(tmp_path / "new", to="cs", source="en", device="cpu")
    assert translator.src_tokenizer.pieces(translator.src_tokenizer.opening) == ["<to:cs>"]
    again = CliRunner().invoke(app, command)
    assert again.exit_code != 0


def test_both_runs_are_compared_in_each_direction(run: Run, czech: Path) -> None:
    parts = gather_pairs(run, [str(czech)], "all", 0.1)
    some = NewLanguage(
        {}, {("en", "de"): parts.before["en", "de"][:1]}, {}, {("de", "en"): parts.before["de", "en"][:1]}
    )
    verdict = add_language.compare_directions(run, run, some, 1.0, "cpu")
    (old,), (new,) = verdict.old.values(), verdict.new.values()
    assert old.old == old.new and len(old.new) == len(new.new) == 1 and verdict.lost == 0


@pytest.mark.parametrize("theirs", [None, "new-larger", "new-corpus"])
def test_nothing_stays_of_a_training_that_does_not_begin(
    run: Run, czech: Path, tmp_path: Path, theirs: str | None
) -> None:
    """And a directory of somebody else in the place of ours stays as it is."""
    if theirs is not None:
        (tmp_path / theirs).mkdir()
        (tmp_path / theirs / "treasure.txt").write_text("gold")
    before = sorted(tmp_path.rglob("*"))
    command = ["add-language", str(run.directory), str(czech), "-q", "--pieces", "30"]
    found = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "new"), "no.such=1"])
    told = "unknown field" if theirs is None else "choose another"
    assert isinstance(found.exception, UserError) and told in str(found.exception)
    assert sorted(tmp_path.rglob("*")) == before
