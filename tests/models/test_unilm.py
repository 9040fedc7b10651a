"""UniLM by itself: what each mask shows, and that blanks in text are those that it writes with."""

import pytest
import torch

from battery.models import make
from dragoman.data.batch import TextBatch
from dragoman.errors import UserError
from dragoman.learning.masked_prediction import AnsweredPieces
from dragoman.learning.unilm import Unilm
from dragoman.models.unilm import (
    BOTH_SIDES,
    LEFT_TO_RIGHT,
    SOURCE,
    TARGET,
    UnilmConfig,
    UnilmDecoder,
    looking,
)


def decoder_of(model) -> UnilmDecoder:
    assert isinstance(model.decoder, UnilmDecoder)
    return model.decoder


def test_the_three_masks_by_hand() -> None:
    segments = torch.tensor(
        [[BOTH_SIDES] * 4, [LEFT_TO_RIGHT] * 4, [SOURCE, SOURCE, TARGET, TARGET], [BOTH_SIDES] * 4]
    )
    mask = torch.tensor([[True] * 4] * 3 + [[True, True, False, False]])
    visible = looking(mask, segments).visible
    assert visible is not None
    expected = [
        ["1111", "1111", "1111", "1111"],
        ["1000", "1100", "1110", "1111"],
        ["1100", "1100", "1110", "1111"],
        ["1100", "1100", "1100", "1100"],
    ]
    found = [["".join(str(int(x)) for x in row) for row in each[0]] for each in visible]
    assert found == expected


@pytest.mark.parametrize("way", [BOTH_SIDES, LEFT_TO_RIGHT, SOURCE])
def test_other_pieces_change_what_their_mask_lets_them_change(way: int) -> None:
    model = make("unilm")
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    mask, segments = torch.ones_like(ids) > 0, torch.full_like(ids, way)
    if way == SOURCE:
        segments[:, 2:] = TARGET
    shown = looking(mask, segments).visible
    assert shown is not None
    with torch.no_grad():
        before = decoder_of(model).read_text(ids, mask, segments)[0]
        for place in range(5):
            other = ids.clone()
            other[0, place] = 11
            after = decoder_of(model).read_text(other, mask, segments)[0]
            changed = (before != after).any(dim=-1)
            assert torch.equal(changed, shown[0, 0, :, place])


def test_a_blank_in_text_is_the_one_it_writes_with() -> None:
    """A source and a target whose end is blank, read as text: the same vector as that of the contract."""
    model = make("unilm")
    src, tgt = [3, 4, 2], [1, 6, 7]
    ids = torch.tensor([[*src, *tgt, model.vocab.pad_id]])
    segments = torch.tensor([[SOURCE] * 3 + [TARGET] * 4])
    # one table for both sides, as with text
    model.encoder.embedding.weight = torch.nn.Parameter(model.decoder.embedding.weight[:19].detach())
    batch = TextBatch(ids, torch.ones_like(ids) > 0, segments, torch.tensor([6]), torch.tensor([8]), None, 1)
    source = torch.tensor([src])
    with torch.no_grad():
        found = Unilm().answer(model, batch).hidden[0]
        at_once = model(source, torch.ones_like(source) > 0, torch.tensor([tgt]))[0, -1]
        state = model.start(model.encode(source, torch.ones_like(source) > 0))
        for piece in tgt:
            step, state = model.step(torch.tensor([piece]), state)
    torch.testing.assert_close(found, at_once, atol=1e-12, rtol=0)
    torch.testing.assert_close(found, step[0], atol=1e-12, rtol=0)
    assert state.pasts[0].length == 6  # no blank has stayed


def test_every_parameter_learns_from_blanks() -> None:
    model = make("unilm").train()
    ids = torch.tensor([[3, 0, 5, 6, 7], [8, 9, 0, 11, 3], [4, 4, 9, 0, 7]])
    segments = torch.tensor([[0] * 5, [1] * 5, [2, 2, 3, 3, 3]])
    asked, targets = torch.tensor([1, 7, 13]), torch.tensor([12, 13, 14])
    batch = TextBatch(ids, torch.ones_like(ids) > 0, segments, asked, targets, None, 3)
    loss = AnsweredPieces(Unilm())(model, batch)
    loss.total.backward()
    assert loss.count == 3
    for name, parameter in model.decoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0 or name.endswith("query_key_value.bias"), name


def test_what_it_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="num_heads: model_dim 16 cannot be divided into 3 heads"):
        UnilmConfig(2, 16, 3, 24)
