"""A Transformer whose weights are written down, not trained: it says the same on every processor.

Training amplifies rounding, so a model trained by a test is another one on another CPU. This one says, for
every piece of its source, the piece that a mapping has for it. The fast sinusoids tell where a piece stands,
and the cross-attention looks at the place that it writes. The slow sines are nearly zero, which leaves room
for a vector of random signs for every piece: that of the piece to be said. All such vectors have one length,
so the norms divide all of them by the same number.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from dragoman import checkpoint
from dragoman.checkpoint.model import model_tensors
from dragoman.data.corpus import prepare
from dragoman.learning.resolve import resolve_config
from dragoman.models.base import EncoderDecoder
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.api import train
from dragoman.training.state import Training

DIM, HEADS = 128, 2
PLACE, PIECE = slice(0, 32), slice(32, DIM, 2)
"""The dimensions that tell the place, and those that tell the piece."""
MODEL = {
    "kind": "transformer",
    "num_layers": 1,
    "model_dim": DIM,
    "num_heads": HEADS,
    "ff_dim": 32,
    "dropout": 0.0,
    "norm": "pre",
    "norm_kind": "rms",
    "position_base": 1e8,
    "tie_embeddings": False,
    "output_bias": True,
}
"""The configuration of such a model."""
STILL = {"rate": 1e-30}
"""`optim` of a run that keeps its weights: this times anything, added to them, is lost in rounding."""
LOOK, SAY, SURE, NOISE = 8.0, 5.0, 0.11, 0.01
"""How sharp the attention is, how much of what it saw is passed on, how sure the softmax is; and the random
part of every weight, without which much would be zero and many scores equal."""


def write_weights(model: EncoderDecoder, said: Mapping[int, int], seed: int = 6) -> None:
    """Give the model its weights. Pieces that `said` does not have are said as they are, but seldom."""
    generator = torch.Generator().manual_seed(seed)
    weights = model_tensors(model)
    for name, tensor in weights.items():
        if not name.endswith("norm.weight"):
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            tensor.copy_(noise * _noise(name))
    vocab = model.vocab
    shape = max(vocab.src_size, vocab.tgt_size), len(range(DIM)[PIECE])
    codes = torch.randint(0, 2, shape, generator=generator) * 2.0 - 1
    order = torch.tensor([said.get(piece, piece) for piece in range(vocab.src_size)])
    weights["encoder.embedding.weight"][:, PIECE] += 2 * codes[order] / DIM**0.5
    weights["projection.weight"][:, PIECE] += SURE * codes[: vocab.tgt_size]
    odd = torch.ones(vocab.tgt_size, dtype=torch.bool)
    odd[[*said.values(), vocab.eos_id]] = False
    weights["projection.bias"][odd] -= 4.0
    cross = "decoder.layers.0.cross_attention"
    query, out = weights[f"{cross}.query.weight"], weights[f"{cross}.out.weight"]
    key, value = weights[f"{cross}.key_value.weight"].chunk(2)
    places, pieces = torch.eye(DIM)[PLACE], torch.eye(DIM)[PIECE]
    for first in range(0, DIM, DIM // HEADS):
        for part in (query, key):
            part[first : first + len(places)] += LOOK * places
        value[first : first + len(pieces)] += pieces
        out[:, first : first + len(pieces)] += SAY / HEADS * pieces.T


def _noise(name: str) -> float:
    """Most of it comes after the attention, where it makes scores depend on what was said before."""
    if "embedding" in name:
        return NOISE / DIM**0.5
    return 20 * NOISE if name.startswith("decoder.layers.0.feedforward.") else NOISE


def piece_by_piece(tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]) -> dict[int, int]:
    """What each source piece becomes, where both sides are cut alike."""
    said: dict[int, int] = {}
    for src, tgt in pairs:
        for piece, other in zip(tokenizer.encode(src), tokenizer.encode(tgt), strict=True):
            assert said.setdefault(piece, other) == other, f"{src} → {tgt}: a piece has two translations"
    return said


def begin(directory: Path, config: RunConfig, pairs: Iterable[tuple[str, str]]) -> Path:
    """A run with one checkpoint, the weights that say these pairs: another run can start with it."""
    prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=directory.parent / "cache")
    run = Run.create(directory, config, prepared)
    training = Training(config, prepared, torch.device("cpu"))
    assert training.average is None, "an average would not have the given weights"
    write_weights(training.model, piece_by_piece(prepared.src_tokenizer, pairs))
    training.progress.update = 1
    checkpoint.save(run.checkpoints, checkpoint.checkpoint_name(1), training.tensors(), training.state())
    return directory


def given_run(directory: Path, config: dict[str, Any], pairs: Iterable[tuple[str, str]]) -> Run:
    """A run that began with given weights and kept them while it was trained. What it began with lies
    beside it."""
    still = config | {"model": MODEL, "optim": STILL}
    start = begin(directory.with_name(f"{directory.name}-given"), resolve_config(still), pairs)
    return train(still | {"start": str(start)}, out=directory, quiet=True)
