"""Decoding speed on a CPU: our beam search beside Hugging Face `generate`, same weights, same sentences.

    dragoman train train.en train.de --out RUN model.preset=transformer-small model.position_layout=halves
    python benchmarks/decode_cpu.py RUN test.en

The run's weights are copied into MarianMT. Both translate the same sentences in the same batches of similar
length, to their natural ends; times are interleaved.
"""

import argparse
import time
from pathlib import Path

from common import interleave, median, write_table
from dragoman.checkpoint.model import load_model
from dragoman.config import from_dict
from dragoman.data.batch import pad_sources
from dragoman.data.formats import read_lines
from dragoman.decode.search import SearchConfig, search
from dragoman.decode.translate import Translator
from dragoman.models.transformer import TransformerConfig
from peers import marian_like

MAX_LENGTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    loaded = load_model(args.run)
    model, tokenizer = loaded.model, loaded.src_tokenizer
    config = from_dict(TransformerConfig, loaded.state["model"]["config"])
    marian = marian_like(model, config).eval()
    texts = list(read_lines(args.test))[: args.sentences]
    sources = sorted((tokenizer.encode(text) for text in texts), key=len)
    batches = [sources[i : i + args.batch] for i in range(0, len(sources), args.batch)]
    translator = Translator(model, tokenizer, loaded.tgt_tokenizer)
    found: dict[str, list[tuple[int, ...]]] = {}

    def ours(beam: int) -> float:
        settings = SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH)
        began = time.perf_counter()
        results = [search(model, *pad_sources(batch), settings) for batch in batches]
        seconds = time.perf_counter() - began
        found[f"ours {beam}"] = [best.tokens for batch in results for best, *_ in batch]
        return len(sources) / seconds

    def ours_from_text(beam: int) -> float:
        began = time.perf_counter()
        translator.translate(texts, search=SearchConfig(beam=beam, max_ratio=0, max_extra=MAX_LENGTH))
        return len(texts) / (time.perf_counter() - began)

    def theirs(beam: int) -> float:
        began = time.perf_counter()
        rows: list[tuple[int, ...]] = []
        for batch in batches:
            ids, mask = pad_sources(batch)
            out = marian.generate(
                input_ids=ids,
                attention_mask=mask.long(),
                num_beams=beam,
                do_sample=False,
                early_stopping=beam > 1,
                max_new_tokens=MAX_LENGTH,
                bad_words_ids=[[0], [1]],
            )
            rows += [
                tuple(row[: row.index(2) + 1]) if 2 in row else tuple(row) for row in out[:, 1:].tolist()
            ]
        found[f"theirs {beam}"] = rows
        return len(sources) / (time.perf_counter() - began)

    contenders = {}
    for beam in (4, 1):
        contenders[f"dragoman, beam {beam}"] = lambda beam=beam: ours(beam)
        contenders[f"dragoman from text, beam {beam}"] = lambda beam=beam: ours_from_text(beam)
        contenders[f"HF generate, beam {beam}"] = lambda beam=beam: theirs(beam)
    for contender in contenders.values():
        contender()  # warm up
    speeds = {name: median(values) for name, values in interleave(args.rounds, contenders).items()}
    rows = []
    for name, speed in speeds.items():
        beam = name.split()[-1]
        rows.append([name, f"{speed:,.1f}", f"{speed / speeds[f'HF generate, beam {beam}']:.2f}"])
    same = {
        beam: sum(a == b for a, b in zip(found[f"ours {beam}"], found[f"theirs {beam}"], strict=True))
        for beam in (4, 1)
    }
    lengths = sum(len(row) for row in found["ours 4"]) / len(sources)
    layers = f"{config.num_layers} + {config.num_decoder_layers or config.num_layers}"
    write_table(
        "decode_cpu",
        f"Decoding on a CPU, {layers} layers of width {config.model_dim}",
        ["", "sentences/s", "ratio to HF"],
        rows,
        f"Median of {args.rounds} interleaved rounds over {len(sources)} sentences in batches of "
        f"{args.batch} of similar length, natural ends ({lengths:.1f} tokens on average), fp32, vocabulary "
        f"{tokenizer.size}; «from text» includes tokenising, sorting and our own batches. The same tokens from "
        f"both: {same[4]} of {len(sources)} with beam 4, {same[1]} with beam 1.\n\n"
        f"Command: `python benchmarks/decode_cpu.py RUN {args.test.name}`",
    )


if __name__ == "__main__":
    main()
