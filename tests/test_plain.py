"""JSON and YAML from strangers: refused in one sentence, before memory is taken, or read as they are."""

import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman import plain
from dragoman.config import apply_overrides, from_dict, load_yaml
from dragoman.errors import UserError, shown
from dragoman.train.config import RunConfig
from limited import within

LETTERS = "abcdefghij"


def bomb(levels: int) -> str:
    """Nine times nine times nine … values in one line."""
    first = f"&a [{', '.join('x' * 9)}]"
    rest = [f"&{b} [{', '.join(['*' + a] * 9)}]" for a, b in pairwise(LETTERS[:levels])]
    return f"[{', '.join([first, *rest])}]"


def mapping_bomb(levels: int) -> str:
    def level(a: str, b: str) -> str:
        return f"{b}: &{b} {{{', '.join(f'k{n}: *{a}' for n in range(9))}}}"

    rest = [level(a, b) for a, b in pairwise(LETTERS[:levels])]
    return f"{{{', '.join(['a: &a {x: 1}', *rest])}}}"


def merge_bomb(levels: int) -> str:
    rest = [f"{b}: &{b} {{<<: [{', '.join(['*' + a] * 9)}]}}" for a, b in pairwise(LETTERS[:levels])]
    return f"{{{', '.join(['a: &a {x: 1}', *rest])}}}"


HOSTILE = {
    "aliases": bomb(10),
    "aliases in mappings": mapping_bomb(10),
    "aliases in merges": merge_bomb(10),
    "an alias of itself": "&a [*a]",
    "an alias in its own mapping": "&a {b: *a}",
    "deep lists": "[" * 5000 + "]" * 5000,
    "deep mappings": "{a: " * 5000 + "}" * 5000,
    "deep without an end": "[" * 100_000,
    "deep by aliases": "[&a0 [x], " + ", ".join(f"&a{n} [*a{n - 1}]" for n in range(1, 100)) + "]",
    "deep pairs": "!!pairs [a: " * 100 + "1" + "]" * 100,
    "many values": f"[{','.join('x' * 20_001)}]",
    "digits": "9" * 5000,
    "hexadecimal digits": "0x" + "f" * 5000,
    "sexagesimal digits": "1" + ":59" * 100_000,
    "no date": "2001-13-45",
    "no boolean": "!!bool maybe",
    "no number": "!!int x",
    "no timestamp": "!!timestamp x",
    "an object": "!!python/object/apply:os.getcwd []",
    "no bytes": "!!binary =",
    "a tag": "!secret x",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("field", ["seed", "model"])
def test_hostile_yaml_is_refused_in_one_sentence(tmp_path: Path, text: str, field: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(f"{field}: {text}\n")
    for read in (
        lambda: from_dict(RunConfig, apply_overrides(load_yaml(path), [])),
        lambda: from_dict(RunConfig, apply_overrides({}, [f"{field}={text}"])),
    ):
        with pytest.raises(UserError) as caught:
            read()
        assert len(str(caught.value)) < 500 and "\n" not in str(caught.value)


def test_memory_of_hostile_yaml(tmp_path: Path) -> None:
    """In a process that may take 100 MB more: the bomb stands for 31 GB."""
    path = tmp_path / "recipe.yaml"
    path.write_text(f"seed: {bomb(10)}\n")

    def read() -> str:
        with pytest.raises(UserError) as caught:
            load_yaml(path)
        return str(caught.value)

    assert "it holds more than 20,000 values" in within(100, read)


def test_values_are_counted_before_anything_is_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither constructing nor merging begins where a document has too many values."""

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(plain._Loader, "construct_document", never)
    for text in (bomb(10), mapping_bomb(10), merge_bomb(10)):
        with pytest.raises(UserError, match="more than 20,000 values"):
            plain.parse_yaml(text)


def test_yaml_that_people_write_is_read_as_before() -> None:
    texts = [
        "a: &x {b: 1, c: [1, 2]}\nd: *x\ne: {<<: *x, b: 3}",
        "rate: 3e-4\nnone: ~\ndate: 2001-12-14\nlist: [yes, no]\ntext: 'x: y'",
        "a: |\n  lines\n  of text\nb: >\n  folded\n",
        "? key\n: value\n",
        "",
    ]
    for text in texts:
        assert plain.parse_yaml(text) == yaml.safe_load(text)
    assert plain.parse_yaml(bomb(4)) == yaml.safe_load(bomb(4))


def test_deep_overrides_have_a_limit() -> None:
    assert apply_overrides({}, ["a.b.c=1"]) == {"a": {"b": {"c": 1}}}
    with pytest.raises(UserError, match="no field lies so deep"):
        apply_overrides({}, [".".join("a" * 1000) + "=1"])


def test_damaged_yaml(tmp_path: Path) -> None:
    """Any bytes are read or refused."""
    good = b"data:\n  train: [a.en, a.de]\nmodel: {kind: rnn, num_layers: 2}\nseed: 3\noptim: {rate: 3e-4}\n"
    alphabet = b"[]{}:,&*!|>'\"%@`#-? \n\t\x00\xff0129ax.~<"
    chance, path = random.Random(5), tmp_path / "config.yaml"
    refused = 0
    for _ in range(800):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            data[place : place + chance.randint(0, 3)] = bytes(
                chance.choices(alphabet, k=chance.randint(0, 3))
            )
        path.write_bytes(data)
        try:
            from_dict(RunConfig, load_yaml(path))
        except UserError as error:
            assert "\n" not in str(error).partition("not valid YAML")[0]
            refused += 1
    assert refused > 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 70 + "]" * 70, "more than 64 deep"),
        ("[" * 100_000, "more than 64 deep|100,000 values"),
        ("[" + "1," * 100_000 + "1]", "more than 100,000 values"),
        ('{"a": 1, "b": 2, "a": 3}', "the field 'a' is there twice"),
        ('{"a": {"b": [{"c": 1, "c": 1}]}}', "the field 'c' is there twice"),
        ('{"' + "x" * 1000 + '": 1, "' + "x" * 1000 + '": 1}', r"the field 'xx.{50,60}\.\.\. is there twice"),
        ("9" * 5000, "not valid JSON"),
        ("{", "not valid JSON"),
        ("\xff", "not valid JSON"),
    ],
)
def test_hostile_json(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text, "latin-1")
    with pytest.raises(UserError, match=message) as caught:
        plain.read_json(path)
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value)) < 300


def test_files_that_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in ((tmp_path / "pipe", "a named pipe"), (tmp_path, "a directory")):
        for read in (plain.read_json, plain.read_yaml, load_yaml):
            with pytest.raises(UserError, match=f"this is {message}, not a file"):
                read(path)
    (tmp_path / "large").write_bytes(b"")
    os.truncate(tmp_path / "large", 1 << 40)
    for read in (plain.read_json, plain.read_yaml, load_yaml):
        with pytest.raises(UserError, match="too large: 1,099,511,627,776 bytes"):
            read(tmp_path / "large")


def test_shown_values_are_short() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    for value in (nested, "x" * 10**6, [0] * 10**6, {n: n for n in range(10**5)}, 10**5000, b"x" * 10**6):
        assert len(shown(value)) <= 60
    assert shown({"a": [1, None, "x"]}) == "{'a': [1, None, 'x']}"
    assert shown("x" * 100) == f"'{'x' * 56}..."


def test_numbers_beyond_a_float() -> None:
    with pytest.raises(UserError, match="expected a number"):
        from_dict(RunConfig, {"optim": {"rate": 10**400}})
    with pytest.raises(UserError, match="unknown field"):
        from_dict(RunConfig, {"x" * 10**6: 1})
    with pytest.raises(UserError, match="unknown field"):
        from_dict(RunConfig, {(1, 2): 1})
