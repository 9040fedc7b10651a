"""Every experiment runs in a toy size, keeps to the frame, and has a rule that can say yes and no."""

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.lab import experiments
from dragoman.lab.book import Lab
from dragoman.lab.catalogue import all_experiments
from dragoman.lab.experiment import Experiment
from dragoman.training.display import NoDisplay
from lab.verdicts import EXAMPLES

FILES = sorted(path for path in Path(experiments.__path__[0]).glob("*.py") if path.stem != "__init__")
PUBLIC = (
    *("dragoman.lab", "dragoman.nn", "dragoman.text", "dragoman.models", "dragoman.probe"),
    *(
        "dragoman.evaluate",
        "dragoman.decode.search.config",
        "dragoman.runs.directory",
        "dragoman.runs.config",
    ),
    *("dragoman.config", "dragoman.errors"),
)
"""What experiments may import of the package: its blocks and what looks at runs, but nothing that trains."""
TRAINING = {"backward", "zero_grad", "optim"}
NAMES = list(all_experiments())


def toy(experiment: Experiment) -> Experiment:
    size = replace(
        experiment.quick,
        updates=min(2, experiment.quick.updates),
        seeds=1,
        pairs=40,
        tests=min(40, experiment.quick.tests),
        longest=min(8, experiment.quick.longest),
        width=16,
        points=experiment.quick.points[:3],
    )
    return replace(experiment, quick=size)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """One folder for all: runs are shared."""
    return Lab(tmp_path_factory.mktemp("lab"), quick=True, device="cpu")


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_in_a_toy_size_and_writes_its_page(name: str, place: Lab) -> None:
    report = place.run(toy(all_experiments()[name]), lambda *_: NoDisplay())
    page = (place.folder / name / f"{name}.md").read_text("utf-8")
    assert report.experiment.claim in page and str(report.verdict) in page
    assert (place.folder / name / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (place.folder / name / "figure.svg").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_its_rule_can_say_yes_and_no(name: str) -> None:
    yes, no = EXAMPLES[name]
    rule = all_experiments()[name].rule
    assert rule(yes).said == "holds"
    assert rule(no).said == "does not hold"


def test_every_file_is_in_the_catalogue() -> None:
    assert {path.stem.replace("_", "-") for path in FILES} == set(NAMES)


def test_there_are_no_examples_without_an_experiment() -> None:
    assert set(EXAMPLES) == set(NAMES)


def test_the_course_map_names_every_experiment() -> None:
    page = (Path(__file__).parents[2] / "docs" / "course-map.md").read_text("utf-8")
    assert [name for name in NAMES if f"**{name}**" not in page] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_experiment_is_one_short_file_that_does_not_train(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 120
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            assert node.attr not in TRAINING
        modules = []
        if isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
            assert not any(name.name.startswith("_") for name in node.names)
        for module in modules:
            top = module.split(".")[0]
            if top == "dragoman":
                assert module == "dragoman" or module.startswith(PUBLIC), module
            else:
                assert top in sys.stdlib_module_names or top in ("numpy", "torch", "matplotlib"), module


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_what_a_page_needs(name: str) -> None:
    experiment = all_experiments()[name]
    assert experiment.claim.endswith(".") and experiment.claim.count(". ") == 0, "one sentence"
    assert experiment.literature and experiment.how and experiment.rule_in_words.startswith("Holds if")
    if experiment.trains and name != "markov":
        assert experiment.quick.seeds >= 3 and experiment.full.seeds >= 3
        assert experiment.full.updates >= experiment.quick.updates
