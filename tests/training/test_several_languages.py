"""A run of several languages: trained, killed and resumed, translated with, exported, served."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dragoman
from dragoman.checkpoint.model import load_model
from dragoman.cli.main import app
from dragoman.cli.translators import open_directions
from dragoman.decode.rules.constraints import FREE
from dragoman.decode.search.job import never
from dragoman.engines.export import export_ctranslate2
from dragoman.errors import UserError
from dragoman.evaluate.tune import tune_search, validation_openings, validation_pairs
from dragoman.learning import learning_of
from dragoman.runs.directory import Run
from dragoman.serve.app import Options
from dragoman.serve.service import Served, Service
from dragoman.studio.subjects import Subjects
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from killing import assert_same_checkpoint, train_until_killed
from languages import (
    HELD_BACK,
    LANGUAGES,
    SENTENCES,
    TRAINED,
    languages_config,
    languages_run,
    write_languages,
)
from serve.live import in_a_thread

TEXTS = SENTENCES["en"][:3]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return languages_config(write_languages(tmp_path_factory.mktemp("languages")))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, plain: dict[str, Any], cache: Path) -> Run:
    made = languages_run(tmp_path_factory.mktemp("runs") / "run", plain, cache)
    train_run(made, NoDisplay())
    return made


@pytest.fixture(scope="module")
def exported(run: Run) -> Path:
    directions, out = run.config.data.directions, run.directory.with_name("exported")
    loaded = load_model(run.directory)
    return export_ctranslate2(loaded, out, search=run.config.search, directions=directions)


@pytest.mark.parametrize("model", [{}, {"kind": "rnn", "model_dim": 16}], ids=["transformer", "rnn"])
def test_killed_and_resumed_it_is_bit_identical(
    tmp_path: Path, plain: dict[str, Any], cache: Path, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any]
) -> None:
    own = plain | ({"model": model} if model else {})
    whole, killed = (languages_run(tmp_path / name, own, cache) for name in ("whole", "killed"))
    train_run(whole, NoDisplay())
    train_until_killed(killed, 5, monkeypatch)
    train_run(Run.open(killed.directory), NoDisplay())
    assert_same_checkpoint(whole, killed, "0000006")
    assert (whole.directory / "metrics.jsonl").read_bytes() == (
        killed.directory / "metrics.jsonl"
    ).read_bytes()


def test_validation_has_the_metrics_of_every_direction_and_their_mean(run: Run) -> None:
    (*_, last) = [record for record in run.metrics if record["kind"] == "valid"]
    names = ["-".join(pair) for pair in TRAINED]
    for metric in ("loss", "bleu", "chrf"):
        own = [last[f"{metric}.{name}"] for name in names]
        assert last[metric] == pytest.approx(sum(own) / len(own))


def test_a_direction_is_told_by_the_piece_before_the_source(run: Run) -> None:
    german, french = (dragoman.load(run.directory, to=to, device="cpu") for to in ("de", "fr"))
    for translator, piece in ((german, "<to:de>"), (french, "<to:fr>")):
        (ids,) = translator.src_tokenizer.encode_batch(TEXTS[:1])
        assert translator.src_tokenizer.pieces(ids[:1]) == [piece]
        assert translator.tgt_tokenizer.opening == ()
        (found,) = translator.hypotheses(TEXTS[:1], align=True)
        assert found[0].alignment is not None
    pair = [(TEXTS[0], SENTENCES["de"][0])]
    assert german.score(pair)[0].score != french.score(pair)[0].score
    for to, source, told in (
        (None, None, "--to: name the target language"),
        ("it", None, "--to it"),
        ("fr", "de", "de-fr"),
    ):
        with pytest.raises(UserError, match=told):
            dragoman.load(run.directory, device="cpu", to=to, source=source)
    assert dragoman.load(run.directory, to="fr", source="de", zero_shot=True, device="cpu").translate(
        [""]
    ) == [""]
    with pytest.raises(UserError, match="a run of several languages"):
        run.translator()


def test_the_report_has_a_heat_map_and_the_studio_opens_the_run(run: Run) -> None:
    (*_, last) = [record for record in run.metrics if record["kind"] == "valid"]
    lines = learning_of(run.config).report(run.config, last)
    assert lines[2:5] == ["bleu on the validation set, from ↓ to →", "", "| | de | fr | en |"]
    best = max(last[f"loss.{'-'.join(pair)}"] for pair in TRAINED)
    assert any(f"█ {best:.2f}" in line for line in lines)
    (described,) = Subjects([run.directory], device="cpu").describe()
    assert described["languages"] == ["en", "de"]


def test_the_search_is_tuned_with_each_sentence_in_its_direction(run: Run) -> None:
    sources, references = validation_pairs(run.prepared())
    openings = validation_openings(run.prepared())
    assert len(set(openings)) == len(LANGUAGES)
    whole = run.translator(device="cpu", undirected=True)
    found = tune_search(whole, sources, references, beams=[1], alphas=[1.0], metric="chrf", openings=openings)
    own = whole.by_opening(sources, openings, lambda each, texts: each.translate(texts, search=found.chosen))
    assert found.translations[1, 1.0] == own


def test_an_export_translates_in_all_directions_as_the_run_does(run: Run, exported: Path) -> None:
    for to in ("de", "fr"):
        ours = dragoman.load(run.directory, to=to, device="cpu").score([(text, text) for text in TEXTS])
        fast = dragoman.load(exported, to=to).score([(text, text) for text in TEXTS])
        for one, other in zip(ours, fast, strict=True):
            assert other.score == pytest.approx(one.score, abs=1e-4)
    with pytest.raises(UserError, match="--zero-shot"):
        dragoman.load(exported, to="fr", source="de")


def served(run: Run, zero_shot: bool) -> Service:
    opened = open_directions(run.directory, "best", "cpu", zero_shot)
    own = [
        Served(one.languages, one.translator, True, str(run.directory), zero_shot=one.zero_shot)
        for one in opened
    ]
    return Service(own)


def test_the_clients_of_others_list_and_use_all_directions(run: Run) -> None:
    deepl = pytest.importorskip("deepl")
    libre = pytest.importorskip("libretranslatepy")
    ours = {pair: run.translator(device="cpu", languages=pair) for pair in TRAINED}
    with in_a_thread(served(run, zero_shot=False), Options()) as address:
        client = deepl.DeepLClient("any", server_url=address)
        assert {one.code.lower() for one in client.get_source_languages()} == set(LANGUAGES)
        targets = {one.code.lower() for one in client.get_target_languages()}
        assert targets == {"de", "fr", "en-gb", "en-us"}
        other = libre.LibreTranslateAPI(address)
        listed = {(one["code"], tgt) for one in other.languages() for tgt in one["targets"]}
        assert listed == set(TRAINED)
        for (src, tgt), translator in ours.items():
            text = SENTENCES[src][5]
            (expected,) = translator.translate([text])
            code = {"en": "en-GB"}.get(tgt, tgt)
            assert client.translate_text(text, source_lang=src, target_lang=code).text == expected
            assert other.translate(text, src, tgt) == expected
        with pytest.raises(deepl.DeepLException):
            client.translate_text("Hallo", source_lang="de", target_lang="fr")


def test_zero_shot_directions_are_served_on_request_and_marked(run: Run) -> None:
    service = served(run, zero_shot=True)
    assert set(service.routes) == {*TRAINED, *HELD_BACK}
    assert [pair for pair in service.routes if service.is_zero_shot(pair)] == list(HELD_BACK)
    service.close()


def test_the_command_line(run: Run, exported: Path, tmp_path: Path, plain: dict[str, Any]) -> None:
    def asked(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    for directory in (run.directory, exported):
        assert len(asked("translate", directory, *TEXTS, "--to", "de").splitlines()) == len(TEXTS)
    zero = asked("translate", run.directory, SENTENCES["de"][0], "--to", "fr", "--from", "de", "--zero-shot")
    assert zero.startswith("zero-shot: no pairs of de-fr were trained")
    files = sorted({file for source in plain["data"]["train"] for file in source["files"]})
    table = asked("evaluate", run.directory, *files, "--bootstrap", 0, "--zero-shot", "--beam", 1)
    told = table.splitlines()[-8:]
    assert [line.split()[0] for line in told[1:]] == [*("-".join(pair) for pair in sorted_pairs()), "mean"]
    written = json.loads((run.directory / "evaluation" / "train.de-fr" / "report.json").read_text())
    assert written["sentences"] == len(SENTENCES["de"])
    assert "best: beam 1, alpha 1" in asked("tune", run.directory, "--beams", "1", "--alphas", "1")
    planned = asked(
        "train", Path(files[0]).parent, "--directions", "en-de,de-fr", "--dry-run", "--out", tmp_path / "x"
    )
    assert "en, de, fr, in 2 directions" in planned


def sorted_pairs() -> list[tuple[str, str]]:
    """As `evaluate` goes through plain files: sorted by their names."""
    codes = sorted(LANGUAGES)
    return [(src, tgt) for src in codes for tgt in codes if src != tgt]


def test_tasks_stand_beside_each_other_as_languages_do(tmp_path: Path) -> None:
    """T5's mixture: each task has a piece before its source, its own share, and every metric of its own."""
    words = [f"{a} {b}" for a in ("red", "old", "big") for b in ("cat", "dog", "hill", "sea")]
    texts = {"review": words, "mood": ["good", "bad"] * 6, "word": words, "turned": [w[::-1] for w in words]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    sources = [
        {"files": [str(tmp_path / src), str(tmp_path / tgt)], "src_lang": src, "tgt_lang": tgt}
        for src, tgt in (("review", "mood"), ("word", "turned"))
    ]
    config = {
        "data": {"train": sources, "valid_size": 4, "clean": {"max_ratio": 100.0}},
        "tokenizer": {"vocab_size": 300},
        "model": {"preset": "t5-tiny", "num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 16},
        "train": {
            "max_updates": 2,
            "validate_every": 2,
            "batch_tokens": 100,
            "device": "cpu",
            "metric": "exact",
        },
    }
    run = dragoman.train(config, out=tmp_path / "run", quiet=True)
    last = run.metrics[-1]
    for metric in ("exact", "bleu", "chrf", "loss"):
        own = [last[f"{metric}.{task}"] for task in ("review-mood", "word-turned")]
        assert last[metric] == pytest.approx(sum(own) / 2)
    (job,) = dragoman.load(run.directory, to="mood", device="cpu").jobs(["red cat"], [FREE], [never])
    pieces = load_model(run.directory).src_tokenizer.pieces(job.source)
    assert pieces[0] == "<to:mood>"
