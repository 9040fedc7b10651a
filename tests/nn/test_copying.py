"""Copying against its formula in NumPy, and that it stays finite."""

import numpy as np
import pytest
import torch

from dragoman.nn.attention_kernels import open_tap
from dragoman.nn.copying import LONGEST_RUN, NOT_COPIED, CopyHead, mixed_with_copies
from dragoman.nn.linear import Projection, embedding_weight
from dragoman.nn.mask import Packing

TABLE = [[NOT_COPIED, NOT_COPIED, NOT_COPIED, 5, 4, 6, NOT_COPIED, 9], [*[NOT_COPIED] * 5, 7, 8, 5]]
"""Target pieces of 8 source pieces, and their other forms."""
IDS = [[3, 4, 3, 6, 3, 2], [7, 5, 3, 5, 2, 0], [2, 1, 0, 0, 0, 0]]
"""Pieces that occur again, one that is not in the target as it is; padding; a source with nothing to copy."""
TARGETS = [[1, 5, 4, 5], [1, 9, 6, 5], [1, 5, 4, 8]]
"""What has been read: in the first row the beginning of the source, in the second one also other forms."""
RUNS = [
    [[0] * 6, [0, 1, 0, 1, 0, 1], [0, 0, 2, 0, 0, 0], [0, 1, 0, 3, 0, 1]],
    [[0] * 6, [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 1, 0], [0, 1, 0, 3, 0, 0]],
    [[0] * 6] * 4,
]
"""Of positions, how many pieces before them were read last. By hand."""
LENGTHS = [6, 5, 2]
DIM, MEMORY_DIM, SIZE = 6, 4, 10


def make_head(dtype: torch.dtype = torch.float64) -> CopyHead:
    torch.manual_seed(1)
    head = CopyHead(Projection(embedding_weight(SIZE, DIM)), DIM, MEMORY_DIM, torch.tensor(TABLE))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return head.to(dtype)


def make_inputs(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(3, 4, DIM, generator=generator, dtype=torch.float64).to(dtype)
    memory = torch.randn(3, 6, MEMORY_DIM, generator=generator, dtype=torch.float64).to(dtype)
    mask = torch.arange(6) < torch.tensor(LENGTHS)[:, None]
    return hidden, memory, torch.tensor(IDS), mask


def log_p(head: CopyHead, hidden: torch.Tensor, *memory: torch.Tensor) -> torch.Tensor:
    source = head.read(*memory)
    return head(hidden, source, source.runs(torch.tensor(TARGETS)))


def by_hand(head: CopyHead, hidden: torch.Tensor, memory: torch.Tensor) -> np.ndarray:
    """p, position by position, as the formula says."""
    weights = {name: value.detach().double().numpy() for name, value in head.named_parameters()}
    found = np.zeros((3, 4, SIZE))
    for row, ids in enumerate(IDS):
        columns = [(i, form) for form in (0, 1) for i in range(LENGTHS[row])]
        columns = [(i, form) for i, form in columns if TABLE[form][ids[i]] != NOT_COPIED]
        for place in range(4):
            h, m = hidden[row, place].double().numpy(), memory[row].double().numpy()
            logits = weights["projection.weight"] @ h
            generated = np.exp(logits) / np.exp(logits).sum()
            if not columns:
                found[row, place] = generated
                continue
            run = RUNS[row][place]
            run_scores, run_votes = (np.append(0, weights[f"run_{kind}"]) for kind in ("scores", "votes"))
            query = weights["query.weight"] @ h + weights["query.bias"]
            other = weights["other_form.weight"][0] @ h + weights["other_form.bias"][0]
            scores = np.array(
                [
                    query @ (weights["key.weight"] @ m[i]) / np.sqrt(DIM) + run_scores[run[i]] + form * other
                    for i, form in columns
                ]
            )
            attention = np.exp(scores) / np.exp(scores).sum()
            gate = weights["gate.weight"][0] @ h + weights["gate.bias"][0]
            for a, (i, _) in zip(attention, columns, strict=True):
                gate += a * (weights["vote.weight"][0] @ m[i] + run_votes[run[i]])
            gate = 1 / (1 + np.exp(-gate))
            found[row, place] = gate * generated
            for a, (i, form) in zip(attention, columns, strict=True):
                found[row, place, TABLE[form][ids[i]]] += (1 - gate) * a
    return found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_is_the_formula_and_sums_to_one(dtype: torch.dtype) -> None:
    head = make_head(dtype)
    hidden, memory, ids, mask = make_inputs(dtype)
    found = log_p(head, hidden, memory, ids, mask).detach().double().exp()
    expected = by_hand(head, hidden, memory)
    close = {torch.float64: 1e-13, torch.float32: 1e-5}[dtype]
    np.testing.assert_allclose(found.numpy(), expected, atol=close, rtol=0)
    np.testing.assert_allclose(found.sum(-1).numpy(), 1, atol=close, rtol=0)


def test_control_pieces_and_padding_are_never_copied() -> None:
    head = make_head()
    with torch.no_grad():
        head.gate.bias.fill_(-60.0)  # it only copies
    hidden, memory, ids, mask = make_inputs()
    found = log_p(head, hidden, memory, ids, mask).detach().exp()
    for row in (0, 1):
        pieces = {forms[i] for forms in TABLE for i in IDS[row][: LENGTHS[row]]} - {NOT_COPIED}
        assert found[row, :, sorted(pieces)].sum(-1).min() > 1 - 1e-12
    torch.testing.assert_close(found[2], head.projection(hidden[2]).softmax(-1).detach())  # nothing to copy


def test_gradients_are_those_of_the_formula() -> None:
    generator = torch.Generator().manual_seed(3)
    numbers = [torch.randn(3, n, generator=generator, dtype=torch.float64) for n in (SIZE, 1)]
    mass = torch.rand(3, 4, generator=generator, dtype=torch.float64)
    pieces = torch.tensor([[4, 5, 4, 0], [9, 6, 0, 0], [0, 0, 0, 0]])
    first = torch.tensor([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()
    inputs = [tensor.requires_grad_() for tensor in (*numbers, mass)]
    assert torch.autograd.gradcheck(lambda *given: mixed_with_copies(*given, pieces, first), inputs)


def test_gradients_of_the_whole_head() -> None:
    head = make_head()
    hidden, memory, ids, mask = make_inputs()
    inputs = [hidden.requires_grad_(), memory.requires_grad_()]
    assert torch.autograd.gradcheck(lambda h, m: log_p(head, h, m, ids, mask), inputs)


@pytest.mark.parametrize("amount", [30.0, 1000.0])
@pytest.mark.parametrize("half", [False, True])
def test_it_stays_finite_where_probabilities_do_not(amount: float, half: bool) -> None:
    """Also for a piece that is neither generated nor looked at, and under mixed precision."""
    head = make_head(torch.float32)
    hidden, memory, ids, mask = make_inputs(torch.float32)
    hidden, memory = (hidden * amount).requires_grad_(), (memory * amount).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        found = log_p(head, hidden, memory, ids, mask)
    assert found.dtype == torch.float32
    assert found.isfinite().all()
    torch.testing.assert_close(found.logsumexp(-1), torch.zeros(3, 4), atol=2e-3, rtol=0)
    found.sum().backward()
    for tensor in (hidden, memory, *head.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


def test_packed_it_is_the_same() -> None:
    head = make_head()
    hidden, memory, ids, mask = make_inputs()
    lengths = torch.tensor([4, 1, 3])
    kept = torch.arange(4) < lengths[:, None]
    tgt_in, sources = torch.tensor(TARGETS)[kept][None], Packing.of(mask.sum(1))
    found = head.packed(
        hidden[kept][None], tgt_in, Packing.of(lengths), memory[mask][None], ids[mask][None], sources
    )
    expected = log_p(head, hidden, memory, ids, mask)[kept]
    torch.testing.assert_close(found[0], expected, atol=1e-12, rtol=0)


def test_a_tap_sees_where_it_copies_from() -> None:
    head, seen = make_head(), []
    hidden, memory, ids, mask = make_inputs()
    with open_tap(lambda _module, weights: seen.append(weights)):
        log_p(head, hidden, memory, ids, mask)
    (weights,) = seen
    assert weights.shape == (3, 1, 4, 6)
    nowhere = ~(mask & (torch.tensor(TABLE)[:, ids] != NOT_COPIED).any(0))
    nowhere[2] = False  # with nothing to copy, weights mean nothing
    assert (weights[:, 0].transpose(1, 2)[nowhere] == 0).all()


def test_runs_are_those_by_hand_at_once_and_one_by_one() -> None:
    head = make_head()
    _, memory, ids, mask = make_inputs()
    source, targets = head.read(memory, ids, mask), torch.tensor(TARGETS)
    assert source.runs(targets).tolist() == RUNS
    runs = torch.zeros(3, 1, 6, dtype=torch.long)
    for place in range(4):
        runs = source.next_runs(targets[:, place : place + 1], runs)
        assert runs[:, 0].tolist() == [row[place] for row in RUNS]
    again = source.runs(torch.tensor([[5, 4] * 6] * 3))
    assert again.max() <= LONGEST_RUN


def test_a_damaged_table_leads_nowhere() -> None:
    head = make_head()
    head.table[0, 4] = 1 << 40
    hidden, memory, ids, mask = make_inputs()
    found = log_p(head, hidden, memory, ids, mask)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(3, 4, dtype=torch.float64))
