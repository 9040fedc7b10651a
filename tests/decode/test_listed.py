"""Shortlists in a search: probabilities by hand, batches that change nothing, and what goes without them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.data.batch import collate
from dragoman.decode.search.config import SampleSearch, SearchConfig
from dragoman.decode.search.shortlist import Shortlist
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import EOS_ID, Tokenizer, TokenizerConfig

TEXTS = ("the cat sat on a mat.", "a dog ran.", "then the red cat slept under the blue mat and ran.", "mat")
LISTED = SearchConfig(beam=4, n_best=4, shortlist=True, max_ratio=1.0, max_extra=4, loop_guard=False)


def random_model(size: int, seed: int) -> EncoderDecoder:
    torch.manual_seed(seed)
    config = TransformerConfig(num_layers=1, model_dim=24, num_heads=4, ff_dim=32, output_bias=True)
    model = build_model("transformer", config, Vocab(size, size, shared=True))
    with torch.no_grad():  # large enough for translations that differ
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1).mul_(1.4)
    return model.requires_grad_(False)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, TokenizerConfig(vocab_size=300))


@pytest.fixture(scope="module")
def shortlist(tokenizer: Tokenizer) -> Shortlist:
    chance = np.random.default_rng(1)
    lists = {piece: chance.integers(3, tokenizer.size, 6) for piece in range(2, tokenizer.size)}
    return Shortlist((EOS_ID, 7, 30), {piece: tuple(map(int, own)) for piece, own in lists.items()})


@pytest.fixture(scope="module")
def translator(tokenizer: Tokenizer, shortlist: Shortlist) -> Translator:
    found = Translator(random_model(tokenizer.size, 4), tokenizer, tokenizer)
    found.scorer.shortlist = lambda: shortlist
    return found


def by_hand(
    model: EncoderDecoder, source: list[int], tokens: tuple[int, ...], allowed: set[int]
) -> list[float]:
    """log p of each token among the allowed ones, in float64 from all logits at once."""
    batch = collate([(source, tokens)])
    with torch.inference_mode():
        hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
        logits = model.project(hidden)[0].double().numpy()
    places = sorted(allowed)
    own = logits[:, places]
    own = (
        own
        - np.log(np.exp(own - own.max(1, keepdims=True)).sum(1, keepdims=True))
        - own.max(1, keepdims=True)
    )
    return [own[t, places.index(token)] for t, token in enumerate((*tokens, EOS_ID))]


def test_probabilities_are_among_the_pieces_of_the_sentence(
    translator: Translator, shortlist: Shortlist
) -> None:
    for text, found in zip(TEXTS, translator.hypotheses(TEXTS, search=LISTED), strict=True):
        source = translator.src_tokenizer.encode(text)
        allowed = shortlist.of([*source, EOS_ID])
        assert len(found) == 4 and any(one.tokens for one in found)
        for one in found:
            assert set(one.tokens) <= allowed
            expected = by_hand(translator.model, source, one.tokens, allowed)
            assert list(one.token_scores) == pytest.approx(expected, abs=1e-5)


def test_greedy_search_by_hand(translator: Translator, shortlist: Shortlist) -> None:
    search = replace(LISTED, beam=1, n_best=1, max_ratio=0.0, max_extra=6)
    for text, (found,) in zip(TEXTS, translator.hypotheses(TEXTS, search=search), strict=True):
        source = translator.src_tokenizer.encode(text)
        allowed = sorted(shortlist.of([*source, EOS_ID]))
        tokens: list[int] = []
        while len(tokens) < 5:
            batch = collate([(source, tokens)])
            logits = translator.model.project(translator.model(batch.src_ids, batch.src_mask, batch.tgt_in))
            best = allowed[int(logits[0, -1, allowed].argmax())]
            if best == EOS_ID:
                break
            tokens.append(best)
        assert list(found.tokens) == tokens


@pytest.mark.parametrize(
    "search",
    [LISTED, replace(LISTED, beam=1, n_best=1), LISTED.converted(SampleSearch, n_best=3)],
    ids=["beam", "greedy", "samples"],
)
def test_the_batch_changes_nothing(translator: Translator, search: SearchConfig) -> None:
    together = translator.hypotheses(TEXTS, search=search)
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = translator.hypotheses([text], search=search)
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        for one, other in zip(alone, found, strict=True):
            assert one.token_scores == pytest.approx(other.token_scores, abs=1e-5)


@pytest.mark.parametrize("models", [1, 2])
def test_a_list_of_everything_is_no_list(tokenizer: Tokenizer, models: int) -> None:
    everything = Translator([random_model(tokenizer.size, n) for n in range(models)], tokenizer, tokenizer)
    everything.scorer.shortlist = lambda: Shortlist(tuple(range(tokenizer.size)), {})
    for listed, whole in zip(
        everything.hypotheses(TEXTS, search=LISTED),
        everything.hypotheses(TEXTS, search=replace(LISTED, shortlist=False)),
        strict=True,
    ):
        assert [one.tokens for one in listed] == [one.tokens for one in whole]
        assert [one.score for one in listed] == pytest.approx([one.score for one in whole], abs=1e-5)


def test_loops_are_made_anew_among_the_same_pieces(translator: Translator, shortlist: Shortlist) -> None:
    search = replace(LISTED, loop_guard=True, max_extra=40, n_best=1, beam=1)
    found = translator.hypotheses(TEXTS, search=search)
    for text, (one,) in zip(TEXTS, found, strict=True):
        assert set(one.tokens) <= shortlist.of([*translator.src_tokenizer.encode(text), EOS_ID])
    assert any(one.finish_reason == "loop" for (one,) in found)


def test_sentences_with_constraints_have_the_whole_vocabulary(translator: Translator) -> None:
    prefixes = ["the dog", "", "a red", ""]
    found = translator.hypotheses(TEXTS, search=LISTED, prefixes=prefixes)
    whole = translator.hypotheses(TEXTS, search=replace(LISTED, shortlist=False), prefixes=prefixes)
    listed = translator.hypotheses(TEXTS, search=LISTED)
    for prefix, one, with_all, without in zip(prefixes, found, whole, listed, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in (with_all if prefix else without)]


def test_a_stream_is_the_same_translation(translator: Translator) -> None:
    search = replace(LISTED, n_best=1)
    for text in TEXTS:
        parts = list(translator.stream(text, search=search))
        (whole,) = translator.hypotheses([text], search=search)[0]
        assert "".join(part.text for part in parts) == whole.text
        assert tuple(token for part in parts for token in part.tokens) == whole.tokens


def test_what_has_no_shortlist_says_so(tokenizer: Tokenizer) -> None:
    bare = Translator(random_model(tokenizer.size, 4), tokenizer, tokenizer)
    with pytest.raises(UserError, match=r"search.shortlist: this translator has none"):
        bare.translate(TEXTS, search=LISTED)
    for fields in ({"record": True}, {"method": "exhaustive"}):
        with pytest.raises(UserError, match=r"shortlist: .* the whole vocabulary"):
            SearchConfig(shortlist=True, **fields)
    assert not LISTED.with_method("exhaustive").shortlist and LISTED.with_method("sample").shortlist


def test_some_rows_of_a_projection() -> None:
    model, hidden = random_model(300, 2), torch.randn(5, 24)
    pieces = torch.tensor([0, 1, 2, 17, 250])
    with torch.inference_mode():
        torch.testing.assert_close(model.project_among(pieces)(hidden), model.project(hidden)[:, pieces])
        bare = EncoderDecoder(model.vocab, model.encoder, model.decoder, None)  # what it gives are scores
        scores = torch.randn(5, 300)
        assert torch.equal(bare.project_among(pieces)(scores), scores[:, pieces])
