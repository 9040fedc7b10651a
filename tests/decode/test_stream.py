"""What is streamed is final: its parts make up the translation of the same search, for any model."""

import pytest
import torch

from battery.models import CASES, make, random_batch
from dragoman.decode.search.config import SearchConfig, StopRule
from dragoman.decode.search.job import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.stream import stream_tokens
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from searching import jobs_of, search


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("beam", [1, 4])
def test_tokens_are_those_of_the_search(name: str, beam: int) -> None:
    model = make(name)
    for seed in range(3):
        src, mask, _ = random_batch(model.vocab, [4 + seed], 1, seed)
        config = SearchConfig(beam=beam, max_ratio=1, max_extra=4)
        *parts, best = stream_tokens(Scorer([model]), jobs_of(src, mask)[0], config)
        ((expected,),) = search(Scorer([model]), src, mask, config)
        assert isinstance(best, Ended)
        assert (best.tokens, best.reason) == (expected.tokens, expected.reason)
        assert best.token_scores == pytest.approx(expected.token_scores, abs=1e-5)
        assert tuple(token for part in parts for token in part) == expected.tokens[:-1]
        assert all(parts)  # no part is empty


@pytest.mark.parametrize("stop", ["settled", "complete", "bound", "limit"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_stop_rules_and_normalisation_keep_it_final(stop: StopRule, alpha: float) -> None:
    for seed in range(6):
        model = make("lstm-bahdanau", seed=seed)
        src, mask, _ = random_batch(model.vocab, [5], 1, seed)
        config = SearchConfig(beam=3, alpha=alpha, stop=stop, max_ratio=1, max_extra=3)
        *parts, best = stream_tokens(Scorer([model]), jobs_of(src, mask)[0], config)
        ((expected,),) = search(Scorer([model]), src, mask, config)
        assert best == expected
        assert tuple(token for part in parts for token in part) == expected.tokens[:-1]


def test_greedy_gives_every_token_at_once() -> None:
    model = make("transformer")
    src, mask, _ = random_batch(model.vocab, [6], 1)
    config = SearchConfig(beam=1, max_ratio=1, max_extra=4)
    *parts, best = stream_tokens(Scorer([model]), jobs_of(src, mask)[0], config)
    assert isinstance(best, Ended)
    assert len(best.tokens) > 3
    assert [len(part) for part in parts] == [1] * (len(best.tokens) - 1)


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Random weights and a small vocabulary: most of what it writes are bytes, whole characters or not."""
    tokenizer = Tokenizer.train(["the cat", "naïve 五 🙂"], TokenizerConfig(vocab_size=290))
    torch.manual_seed(1)
    config = TransformerConfig(num_layers=1, model_dim=16, num_heads=2, ff_dim=16, output_bias=True)
    model = build_model("transformer", config, Vocab(tokenizer.size, tokenizer.size, shared=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return Translator(model, tokenizer, tokenizer)


@pytest.mark.parametrize("beam", [1, 5])
def test_the_text_is_the_translation(translator: Translator, beam: int) -> None:
    settings = SearchConfig(beam=beam, loop_guard=False)  # what is streamed cannot be taken back
    for text in ("the cat", "五 🙂 naïve", "a b c d e f g", "x" * 40):
        *parts, last = translator.stream(text, search=settings)
        (expected,) = translator.hypotheses([text], search=settings)[0]
        assert last.hypothesis == expected
        assert "".join(part.text for part in (*parts, last)) == expected.text
        assert all(part.hypothesis is None for part in parts)
        assert not torch.is_inference_mode_enabled()


def test_the_callers_mode_is_left_alone(translator: Translator) -> None:
    for _ in translator.stream("the cat"):
        assert not torch.is_inference_mode_enabled()


def test_nothing_to_translate(translator: Translator) -> None:
    (only,) = translator.stream(" \t")
    assert only.text == "" and only.hypothesis is not None and only.hypothesis.text == ""
