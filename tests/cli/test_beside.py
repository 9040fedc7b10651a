"""`translate --glossary` and `--memory` with a run that was trained for them, and with its export."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.test_use import dragoman_command
from dragoman.checkpoint.model import load_model
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import export_ctranslate2
from dragoman.errors import UserError
from dragoman.runs.directory import Run
from dragoman.text.glossary import Glossary
from given import given_run
from toy import toy_config, write_pairs

TEXT = "the red cat and a dog"
RARE = ["lamp", "door", "roof", "tree", "bird", "boat", "nest", "ring", "coat", "bell", "farm", "gate"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> Run:
    """It says words in capitals, and what stands beside them too. Terms are rare words of the corpus."""
    texts = [f"the red {one} and a {other}" for one, other in zip(RARE, RARE[1:] + RARE[:1], strict=True)]
    pairs = [*pairs, *((text, text.upper()) for text in texts)]
    directory = tmp_path_factory.mktemp("beside")
    config = toy_config(write_pairs(directory, pairs))
    config["train"] |= {"max_updates": 1, "validate_every": 1, "samples": 0}
    config["objective"] = {"terms": 0.5, "fuzzy": 50}
    return given_run(directory / "run", config, pairs)


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("cat\told fish\n", encoding="utf-8")
    return path


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "memory.tsv"
    path.write_text("en\tde\nthe red cat and a dog today\tnew hill\na fish\tEin Fisch.\n", encoding="utf-8")
    return path


def line(*arguments: Any) -> str:
    result = dragoman_command("translate", *arguments)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.stdout.splitlines()[-1]


def test_terms_and_similar_translations_are_read(trained: Run, terms: Path, memory: Path) -> None:
    run = trained.directory
    assert line(run, TEXT) == TEXT.upper()
    assert line(run, TEXT, "--glossary", terms) == "THE RED CAT OLD FISH AND A DOG"
    assert "old fish" in line(run, TEXT, "--glossary", terms, "--terms", "constrain")
    assert "old fish" in line(run, TEXT, "--glossary", terms, "--terms", "placeholder")
    assert line(run, TEXT, "--memory", memory) == "THE RED CAT AND A DOG NEW HILL"
    assert line(run, TEXT, "--memory", memory, "--memory-least", 90) == TEXT.upper()
    assert dragoman_command("translate", run, "a fish", TEXT, "--memory", memory).stdout.splitlines() == [
        "Ein Fisch.",
        "THE RED CAT AND A DOG NEW HILL",
    ]
    told = json.loads(line(run, "a fish", "--memory", memory, "--json"))
    assert told["memory"] == {"source": "a fish", "target": "Ein Fisch.", "quality": 100.0}
    assert told["translations"][0]["text"] == "Ein Fisch." and told["translations"][0]["token_scores"]
    (found,) = json.loads(line(run, TEXT, "--glossary", terms, "--json"))["glossary"]
    assert found["target"] == "OLD FISH"


def test_a_new_unit_changes_the_next_translation(trained: Run, memory: Path) -> None:
    with memory.open("a", encoding="utf-8") as file:
        file.write("the red cat and a dog now\told hill\n")
    assert line(trained.directory, TEXT, "--memory", memory) == "THE RED CAT AND A DOG OLD HILL"


def test_a_document_is_translated_with_both(trained: Run, terms: Path, memory: Path, tmp_path: Path) -> None:
    document = tmp_path / "letter.md"
    document.write_text(f"# a fish\n\n{TEXT}\n", encoding="utf-8")
    options = ["--glossary", terms, "--memory", memory, "--out", tmp_path / "out.md"]
    result = dragoman_command("translate", trained.directory, document, *options)
    assert result.exit_code == 0, result.output
    written = (tmp_path / "out.md").read_text("utf-8")
    assert written == "# Ein Fisch.\n\nTHE RED CAT OLD FISH AND A DOG NEW HILL\n"


def test_an_export_says_the_same(trained: Run, terms: Path, tmp_path: Path) -> None:
    ours = trained.translator(device="cpu")
    out = export_ctranslate2(load_model(trained.directory), tmp_path / "export", search=trained.config.search)
    fast = CTranslate2Translator.open(out)
    how: dict[str, Any] = {"glossary": Glossary.load(terms), "similar": {TEXT: "new hill"}}
    texts = [TEXT, "the cat", "a dog"]
    found = [best.text for best, *_ in fast.hypotheses(texts, **how)]
    assert found == [best.text for best, *_ in ours.hypotheses(texts, **how)]
    assert found[1] == "THE CAT OLD FISH" and fast.annotates
    fast.longest_source = len(fast.src_tokenizer.encode("the cat"))
    assert [best.text for best, *_ in fast.hypotheses(["the cat"], **how)] == ["THE CAT"]


def test_a_run_that_was_not_trained_so_takes_exact_matches_alone(
    train_small: Callable[..., Path], tmp_path: Path, memory: Path, terms: Path
) -> None:
    """This one does not even know its languages, so it takes the memory as it is."""
    run = train_small(tmp_path)
    result = dragoman_command("translate", run, TEXT, "a fish", "--memory", memory)
    assert "only exact matches are used" in result.output
    assert result.stdout.splitlines()[-2:] == [TEXT.upper(), "Ein Fisch."]
    with pytest.raises(UserError, match="--terms annotate: this model was not trained"):
        raise dragoman_command("translate", run, TEXT, "--glossary", terms, "--terms", "annotate").exception


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--terms", "annotate"], "give --glossary too"),
        (["--memory", "MEMORY", "--align"], "leave out --align"),
        (["--memory", "MEMORY", "--stream"], "leave out --memory"),
        (["--memory", "none.tmx"], "none.tmx"),
        (["--memory", "OTHER"], "it holds fr and es, which no run here translates"),
    ],
)
def test_mistakes_are_named(
    trained: Run, memory: Path, tmp_path: Path, options: list[str], told: str
) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("fr\tes\nun chat\tun gato\n", encoding="utf-8")
    options = [option.replace("MEMORY", str(memory)).replace("OTHER", str(other)) for option in options]
    result = dragoman_command("translate", trained.directory, TEXT, *options)
    assert isinstance(result.exception, UserError) and told in str(result.exception)
