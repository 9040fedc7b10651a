"""The search of fixed shapes with brackets, with models that copy and with models that read vectors: what the
plain search finds, in as many steps."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from decode.test_continuous import assert_same, random_model, random_sources
from dragoman.decode.gpu.continuous import Continuous, Rooms, Shape, shape_for
from dragoman.decode.gpu.open_brackets import OpenBrackets
from dragoman.decode.rules.brackets import Balanced
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import search
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.mixed import MixedConfig
from dragoman.models.slots import fits
from dragoman.text.piece_bytes import Spelling
from searching import jobs_of

BRACKETS = [b"(", b")", b"[", b"]", b"))", b"([", b"])(", b"(]", b")[", b"()a", b"((("]
PIECES = Spelling([b"", b"", b"", b" ", *BRACKETS, *(bytes([97 + n]) for n in range(10))])
SIZE = len(PIECES)
SEARCHES = {
    "default": BeamSearch(beam=4),
    "n-best": BeamSearch(beam=5, n_best=5, alpha=0.6, stop="complete"),
    "to the limit": BeamSearch(beam=3, n_best=3, stop="limit"),
    "least length": BeamSearch(beam=4, min_length=6, min_ratio=0.8),
    "tight": BeamSearch(beam=4, n_best=2, max_ratio=0.0, max_extra=4),
    "greedy": BeamSearch(beam=1),
}


def both(
    model: EncoderDecoder, jobs: list[Job], config: BeamSearch, shape: Shape
) -> tuple[list[list[Ended]], list[list[Ended]]]:
    config = replace(config, loop_guard=False)
    scorer = Scorer([model])
    scorer.texts = lambda: PIECES
    batch = SearchBatch.of(jobs, config, model.vocab, scorer.device, scorer.texts)
    complete = replace(config, stop="complete") if config.beam == 1 else config
    with torch.inference_mode():
        ours = Continuous(model, complete, shape, batch.brackets).run(batch)
    return ours, search(scorer, jobs, config)


SHAPES = {"room for all": Shape(8, 40, 16), "two at a time": Shape(2, 40, 16)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("config", SEARCHES.values(), ids=SEARCHES)
def test_brackets(config: BeamSearch, shape: Shape) -> None:
    brackets = "()" if config.n_best > 3 else "()[]"
    model, jobs = random_model(SIZE, 1), jobs_of(*random_sources(SIZE, 1, 5))
    ours, expected = both(model, jobs, replace(config, brackets=brackets), shape)
    assert_same(ours, expected)
    free = search(Scorer([model]), jobs[:2], replace(config, loop_guard=False))
    assert [own[0].tokens for own in free] != [own[0].tokens for own in ours[:2]]  # the rule does something


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("brackets", ["", "()[]"])
def test_a_model_that_copies(brackets: str, shape: Shape) -> None:
    for seed, config in ((1, BeamSearch(beam=1)), (3, SEARCHES["n-best"])):
        model = random_model(SIZE, seed, copy=True, positions="rotary" if seed == 3 else "sinusoidal")
        with torch.no_grad():
            model.copy.gate.bias.fill_(-2.0)  # it copies more than it generates
        assert fits(model)
        jobs = jobs_of(*random_sources(SIZE, seed, 5))
        assert_same(*both(model, jobs, replace(config, brackets=brackets), shape))


@pytest.mark.parametrize("sentences", [1, 2, 8])
def test_a_model_that_reads_vectors(sentences: int) -> None:
    torch.manual_seed(1)
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8}
    encoder = {"kind": "vit", "input_dim": 4, "max_positions": 6, **sizes}
    config = MixedConfig(encoder, {"kind": "transformer", **sizes})
    model = build_model("mixed", config, Vocab(3, SIZE, shared=False)).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.data.mul_(3).add_(torch.randn_like(parameter) * 0.2)
    chance = np.random.default_rng(1)
    jobs = [Job(chance.normal(size=(6, 4)).astype(np.float32), most=12) for _ in range(5)]
    beam = BeamSearch(beam=3, n_best=2)
    assert fits(model)
    ours, expected = both(model, jobs, beam, Shape(sentences, 16, 6))
    assert_same(ours, expected)
    assert len({own[0].tokens for own in ours}) > 1
    rooms, batch = Rooms(), SearchBatch.of(jobs, beam, model.vocab, torch.device("cpu"))
    with torch.inference_mode():
        assert_same(rooms.search(model, batch, beam), expected)
    assert shape_for(model, beam, 5, 12, 6).memory == 6  # the encoder has positions for no more


def test_stacks_allow_what_the_rule_computes_from_all_tokens() -> None:
    """Beams that change places at random and write whatever is allowed."""
    chance, generator = random.Random(3), torch.Generator().manual_seed(3)
    sentences, beams, limit = 3, 4, 15
    limits = torch.tensor([limit, limit - 4, 6])
    rule = Balanced("()[]", Vocab(SIZE, SIZE, shared=True), PIECES, limits)
    stacks = OpenBrackets(rule.tables, sentences, beams, limit, torch.device("cpu"))
    tokens = torch.zeros(sentences, beams, 0, dtype=torch.long)
    rows, deepest = torch.arange(sentences).repeat_interleave(beams), 0
    for length in range(limit - 1):
        found = stacks.allowed(limits - 2 - length)
        scores = torch.zeros(sentences * beams, SIZE)
        rule(scores, scores.clone(), tokens.flatten(0, 1), rows)
        live = (limits[rows] - 2 - length) >= 0
        assert torch.equal(found[live], scores[live] == 0)
        found[:, :3] = False  # beams go on
        found[~found.any(dim=1), 3] = True
        token = torch.multinomial(found.double(), 1, generator=generator).view(sentences, beams)
        parents = torch.tensor([[chance.randrange(beams) for _ in range(beams)] for _ in range(sentences)])
        token = token.gather(1, parents)
        tokens = torch.cat(
            [tokens.gather(1, parents[:, :, None].expand_as(tokens)), token[:, :, None]], dim=2
        )
        stacks.follow(parents, token)
        deepest = max(deepest, int(stacks.depth.max()))
    assert deepest > 3
    stacks.admit(torch.tensor([1]))
    assert stacks.depth[1].tolist() == [0] * beams


def test_long_trees_take_as_many_steps_as_the_longest_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free slots are filled at once: far fewer steps than in batches that wait for their longest sentence."""
    model = random_model(SIZE, 4)
    limits = [40 if number % 4 == 0 else 5 for number in range(16)]
    found = jobs_of(*random_sources(SIZE, 4, 16))
    jobs = [replace(job, most=most) for job, most in zip(found, limits, strict=True)]
    config = BeamSearch(beam=2, stop="limit", brackets="()", loop_guard=False)
    batch = SearchBatch.of(jobs, config, model.vocab, torch.device("cpu"), lambda: PIECES)
    room, steps = Continuous(model, config, Shape(4, 40, 16), batch.brackets), 0
    step = room._one_position

    def counted(used: int) -> None:
        nonlocal steps
        steps += 1
        step(used)

    monkeypatch.setattr(room, "_one_position", counted)
    with torch.inference_mode():
        room.run(batch)
    by_fours = sum(max(limits[first : first + 4]) for first in range(0, 16, 4))
    assert steps < 0.6 * by_fours
