"""Alignment from attention: exact weights, the right words, and the choice of attention without gold."""

import random

import numpy as np
import pytest
import torch

from battery.models import CASES, make
from dragoman.data.alignment.links import pharaoh
from dragoman.decode.alignment.aligner import links_of, members, words_by_words
from dragoman.decode.alignment.attention import Look, ModelAligner, best_look, lexical_score, source_attention
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from given import MODEL, piece_by_piece, write_weights

# gpt looks at it as at its own words
LOOKS_AT_NO_SOURCE = (
    "gru-once",
    "rnn-none",
    "lstm-none",
    "transformer+rnn-none",
    "markov",
    "gpt",
    "ulmfit",
    "unilm",
)
PAIRS = [([3, 4, 5], [6, 7, 8, 9]), ([3], [4]), ([5, 6, 7, 8, 9, 10, 11], [3, 4]), ([3, 4], [])]


@pytest.mark.parametrize("name", CASES)
def test_every_model_shows_where_it_looked(name: str) -> None:
    """Distributions over the source, the same in any batch; nothing for models that look nowhere."""
    model = make(name)
    found = source_attention(model, PAIRS)
    assert (not found) == name.startswith(LOOKS_AT_NO_SOURCE)
    for module, rows in found.items():
        for number, (src, tgt) in enumerate(PAIRS):
            assert rows[number].shape == (len(tgt) + 1, len(src) + 1)
            np.testing.assert_allclose(rows[number].sum(axis=1), 1.0, atol=1e-5)
            (alone,) = source_attention(model, [(src, tgt)])[module]
            np.testing.assert_allclose(rows[number], alone, atol=1e-6)
    look = best_look(model, [])
    assert look == best_look(model, []) and (look is None) == (not found)


def test_the_weights_are_those_of_the_model() -> None:
    """Held against a Bahdanau attention computed by hand from the states of its decoder."""
    torch.manual_seed(0)
    config = RnnConfig(model_dim=8, attention="dot", wiring="luong", bidirectional=False, cell="gru")
    model = build_model("rnn", config, Vocab(13, 13, shared=True)).double().eval()
    src, tgt = [3, 4, 5], [6, 7]
    (found,) = source_attention(model, [(src, tgt)])["decoder.attention"]
    with torch.no_grad():
        memory = model.encode(torch.tensor([[*src, 2]]), torch.ones(1, 4, dtype=torch.bool))
        decoder = model.decoder
        start = decoder.start(memory)
        states, _ = decoder.stack(
            decoder.embedding(torch.tensor([[1, *tgt]])), start.recurrent, start.masks.stack
        )
        expected = (states[0] @ memory.hidden[0].T).softmax(dim=-1)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)


def test_pieces_join_into_words() -> None:
    src = members([(0, 2), (2, 4), (5, 8)], [(0, 4), (5, 8)])
    tgt = members([(0, 3), (3, 3), (4, 8)], [(0, 3), (4, 6), (6, 8)])
    assert src.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert tgt.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0.5, 0.5]]
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3]])
    expected = [[0.3, 0.7], [0.7, 0.3], [0.7, 0.3]]
    np.testing.assert_allclose(words_by_words(weights, src, tgt), expected)
    shared = members([(0, 1), (0, 1), (0, 1), (2, 3)], [(0, 1), (2, 3)])  # a character in three bytes
    assert shared.tolist() == [[1, 0], [1, 0], [1, 0], [0, 1]]
    assert members([], [(0, 1)]).shape == (0, 1)


def test_links_are_the_greatest_weights_and_what_comes_close() -> None:
    weights = np.array([[0.6, 0.4, 0.0, 0.0], [0.1, 0.2, 0.7, 0.0], [0.0, 0.0, 0.8, 0.2]])
    assert links_of(weights) == [(0, 0), (1, 0), (2, 1), (2, 2)]
    assert pharaoh(links_of(weights)) == "0-0 1-0 2-1 2-2"
    assert links_of(np.zeros((2, 3))) == links_of(np.zeros((0, 3))) == []


def test_a_lexicon_that_agrees_with_itself_scores_higher() -> None:
    chance = random.Random(0)
    right = [(word, word + 100) for word in chance.choices(range(20), k=400)]
    targets = [t for _, t in right]
    chance.shuffle(targets)
    wrong = [(s, t) for (s, _), t in zip(right, targets, strict=True)]
    assert lexical_score(right) > lexical_score(wrong)
    # one source, two targets that come twice and once: by hand
    by_hand = (2 * np.log((1 + 2 / 3) / 3) + np.log((0 + 1 / 3) / 3)) / 3
    assert lexical_score([(1, 5), (1, 5), (1, 6)]) == pytest.approx(by_hand)


@pytest.fixture(scope="module")
def copier() -> tuple[EncoderDecoder, Tokenizer, list[str]]:
    """A Transformer that writes a sentence's words in capitals: its first attention looks at each word when
    it writes it, and its second one at nothing in particular."""
    chance = random.Random(1)
    names = ["red", "old", "cat", "dog", "sun", "sea", "hat", "mud", "fig", "oak"]
    texts = [" ".join(chance.sample(names, k=chance.randint(3, 6))) for _ in range(400)]
    sides = texts, [text.upper() for text in texts]
    words = TokenizerConfig(kind="word", vocab_size=400, min_frequency=1)
    tokenizer = Tokenizer.train([*sides[0], *sides[1]], words)
    own = {name: value for name, value in MODEL.items() if name != "kind"}
    config = TransformerConfig(**own, num_decoder_layers=2)
    model = build_model("transformer", config, Vocab(tokenizer.size, tokenizer.size, shared=True))
    write_weights(model, piece_by_piece(tokenizer, zip(*sides, strict=True)))
    return model.eval(), tokenizer, texts


def test_the_attention_that_is_chosen_aligns(copier: tuple[EncoderDecoder, Tokenizer, list[str]]) -> None:
    model, tokenizer, texts = copier
    pairs = [(text, text.upper()) for text in texts]
    sources, targets = (tokenizer.encode_batch(side) for side in zip(*pairs, strict=True))
    examples = list(zip(sources, targets, strict=True))
    aligner = ModelAligner(model, tokenizer, tokenizer, torch.device("cpu"))
    aligner.examples = lambda: examples[:200]

    def right(look: Look) -> float:
        aligner.__dict__["look"] = look
        found = aligner.links_of_texts(pairs[200:], batch_tokens=500)
        words = [text.split() for text, _ in pairs[200:]]
        hits = [(n, n) in links for row, links in zip(words, found, strict=True) for n in range(len(row))]
        return float(np.mean(hits))

    chosen = best_look(model, examples[:200])
    assert chosen is not None
    modules = ("decoder.layers.0.cross_attention", "decoder.layers.1.cross_attention")
    by_look = {Look(name, read): right(Look(name, read)) for name in modules for read in (False, True)}
    assert chosen == Look("decoder.layers.0.cross_attention", when_read=False)
    assert by_look[chosen] == 1.0
    assert max(found for look, found in by_look.items() if look != chosen) < 0.9


def test_a_model_without_attention_says_so(copier: tuple[EncoderDecoder, Tokenizer, list[str]]) -> None:
    _, tokenizer, texts = copier
    model = build_model(
        "rnn", RnnConfig(model_dim=8, attention="none"), Vocab(tokenizer.size, tokenizer.size, True)
    )
    aligner = ModelAligner(model.eval(), tokenizer, tokenizer, torch.device("cpu"))
    with pytest.raises(UserError, match="no attention"):
        aligner.links_of_texts([(texts[0], texts[1])], batch_tokens=100)
