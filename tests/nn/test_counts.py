"""Sparse counts against dictionaries and dense matrices."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch

from dragoman.nn import context_counts
from dragoman.nn.context_counts import CountTable, Tally
from dragoman.nn.skip_votes import MaskedTable

SIZE = 7


def random_table(rows: int = 20, seed: int = 0) -> tuple[CountTable, torch.Tensor]:
    """A table with some of the keys 0, 3, 6, …, and the same counts as a dense matrix by key."""
    generator = torch.Generator().manual_seed(seed)
    dense = (
        torch.randint(0, 4, (3 * rows, SIZE), generator=generator)
        * (torch.arange(3 * rows) % 3 == 0)[:, None]
    )
    dense[6] = 0  # a context that was never seen
    entries = dense.flatten().nonzero()[:, 0]
    table = CountTable(SIZE)
    table.fill(entries, dense.flatten()[entries])
    return table, dense


CHANGES: dict[str, Callable[[CountTable], torch.Tensor]] = {
    "totals": lambda table: table.totals[:-1],
    "counts": lambda table: table.counts[1:],
    "pieces": lambda table: table.pieces.index_fill(0, torch.tensor([0]), SIZE),
    "offsets": lambda table: table.offsets + 1,
    "keys": lambda table: table.keys.flip(0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_table_whose_parts_contradict_each_other_is_not_sound(name: str) -> None:
    table, _ = random_table()
    assert table.is_sound()
    setattr(table, name, CHANGES[name](table))
    assert not table.is_sound()


def test_a_table_that_does_not_begin_with_its_first_entry_is_not_sound() -> None:
    """An entry before the first row, of which nothing else tells."""
    table, _ = random_table()
    table.pieces = torch.cat([table.pieces[:1], table.pieces])
    table.counts = torch.cat([table.counts[:1], table.counts])
    table.offsets = table.offsets + 1
    assert not table.is_sound()


@pytest.mark.parametrize("waiting", [1, 10, 1000])
def test_a_tally_counts(monkeypatch: pytest.MonkeyPatch, waiting: int) -> None:
    monkeypatch.setattr(context_counts, "_WAITING", waiting)
    generator = torch.Generator().manual_seed(1)
    tally, expected = Tally(), Counter()
    for size in (0, 5, 40, 1, 3, 30, 0):
        numbers = torch.randint(0, 25, (size,), generator=generator)
        expected.update(numbers.tolist())
        tally.add(numbers)
    numbers, found = tally.result()
    assert list(zip(numbers.tolist(), found.tolist(), strict=True)) == sorted(expected.items())


def test_a_tally_of_nothing() -> None:
    numbers, found = Tally().result()
    assert len(numbers) == len(found) == 0


@pytest.mark.parametrize("at_once", [1, 10, 1 << 21])
def test_rows_are_added_as_a_dense_matrix_would_add_them(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(context_counts, "_ENTRIES_AT_ONCE", at_once)
    table, dense = random_table()
    generator = torch.Generator().manual_seed(2)
    keys = torch.randint(0, len(dense), (50,), generator=generator)
    where = torch.randint(0, 4, (50,), generator=generator)
    weights = torch.rand(50, dtype=torch.float64, generator=generator)
    into = torch.rand(4, SIZE, dtype=torch.float64, generator=generator)
    expected = into.clone()
    for key, place, weight in zip(keys.tolist(), where.tolist(), weights, strict=True):
        if dense[key].sum():
            expected[place] += weight * dense[key] / dense[key].sum()
    table.add_rows(into, where, table.find(keys), weights)
    torch.testing.assert_close(into, expected, atol=1e-14, rtol=0)


def test_keys_are_found_and_trusted_by_what_was_seen() -> None:
    table, dense = random_table()
    rows = table.find(torch.arange(-3, len(dense) + 3))
    seen = dense.sum(1).nonzero()[:, 0].tolist()
    assert {key - 3: row for key, row in enumerate(rows.tolist()) if row >= 0} == {
        k: i for i, k in enumerate(seen)
    }
    trust = table.trust(rows, 0.5, torch.float64)
    for key, found in zip(range(-3, len(dense) + 3), trust.tolist(), strict=True):
        total = int(dense[key].sum()) if 0 <= key < len(dense) else 0
        distinct = int((dense[key] > 0).sum()) if total else 0
        assert found == (total / (total + 0.5 * distinct) if total else 0.0)
    assert set(table.trust(rows, 0.0, torch.float64).tolist()) == {0.0, 1.0}


def test_an_empty_table_has_no_rows() -> None:
    table, into = CountTable(SIZE), torch.ones(2, SIZE)
    rows = table.find(torch.tensor([[0, 5]]))
    assert rows.tolist() == [[-1, -1]]
    assert table.trust(rows, 1.0, torch.float32).tolist() == [[0.0, 0.0]]
    table.add_rows(into, torch.tensor([0, 1]), rows[0], torch.ones(2))
    assert (into == 1).all()


def test_room_is_made_for_tables_alone() -> None:
    table, _ = random_table()
    model = torch.nn.ModuleDict({"table": CountTable(SIZE), "linear": torch.nn.Linear(2, 3)})
    empty = model["table"]
    assert isinstance(empty, CountTable)
    found = {f"table.{name}": tensor for name, tensor in table.state_dict().items()}
    empty.make_room("table", {**found, "linear.weight": torch.zeros(9, 9), "table.unknown": torch.zeros(3)})
    assert {name: t.shape for name, t in model["table"].state_dict().items()} == {
        name: t.shape for name, t in table.state_dict().items()
    }
    assert model["linear"].weight.shape == (3, 2)
    empty.make_room(
        "table", {"table.keys": torch.zeros(2, 2)}
    )  # not a table's: left to be refused by its shape
    assert model["table"].keys.shape == table.keys.shape


def test_only_rows_that_are_there_and_not_hidden_inform() -> None:
    table = MaskedTable(SIZE)
    rows = torch.tensor([-1, 0, 1, 2])
    assert table.informs(rows).tolist() == [False] * 4
    table.mask = torch.tensor([True, False, True])
    assert table.informs(rows).tolist() == [False, True, False, True]
