"""The guard against loops, with models that are made to loop."""

import pytest
import torch

from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.loop_guard import Repetition, longest_run, loops, tail_run, without_loops
from dragoman.decode.search.scorer import Scorer
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from searching import search, search_guarded

EOS = 2


def looping_model(period: int, end: float = -8.0) -> EncoderDecoder:
    """After piece a comes a + 1, and after the last of a block the first: next-piece scores as a table."""
    config = TransformerConfig(num_layers=1, model_dim=16, num_heads=2, ff_dim=8, tie_embeddings=False)
    torch.manual_seed(0)
    model = build_model("transformer", config, Vocab(16, 16, shared=True)).eval()
    table = torch.full((16, 16), -4.0)
    table[:, EOS] = end
    for piece in range(16):
        block = (piece - 3) // period if piece >= 3 else 0
        following = 3 + block * period + ((piece - 3 + 1) % period if piece >= 3 else 0)
        table[piece, min(following, 15)] = 4.0
        table[piece, 3 + (piece * 7) % 13] += 1.0
    decoder = model.decoder

    def step(last_ids: torch.Tensor, state: object) -> tuple[torch.Tensor, object]:
        _, state = type(decoder).step(decoder, last_ids, state)  # type: ignore[arg-type]
        return table[last_ids], state

    decoder.step = step  # type: ignore[method-assign]
    model.project = lambda hidden: hidden  # type: ignore[method-assign]
    return model


def batch(*sources: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, sources)) + 1
    ids = torch.tensor([[*s, EOS, *[0] * (width - 1 - len(s))] for s in sources])
    return ids, ids != 0


@pytest.mark.parametrize("period", [1, 2, 3, 8])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_loop_is_replaced_and_shown(period: int, beam: int) -> None:
    scorer = Scorer([looping_model(period)])
    sources = batch([3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] * 2, [5] * 30)
    config = SearchConfig(beam=beam, max_ratio=2, max_extra=10)
    plain = search(scorer, *sources, config)
    assert plain[0][0].reason == "length"
    assert loops(plain[0][0], sources[0][0, :25].tolist())
    found = search_guarded(scorer, *sources, config)
    best = found[0][0]
    assert best.reason == "loop"
    assert len(best.tokens) <= 25 + 10
    assert tail_run(best.tokens[:-1]).repeats < 4
    trigrams = [best.tokens[i : i + 3] for i in range(len(best.tokens) - 2)]
    assert len(set(trigrams)) == len(trigrams)
    assert found[1] == plain[1]  # the source says the same thirty times: so may the translation
    off = SearchConfig(beam=beam, max_ratio=2, max_extra=10, loop_guard=False)
    assert search_guarded(scorer, *sources, off) == plain


def test_the_rest_of_an_n_best_list_stays() -> None:
    scorer = Scorer([looping_model(2)])
    sources = batch([3, 4, 5, 6, 7, 8])
    config = SearchConfig(beam=4, n_best=4)
    plain, found = search(scorer, *sources, config)[0], search_guarded(scorer, *sources, config)[0]
    assert found[0].reason == "loop"
    assert found[1:] == plain[1:]


def test_with_coverage_the_second_search_is_ranked_alike() -> None:
    scorer = Scorer([looping_model(2)])
    config = SearchConfig(beam=2, coverage=0.2, max_extra=0)
    found = search_guarded(scorer, *batch([3, 4, 5, 6, 7, 8]), config)[0]
    assert found[0].reason == "loop"
    assert found[0].covered < 0


@pytest.mark.parametrize(
    ("tokens", "reason", "source", "expected"),
    [
        ([9, 9, 9, 9], "length", [5, 6, 7], True),
        ([9, 9, 9], "length", [5, 6, 7], False),
        ([4, 9, 9, 9, 9], "stop", [5, 6, 7], False),  # «10000»
        ([4, *[9] * 16], "stop", [5, 6, 7], True),
        ([4, *[9, 8, 7, 6] * 4, 9, 8], "stop", [5, 6, 7], True),  # broken off in a block
        ([*[9] * 16, 4], "stop", [5, 6, 7], False),  # it came out of it
        ([4, *[9] * 16], "stop", [5] * 4, False),
        ([4, *[9] * 16], "stop", [6, *[5] * 3], True),
        ([9] * 500, "length", [5] * 500, False),
        ([9, 8, 7] * 500, "length", [5] * 500, False),  # a word of one piece is one of three
        ([9] * 500, "length", [5, 5, 5, 5], True),
        ([], "stop", [], False),
        ([9], "length", [5], False),
    ],
)
def test_what_a_loop_is(tokens: list[int], reason: str, source: list[int], expected: bool) -> None:
    ended = Ended((*tokens, EOS), (0.0,) * (len(tokens) + 1), reason)  # type: ignore[arg-type]
    assert loops(ended, [*source, EOS]) == expected


def test_runs() -> None:
    assert tail_run([1, 2, 3, 3, 3]) == Repetition(3, 3)
    assert tail_run([1, 2, 1, 2, 1]) == Repetition(2, 5)
    assert tail_run([1, 2, 3]) == Repetition()
    assert tail_run(list(range(9)) * 5) == Repetition()  # a block of nine is too long
    assert longest_run([1, 5, 5, 5, 5, 2, 3, 2, 3, 2, 3, 9]) == Repetition(4, 6)
    assert longest_run([]) == Repetition()
    assert longest_run([7, 1, 2, 1, 2]) == Repetition(2, 4)  # twice is a run
    assert longest_run([1, 2, 3, 1, 2]) == Repetition()  # broken off before the second time is none


def test_trees_repeat_themselves_where_they_are_right() -> None:
    """(NN x) (NN x) (NN x) (NN x) is no loop of the search."""
    ended = Ended((4, 5, 6, 7) * 6 + (EOS,), (-0.1,) * 25, "stop")
    source = tuple(range(10, 20))
    assert loops(ended, source)

    def again(*_: object) -> list[list[Ended]]:
        raise AssertionError("it is not searched again")

    found = without_loops([[ended]], [Job(source)], BeamSearch(brackets="()"), again)
    assert found == [[ended]]
