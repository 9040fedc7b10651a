"""Exhaustive search against brute force over all strings, on models of every family."""

from dataclasses import replace

import jaxtyping
import pytest
import torch

from battery.models import BY_COUNTING, CASES, random_batch
from dragoman.config import from_dict
from dragoman.decode.search.config import ExhaustiveSearch, SearchConfig
from dragoman.decode.search.job import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from searching import brute_force, rescored, search

PAD, BOS, EOS = 0, 1, 2
FAMILIES = sorted(set(CASES) - BY_COUNTING)  # a model that has counted nothing knows nothing
Scored = list[tuple[float, tuple[int, ...]]]


def tiny(seed: int, size: int, dtype: torch.dtype = torch.float64) -> EncoderDecoder:
    """A model of some family with weights large enough for sharp, various distributions."""
    torch.manual_seed(seed)
    kind, config, _ = CASES[FAMILIES[seed % len(FAMILIES)]]
    model = build_model(kind, config, Vocab(size, size, shared=True)).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5).add_(torch.randn_like(parameter) * 0.2)
    return model


def exhaustive(**fields: float) -> ExhaustiveSearch:
    return from_dict(ExhaustiveSearch, {"max_ratio": 0.0} | fields)


def same(found: list[Ended], expected: Scored, alpha: float) -> None:
    assert [hypothesis.tokens for hypothesis in found] == [tokens for _, tokens in expected]
    for hypothesis, (score, _) in zip(found, expected, strict=True):
        assert hypothesis.score(SearchConfig(alpha=alpha)) == pytest.approx(score, abs=1e-5, rel=1e-7)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking shapes takes longer than such models do; every other test checks them."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("group", range(5))
@pytest.mark.usefixtures("unchecked")
def test_exhaustive_is_brute_force_is_a_huge_beam(group: int) -> None:
    missed = 0
    for seed in range(20 * group, 20 * group + 20):
        size, limit = 5 + seed % 2, 4 + seed // 2 % 2
        alpha, n_best = (0.0, 0.5, 1.0)[seed % 3], (1, 3)[seed // 3 % 2]
        model = tiny(seed, size)
        src, mask, _ = random_batch(model.vocab, [2 + seed % 3], 1, seed)
        config = exhaustive(beam=n_best, n_best=n_best, alpha=alpha, max_extra=limit)
        expected = brute_force(model, src[0], limit, alpha)[:n_best]
        found = search(Scorer([model]), src, mask, config)[0]
        same(found, expected, alpha)
        assert all(h.exact for h in found)
        assert [h.reason for h in found] == ["length" if len(h.tokens) == limit else "stop" for h in found]
        everything = (size - 2) ** (limit - 1)  # all extensions at any step, ends among them
        huge = replace(config.first(), beam=everything, stop="bound")
        same(search(Scorer([model]), src, mask, huge)[0], expected, alpha)
        if seed % 5 == 0:
            narrow = search(Scorer([model]), src, mask, config.first())[0]
            missed += [h.tokens for h in narrow] != [h.tokens for h in found]
    assert missed  # the narrow beam that it starts from is not the answer


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_rules_hold(alpha: float) -> None:
    for seed in range(12):
        model = tiny(seed, 6)
        src, mask, _ = random_batch(model.vocab, [3], 1, seed)
        config = exhaustive(beam=2, n_best=2, alpha=alpha, max_extra=5, min_length=2)
        expected = brute_force(model, src[0], 5, alpha, shortest=2)[:2]
        same(search(Scorer([model]), src, mask, config)[0], expected, alpha)


def test_a_spent_budget_is_told_and_nothing_gets_worse() -> None:
    told = 0
    for seed in range(12):
        model = tiny(seed, 6)
        src, mask, _ = random_batch(model.vocab, [3], 1, seed)
        config = exhaustive(beam=1, max_extra=6)
        first = search(Scorer([model]), src, mask, config.first())[0][0]
        assert first.exact is None
        best = search(Scorer([model]), src, mask, config)[0][0]
        assert best.exact is True
        for nodes in (1, 2, 5, 20, 100, 400):
            found = search(Scorer([model]), src, mask, replace(config, max_nodes=nodes))[0][0]
            assert first.score(config) - 1e-9 <= found.score(config) <= best.score(config) + 1e-9
            if found.exact:
                assert found.tokens == best.tokens
            told += found.exact is False
    assert told >= 12


def test_the_budget_is_the_number_of_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told as too small exactly where one prefix less is allowed than the proof takes."""
    model = tiny(3, 6)
    src, mask, _ = random_batch(model.vocab, [3], 1)
    rows: list[int] = []
    step = Scorer.step

    def counting(self: Scorer, last_ids: torch.Tensor, state: object) -> object:
        rows.append(len(last_ids))
        return step(self, last_ids, state)  # type: ignore[arg-type]

    config = exhaustive(beam=1, max_extra=6)
    monkeypatch.setattr(Scorer, "step", counting)
    search(Scorer([model]), src, mask, config.first())
    of_the_beam = sum(rows)
    rows.clear()
    whole = search(Scorer([model]), src, mask, config)[0][0]
    needed = sum(rows) - of_the_beam
    assert 10 < needed < 3**5 + 3**4 + 3**3 + 3**2 + 3 + 1  # fewer than all prefixes
    enough = search(Scorer([model]), src, mask, replace(config, max_nodes=needed))[0][0]
    assert enough == whole
    assert enough.exact
    fewer = search(Scorer([model]), src, mask, replace(config, max_nodes=needed - 1))[0][0]
    assert fewer.exact is False


def test_batch_composition_changes_nothing_and_scores_are_the_models() -> None:
    for seed in range(0, len(FAMILIES), 3):
        model = tiny(seed, 9)
        lengths = [3, 1, 4]
        src, mask, _ = random_batch(model.vocab, lengths, 1, seed)
        config = exhaustive(beam=2, n_best=2, max_ratio=1.0, max_extra=1, max_nodes=400)
        together = search(Scorer([model]), src, mask, config)
        for row, n in enumerate(lengths):
            alone = search(Scorer([model]), src[row : row + 1, :n], mask[row : row + 1, :n], config)[0]
            assert [(h.tokens, h.exact) for h in alone] == [(h.tokens, h.exact) for h in together[row]]
            again = rescored(model, src[row, :n], [h.tokens for h in alone])
            for hypothesis, scores in zip(together[row], again, strict=True):
                assert hypothesis.token_scores == pytest.approx(scores, rel=2e-5, abs=2e-5)


def test_an_ensemble_is_searched_exactly_too() -> None:
    models = [tiny(0, 6), tiny(FAMILIES.index("transformer"), 6)]
    src, mask, _ = random_batch(models[0].vocab, [3], 1)
    exact = exhaustive(beam=1, max_extra=4)
    huge = SearchConfig(beam=27, max_ratio=0, max_extra=4, stop="bound")
    found = search(Scorer(models), src, mask, exact)[0][0]
    assert found.tokens == search(Scorer(models), src, mask, huge)[0][0].tokens
    assert found.exact


@pytest.mark.parametrize(("field", "value"), [("max_nodes", 0), ("method", "magic"), ("record", True)])
@pytest.mark.usefixtures("unchecked")
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(UserError, match=field):
        SearchConfig(**{"method": "exhaustive", field: value})
