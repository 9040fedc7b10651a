"""What masking has to know about a vocabulary."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.learning.text import maskable_pieces
from dragoman.text.published_tokenizer import Published, PublishedTokenizer
from dragoman.text.sentencepiece import sentencepiece_json
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from dragoman.text.tokenizer_json import renumbered
from text.test_sentencepiece import SCORES, spm


@pytest.fixture(params=["own", "published"])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> Tokenizer:
    if request.param == "own":
        return Tokenizer.train(["abc ab c cab bcbc"], TokenizerConfig(vocab_size=280))
    path = tmp_path / "spiece.model"
    path.write_bytes(spm(["<pad>", "</s>", "<unk>"], SCORES))
    order = [0, 0, 1, *range(2, 3 + len(SCORES))]
    return PublishedTokenizer(Published(renumbered(sentencepiece_json(path), order), len(order)))


def test_every_piece_begins_a_word_or_does_not(tokenizer: Tokenizer) -> None:
    """A text has as many pieces that begin a word as it has words, also where its pieces are the last ones of
    the vocabulary."""
    starts = maskable_pieces(tokenizer, whole_words=True, mask_id=3).word_starts
    assert starts is not None and len(starts) == tokenizer.size
    last = tokenizer.bytes_of(tokenizer.size - 1).decode().strip()
    for text in ("abc ab", "c cab bcbc", f"{last} a {last}"):
        assert np.count_nonzero(starts[tokenizer.encode(text)]) == len(text.split()), text


def test_where_words_do_not_count_no_piece_begins_one(tokenizer: Tokenizer) -> None:
    found = maskable_pieces(tokenizer, whole_words=False, mask_id=3)
    assert found.word_starts is None and (found.mask_id, found.size) == (3, tokenizer.size)
