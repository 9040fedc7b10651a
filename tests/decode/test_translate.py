"""Translator: order, batches, odd texts, and scores that agree with rescoring."""

import math

import pytest
import torch

from dragoman.decode.config import SearchConfig
from dragoman.decode.translate import Translator
from dragoman.models import build
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "and", "then", "slept", "red", "blue")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 14, (64,), generator=generator).tolist()
    rows = [torch.randint(0, len(WORDS), (n,), generator=generator).tolist() for n in lengths]
    return [" ".join(WORDS[i] for i in row) + "." for row in rows]


@pytest.fixture(scope="module")
def translator(texts: list[str]) -> Translator:
    tokenizer = Tokenizer.train(texts, TokenizerConfig(vocab_size=340))
    torch.manual_seed(4)
    config = TransformerConfig(num_layers=2, model_dim=24, num_heads=4, ff_dim=32, output_bias=True)
    model = build("transformer", config, Vocab(tokenizer.size, tokenizer.size, shared=True))
    with torch.no_grad():  # large enough for translations that differ
        for parameter in model.parameters():
            parameter.mul_(1.4)
    return Translator(model, tokenizer, tokenizer, SearchConfig(beam=4))


@pytest.mark.parametrize("beam", [1, 4])
def test_order_and_text_do_not_depend_on_the_batches(
    translator: Translator, texts: list[str], beam: int
) -> None:
    search = SearchConfig(beam=beam)
    alone = [translator.translate([text], search=search)[0] for text in texts]
    assert len(set(alone)) > 10
    for batch_tokens in (1, 100, 10_000):
        assert translator.translate(texts, search=search, batch_tokens=batch_tokens) == alone
    assert translator.translate(texts[::-1], search=search) == alone[::-1]


def test_search_scores_equal_rescoring(translator: Translator, texts: list[str]) -> None:
    search = SearchConfig(beam=4, n_best=3)
    found = translator.hypotheses(texts[:20], search=search)
    for text, hypotheses in zip(texts, found, strict=False):
        assert len(hypotheses) == 3
        source = translator.src_tokenizer.encode(text)
        again = translator.score_ids(
            [(source, h.tokens) for h in hypotheses], search=search, batch_tokens=512
        )
        for searched, rescored in zip(hypotheses, again, strict=True):
            assert searched.token_scores == pytest.approx(rescored.token_scores, abs=1e-5)
            assert searched.log_prob == pytest.approx(
                rescored.log_prob, abs=1e-5 * len(searched.token_scores)
            )
            assert searched.score == pytest.approx(rescored.score, abs=1e-5)
            assert searched.text == rescored.text
            assert searched.log_prob == math.fsum(searched.token_scores)
            assert searched.score == pytest.approx(searched.log_prob / len(searched.token_scores))
        best, *_ = hypotheses
        assert best.finish_reason == "loop" or best.score == max(h.score for h in hypotheses)


def test_scores_of_given_pairs_do_not_depend_on_the_batch(translator: Translator, texts: list[str]) -> None:
    pairs = list(zip(texts, texts[::-1], strict=True))
    together = translator.score(pairs)
    for pair, scored in zip(pairs, together, strict=True):
        assert scored.text == pair[1]
        assert translator.score([pair])[0].score == pytest.approx(scored.score, abs=1e-5)


def test_blank_texts_stay_blank_and_keep_their_place(translator: Translator) -> None:
    found = translator.translate(["", "the cat sat.", "  \t "])
    assert found[0] == found[2] == ""
    assert found[1] == translator.translate(["the cat sat."])[0]
    assert translator.translate([]) == []


def test_odd_texts_come_through(translator: Translator) -> None:
    odd = ["</s>", "<pad><s>", "\u2028", "🙂" * 30, "a" * 500, "שלום עולם", "\x01", "the " * 200]
    found = translator.hypotheses(odd)
    assert len(found) == len(odd)
    for text, (best, *_) in zip(odd, found, strict=True):
        limit = 2 * (len(translator.src_tokenizer.encode(text)) + 1) + 10
        assert len(best.tokens) < limit


def test_one_string_instead_of_a_list_is_refused(translator: Translator) -> None:
    with pytest.raises(TypeError, match="list"):
        translator.translate("the cat")


def test_progress_ends_with_all(translator: Translator, texts: list[str]) -> None:
    seen: list[tuple[int, int]] = []
    translator.hypotheses([*texts, ""], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (65, 65)
    assert seen == sorted(seen)
