"""The help: whole, in groups, in plain words, with examples that can be typed."""

import re
import shlex
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dragoman.cli.examples import EXAMPLES
from dragoman.cli.help import GROUPS
from dragoman.cli.main import app

WHOLE: Any = typer.main.get_command(app)
NAMES = [name for name, command in WHOLE.commands.items() if not command.hidden]


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_command_is_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(NAMES) <= set(grouped)


def test_the_list_is_whole_at_80_columns() -> None:
    text = shown("--help")
    assert "..." not in text.partition("Train:")[2]
    assert max(map(len, text.splitlines())) <= 80
    titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE)
    assert titles[:5] == ["Options", "Train", "Use", "Evaluate", "Look inside"]
    joined = "".join(text.split())  # lines also break at hyphens
    for name in NAMES:
        paragraph = (WHOLE.commands[name].help or "").partition("\n\n")[0]
        assert "".join(paragraph.partition(". ")[0].split()) in joined, name
    assert "dragoman help COMMAND" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_commands_help(name: str) -> None:
    text = shown(name, "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"<(str|int|float|path|list)|list\[|int range|x>=", text), (
        "a Python type in the help"
    )
    assert re.search(r"^Examples?:\n  dragoman ", text, re.MULTILINE)
    assert shown("help", name) == text


@pytest.mark.parametrize(
    "example", [one for name in NAMES for one in EXAMPLES[name]], ids=lambda text: text.partition("#")[0]
)
def test_an_example_can_be_typed(example: str) -> None:
    """Its options and arguments are those of the command."""
    program, name, *arguments = shlex.split(example, comments=True)
    assert program == "dragoman"
    command = WHOLE.commands[name]
    with command.make_context(name, arguments) as context:
        assert context.params


def test_help_of_nothing_and_of_something_unknown() -> None:
    assert shown("help") == shown("--help")
    result = CliRunner().invoke(app, ["help", "trian"])
    assert result.exit_code == 2 and "Did you mean 'train'" in result.output


@pytest.mark.parametrize("option", ["--version", "-v", "-V"])
def test_version(option: str) -> None:
    assert shown(option).startswith("dragoman ")


@pytest.mark.parametrize("name", NAMES)
def test_out_is_spelt_alike(name: str) -> None:
    options = [set(parameter.opts) for parameter in WHOLE.commands[name].params]
    written = [names for names in options if names & {"--out", "--output", "-o"}]
    assert all(names == {"-o", "--out", "--output"} for names in written)


FILES = [
    ("train", "a.en a.de --valid dev.en dev.de", ["dev.en", "dev.de"], ["a.en", "a.de"]),
    ("train", "--valid dev.en dev.de a.en a.de", ["dev.en", "dev.de"], ["a.en", "a.de"]),
    ("train", "--valid dev.en --valid dev.de a.en a.de", ["dev.en", "dev.de"], ["a.en", "a.de"]),
    ("train", "--valid dev.tsv a.tsv", ["dev.tsv"], ["a.tsv"]),
    ("train", "a.tsv --valid dev.tsv -q train.seed=2", ["dev.tsv"], ["a.tsv", "train.seed=2"]),
    ("train", "a.en a.de --valid=dev.en --valid=dev.de", ["dev.en", "dev.de"], ["a.en", "a.de"]),
    ("train", "a.tsv -o runs/x --valid d.en d.de m.n=1", ["d.en", "d.de"], ["a.tsv", "m.n=1"]),
    ("pretrain", "a.txt --valid b.txt c.txt", ["b.txt", "c.txt"], ["a.txt"]),
    ("pretrain", "--valid b.txt a.txt", ["b.txt"], ["a.txt"]),
    ("finetune", ". --valid dev.tsv a.tsv", ["dev.tsv"], [".", "a.tsv"]),
    ("corpus", "a.en a.de --test t.en t.de", ["t.en", "t.de"], ["a.en", "a.de"]),
]


@pytest.mark.parametrize(("name", "typed", "wanted", "files"), FILES, ids=lambda value: str(value))
def test_an_option_takes_several_files(name: str, typed: str, wanted: list[str], files: list[str]) -> None:
    with WHOLE.commands[name].make_context(name, typed.split()) as context:
        option = "test" if "--test" in typed else "valid"
        assert [str(path) for path in context.params[option]] == wanted
        assert [str(path) for path in context.params.get("arguments", context.params.get("files"))] == files


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """A shell asks for what can follow, as the script that --show-completion prints makes it do."""
    env = {"_DRAGOMAN_COMPLETE": f"complete_{shell}", "COMP_WORDS": "dragoman tra", "COMP_CWORD": "1"}
    env |= {"_TYPER_COMPLETE_ARGS": "dragoman tra", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    result = CliRunner().invoke(app, [], env=env, prog_name="dragoman")
    assert {"train", "translate"} <= set(re.findall(r"[a-z-]+", result.stdout)), result.output
    assert "tokenize" not in result.stdout


def test_shells_complete_commands() -> None:
    """What `dragoman --install-completion` installs asks so."""
    asked = {"_DRAGOMAN_COMPLETE": "complete_bash", "COMP_WORDS": "dragoman tra", "COMP_CWORD": "1"}
    found = CliRunner().invoke(app, [], env=asked, prog_name="dragoman")
    assert found.stdout.split() == ["train", "translate"]
