"""Scheduled sampling: the share of the data's words, what a decoder is fed, and that both ways agree."""

import math
from itertools import pairwise

import pytest
import torch

from battery.models import CASES, make, random_batch
from dragoman.data.batch import PairBatch, collate
from dragoman.errors import UserError
from dragoman.learning.cross_entropy import CrossEntropy, decode_own_words
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder
from dragoman.models.rnn import RnnConfig
from dragoman.runs.objective import ALWAYS, TeacherForcing
from until_learnt import learn_until

PAIRS = [(list(range(3, 3 + n)), list(range(4, 4 + n))) for n in (5, 3, 1, 9)]
STEPPING = [name for name in CASES if make(name).abilities.step_gradients]


def test_decoders_say_whether_a_gradient_goes_through_their_steps() -> None:
    assert {"lstm-bahdanau", "rnn-none", "transformer+lstm"} <= set(STEPPING)
    assert not {"transformer", "gru+transformer"} & set(STEPPING)


# --- the share of the data's words ---------------------------------------------------------------------


def test_a_constant_share() -> None:
    assert ALWAYS.share(1) == ALWAYS.share(10**6) == 1
    assert not ALWAYS.samples
    assert TeacherForcing(0.75).share(12) == 0.75
    assert TeacherForcing(0.75).samples


@pytest.mark.parametrize("schedule", ["linear", "exponential", "inverse_sigmoid"])
@pytest.mark.parametrize("updates", [1, 7, 5000])
def test_a_share_falls_from_its_begin_to_its_end(schedule: str, updates: int) -> None:
    forcing = TeacherForcing(0.9, 0.25, schedule, updates)  # type: ignore[arg-type]
    assert forcing.samples
    assert forcing.share(0) == pytest.approx(0.9, abs=1e-12)
    assert forcing.share(updates) == pytest.approx(0.25, abs=1e-12)
    assert forcing.share(10 * updates) == forcing.share(updates)
    shares = [forcing.share(u) for u in range(updates + 1)]
    assert all(later < earlier for earlier, later in pairwise(shares))


def test_shares_by_hand() -> None:
    assert TeacherForcing(1.0, 0.2, "linear", 100).share(25) == pytest.approx(0.8)
    assert TeacherForcing(1.0, 0.01, "exponential", 100).share(50) == pytest.approx(0.1)
    assert TeacherForcing(1.0, 0.0, "inverse_sigmoid", 100).share(50) == pytest.approx(0.5)


def test_the_inverse_sigmoid_is_that_of_the_paper() -> None:
    """k / (k + exp(u / k)) up to a stretch that maps its values at 0 and at twice k·ln k to both ends."""
    k = 200.0
    middle = k * math.log(k)
    forcing = TeacherForcing(k / (k + 1), 1 / (k + 1), "inverse_sigmoid", round(2 * middle))
    for update in (1, 500, 1000, 2000):
        assert forcing.share(update) == pytest.approx(k / (k + math.exp(update / k)), abs=1e-3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((-0.1,), "teacher_forcing: expected a share from 0 to 1, found -0.1"),
        ((1.0, 0.5), "teacher_forcing_end: a constant share has none, found 0.5"),
        ((1.0, None, "constant", 5), "teacher_forcing_updates: a constant share has none, found 5"),
        ((1.0, None, "linear", 5), "teacher_forcing_end: the schedule linear needs it"),
        ((1.0, 0.5, "linear"), "teacher_forcing_updates: the schedule linear needs it"),
        (
            (0.5, 0.6, "linear", 5),
            "teacher_forcing_end: expected a share from 0 to teacher_forcing, which is",
        ),
        ((1.0, 0.0, "exponential", 5), "teacher_forcing_end: an exponential never reaches 0"),
        ((1.0, 0.5, "linear", 0), "teacher_forcing_updates: expected a whole number of at least 1, found 0"),
    ],
)
def test_a_mistake_names_the_field(fields: tuple, message: str) -> None:
    with pytest.raises(UserError) as caught:
        TeacherForcing(*fields)
    assert str(caught.value).startswith(message)


# --- what the decoder is fed ---------------------------------------------------------------------------


def fed_by_hand(model: EncoderDecoder, batch: PairBatch, given: torch.Tensor) -> torch.Tensor:
    """The inputs of every position, each prefix decoded anew and all at once."""
    fed = batch.tgt_in[:, :1]
    for t in range(1, batch.tgt_in.size(1)):
        logits = model.project(model(batch.src_ids, batch.src_mask, fed))[:, -1]
        order = logits.argsort(dim=-1, descending=True).tolist()
        own = torch.tensor([next(w for w in row if w not in (0, 1)) for row in order])
        use = given[:, t] | ~batch.tgt_mask[:, t]
        fed = torch.cat([fed, torch.where(use, batch.tgt_in[:, t], own)[:, None]], 1)
    return fed


@pytest.mark.parametrize("name", ["lstm-bahdanau", "lstm-luong-general", "transformer+lstm", "transformer"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_own_words_are_those_of_a_greedy_search(name: str, share: float) -> None:
    model, batch = make(name), collate(PAIRS)
    torch.manual_seed(4)
    given = torch.rand(batch.tgt_in.shape) < share
    with torch.no_grad():
        fed = fed_by_hand(model, batch, given)
        assert not torch.equal(fed, batch.tgt_in)
        expected = model(batch.src_ids, batch.src_mask, fed)
        found = decode_own_words(model, batch, given)
    real = batch.tgt_mask
    torch.testing.assert_close(found[real], expected[real], atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", STEPPING)
def test_fed_the_data_step_by_step_the_loss_and_gradient_are_those_at_once(name: str) -> None:
    model, batch = make(name), collate(PAIRS)
    losses, gradients = [], []
    for everything in (False, True):
        hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
        if everything:
            hidden = decode_own_words(model, batch, torch.ones_like(batch.tgt_mask))
        logits = model.project(hidden)[batch.tgt_mask]
        loss = torch.nn.functional.cross_entropy(logits, batch.tgt_out[batch.tgt_mask], reduction="sum")
        losses.append(loss.detach())
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    torch.testing.assert_close(losses[1], losses[0], atol=1e-10, rtol=0)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
def test_with_held_masks_both_ways_agree_in_training(wiring: str) -> None:
    """A share just below 1 goes step by step; its coins never fall for a word of the model's own."""
    config = RnnConfig(
        model_dim=16, wiring=wiring, variational_dropout=True, embedding_dropout=0.1, weight_dropout=0.3
    )  # type: ignore[arg-type]
    torch.manual_seed(0)
    model = build_model("rnn", config, make("lstm-none").vocab).double().train()
    batch = collate(PAIRS)
    torch.manual_seed(9)
    torch.rand(batch.tgt_in.shape)  # the coins
    at_once = CrossEntropy(0.1)(model, batch, 1)
    torch.manual_seed(9)
    stepped = CrossEntropy(0.1, TeacherForcing(1 - 1e-9))(model, batch, 1)
    torch.testing.assert_close(stepped.total, at_once.total, atol=1e-10, rtol=0)
    torch.testing.assert_close(stepped.nll, at_once.nll, atol=1e-10, rtol=0)
    assert stepped.count == at_once.count


def test_the_update_decides_on_the_share() -> None:
    model, batch = make("lstm-bahdanau"), collate(PAIRS)
    falling = CrossEntropy(0.0, TeacherForcing(1.0, 0.0, "linear", 10))
    with torch.no_grad():
        taught = CrossEntropy()(model, batch, 5)
        torch.manual_seed(1)
        assert falling(model, batch, 0).nll == taught.nll
        assert falling(model, batch, 5).nll != taught.nll
        alone = [falling(model, batch, update).nll for update in (10, 11)]
    assert alone[0] == alone[1] != taught.nll


def test_gradients_reach_every_parameter_from_own_words() -> None:
    model = make("gru-luong-feeding").train()
    torch.manual_seed(1)
    CrossEntropy(0.1, TeacherForcing(0.5))(model, collate(PAIRS), 1).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_learning_from_own_words_learns() -> None:
    model = make("lstm-bahdanau", torch.float32, seed=3)
    _, _, tgt = random_batch(model.vocab, [4] * 8, 4)
    batch = collate([(row, row[::-1]) for row in tgt.tolist()])
    objective = CrossEntropy(0.0, TeacherForcing(0.3))
    optimizer, alone = torch.optim.Adam(model.parameters(), lr=1e-2), CrossEntropy(0.0, TeacherForcing(0.0))
    torch.manual_seed(0)

    def update() -> None:
        optimizer.zero_grad()
        loss = objective(model, batch, 1)
        (loss.total / loss.count).backward()
        optimizer.step()

    def learnt() -> bool:
        with torch.no_grad():
            loss = alone(model, batch, 1)
        return (loss.nll / loss.count).item() < 0.1

    learn_until(learnt, update, at_most=1500, every=5)
