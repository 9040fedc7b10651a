"""Translator: order, batches, odd texts, and scores that agree with rescoring."""

import math

import pytest
import torch
from sacrebleu.metrics.chrf import CHRF

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from odd_inputs import check, odd_texts, tiny_translator

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
    model = build_model("transformer", config, Vocab(tokenizer.size, tokenizer.size, shared=True))
    with torch.no_grad():  # large enough for translations that differ
        for parameter in model.parameters():
            parameter.mul_(1.4)
    return Translator(model, tokenizer, tokenizer, SearchConfig(beam=4))


@pytest.mark.parametrize("beam", [1, 4])
def test_order_and_text_do_not_depend_on_the_batches(
    translator: Translator, texts: list[str], beam: int
) -> None:
    search = SearchConfig(beam=beam, loop_guard=beam == 1)
    texts = texts[::2]
    alone = [translator.translate([text], search=search)[0] for text in texts]
    assert len(set(alone)) > 10
    for batch_tokens in (100, 10_000):
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


SEARCHES = {
    "sample": SearchConfig(method="sample", top_p=0.9, n_best=3),
    "mbr": SearchConfig(method="mbr", samples=6, n_best=2),
    "mbr-list": SearchConfig(method="mbr", candidates="n_best", beam=4, utility="bleu"),
    "diverse": SearchConfig(beam=4, groups=2, n_best=4),
    "covering": SearchConfig(beam=3, coverage=0.3, length_penalty="gnmt", alpha=0.8, n_best=2),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_every_way_of_searching_is_the_same_in_any_batch(
    translator: Translator, texts: list[str], search: SearchConfig
) -> None:
    chosen = [*texts[:5], "", texts[0]]
    together = translator.hypotheses(chosen, search=search)
    assert together[5] == [Hypothesis("", 0.0, 0.0, (), (), (), "stop")]
    assert together[6] == together[0]
    for text, found in zip(chosen, together, strict=True):
        (alone,) = translator.hypotheses([text], search=search)
        assert [h.text for h in alone] == [h.text for h in found]
        assert len(found) <= search.n_best
    assert translator.translate(chosen, search=search, batch_tokens=30) == [own[0].text for own in together]


def test_samples_and_covering_hypotheses_are_scored_alike(translator: Translator, texts: list[str]) -> None:
    for search in (SEARCHES["sample"], SEARCHES["covering"]):
        for text, found in zip(texts[:8], translator.hypotheses(texts[:8], search=search), strict=True):
            source = translator.src_tokenizer.encode(text)
            again = translator.score_ids([(source, h.tokens) for h in found], search=search)
            assert [h.score for h in found] == pytest.approx([h.score for h in again], abs=1e-4)


def test_mbr_takes_its_candidates_from_the_samples(translator: Translator, texts: list[str]) -> None:
    drawn = translator.hypotheses(texts[:6], search=SearchConfig(method="sample", n_best=6))
    chosen = translator.hypotheses(texts[:6], search=SEARCHES["mbr"])
    for samples, (best, *_) in zip(drawn, chosen, strict=True):
        scores = [CHRF().sentence_score(best.text, [sample.text]).score for sample in samples]
        assert best.score == pytest.approx(sum(scores) / 6, abs=1e-6)
        others = [
            sum(CHRF().sentence_score(one.text, [other.text]).score for other in samples) / 6
            for one in samples
        ]
        assert best.score == pytest.approx(max(others), abs=1e-6)


@pytest.mark.parametrize(
    "search",
    [
        SearchConfig(beam=1, max_length=200),
        SearchConfig(beam=3, max_ratio=0.2),
        SearchConfig(method="sample", top_p=0.9, max_length=200),
    ],
    ids=["greedy", "beam", "sample"],
)
def test_odd_texts_neither_crash_nor_grow_nor_lose_their_place(search: SearchConfig) -> None:
    kinds, odd = zip(*odd_texts(150, seed=getattr(search, "beam", 5)), strict=True)
    assert len(set(kinds)) == 16
    reasons = check(tiny_translator(), list(odd), search, again=10)
    assert sum(reasons.values()) == 150
    assert reasons["stop"]


def test_one_string_instead_of_a_list_is_refused(translator: Translator) -> None:
    with pytest.raises(TypeError, match="list"):
        translator.translate("the cat")


def test_progress_ends_with_all(translator: Translator, texts: list[str]) -> None:
    seen: list[tuple[int, int]] = []
    translator.hypotheses([*texts, ""], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (65, 65)
    assert seen == sorted(seen)


def test_text_in_capitals_is_translated_in_lower_case(translator: Translator) -> None:
    """The vocabulary has no word in capitals, so what the model says to the usual spelling is written so."""
    usual, capitals = "the red cat sat on a mat.", "THE RED CAT SAT ON A MAT."
    search = SearchConfig(beam=2, n_best=2)
    ((best, second), *_) = translator.hypotheses([usual], search=search)
    found = translator.hypotheses(["a dog ran.", capitals, "the BBC NASA AND I"], search=search)
    assert [every.text for every in found[1]] == [best.text.upper(), second.text.upper()]
    assert [every.log_prob for every in found[1]] == pytest.approx([best.log_prob, second.log_prob], abs=1e-4)
    assert found[0][0].text == translator.translate(["a dog ran."], search=search)[0]
    kept = translator.hypotheses([capitals], search=search, forbidden=["cat"])[0][0]
    assert kept.text != best.text.upper()  # constraints are about the text as it is written
