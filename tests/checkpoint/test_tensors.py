"""Safetensors files whose header lies: refused before anything is loaded, in one sentence."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.checkpoint.files import LARGEST_HEADER, from_tensors, load_tensors
from dragoman.errors import UserError
from dragoman.files import write_new
from limited import within
from mutations import HOSTILE, never_waiting, nodes, not_files, removed, replaced

TENSORS = {
    "a": torch.arange(6.0).view(2, 3),
    "b.weight": torch.arange(4, dtype=torch.int64),
    "empty": torch.empty(0, 5),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "scalar": torch.tensor(True),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_new(tmp_path / "model.safetensors", from_tensors(TENSORS, {"format": "pt"}).chunks)
    return tmp_path / "model.safetensors"


def split(path: Path) -> tuple[dict[str, Any], bytes]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join(path: Path, header: Any, rest: bytes) -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + rest)


def same(found: dict[str, Tensor]) -> bool:
    return found.keys() == TENSORS.keys() and all(
        found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)
        for name, tensor in TENSORS.items()
    )


def test_what_is_sound_is_loaded(path: Path) -> None:
    assert same(load_tensors(path))


TYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back(tmp_path: Path, name: str) -> None:
    tensor = torch.tensor([[0, 1, 7], [100, 3, 0]]).to(getattr(torch, name))
    write_new(tmp_path / "model.safetensors", from_tensors({"a": tensor, "b": tensor[1]}, {}).chunks)
    found = load_tensors(tmp_path / "model.safetensors")
    assert {key: each.dtype for key, each in found.items()} == {"a": tensor.dtype, "b": tensor.dtype}
    assert torch.equal(found["a"], tensor) and torch.equal(found["b"], tensor[1])


def test_every_value_of_the_header_replaced_or_removed(path: Path) -> None:
    header, rest = split(path)
    refused = 0
    for place in nodes(header):
        for other in (*(replaced(header, place, value) for value in HOSTILE), removed(header, place)):
            join(path, other, rest)
            try:
                found = load_tensors(path)
            except UserError as error:
                assert str(error).startswith(f"{path}: not a safetensors file (") and len(str(error)) < 400
                refused += 1
            else:  # words about the file, another type or shape of as many bytes
                assert sum(t.nbytes for t in found.values()) == len(rest), place
    assert refused > 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": {"data_offsets": [0, 16], "shape": [2, 2]}}, "does not begin where the tensor before it ends"),
        ({"b.weight": {"data_offsets": [0, 32]}}, "does not begin where"),
        ({"a": {"shape": [2**20, 2**20, 2**20, 0]}}, "has not as many bytes"),
        ({"a": {"shape": [2**62, 8, 3]}}, "a shape or a place that cannot be"),
        ({"a": {"shape": [1] * 9}}, "a shape or a place that cannot be"),
        ({"a": {"shape": [2, -3]}}, "a shape or a place that cannot be"),
        ({"a": {"shape": [2.0, 3]}}, "a shape or a place that cannot be"),
        ({"a": {"dtype": "F8_E4M3"}}, "is of the type 'F8_E4M3'; known are"),
        ({"a": {"data_offsets": [24, 0]}}, "has not as many bytes"),
        ({"a": {"more": 1}}, "is not described by"),
    ],
)
def test_what_is_wrong_is_said(path: Path, change: dict[str, dict[str, Any]], message: str) -> None:
    header, rest = split(path)
    join(path, header | {name: header[name] | entry for name, entry in change.items()}, rest)
    with pytest.raises(UserError, match=message):
        load_tensors(path)


def test_names_that_are_there_twice(path: Path) -> None:
    header, rest = split(path)
    text = json.dumps(header)
    join(path, (text[:-1] + f', "a": {json.dumps(header["a"])}}}').encode(), rest)
    with pytest.raises(UserError, match="the field 'a' is there twice"):
        load_tensors(path)


@pytest.mark.parametrize("length", [0, 2, 10**6, LARGEST_HEADER + 1, 2**40, 2**63, 2**64 - 1])
def test_any_length_of_the_header(path: Path, length: int) -> None:
    data = path.read_bytes()
    path.write_bytes(length.to_bytes(8, "little") + data[8:])
    with pytest.raises(UserError, match="not a safetensors file"):
        load_tensors(path)


def test_a_large_header_takes_no_memory(path: Path) -> None:
    """A file of a terabyte of zeros costs nothing; neither does refusing it."""
    for length in (2**39, LARGEST_HEADER):
        path.write_bytes(length.to_bytes(8, "little"))
        os.truncate(path, 2**40)

        def read() -> str:
            with pytest.raises(UserError) as caught:
                load_tensors(path)
            return str(caught.value)

        assert str(path) in within(100, read)


def test_many_tensors_without_bytes(path: Path) -> None:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    join(path, {f"t{number}": entry for number in range(100_001)}, b"")
    with pytest.raises(UserError, match="more than 100,000 tensors"):
        load_tensors(path)


def test_truncated_and_flipped(path: Path) -> None:
    data, chance = path.read_bytes(), random.Random(1)
    begin = len(data) - sum(tensor.nbytes for tensor in TENSORS.values())
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(UserError, match=str(path)):
            load_tensors(path)
    for _ in range(500):
        place = chance.randrange(begin)
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :])
        try:
            found = load_tensors(path)
        except UserError:
            continue
        assert sum(tensor.nbytes for tensor in found.values()) == len(data) - begin


def test_things_that_are_no_files(path: Path) -> None:
    with never_waiting():
        for kind in not_files(path):
            with pytest.raises(FileNotFoundError if kind == "nothing" else UserError):
                load_tensors(path)
    assert same(load_tensors(path))
