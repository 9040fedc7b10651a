"""Length, coverage and diversity against brute force and slow references; ensembles against their mean."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from battery.models import VOCAB, make, random_batch
from dragoman.data.batch import collate
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.coverage import covered
from dragoman.decode.search.job import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.probe.record import record
from searching import search, token_scores_of

BOS, EOS = 1, 2


def wild_model(size: int, seed: int, eos_bias: float = 0.0) -> EncoderDecoder:
    """Sharp, various distributions and attention."""
    torch.manual_seed(seed)
    config = TransformerConfig(num_layers=2, model_dim=8, num_heads=2, ff_dim=16, output_bias=True)
    model = build_model("transformer", config, Vocab(size, size, shared=True)).eval().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2).add_(torch.randn_like(parameter) * 0.3)
        model.projection.bias[EOS] += eos_bias
    return model


def forced(model: EncoderDecoder, src: torch.Tensor, tokens: tuple[int, ...]) -> tuple[float, float]:
    """Σ log p and Σ_j log min(Σ_i a_ij, 1), from one pass and a recording."""
    mask = torch.ones_like(src[None], dtype=torch.bool)
    tgt_in = torch.tensor([[BOS, *tokens[:-1]]])
    with torch.no_grad(), record(model) as seen:
        scores = model.project(model(src[None], mask, tgt_in))[0].log_softmax(-1)
    (name,) = [n for n in seen if n == "decoder.layers.1.cross_attention" or n == "decoder.attention"]
    weights = torch.cat(seen[name], dim=2)[0].mean(dim=0).sum(dim=0)  # S
    cover = sum(math.log(min(float(weight), 1.0)) for weight in weights)
    return float(scores.gather(1, torch.tensor(tokens)[:, None]).sum()), cover


def ranked(log_prob: float, length: int, cover: float, config: SearchConfig) -> float:
    base = length if config.length_penalty == "power" else (5 + length) / 6
    return log_prob / base**config.alpha + config.coverage * cover


RANKINGS = [
    SearchConfig(),
    SearchConfig(alpha=0.0, coverage=0.5),
    SearchConfig(alpha=0.7, length_penalty="gnmt"),
    SearchConfig(alpha=1.0, length_penalty="gnmt", coverage=0.3),
    SearchConfig(alpha=0.6, coverage=2.0),
]


@pytest.mark.parametrize("ranking", RANKINGS, ids=range(len(RANKINGS)))
def test_a_huge_beam_finds_what_brute_force_finds(ranking: SearchConfig) -> None:
    config = replace(ranking, beam=81, n_best=4, max_ratio=0, max_extra=4, stop="bound")
    for seed in range(3):
        model = wild_model(6, seed)
        src = torch.randint(3, 6, (3,), generator=torch.Generator().manual_seed(seed))
        everything = []
        for length in range(4):
            for body in itertools.product(range(3, 6), repeat=length):
                log_prob, cover = forced(model, src, (*body, EOS))
                everything.append((ranked(log_prob, length + 1, cover, config), (*body, EOS)))
        expected = sorted(everything, reverse=True)[:4]
        found = search(Scorer([model]), src[None], torch.ones(1, 3, dtype=torch.bool), config)[0]
        assert [ended.tokens for ended in found] == [tokens for _, tokens in expected]
        assert [ended.score(config) for ended in found] == pytest.approx([s for s, _ in expected], abs=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("ranking", RANKINGS, ids=range(len(RANKINGS)))
def test_the_bound_gives_what_the_limit_gives(ranking: SearchConfig, groups: int) -> None:
    """Stopping early by the bound changes nothing, whatever hypotheses are ranked by."""
    stopped_early = 0
    for seed in range(8):
        model = wild_model(12, seed, eos_bias=1.5)
        src, mask, _ = random_batch(model.vocab, [3, 6, 1, 4], 1, seed)
        config = replace(ranking, beam=4, n_best=1 + seed % 3, groups=groups, max_ratio=1, max_extra=6)
        bound = search(Scorer([model]), src, mask, replace(config, stop="bound"))
        assert bound == search(Scorer([model]), src, mask, replace(config, stop="limit"))
        stopped_early += any(ended.reason == "stop" for own in bound for ended in own)
    assert stopped_early


@pytest.mark.parametrize("name", ["transformer", "lstm-bahdanau", "gru-luong-feeding", "location"])
def test_coverage_moves_with_the_rows(name: str) -> None:
    model = make(name)
    lengths = [3, 8, 5, 1, 4]
    src, mask, _ = random_batch(model.vocab, lengths, 1)
    config = SearchConfig(beam=4, n_best=4, coverage=0.4, max_ratio=1.5, max_extra=4)
    together = search(Scorer([model]), src, mask, config)
    for row, n in enumerate(lengths):
        alone = search(Scorer([model]), src[row : row + 1, :n], mask[row : row + 1, :n], config)[0]
        assert [ended.tokens for ended in alone] == [ended.tokens for ended in together[row]]
        pairs = [(src[row, : n - 1].tolist(), list(ended.tokens[:-1])) for ended in together[row]]
        given = collate(pairs)
        given.src_ids[:, n - 1] = src[row, n - 1]  # random sources do not end with </s>
        with torch.inference_mode():
            _, again = Scorer([model]).forced(given, watched=True)
        assert again is not None
        assert [ended.covered for ended in together[row]] == pytest.approx(again.tolist(), abs=1e-4)


def test_covered_by_hand() -> None:
    seen = torch.tensor([[0.5, 2.0, 0.25, 0.0], [0.0, 1.0, 3.0, 0.1]])
    mask = torch.tensor([[True, True, True, False], [True, True, True, True]])
    expected = [math.log(0.5) + math.log(0.25), math.log(1e-10) + math.log(0.1)]
    assert covered(seen, mask).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["lstm-none", "transformer+rnn-none"])
def test_coverage_without_attention_is_refused(name: str) -> None:
    model = make(name)
    src, mask, _ = random_batch(model.vocab, [3, 2], 1)
    with pytest.raises(UserError, match=r"^coverage: .*no attention"):
        search(Scorer([model]), src, mask, SearchConfig(coverage=0.2))


def slow_diverse(
    model: EncoderDecoder, src: torch.Tensor, limit: int, config: SearchConfig
) -> list[tuple[float, tuple[int, ...]]]:
    """Diverse beam search for one sentence in lists, to the greatest length."""
    width, token_scores = config.beam // config.groups, token_scores_of(model, src)
    live: list[list[tuple[int, ...]]] = [[()] for _ in range(config.groups)]
    ended: dict[tuple[int, ...], float] = {}
    for length in range(1, limit + 1):
        if length == limit:
            for tokens in {tokens for group in live for tokens in group}:
                ended[(*tokens, EOS)] = math.fsum(token_scores((*tokens, EOS)))
            break
        written: list[int] = []
        for group in range(config.groups):
            extended = []
            for tokens in live[group]:
                for piece in range(2, model.vocab.tgt_size):
                    log_prob = math.fsum(token_scores((*tokens, piece)))
                    cost = config.diversity * written.count(piece)
                    extended.append((log_prob - cost, log_prob, (*tokens, piece)))
            extended.sort(reverse=True)
            for _, log_prob, tokens in extended[:width]:
                if tokens[-1] == EOS:
                    ended[tokens] = log_prob
            live[group] = [tokens for _, _, tokens in extended if tokens[-1] != EOS][:width]
            written += [tokens[-1] for tokens in live[group]]
    scored = [(log_prob / len(tokens) ** config.alpha, tokens) for tokens, log_prob in ended.items()]
    return sorted(scored, reverse=True)[: config.n_best]


@pytest.mark.parametrize(
    ("beam", "groups", "diversity"), [(4, 2, 0.5), (3, 3, 1.0), (4, 2, 4.0), (6, 3, 0.1)]
)
def test_diverse_beams_equal_a_slow_reference(beam: int, groups: int, diversity: float) -> None:
    config = SearchConfig(beam=beam, groups=groups, diversity=diversity, n_best=beam, stop="limit")
    config = replace(config, max_ratio=1, max_extra=2)
    for seed in range(2):
        model = wild_model(9, seed, eos_bias=1.0)
        lengths = [3, 2]
        src, mask, _ = random_batch(model.vocab, lengths, 1, seed)
        found = search(Scorer([model]), src, mask, config)
        for row, n in enumerate(lengths):
            expected = slow_diverse(model, src[row, :n], n + 2, config)
            assert [ended.tokens for ended in found[row]] == [tokens for _, tokens in expected]
            scores = [ended.score(config) for ended in found[row]]
            assert scores == pytest.approx([score for score, _ in expected], abs=1e-5)


def test_groups_make_an_n_best_list_diverse_and_one_group_is_plain() -> None:
    model = wild_model(20, 3)
    src, mask, _ = random_batch(model.vocab, [5, 7, 3, 6], 1)
    plain = SearchConfig(beam=6, n_best=6, max_ratio=1, max_extra=5)
    diverse = replace(plain, groups=3, diversity=2.0)

    def first_pieces(found: list[list[Ended]]) -> int:
        return sum(len({ended.tokens[0] for ended in own}) for own in found)

    usual = search(Scorer([model]), src, mask, plain)
    various = search(Scorer([model]), src, mask, diverse)
    assert first_pieces(various) > first_pieces(usual)
    for row, n in enumerate([5, 7, 3, 6]):
        alone = search(Scorer([model]), src[row : row + 1, :n], mask[row : row + 1, :n], diverse)[0]
        assert [ended.tokens for ended in alone] == [ended.tokens for ended in various[row]]
        assert len({ended.tokens for ended in alone}) == len(alone)


@pytest.mark.parametrize("coverage", [0.0, 0.3])
@pytest.mark.parametrize("beam", [1, 4])
def test_an_ensemble_of_families_searches_and_scores_by_the_mean(beam: int, coverage: float) -> None:
    models = [make("transformer"), make("lstm-bahdanau"), make("transformer-pre", seed=2)]
    scorer = Scorer(models)
    lengths = [4, 2, 6]
    sources = [[5, 6, 7], [8], [3, 4, 5, 6, 7]]
    given = collate([(source, []) for source in sources])
    config = SearchConfig(beam=beam, n_best=beam, coverage=coverage, max_ratio=1, max_extra=5)
    found = search(scorer, given.src_ids, given.src_mask, config)
    for source, own, n in zip(sources, found, lengths, strict=True):
        for ended in own:
            batch = collate([(source, ended.tokens[:-1])])
            with torch.inference_mode():
                scores, cover = scorer.forced(batch, watched=coverage > 0)
                each = [m.project(m(batch.src_ids, batch.src_mask, batch.tgt_in)).softmax(-1) for m in models]
            assert scores[0].tolist() == pytest.approx(ended.token_scores, abs=1e-5)
            mean = torch.stack(each).mean(dim=0)[0].log()
            by_hand = mean.gather(1, torch.tensor(ended.tokens)[:, None])[:, 0]
            assert ended.token_scores == pytest.approx(by_hand.tolist(), abs=1e-5)
            if cover is not None:
                assert ended.covered == pytest.approx(float(cover[0]), abs=1e-4)
            assert len(ended.tokens) <= n + 5


def test_models_of_an_ensemble_share_their_vocabulary() -> None:
    assert make("transformer").vocab == VOCAB
    with pytest.raises(UserError, match="share their vocabulary"):
        Scorer([make("transformer"), make("transformer-separate")])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"beam": 5, "groups": 2}, "groups: a beam of 5 cannot be divided into 2 groups"),
        ({"groups": 0}, "groups"),
        ({"diversity": 0.7}, "diversity: 0.7 has no effect with one group"),
        ({"coverage": -0.1}, "coverage"),
    ],
)
def test_impossible_settings_are_refused_by_name(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        replace(SearchConfig(), **fields)
