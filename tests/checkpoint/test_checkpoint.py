"""Checkpoints: what they hold, and every flipped bit, cut file, strange manifest and NaN."""

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from checkpoint.saved import assert_is, entries, save, some_state, some_tensors
from dragoman import checkpoint
from dragoman.checkpoint.files import from_tensors, serialise
from dragoman.checkpoint.model import load_tokenizers, renamed_weights, save_tokenizers, tokenizer_files
from dragoman.errors import UserError
from dragoman.files import write_new
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig


def test_round_trip_and_names(tmp_path: Path) -> None:
    for update in (5, 20, 100):
        path = save(tmp_path, update)
        assert sorted(p.name for p in path.iterdir()) == [
            "manifest.json",
            "model.safetensors",
            "optim.safetensors",
            "state.json",
        ]
    assert checkpoint.names(tmp_path) == ["0000005", "0000020", "0000100"]
    assert_is(checkpoint.load_checkpoint(tmp_path / "0000020"), 20)
    assert_is(checkpoint.newest(tmp_path), 100)


def test_a_name_is_replaced_by_a_second_save(tmp_path: Path) -> None:
    save(tmp_path, 5)
    checkpoint.save(tmp_path, checkpoint.checkpoint_name(5), some_tensors(6), some_state(6))
    assert_is(checkpoint.newest(tmp_path), 6)
    assert entries(tmp_path) == ["0000005"]


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool],
    ids=str,
)
def test_our_writer_and_the_library_agree(tmp_path: Path, dtype: torch.dtype) -> None:
    tensors = {
        "matrix": torch.arange(6).reshape(2, 3).to(dtype),
        "turned": torch.arange(6).reshape(2, 3).T.to(dtype),
        "scalar": torch.tensor(1).to(dtype),
        "none": torch.zeros(0, 4).to(dtype),
        "ünïcode": torch.arange(3).to(dtype),
    }
    content = from_tensors(tensors)
    written = write_new(tmp_path / "ours", content.chunks)
    assert written.size == content.size == (tmp_path / "ours").stat().st_size
    ours = safetensors.torch.load_file(tmp_path / "ours")
    assert ours.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert ours[name].dtype == dtype
        assert ours[name].shape == tensor.shape
        assert torch.equal(ours[name], tensor)


# --- damage ------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_found_and_the_file_named(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    chance = random.Random(7)
    checked = 0
    for file in sorted(path.iterdir()):
        clean = file.read_bytes()
        for _ in range(150):
            damaged = bytearray(clean)
            position = chance.randrange(len(clean))
            damaged[position] ^= 1 << chance.randrange(8)
            file.write_bytes(damaged)
            with pytest.raises(UserError, match=r"damaged|format") as caught:
                checkpoint.load_checkpoint(path)
            assert file.name in str(caught.value), (file.name, position)
            checked += 1
        file.write_bytes(clean)
    assert checked == 600
    assert_is(checkpoint.load_checkpoint(path), 1)


@pytest.mark.parametrize("harm", ["cut", "longer", "empty", "gone", "directory"])
@pytest.mark.parametrize("name", ["model.safetensors", "optim.safetensors", "state.json", "manifest.json"])
def test_other_damage_is_found_and_the_file_named(tmp_path: Path, name: str, harm: str) -> None:
    file = save(tmp_path, 1) / name
    data = file.read_bytes()
    file.unlink()
    if harm == "directory":
        file.mkdir()
    elif harm != "gone":
        file.write_bytes({"cut": data[:-1], "longer": data + b" ", "empty": b""}[harm])
    with pytest.raises(UserError) as caught:
        checkpoint.load_checkpoint(tmp_path / checkpoint.checkpoint_name(1))
    assert str(file) in str(caught.value)


def test_a_manifest_cannot_lead_out_of_its_directory(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    secret = tmp_path / "secret.json"
    secret.write_bytes((path / "state.json").read_bytes())
    listed = json.loads((path / "manifest.json").read_bytes())["files"]
    written = {n: checkpoint.Written(e["size"], e["sha256"]) for n, e in listed.items()}
    written["../secret.json"] = written["state.json"]
    (path / "manifest.json").write_bytes(serialise(written))
    with pytest.raises(UserError, match=r"manifest\.json: damaged"):
        checkpoint.load_checkpoint(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"files": 3}', '"x"', "null", '{"files": {"a": {}}, "format": 1}']
)
def test_a_strange_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = save(tmp_path, 1)
    (path / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=r"manifest\.json"):
        checkpoint.load_checkpoint(path)


def test_a_newer_format_is_told(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    data = json.loads((path / "manifest.json").read_bytes())
    (path / "manifest.json").write_text(json.dumps(data | {"format": 2}))
    with pytest.raises(UserError, match="format 2"):
        checkpoint.load_checkpoint(path)


def test_the_newest_that_verifies_is_used_and_the_damaged_one_named(tmp_path: Path) -> None:
    for update in (1, 2, 3):
        save(tmp_path, update)
    with (tmp_path / "0000003" / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    warnings: list[str] = []
    assert_is(checkpoint.newest(tmp_path, warnings.append), 2)
    assert len(warnings) == 1
    assert "0000003/model.safetensors" in warnings[0]
    shutil.rmtree(tmp_path / "0000001")
    (tmp_path / "0000002" / "state.json").unlink()
    with pytest.raises(UserError, match=r"0000003/model\.safetensors.*0000002/state\.json"):
        checkpoint.newest(tmp_path, warnings.append)


def test_no_checkpoint_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no checkpoint yet"):
        checkpoint.newest(tmp_path)
    with pytest.raises(UserError, match="no such checkpoint"):
        checkpoint.load_checkpoint(tmp_path / "0000001")


# --- values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("part", ["model", "optim"])
def test_nan_and_infinity_are_never_written(tmp_path: Path, part: str, value: float) -> None:
    save(tmp_path, 1)
    chance = random.Random(3)
    for _ in range(20):
        tensors = some_tensors(2)
        name = chance.choice([n for n, t in tensors[part].items() if t.ndim])
        tensors[part][name].view(-1)[chance.randrange(35)] = value
        with pytest.raises(UserError, match=f"{part}: '{name}' holds NaN or infinite"):
            checkpoint.save(tmp_path, "0000002", tensors, some_state(2))
    assert entries(tmp_path) == ["0000001"]


def test_average_is_the_mean_in_double_precision(tmp_path: Path) -> None:
    paths = [save(tmp_path, update) for update in range(1, 8)]
    mean = checkpoint.average_checkpoints(paths)
    for name in some_tensors(1)["model"]:
        stacked = np.stack([some_tensors(u)["model"][name].numpy().astype(np.float64) for u in range(1, 8)])
        np.testing.assert_array_equal(mean[name].numpy(), (stacked.sum(0) / 7).astype(np.float32))


def test_average_refuses_other_tensors(tmp_path: Path) -> None:
    first = save(tmp_path, 1)
    second = checkpoint.save(tmp_path, "0000002", {"model": {"other": torch.zeros(1)}}, {})
    with pytest.raises(UserError, match=r"0000002: lacks tensor 'layer\.0\.weight' and 2 more"):
        checkpoint.average_checkpoints([first, second])
    with pytest.raises(UserError, match="no checkpoint was named"):
        checkpoint.average_checkpoints([])


# --- keeping -----------------------------------------------------------------------------------------


def test_prune_keeps_at_least_two_and_the_protected(tmp_path: Path) -> None:
    for update in range(1, 8):
        save(tmp_path, update)
    checkpoint.prune(tmp_path, keep=3, protect={"0000002"})
    assert checkpoint.names(tmp_path) == ["0000002", "0000005", "0000006", "0000007"]
    checkpoint.prune(tmp_path, keep=1, protect=set())
    assert checkpoint.names(tmp_path) == ["0000006", "0000007"]


def test_names_are_ordered_as_numbers_beyond_seven_digits(tmp_path: Path) -> None:
    for update in (9_999_999, 10_000_000):
        save(tmp_path, update)
    assert checkpoint.newest(tmp_path).name == "10000000"


def test_left_overs_are_cleaned(tmp_path: Path) -> None:
    for name in (".saving-0000001", ".removing-0000001"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"part")
    save(tmp_path, 2)
    assert entries(tmp_path) == ["0000002"]


def test_a_damaged_one_is_set_aside(tmp_path: Path) -> None:
    save(tmp_path, 1)
    checkpoint.set_aside(save(tmp_path, 2))
    save(tmp_path, 2)
    checkpoint.set_aside(tmp_path / "0000002")
    assert entries(tmp_path) == ["0000001", "0000002.damaged"]
    assert checkpoint.names(tmp_path) == ["0000001"]


def test_a_weight_that_is_neither_of_the_network_nor_of_its_head_is_refused() -> None:
    weights = {"network.a.weight": torch.zeros(2), "head.out.weight": torch.ones(3)}
    assert renamed_weights(weights, {"head": {}}, {}).keys() == {"a.weight"}
    with pytest.raises(UserError, match=r"tensor 'other\.weight' is neither of the network nor of its head"):
        renamed_weights({**weights, "other.weight": torch.zeros(2)}, {"head": {}}, {})


def test_a_vocabulary_of_both_sides_is_stored_once(tmp_path: Path) -> None:
    """Two that are to be shared and are not the same are stored both."""
    one, other = (Tokenizer.train([text], TokenizerConfig(vocab_size=265)) for text in ("ab ab", "xy xy"))
    for place, pair in (("same", (one, one)), ("other", (one, other))):
        (tmp_path / place).mkdir()
        save_tokenizers(tmp_path / place, *pair)
        assert (
            len(list((tmp_path / place).iterdir()))
            == len(set(pair))
            == len(tokenizer_files(tmp_path / place))
        )
        found = load_tokenizers(tmp_path / place)
        assert [each.sha256 for each in found] == [each.sha256 for each in pair]
        assert (found[0] is found[1]) is (pair[0] is pair[1])
