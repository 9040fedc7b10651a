"""The layout of what is written, to the byte, and what does not fit a model."""

import hashlib
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from dragoman import checkpoint
from dragoman.checkpoint.files import Content, from_bytes, from_tensors, space_for
from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.huggingface.write import published_tensors
from dragoman.errors import UserError
from dragoman.files import write_new
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig


@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"])
def test_tensors_begin_at_a_multiple_of_eight(name: str) -> None:
    """Whatever the length of the header: other readers map them into memory as they are."""
    tensors = {name: torch.arange(3.0), f"{name}2": torch.zeros(0), f"{name}3": torch.ones(2, 2)}
    content = from_tensors(tensors, {"format": "pt"})
    data = b"".join(bytes(chunk) for chunk in content.chunks)
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    assert len(data) == content.size == 8 + length + 4 * 7
    found = load(data)
    assert found.keys() == tensors.keys() and all(torch.equal(found[key], tensors[key]) for key in tensors)


@pytest.mark.parametrize(
    ("sizes", "blocks"), [([], 2), ([0], 2), ([1], 3), ([4096], 3), ([4097], 4), ([4095, 4097, 1], 6)]
)
def test_a_file_takes_whole_blocks(sizes: list[int], blocks: int) -> None:
    assert space_for([Content(size, ()) for size in sizes]) == blocks * 4096


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"b": 2}, "it: lacks tensor 'a'"),
        ({}, "it: lacks tensor 'a' and 1 more"),
        ({"a": 2, "b": 2, "c": 2}, "it: has an unknown tensor 'c'"),
        ({"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}, "it: has an unknown tensor 'c' and 2 more"),
        ({"a": 2, "b": 3}, "it: 'b' has the shape [3], this model needs [2]"),
    ],
)
def test_tensors_of_another_model_are_named(found: dict[str, int], message: str) -> None:
    expected = {"a": torch.zeros(2), "b": torch.zeros(2)}
    with pytest.raises(UserError) as error:
        checkpoint.refuse_other_names(
            "it", {name: torch.zeros(size) for name, size in found.items()}, expected
        )
    assert str(error.value) == message
    checkpoint.refuse_other_names("it", expected, expected)


def test_a_disk_that_takes_a_few_bytes_at_a_time_gets_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: plain(descriptor, data[:3]))
    written = write_new(tmp_path / "a", from_bytes(b"0123456789").chunks)
    assert (tmp_path / "a").read_bytes() == b"0123456789"
    assert written.size == 10 and written.sha256 == hashlib.sha256(b"0123456789").hexdigest()


@pytest.mark.parametrize("scaled", [True, False])
def test_an_output_that_is_not_scaled_is_written_out(scaled: bool) -> None:
    """Readers take a shared matrix of T5 for one whose product is scaled."""
    size = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8}
    wiring = {"positions": "t5", "norm": "pre", "norm_kind": "rms", "bias": False, "scale_embeddings": False}
    config = TransformerConfig(**size, **wiring, scale_attention=False, scale_output=scaled)  # type: ignore[arg-type]
    family = family_of("transformer", config)
    named = published_tensors(family, config, build_model("transformer", config, Vocab(24, 24, shared=True)))
    assert family.own_projection is not None
    assert (family.own_projection in named) == (not scaled)
