"""Sentences with those before them: each has its translation, whatever the model does with separators."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dragoman.checkpoint.model import load_model
from dragoman.cli.main import app
from dragoman.data.formats import read_lines
from dragoman.decode.rules.constraints import FREE
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import never
from dragoman.decode.translator.translator import Translator
from dragoman.engines.manifest import read_manifest
from dragoman.evaluate.tune import tune_search, validation_pairs
from dragoman.learning import learning_of
from dragoman.runs import corpus_job
from dragoman.runs.corpus_job import CorpusTask, translate_corpus
from dragoman.runs.directory import Run
from dragoman.runs.opening import directed
from dragoman.text.context import SIGN, ContextConfig, in_context, in_documents, sentence_of
from dragoman.training.display import NoDisplay
from dragoman.training.distill import write_text
from dragoman.training.session import train_run
from given import given_run
from killing import Killed, assert_same_checkpoint, train_until_killed
from languages import languages_config, languages_run, write_languages
from toy import toy_config, toy_pairs

LINES = [text for size in (4, 1, 6, 3) for text in (*(src for src, _ in toy_pairs(size, seed=size)), "")]
"""Four documents."""
MakeRun = Callable[[int], Run]


@pytest.fixture(scope="module")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """A run with given weights: it says letters in capitals, and separators as they are."""
    directory = tmp_path_factory.mktemp("context")
    known: dict[int, Run] = {}

    def make(target: int) -> Run:
        if target not in known:
            pairs = [(src, src.upper()) for src, _ in toy_pairs(60)]
            files = [str(directory / f"a.{language}") for language in ("en", "de")]
            for side, file in enumerate(files):
                lines = (f"{pair[side]}\n" if n % 7 else f"{pair[side]}\n\n" for n, pair in enumerate(pairs))
                Path(file).write_text("".join(lines), encoding="utf-8")
            config = toy_config((files[0], files[1]))
            config["tokenizer"] = {"kind": "char", "vocab_size": 300}
            config["data"]["context"] = {"source": 2, "target": target}
            config["train"] |= {"max_updates": 1, "validate_every": 1, "batch_tokens": 2000}
            said = [*pairs, (f"a{SIGN}b", f"A{SIGN}B")]
            known[target] = given_run(directory / f"run{target}", config, said)
        return known[target]

    return make


@pytest.fixture(scope="module")
def translator(make_run: MakeRun) -> Translator:
    return make_run(2).translator(device="cpu")


def test_each_text_has_its_own_translation_in_any_batch(translator: Translator) -> None:
    texts = list(in_documents(LINES, 2))
    found = [best for best, *_ in translator.hypotheses(texts)]
    assert [best.text for best in found] == [line.upper() for line in LINES]
    assert not any(best.alone for best in found)
    for size in (1, 30, 4000):
        assert translator.translate(texts, batch_tokens=size) == [best.text for best in found]
    few = translator.hypotheses(texts[5:9])
    assert [best.tokens for best, *_ in few] == [best.tokens for best in found[5:9]]
    assert translator.hypotheses(LINES[:3]) != [[best] for best in found[:3]]  # it did read what stood before


def test_scores_are_of_the_sentence_itself(translator: Translator) -> None:
    before, text = LINES[:2], LINES[2]
    whole = in_context(before, text), in_context([line.upper() for line in before], text.upper())
    (scored,) = translator.score([whole])
    src, tgt = translator.src_tokenizer, translator.tgt_tokenizer
    (everything,) = translator.score_ids(
        [(src.encode(whole[0]), tgt.encode(whole[1]))], search=translator.search
    )
    own = len(tgt.encode(text.upper())) + 1
    assert scored.text == text.upper() and len(scored.token_scores) == own
    assert scored.log_prob == pytest.approx(sum(everything.token_scores[-own:]), abs=1e-5)
    ((best, *_),) = translator.hypotheses([whole[0]])
    assert best.log_prob == pytest.approx(scored.log_prob, abs=1e-4)
    assert best.token_scores == pytest.approx(scored.token_scores, abs=1e-4)
    (alone,) = translator.score([(text, text.upper())])
    assert alone.log_prob != pytest.approx(scored.log_prob, abs=1e-7)


def test_earlier_sentences_are_read_as_far_as_there_is_room(make_run: MakeRun) -> None:
    translator = make_run(2).translator(device="cpu")
    near, far = (in_context([*more, "ab ba"], "cd") for more in ([], ["dc dc dc"]))
    assert translator.context is not None
    apart = translator.hypotheses([near, far])
    assert apart[0] != apart[1]
    room = len(translator.src_tokenizer.encode(near))
    translator.context = replace(translator.context, max_tokens=room)
    (best, *_), (other, *_) = translator.hypotheses([near, far])
    assert (best.tokens, best.pieces) == (other.tokens, other.pieces)
    assert best.token_scores == pytest.approx(other.token_scores, abs=1e-6)
    assert best.log_prob == pytest.approx(apart[0][0].log_prob, abs=1e-5)


def test_with_wrong_separators_a_text_is_translated_alone(make_run: MakeRun) -> None:
    """This one says separators, and its run expects none."""
    translator = make_run(2).translator(device="cpu")
    translator.context = ContextConfig(source=2, target=0)
    found = [best for best, *_ in translator.hypotheses(list(in_documents(LINES, 2)))]
    assert [best.text for best in found] == [line.upper() for line in LINES]
    firsts = [not line or not number or not LINES[number - 1] for number, line in enumerate(LINES)]
    assert [best.alone for best in found] == [not first for first in firsts]
    alone = translator.hypotheses(LINES)
    assert [replace(best, alone=False) for best in found] == [best for best, *_ in alone]


def test_constraints_and_protected_spans_are_of_the_text_itself(translator: Translator) -> None:
    texts = [in_context(["ab http://ab.example", "cc"], "a b"), in_context(["ab"], "a {0} b")]
    plain = translator.hypotheses(texts, protect=["url", "placeholder"])
    assert plain[0][0].text == "A B" and "{0}" in plain[1][0].text
    begun = translator.hypotheses(texts[:1], prefixes=["B A"])[0][0]
    assert (
        begun.text.startswith("B A")
        and begun.text == translator.hypotheses(["a b"], prefixes=["B A"])[0][0].text
    )


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_job, "LINES_AT_ONCE", 3)


@pytest.mark.usefixtures("small_chunks")
def test_a_corpus_that_goes_on_inside_a_document_has_the_same_bytes(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = CorpusTask(translator.search, "text", max_tokens=50)
    asked: list[str] = []
    hypotheses = translator.hypotheses

    def watched(texts: list[str], **options: Any) -> Any:
        asked.extend(texts)
        return hypotheses(texts, **options)

    monkeypatch.setattr(translator, "hypotheses", watched)

    def until(count: int) -> Iterator[str]:
        yield from LINES[:count]
        raise Killed

    whole = translate_corpus(translator, LINES, tmp_path / "whole", task)
    for count in range(1, len(LINES), 4):
        asked.clear()
        out = tmp_path / str(count)
        with pytest.raises(Killed):
            translate_corpus(translator, until(count), out, task)
        assert translate_corpus(translator, LINES, out, task).sha256 == whole.sha256
        assert asked == list(in_documents(LINES, 2))  # what stands before a chunk is read, and not translated
    assert (tmp_path / "whole").read_text(encoding="utf-8") == "".join(f"{line.upper()}\n" for line in LINES)


def test_tuning_and_a_teacher_read_what_stands_before(make_run: MakeRun, tmp_path: Path) -> None:
    run, prepared = make_run(2), make_run(2).prepared()
    sources, references = validation_pairs(prepared)
    assert any(SIGN in source for source in sources) and not any(SIGN in text for text in references)
    found = tune_search(run.translator(device="cpu"), sources, references, beams=[1], alphas=[0.0, 1.0])
    assert found.best == pytest.approx(100)
    text = write_text(run, tmp_path / "text")
    lines = text.parts[0].src.read_text(encoding="utf-8").split("\n")
    documents = prepared.train.documents
    assert documents is not None and lines.count("") == len({*documents.tolist()}) + 1
    assert [sentence_of(source) for source in sources] == [source.rpartition(SIGN)[2] for source in sources]


def test_an_export_does_the_same(make_run: MakeRun, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from dragoman.engines.ctranslate2 import CTranslate2Translator
    from dragoman.engines.export import export_ctranslate2

    run, texts = make_run(2), list(in_documents(LINES, 2))
    loaded = load_model(run.directory)
    settings = {"search": SearchConfig(beam=2), "context": run.config.data.context}
    export_ctranslate2(loaded, tmp_path / "out", **settings)
    assert read_manifest(tmp_path / "out").context == ContextConfig(source=2, target=2)
    fast = CTranslate2Translator.open(tmp_path / "out")
    found = [best for best, *_ in fast.hypotheses(texts)]
    assert [best.text for best in found] == [line.upper() for line in LINES] == fast.translate(texts)
    pairs = [(text, text.upper()) for text in texts if text]
    ours, theirs = run.translator(device="cpu").score(pairs), fast.score(pairs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.tokens == other.tokens and one.log_prob == pytest.approx(other.log_prob, abs=1e-3)


def dragoman(*arguments: object) -> str:
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == 0, found.output
    return found.output


def test_commands_use_the_context_of_documents(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(2).directory
    source, target, out = (tmp_path / name for name in ("t.en", "t.de", "out.txt"))
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    target.write_text("".join(f"{line.upper()}\n" for line in LINES), encoding="utf-8")
    dragoman("translate", run, "--input", source, "--out", out, "--device", "cpu")
    assert out.read_bytes() == target.read_bytes()
    text = tmp_path / "text.txt"
    text.write_bytes(source.read_bytes())
    dragoman("translate", run, text, "--out", tmp_path / "text.de.txt", "--device", "cpu")
    assert (tmp_path / "text.de.txt").read_bytes() == target.read_bytes()
    with_it, alone = (
        dragoman("score", run, source, target, "--device", "cpu", *more).splitlines()
        for more in ((), ("--no-context",))
    )
    assert len(with_it) == len([line for line in LINES if line]) and len(alone) == len(LINES)
    assert with_it[0] == alone[0] and with_it[1] != alone[1]
    told = dragoman("evaluate", run, source, target, "--device", "cpu", "--bootstrap", 0)
    assert f"{len(with_it)} sentences" in told and "exact  100.00%" in told
    refused = CliRunner().invoke(app, ["export", str(run), "--to", "huggingface"])
    assert refused.exit_code != 0


def test_the_loss_of_separators_is_counted_and_told(make_run: MakeRun, tmp_path: Path) -> None:
    """The weights say separators, which a run with target 0 does not expect."""
    run = make_run(0).directory
    source, out = tmp_path / "t.txt", tmp_path / "out.txt"
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    expected = "".join(f"{line.upper()}\n" for line in LINES)
    told = dragoman("translate", run, "--input", source, "--out", out, "--device", "cpu")
    assert out.read_text(encoding="utf-8") == expected
    assert "10 of 14 sentences were translated without those before them" in told
    told = dragoman("translate", run, source, "--out", out, "--device", "cpu")
    assert out.read_text(encoding="utf-8") == expected and "13 of 14 sentences" in told


def test_several_languages_killed_and_resumed_are_bit_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_languages(tmp_path)
    for file in map(Path, files):
        lines = file.read_text(encoding="utf-8").split("\n")
        blank = (f"{line}\n" if number % 5 else f"\n{line}\n" for number, line in enumerate(lines[:-1]))
        file.write_text("".join(blank), encoding="utf-8")
    plain = languages_config(files)
    plain["data"] |= {"context": {"source": 2, "target": 1}, "valid": plain["data"]["train"]}
    plain["train"] |= {"max_updates": 4, "validate_every": 4}
    cache = tmp_path / "cache"
    whole, killed = (languages_run(tmp_path / name, plain, cache) for name in ("whole", "killed"))
    train_run(whole, NoDisplay())
    train_until_killed(killed, 3, monkeypatch)
    train_run(Run.open(killed.directory), NoDisplay())
    assert_same_checkpoint(whole, killed, "0000004")
    prepared, config = whole.prepared(), whole.config
    examples = learning_of(config).examples(config, prepared)
    translator = whole.translator(device="cpu", undirected=True)
    for source, corpus in zip(config.data.train, prepared.train.corpora, strict=True):
        own = config.data.languages_of(source)
        opened = directed(translator, config.data.directions, own)
        texts = [text for text in in_documents(read_lines(source.files[0]), 2) if text]
        first = corpus.start + 3
        ids = examples.batch(np.array([first]), epoch=0).src_ids[0].tolist()
        (job,) = opened.jobs([texts[3]], [FREE], [never])
        assert list(job.source) == ids and texts[3].count(SIGN) == 2
