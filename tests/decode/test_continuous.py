"""The search of fixed shapes finds what the plain one finds, whatever places it has. Without a GPU nothing is
recorded; the same functions just run."""

from typing import Any

import pytest
import torch

from dragoman.data.batch import pad_sources
from dragoman.decode.gpu.continuous import Continuous, Rooms, Shape, shape_for
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.rnn import RnnConfig
from dragoman.models.slots import TransformerSlots, fits, past_bytes
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.attention_kernels import open_tap
from searching import batch_of, jobs_of, search

SMALL = {"num_layers": 2, "model_dim": 16, "num_heads": 2, "ff_dim": 24}
SEARCHES = {
    "default": SearchConfig(beam=4),
    "complete": SearchConfig(beam=3, stop="complete"),
    "n-best": SearchConfig(beam=5, n_best=5, alpha=0.6),
    "raw sums": SearchConfig(beam=2, alpha=0.0, stop="bound"),
    "gnmt": SearchConfig(beam=3, n_best=2, length_penalty="gnmt", alpha=0.8, stop="bound"),
    "to the limit": SearchConfig(beam=3, n_best=3, stop="limit"),
    "least length": SearchConfig(beam=4, min_length=6, min_ratio=0.8),
    "short": SearchConfig(beam=4, n_best=4, max_ratio=0.0, max_extra=3),
    "greedy": SearchConfig(beam=1),
}
SHAPES = {
    "room for all": Shape(16, 40, 16),
    "two at a time": Shape(2, 40, 16),
    "one by one": Shape(1, 64, 13),
}


def random_model(size: int, seed: int, sharp: float = 2.0, **options: Any) -> EncoderDecoder:
    torch.manual_seed(seed)
    model = build_model("transformer", TransformerConfig(**SMALL, **options), Vocab(size, size, shared=True))
    for parameter in model.parameters():  # so that hypotheses differ in probability
        parameter.data.mul_(sharp)
    return model.double().eval().requires_grad_(False)


def random_sources(size: int, seed: int, count: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(100 + seed)
    lengths = torch.randint(0, 12, (count,)).tolist()
    return pad_sources([torch.randint(3, size, (length,)).tolist() for length in lengths])


def in_places(model: EncoderDecoder, config: SearchConfig, shape: Shape, ids, mask) -> list[list[Ended]]:
    with torch.inference_mode():
        return Continuous(model, config, shape).run(batch_of(model, jobs_of(ids, mask), config))


def assert_same(ours: list[list[Ended]], expected: list[list[Ended]]) -> None:
    assert [[one.tokens for one in best] for best in ours] == [
        [one.tokens for one in best] for best in expected
    ]
    for best, others in zip(ours, expected, strict=True):
        for one, other in zip(best, others, strict=True):
            assert one.reason == other.reason
            assert one.token_scores == pytest.approx(other.token_scores, abs=2e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("config", SEARCHES.values(), ids=SEARCHES)
def test_places_of_any_number_find_what_the_plain_search_finds(config: SearchConfig, shape: Shape) -> None:
    for seed, size in ((1, 11), (2, 700)):
        model, (ids, mask) = random_model(size, seed), random_sources(size, seed)
        assert_same(in_places(model, config, shape, ids, mask), search(Scorer([model]), ids, mask, config))


@pytest.mark.parametrize(
    "options",
    [
        {"positions": "learned", "max_positions": 7, "norm_embeddings": True, "scale_output": True},
        {"positions": "none", "norm": "pre"},
        {"head_dim": 3, "value_dim": 5, "num_decoder_layers": 1, "gated": True, "scale_attention": False},
        {"norm": "pre", "norm_kind": "rms", "bias": False, "output_bias": True, "tie_embeddings": False},
        {"positions": "rotary", "norm": "pre"},
        {"positions": "rotary", "position_layout": "halves", "head_dim": 4, "value_dim": 3},
    ],
    ids=["learned", "none", "heads", "rms", "rotary", "rotary-halves"],
)
def test_every_transformer_that_fits(options: dict[str, Any]) -> None:
    model, (ids, mask) = random_model(23, 3, **options), random_sources(23, 3)
    config = SearchConfig(beam=4, n_best=2)
    assert fits(model)
    assert_same(
        in_places(model, config, Shape(4, 48, 16), ids, mask), search(Scorer([model]), ids, mask, config)
    )


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_slots_step_as_the_decoder_does(positions: str) -> None:
    """Two beams that change places at every step, against whole sequences at once."""
    model = random_model(23, 5, positions=positions)
    ids, mask = random_sources(23, 5, count=3)
    words = torch.randint(3, 23, (3, 2, 5))
    words[:, :, 0] = model.vocab.bos_id
    slots = TransformerSlots(model, sentences=3, beams=2, capacity=8, memory=16)
    memory = model.encode(ids, mask)
    slots.admit(torch.arange(3), memory)
    ancestors = torch.zeros(3, 2, 8, dtype=torch.long)
    for position in range(5):
        here = torch.arange(2) if position % 2 else torch.tensor([1, 0])  # where each of the two stands now
        by_place = torch.empty_like(ancestors)
        ancestors[:, torch.arange(2), position] = here
        by_place[:, here] = ancestors
        last = torch.empty(3, 2, dtype=torch.long)
        last[:, here] = words[:, :, position]
        found = slots.step(last, torch.full((3,), position), by_place, used=position + 1)[:, here]
        for beam in range(2):
            whole = model.decode(words[:, beam, : position + 1], memory)[:, -1]
            torch.testing.assert_close(found[:, beam], whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize("options", [{}, {"head_dim": 5, "value_dim": 3}])
def test_the_bytes_of_a_position_are_those_that_its_slots_take(options: dict[str, int]) -> None:
    """By them the number of sentences is chosen that fit into the memory."""
    model = random_model(23, 5, **options)
    slots = TransformerSlots(model, sentences=3, beams=2, capacity=8, memory=16)
    taken = sum(layer.past.numel() * layer.past.element_size() for layer in slots.layers)
    assert past_bytes(model) * 3 * 2 * 8 == taken


def test_a_search_that_looks_at_words_or_attention_is_not_taken() -> None:
    model, rooms = random_model(11, 1), Rooms()
    plain = SearchConfig(beam=4)
    assert rooms.take([model], plain)
    assert not rooms.take([model, model], plain)
    for other in (
        SearchConfig(beam=4, no_repeat_ngram=3),
        SearchConfig(beam=4, repetition_penalty=1.2),
        SearchConfig(beam=4, coverage=0.2),
        SearchConfig(beam=4, groups=2),
        SearchConfig(beam=4, record=True),
    ):
        assert not rooms.take([model], other)
    with open_tap(lambda *_: None):
        assert not rooms.take([model], plain)
    assert not rooms.take([model.train()], plain)


@pytest.mark.parametrize("positions", ["t5", "shaw"])
def test_positions_between_tokens_do_not_fit(positions: str) -> None:
    assert not fits(random_model(11, 1, positions=positions))


def test_other_models_do_not_fit() -> None:
    assert not fits(build_model("rnn", RnnConfig(model_dim=8), Vocab(11, 11, shared=True)))
    assert not fits(random_model(11, 1, decoder_self="average"))


def test_rooms_are_kept_by_weights_search_and_shape() -> None:
    model, (ids, mask) = random_model(11, 1), random_sources(11, 1)
    rooms, config = Rooms(), SearchConfig(beam=2)
    batch = batch_of(model, jobs_of(ids, mask), config)
    with torch.inference_mode():
        first = rooms.search(model, batch, config)
        assert_same(rooms.search(model, batch, config), first)
        assert len(rooms.kept) == 1
        for parameter in model.parameters():  # moved, as a swap of weights does
            parameter.data = parameter.data.clone()
        rooms.search(model, batch, config)
        assert len(rooms.kept) == 2
        for beam in range(3, 9):
            rooms.search(model, batch, SearchConfig(beam=beam))
    assert len(rooms.kept) == 4
    assert_same(first, search(Scorer([model]), ids, mask, config))


def test_shapes_are_few_and_large_enough() -> None:
    model, config = random_model(11, 1), SearchConfig(beam=4)
    shapes = {
        shape_for(model, config, 512, longest, memory) for longest in range(1, 300) for memory in (9, 30)
    }
    assert len(shapes) < 40
    for sentences, longest, memory in ((1, 1, 1), (3, 66, 28), (700, 2058, 1024), (5, 16, 17)):
        shape = shape_for(model, config, sentences, longest, memory)
        assert shape.capacity >= longest
        assert shape.memory >= memory
        assert 1 <= shape.sentences <= 512
    assert shape_for(model, config, 5, 16, 17).sentences == 8
    assert shape_for(model, config, 500, 16, 17).sentences == 256  # and the others come in as places get free


def test_places_are_fewer_where_sentences_are_long() -> None:
    base = build_model("transformer", TransformerConfig(num_layers=2), Vocab(11, 11, shared=True))
    config = SearchConfig(beam=4)
    assert shape_for(base, config, 512, 16, 17).sentences > shape_for(base, config, 512, 4096, 17).sentences
