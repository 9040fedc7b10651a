"""ELMo by itself: neither direction sees what it has to say, and pieces are known by their spelling."""

import numpy as np
import pytest
import torch

from battery.readers import make_reader
from dragoman.errors import UserError
from dragoman.learning.bidirectional import Bidirectional
from dragoman.models.elmo import CHARACTER_SYMBOLS, Elmo, ElmoConfig, spelling_table


def elmo() -> Elmo:
    model, _ = make_reader("elmo")
    assert isinstance(model, Elmo)
    return model


def test_no_direction_sees_what_it_has_to_say() -> None:
    """Another piece at a place changes all that is read there and beyond it, and nothing that says it."""
    model, (_, batch) = elmo(), make_reader("elmo")
    width = batch.ids.size(1)
    with torch.no_grad():
        before = Bidirectional().answer(model, batch).hidden.chunk(2)
        for row, place in ((0, 1), (0, 3), (1, 2)):
            ids = batch.ids.clone()
            ids[row, place] = 3 + (int(ids[row, place]) - 2) % 20
            changed = type(batch)(ids, batch.mask, batch.segments, batch.asked, batch.targets, None, 0)
            after = Bidirectional().answer(model, changed).hidden.chunk(2)
            rows, places = batch.asked // width, batch.asked % width
            for direction in range(2):
                same = (before[direction] - after[direction]).abs().amax(dim=-1) < 1e-13
                sees = places > place if direction == 0 else places < place
                assert torch.equal(~same, (rows == row) & sees)


def test_pieces_are_known_by_their_spelling() -> None:
    model = elmo()
    words = [f"w{i}".encode() for i in range(model.vocab.tgt_size)]
    words[7] = words[5]
    model.spell(words)
    vectors = model.embedding(torch.arange(8)[None])[0]
    assert torch.equal(vectors[5], vectors[7])
    assert not torch.equal(vectors[5], vectors[6])
    assert "embedding.table" in model.state_dict()


def test_spellings() -> None:
    table = spelling_table([b"", b"ab", b"abcdef"], 5).tolist()
    assert table == [[1, 3, 4 + ord("0"), 2, 0], [1, 4 + ord("a"), 4 + ord("b"), 2, 0], [1, 101, 102, 103, 2]]
    assert int(spelling_table([b"\xff"], 4).max()) < CHARACTER_SYMBOLS
    rows = spelling_table([b""] * 120, 8)
    assert len(np.unique(rows.numpy(), axis=0)) == 120


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_dim": 8, "hidden_dim": 8}, "model_dim: the projection has to be narrower than hidden_dim"),
        ({"filters": ((1,),)}, "filters: expected pairs of width and number"),
        ({"filters": ()}, "filters: expected pairs of width and number"),
        ({"max_characters": 6}, "max_characters: expected at least 7, what the widest filter sees, found 6"),
    ],
)
def test_what_it_cannot_be_is_refused(fields: dict, message: str) -> None:
    with pytest.raises(UserError) as caught:
        ElmoConfig(**fields)
    assert str(caught.value).startswith(message)
