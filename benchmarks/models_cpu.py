"""Every model of the package at equal size on a CPU: training and decoding speed, interleaved.

    python benchmarks/models_cpu.py train.en train.de
    python benchmarks/models_cpu.py train.en train.de --peers     # LSTMs: ours, JoeyNMT's and OpenNMT-py's

A model is a line of `MODELS_AT_WIDTH`. Its width is chosen so that it has the wanted number of parameters.
All learn from the same batches with the same optimizer, and translate the same sentences with random weights,
a fixed number of pieces each. What this does not say is which of them learns most; see the recipes.
"""

import argparse
import shlex
import sys
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

import torch

from common import SMOOTHING, IdPairs, batches_of, encode_corpus, write_table
from contender import BEAMS, DROPOUT, FORCED, Contender, count_parameters, measure, ours
from dragoman.data.batch import PairBatch, collate
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.convs2s import ConvS2SConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.markov import MarkovConfig
from dragoman.models.mixed import MixedConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.ulmfit import UlmfitConfig
from dragoman.models.unilm import UnilmConfig

WIDTHS = range(16, 2049, 4)  # they divide into heads and directions


def recurrent(**fields: object) -> Callable[[int], RnnConfig]:
    return lambda width: RnnConfig(model_dim=width, dropout=DROPOUT, **fields)  # type: ignore[arg-type]


MODELS_AT_WIDTH: dict[str, tuple[str, Callable[[int], object]]] = {
    "Transformer, 3 + 3 layers": (
        "transformer",
        lambda width: TransformerConfig(3, model_dim=width, num_heads=4, ff_dim=4 * width, dropout=DROPOUT),
    ),
    "GPT, 6 layers over source and target": (
        "gpt",
        lambda width: GptConfig(
            num_layers=6,
            model_dim=width,
            num_heads=4,
            ff_dim=4 * width,
            dropout=DROPOUT,
            attention_dropout=0.0,
            max_positions=256,
        ),
    ),
    "UniLM, 6 layers over source and target": (
        "unilm",
        lambda width: UnilmConfig(
            num_layers=6,
            model_dim=width,
            num_heads=4,
            ff_dim=4 * width,
            dropout=DROPOUT,
            attention_dropout=0.0,
            max_positions=256,
        ),
    ),
    "AWD-LSTM, 3 layers over source and target": (
        "ulmfit",
        lambda width: UlmfitConfig(
            model_dim=width,
            hidden_dim=2 * width,
            embedding_dropout=0.0,
            input_dropout=DROPOUT,
            dropout=DROPOUT,
            output_dropout=DROPOUT,
        ),
    ),
    "LSTM, additive (Bahdanau)": ("rnn", recurrent()),
    "LSTM, dot (Luong)": ("rnn", recurrent(attention="dot", wiring="luong")),
    "LSTM, general, input feeding": (
        "rnn",
        recurrent(attention="general", wiring="luong", input_feeding=True),
    ),
    "LSTM, no attention": ("rnn", recurrent(attention="none")),
    "GRU, additive (Bahdanau)": ("rnn", recurrent(cell="gru")),
    "tanh RNN, additive (Bahdanau)": ("rnn", recurrent(cell="rnn")),
    "ConvS2S, 4 + 4 layers": (
        "convs2s",
        lambda width: ConvS2SConfig(num_layers=4, model_dim=width, dropout=DROPOUT),
    ),
    "Markov, order 2, counting": ("markov", lambda _width: MarkovConfig(order=2)),
    "Transformer encoder, GRU decoder": (
        "mixed",
        lambda width: MixedConfig(
            {"num_layers": 3, "model_dim": width, "num_heads": 4, "ff_dim": 4 * width, "dropout": DROPOUT},
            {"kind": "rnn", "cell": "gru", "model_dim": width, "dropout": DROPOUT},
        ),
    ),
}


def width_for(
    kind: str, config_at: Callable[[int], object], vocab: Vocab, num_parameters: int
) -> tuple[int, int]:
    """The width at which a model comes nearest to a number of parameters, and the number it has there."""

    def count(width: int) -> int:
        with torch.device("meta"):  # sizes without numbers
            return count_parameters(build_model(kind, config_at(width), vocab))

    above = bisect_left(WIDTHS, num_parameters, key=count)
    near = WIDTHS[max(0, above - 1) : above + 1]
    found = min(near, key=lambda width: abs(count(width) - num_parameters))
    return found, count(found)


def models_of_size(vocab: Vocab, num_parameters: int) -> tuple[dict[str, Contender], dict[str, str]]:
    """All models, and the width of each in words. A model without parameters has none to choose."""
    contenders, widths = {}, {}
    for name, (kind, config_at) in MODELS_AT_WIDTH.items():
        torch.manual_seed(0)
        width, found = width_for(kind, config_at, vocab, num_parameters)
        if found and abs(found / num_parameters - 1) > 0.05:
            raise SystemExit(f"{name}: no width gives {num_parameters:,} parameters; {width} has {found:,}")
        contenders[name], widths[name] = ours(kind, config_at(width), vocab), str(width) if found else "–"
    return contenders, widths


def sorted_batches(pairs: IdPairs, sentences: int, batch: int) -> list[PairBatch]:
    """The first sentences in batches of equals, longest first."""
    order = sorted(pairs[:sentences], key=lambda pair: len(pair[0]), reverse=True)
    return [collate(order[start : start + batch]) for start in range(0, len(order), batch)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("src", type=Path)
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--parameters", type=int, default=3_000_000)
    parser.add_argument("--vocab-size", type=int, default=4000)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--batches", type=int, default=4, help="batches a contender learns from in a round")
    parser.add_argument("--sentences", type=int, default=64, help="that a contender translates in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peers", action="store_true", help="JoeyNMT and OpenNMT-py, where they are installed"
    )
    parser.add_argument("--quick", action="store_true", help="a trial in seconds; keeps no results")
    args = parser.parse_args()
    lines = None
    if args.quick:
        args.vocab_size, args.parameters, args.batches, args.sentences, args.rounds = 1000, 1_000_000, 1, 8, 1
        lines = 2000

    tokenizer, pairs = encode_corpus(args.src, args.tgt, args.vocab_size, lines)
    vocab = Vocab(tokenizer.size, tokenizer.size, shared=True)
    training = batches_of(pairs, args.batch_tokens, args.batches)
    decoding = sorted_batches(pairs, args.sentences, 32)
    if args.peers:
        from rnn_peers import NOTES, WIDTH, lstms_and_peers

        name, title, notes = "rnn_peers_cpu", "LSTMs on a CPU, beside JoeyNMT and OpenNMT-py", f" {NOTES}"
        contenders = lstms_and_peers(vocab)
        widths = dict.fromkeys(contenders, str(WIDTH))
    else:
        name, title, notes = "models_cpu", f"Models of {args.parameters:,} parameters on a CPU", ""
        contenders, widths = models_of_size(vocab, args.parameters)
    speeds = measure(contenders, training, decoding, args.rounds)
    rows = [
        [label, widths[label], f"{contenders[label].num_parameters:,}", f"{train:,.0f}"]
        + [f"{speed:,.1f}" for speed in decode]
        for label, (train, *decode) in speeds.items()
    ]
    tokens = sum(batch.num_tokens for batch in training)
    given = [Path(argument).name if Path(argument).is_file() else argument for argument in sys.argv[1:]]
    write_table(
        name,
        title,
        ["", "width", "parameters", "training, target tokens/s"]
        + [f"beam {beam}, sentences/s" if beam > 1 else "greedy, sentences/s" for beam in BEAMS],
        rows,
        f"Medians of {args.rounds} interleaved rounds. Training: {len(training)} batches a round, n·(longest "
        f"source + longest target) ≤ {args.batch_tokens}, {tokens} target tokens; fp32, dropout {DROPOUT}, "
        f"label smoothing {SMOOTHING}, clipping, fused AdamW. Decoding: {len(pairs[: args.sentences])} "
        f"sentences in batches of 32 sorted by length, random weights, frozen as a loaded model's are, "
        f"{FORCED} pieces each. Joint BPE of "
        f"{tokenizer.size} pieces, all embeddings tied.{notes}\n\n"
        f"Command: `python benchmarks/models_cpu.py {shlex.join(given)}`",
        keep=not args.quick,
    )


if __name__ == "__main__":
    main()
