"""The shapes in signatures are checked in the test run (see tests/conftest.py): a wrong one is caught."""

import ast
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import dragoman
from dragoman.data.batch import PairBatch, collate
from dragoman.nn.norm import Residual

SOURCE = Path(dragoman.__file__).parent


def test_a_right_shape_passes() -> None:
    residual = Residual(8, 0.0, "pre", 1e-5)
    assert residual.before(torch.zeros(2, 3, 8)).shape == (2, 3, 8)


def test_two_sizes_of_one_axis_are_caught() -> None:
    residual = Residual(8, 0.0, "pre", 1e-5)
    with pytest.raises(TypeCheckError):
        residual.after(torch.zeros(2, 3, 8), torch.zeros(2, 4, 8))


def test_a_mask_of_another_length_is_caught() -> None:
    batch = collate([([5, 6], [7, 8, 9])])
    with pytest.raises(TypeCheckError):
        PairBatch(
            src_ids=batch.src_ids,
            src_mask=batch.src_mask[:, :-1],
            tgt_in=batch.tgt_in,
            tgt_out=batch.tgt_out,
            tgt_mask=batch.tgt_mask,
            num_tokens=batch.num_tokens,
        )


def test_a_float_where_ids_belong_is_caught() -> None:
    batch = collate([([5, 6], [7])])
    with pytest.raises(TypeCheckError):
        PairBatch(
            src_ids=batch.src_ids.float(),
            src_mask=batch.src_mask,
            tgt_in=batch.tgt_in,
            tgt_out=batch.tgt_out,
            tgt_mask=batch.tgt_mask,
            num_tokens=batch.num_tokens,
        )


def test_the_package_itself_checks_nothing() -> None:
    """A decorator in src/ would break torch.compile and slow every call."""
    for path in SOURCE.rglob("*.py"):
        names = {
            node.id for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Name)
        }
        assert not names & {"jaxtyped", "beartype", "typechecked"}, path


def test_what_is_checked_can_be_shown_when_it_fails() -> None:
    """A function that is checked has the code of another one for a while, whose frames have to be sound: here
    of one that names the class around it."""
    with pytest.raises(TypeCheckError) as caught:
        Residual(8.5, 0.0, "pre", 1e-5)  # type: ignore[arg-type]
    assert "given_" in str(caught.getrepr(showlocals=True))
