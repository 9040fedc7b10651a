"""translate, score and evaluate as a person types them, on a small run that was really trained."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
from typer.testing import CliRunner, Result

import dragoman
from dragoman.cli.main import app
from dragoman.decode.search.config import SearchConfig
from dragoman.errors import UserError

TrainSmall = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, train_small: TrainSmall) -> Path:
    return train_small(tmp_path_factory.mktemp("use"))


def dragoman_command(*arguments: object, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def test_arguments_a_file_and_standard_input_give_the_same(
    run: Path, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    texts = [src for src, _ in pairs[:7]]
    expected = dragoman.load(run).translate(texts)
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    by_argument = dragoman_command("translate", run, *texts)
    by_file = dragoman_command("translate", run, "--input", tmp_path / "in.txt")
    by_stdin = dragoman_command("translate", run, stdin="\r\n".join(texts).encode())
    for result in (by_argument, by_file, by_stdin):
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines() == expected


def test_blank_and_odd_lines_keep_their_place(run: Path) -> None:
    text = "the red cat\n\n\u2028the old dog\u0085\n   \nthe new fish\n"
    result = dragoman_command("translate", run, stdin=text.encode())
    lines = result.stdout.split("\n")
    assert len(lines) == 6
    assert lines[1] == lines[3] == lines[5] == ""


def test_n_best_and_output_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    result = dragoman_command("translate", run, "the red cat", "a dog", "--n-best", 7, "--output", out)
    assert result.exit_code == 0, result.output
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row[0] for row in rows] == ["1"] * 7 + ["2"] * 7
    for number in ("1", "2"):
        scores = [float(row[1]) for row in rows if row[0] == number]
        assert scores == sorted(scores, reverse=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_printed_scores_are_those_of_score(run: Path, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    texts = [src for src, _ in pairs[:12]]
    result = dragoman_command("translate", run, *texts, "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["source"] for entry in found] == texts
    best = [entry["translations"][0] for entry in found]
    for entry in best:
        assert len(entry["pieces"]) == len(entry["token_scores"])
        assert entry["log_prob"] == pytest.approx(sum(entry["token_scores"]), abs=1e-6)
    table = tmp_path / "pairs.tsv"
    table.write_text(
        "".join(f"{s}\t{b['text']}\n" for s, b in zip(texts, best, strict=True)), encoding="utf-8"
    )
    rows = [line.split("\t") for line in dragoman_command("score", run, table).stdout.splitlines()]
    assert len(rows) == len(texts)
    compared = 0
    for row, entry in zip(rows, best, strict=True):
        if int(row[2]) == len(entry["token_scores"]):  # the text may have another, shorter segmentation
            assert float(row[0]) == pytest.approx(entry["score"], abs=2e-5)
            assert float(row[1]) == pytest.approx(entry["log_prob"], abs=2e-4)
            compared += 1
    assert compared >= 6


def test_evaluate_prints_what_sacrebleu_says_and_warns_of_overlap(
    run: Path, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    src, tgt = tmp_path / "t.en", tmp_path / "t.de"
    test = [*pairs[:20], ("the cat sat", "THE CAT SAT")]
    src.write_text("".join(f"{s}\n" for s, _ in test), encoding="utf-8")
    tgt.write_text("".join(f"{t}\n" for _, t in test), encoding="utf-8")
    result = dragoman_command("evaluate", run, src, tgt, "--bootstrap", 50)
    assert result.exit_code == 0, result.output
    hypotheses = (run / "evaluation" / "t.en" / "hypotheses.txt").read_text(encoding="utf-8").splitlines()
    assert hypotheses == dragoman.load(run).translate([s for s, _ in test])
    expected = sacrebleu.corpus_bleu(hypotheses, [[t for _, t in test]], force=True).score
    assert f"{expected:.2f}" in result.output
    assert "|bs:50|" in result.output
    report = json.loads((run / "evaluation" / "t.en" / "report.json").read_text(encoding="utf-8"))
    assert report["sentences"] == 21
    assert "source sentences" in result.output
    assert "are in the training data" in result.output


@pytest.fixture(scope="module")
def second(run: Path) -> Path:
    """A recurrent model with the same tokenizer: the data, and so the vocabulary, are the same."""
    settings = {
        "tokenizer.vocab_size": 320,
        "model.kind": "rnn",
        "model.model_dim": 24,
        "train.max_updates": 20,
        "train.validate_every": 20,
        "train.batch_tokens": 400,
        "optim.rate": 0.005,
        "schedule.warmup": 10,
    }
    table, out = run.parent / "pairs.tsv", run.parent / "second"
    return dragoman.train(table, out=out, overrides=settings, quiet=True).directory


def test_runs_translate_and_score_together(
    run: Path, second: Path, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    texts = [src for src, _ in pairs[:6]]
    result = dragoman_command("translate", run, *texts, "--with", second, "--json", "--set", "search.beam=3")
    assert result.exit_code == 0, result.output
    best = [json.loads(line)["translations"][0] for line in result.stdout.splitlines()]
    both = dragoman.load(run, second)
    assert [entry["text"] for entry in best] == both.translate(texts, search=SearchConfig(beam=3))
    alone = [d.translate(texts) for d in (dragoman.load(run), dragoman.load(second))]
    assert alone[0] != alone[1]
    table = tmp_path / "pairs.tsv"
    table.write_text(
        "".join(f"{s}\t{b['text']}\n" for s, b in zip(texts, best, strict=True)), encoding="utf-8"
    )
    result = dragoman_command("score", run, table, "--with", second)
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    compared = 0
    for row, entry in zip(rows, best, strict=True):
        if int(row[2]) == len(entry["token_scores"]):
            assert float(row[0]) == pytest.approx(entry["score"], abs=2e-5)
            compared += 1
    assert compared
    result = dragoman_command("evaluate", run, table, "--with", second, "--bootstrap", 0)
    assert result.exit_code == 0, result.output


def test_the_run_that_does_not_fit_is_named(run: Path, second: Path, tmp_path: Path) -> None:
    table = tmp_path / "other.tsv"
    table.write_text("".join(f"ab {i}\tcd {i}\n" for i in range(40)), encoding="utf-8")
    settings = {"tokenizer.vocab_size": 300, "model.kind": "rnn", "model.model_dim": 8}
    settings |= {"train.max_updates": 1, "train.validate_every": 1, "optim.rate": 0.005, "schedule.warmup": 1}
    other = dragoman.train(table, out=tmp_path / "other", overrides=settings, quiet=True).directory
    with pytest.raises(UserError, match=rf"^{other}: its tokenizers are not those of {run}"):
        dragoman.load(run, second, other)


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--method", "sample", "--n-best", 7, "--set", "search.top_p=0.9"], 7),
        (["--method", "mbr", "--set", "search.samples=8"], 1),
        (["--set", "search.groups=2", "--beam", 4, "--n-best", 2], 2),
        (["--set", "search.coverage=0.2", "--set", "search.length_penalty=gnmt"], 1),
    ],
)
def test_other_ways_of_searching(run: Path, options: list[object], lines: int) -> None:
    result = dragoman_command("translate", run, "the red cat and a dog", *options)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == lines
    assert dragoman_command("translate", run, "the red cat and a dog", *options).stdout == result.stdout


def test_the_help_of_translate_fits_on_a_screen() -> None:
    text = dragoman_command("translate", "--help").stdout.partition("Examples:")[0]
    assert len(text.splitlines()) <= 48


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["translate", "no/such/run", "a"], b"", "no/such/run"),
        (["translate", "RUN", "a", "--beam", "0"], b"", "beam"),
        (["translate", "RUN", "a", "--beam", "2", "--n-best", "3"], b"", "n_best"),
        (["translate", "RUN", "a", "--method", "guess"], b"", "search.method"),
        (["translate", "RUN", "a", "--set", "search.top_p=0.9"], b"", "search.top_p"),
        (["translate", "RUN", "a", "--set", "search.tpo_k=3"], b"", "search.tpo_k"),
        (["translate", "RUN", "a", "--set", "search.n_best=many"], b"", "search.n_best"),
        (["translate", "RUN", "a", "--set", "train.device=cpu"], b"", "train.device"),
        (["translate", "RUN", "a", "--set", "search.beam"], b"", "search.beam"),
        (["translate", "RUN", "a", "--with", "no/such/run"], b"", "no/such/run"),
        (["translate", "RUN", "a", "--checkpoint", "77"], b"", "77"),
        (["translate", "RUN", "a", "--device", "toaster"], b"", "toaster"),
        (["translate", "RUN"], b"fine\nbad \xff here\n", "standard input:2"),
        (["translate", "RUN"], b"nul \0 here\n", "standard input:1"),
        (["translate", "RUN", "--input", "missing.txt"], b"", "missing.txt"),
        (["translate", "RUN", "text", "--input", "missing.txt"], b"", "not both"),
        (["translate", "RUN", "a", "--output", "no/such/dir/out"], b"", "no/such/dir/out"),
        (["evaluate", "RUN"], b"", "test"),
        (["score", "RUN", "missing.tsv"], b"", "missing.tsv"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    run: Path, arguments: list[str], stdin: bytes, message: str
) -> None:
    filled = [str(run) if argument == "RUN" else argument for argument in arguments]
    result = dragoman_command(*filled, stdin=stdin)
    assert isinstance(result.exception, UserError), result.output
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_the_model_learnt_something(run: Path, pairs: list[tuple[str, str]]) -> None:
    """So that the tests above look at translations, not at noise."""
    translator = dragoman.load(run)
    right = sum(translator.translate([src])[0] == tgt for src, tgt in pairs[:10])
    assert right >= 1, translator.translate([src for src, _ in pairs[:10]])


def test_prefix_glossary_and_forbidden_phrases(run: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("# terms\ncat\tFISH|HILL\nold dog\t\n", encoding="utf-8")
    (tmp_path / "begin.txt").write_text("A \nTHE\n", encoding="utf-8")
    texts = ["the red cat and a fish", "the old dog and a hill"]
    options = [
        "--glossary",
        terms,
        "--prefix",
        f"@{tmp_path / 'begin.txt'}",
        "--forbid",
        "AND",
        "--forbid",
        "RED",
    ]
    result = dragoman_command("translate", run, *texts, *options, "--json")
    assert result.exit_code == 0, result.output
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    best = [entry["translations"][0]["text"] for entry in (first, second)]
    assert best[0].startswith("A ") and best[1].startswith("THE")
    assert not any({"AND", "RED"} & set(text.split()) for text in best)
    (term,) = first["glossary"]
    assert (term["source"], term["start"], term["end"]) == ("cat", 8, 11)
    assert term["target"] in ("FISH", "HILL") and term["target"] in best[0].split()
    assert [term["target"] for term in second["glossary"]] == ["old dog"] and "old dog" in best[1]
    plain = dragoman_command("translate", run, *texts, *options)
    assert plain.stdout.splitlines() == best
    assert "glossary" not in json.loads(dragoman_command("translate", run, texts[0], "--json").stdout)


def test_an_open_prefix_goes_on(run: Path) -> None:
    result = dragoman_command(
        "translate", run, "the red cat and a fish", "--prefix", "THE R", "--prefix-open"
    )
    assert result.stdout.startswith("THE RED")
    closed = dragoman_command("translate", run, "the red cat and a fish", "--prefix", "THE R")
    assert re.match(r"THE R(\W|$)", closed.stdout)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--prefix", "@none.txt"], "none.txt"),
        (["--glossary", "none.tsv"], "none.tsv"),
        (["--forbid", " "], "forbidden"),
        (["--prefix", "THE CAT", "--forbid", "CAT"], "'CAT'"),
        (["--prefix", "@SHORT"], "fewer lines"),
        (["--prefix", "@LONG"], "more lines"),
        (["--glossary", "BAD"], "bad.tsv:1"),
    ],
    ids=["no prefix", "no glossary", "empty phrase", "contradiction", "short", "long", "bad line"],
)
def test_mistakes_with_constraints_are_named(
    run: Path, tmp_path: Path, options: list[str], named: str
) -> None:
    files = {"SHORT": ("s.txt", "a\n"), "LONG": ("l.txt", "a\nb\nc\n"), "BAD": ("bad.tsv", "cat\tx|\n")}
    for mark, (name, content) in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        options = [option.replace(mark, str(tmp_path / name)) for option in options]
    result = dragoman_command("translate", run, "the cat", "a dog", *options)
    assert isinstance(result.exception, UserError)
    assert named in str(result.exception)
