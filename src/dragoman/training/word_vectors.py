"""Word vectors of a text file (GloVe, word2vec) as initial values of a model's embeddings.

    word 0.418 0.24968 -0.41242 …      one word per line; a first line of two numbers (word2vec) is skipped

Pieces that are whole words get the vector of their word, or of its lower-case form. All others keep their
random initial values.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from dragoman.data.formats import read_lines
from dragoman.errors import UserError
from dragoman.nn.linear import TokenEmbedding
from dragoman.text.tokenizer import Tokenizer

_MARK = "▁"


def begin_with_vectors(model: nn.Module, tokenizer: Tokenizer, path: Path) -> str:
    """Initialise the embeddings of a model with the vectors in a file. Returns a message with the number of
    words found."""
    tables = [part for part in model.modules() if isinstance(part, TokenEmbedding)]
    tables = [table for table in tables if len(table.weight) == tokenizer.size]
    if not tables:
        raise UserError("transfer.vectors: this model has no embeddings of whole pieces; choose another one")
    width = tables[0].weight.size(1)
    wanted = whole_words(tokenizer)
    found = read_vectors(path, {form for word in wanted.values() for form in _forms(word)}, width)
    known = {
        piece: vector
        for piece, word in wanted.items()
        if (vector := next((found[form] for form in _forms(word) if form in found), None)) is not None
    }
    if not known:
        raise UserError(f"{path}: none of the {len(wanted):,} words of the vocabulary is in this file")
    values = torch.from_numpy(np.stack(list(known.values())))
    with torch.no_grad():
        for table in tables:
            table.weight[list(known)] = (values / table.scale).to(table.weight)
    return f"vectors of {len(known):,} of {len(wanted):,} words of the vocabulary were found in {path}"


def whole_words(tokenizer: Tokenizer) -> dict[int, str]:
    """The pieces that are whole words, or marks such as a comma."""
    found = {}
    for piece, text in enumerate(tokenizer.pieces(range(tokenizer.size))):
        word, control = text.strip(_MARK), text.startswith("<") and text.endswith(">") and len(text) > 2
        if word and not control and (_MARK in text or not word.isalnum()):
            found[piece] = word
    return found


def _forms(word: str) -> tuple[str, str]:
    return word, word.lower()


def read_vectors(path: Path, wanted: set[str], width: int) -> dict[str, np.ndarray]:
    """The vectors of the wanted words. The first entry of each word is used."""
    found: dict[str, np.ndarray] = {}
    for number, line in enumerate(read_lines(path), start=1):
        word, *cells = line.rstrip().split(" ")
        if number == 1 and len(cells) == 1:
            continue
        if len(cells) != width:
            raise UserError(
                f"{path}:{number}: expected a word and {width} numbers, as model.model_dim is, found "
                f"{len(cells)}"
            )
        if word not in wanted or word in found:
            continue
        try:
            found[word] = np.array(cells, dtype=np.float32)
        except ValueError:
            raise UserError(f"{path}:{number}: expected numbers after the word, found {line!r:.60}") from None
        if not np.isfinite(found[word]).all():
            raise UserError(f"{path}:{number}: a number of this vector is not finite")
    return found
