"""Decoding speed on a CPU: our two engines beside Hugging Face `generate` and CTranslate2 called by hand.

    dragoman train train.en train.de --out RUN model.preset=transformer-small model.position_layout=halves
    python benchmarks/decode_cpu.py RUN test.en test.de

All have the weights of one run and translate the same text to natural ends; times are interleaved. Three
tables: many sentences at once, one at a time, and from the start of a process to its first sentence.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import sacrebleu

from common import interleave, median, write_table
from decoders import BATCHES, ByHand, Fast, HuggingFace, Model, Ours, start_commands
from dragoman.data.formats import read_lines

Decoder = Callable[[list[str], int], list]
BEAMS = (4, 1)
PLAIN, SORTED, OURS = "HF generate", "HF generate, sorted", "dragoman, PyTorch"


def many(model: Model, batch: int) -> dict[str, Decoder]:
    """Two cores: two threads for PyTorch, two workers of one thread for CTranslate2."""
    found: dict[str, Decoder] = {
        PLAIN: HuggingFace(model, batch, by_length=False),
        SORTED: HuggingFace(model, batch, by_length=True),
        OURS: Ours(model),
        "dragoman, PyTorch, shortlist": Ours(model, shortlist=True),
        "dragoman, PyTorch, int8": Ours(model, precision="int8"),
        "dragoman, PyTorch, int8, shortlist": Ours(model, shortlist=True, precision="int8"),
    }
    for quantize, directory in model.exports.items():
        found[f"CTranslate2 by hand, {quantize}, tokens to tokens"] = ByHand(directory, model)
        found[f"CTranslate2 by hand, {quantize}"] = ByHand(directory, model, whole=True)
        found[f"dragoman, CTranslate2, {quantize}"] = Fast(directory, shortlist=False)
        found[f"dragoman, CTranslate2, {quantize}, shortlist"] = Fast(directory, shortlist=True)
    return found


def one_at_a_time(model: Model) -> dict[str, Decoder]:
    found: dict[str, Decoder] = {PLAIN: HuggingFace(model, 1, by_length=False)}
    found[OURS] = Ours(model)
    found["dragoman, PyTorch, int8"] = Ours(model, precision="int8")
    found["dragoman, PyTorch, int8, shortlist"] = Ours(model, shortlist=True, precision="int8")
    for quantize, directory in model.exports.items():
        for threads in (1, 2):
            label = f"{quantize}, {threads} thread{'s' if threads > 1 else ''}"
            found[f"CTranslate2 by hand, {label}"] = ByHand(directory, model, workers=1, threads=threads)
            found[f"dragoman, CTranslate2, {label}"] = Fast(directory, False, workers=1, threads=threads)
        found[f"dragoman, CTranslate2, {quantize}, 1 thread, shortlist"] = Fast(directory, True, workers=1)
    return found


def choose_batches(decoders: dict[str, Decoder], texts: list[str]) -> str:
    """CTranslate2 by hand gets the batches that are quickest for it."""
    chosen = []
    for name, decoder in decoders.items():
        if isinstance(decoder, ByHand):
            times: dict[tuple[int, str], float] = {}
            for batch in BATCHES:
                decoder.batch = batch
                decoder(texts, BEAMS[0])
                times[batch] = min(seconds(decoder, texts, BEAMS[0]) for _ in range(2))
            decoder.batch = min(times, key=lambda batch: times[batch])
            chosen.append(f"{name}: {decoder.batch[0]} {decoder.batch[1]}")
    return "; ".join(chosen)


def seconds(decoder: Decoder, texts: list[str], beam: int) -> float:
    began = time.perf_counter()
    decoder(texts, beam)
    return time.perf_counter() - began


def throughput(
    decoders: dict[str, Decoder],
    texts: list[str],
    references: list[str],
    rounds: int,
    notes: str,
    keep: bool,
) -> None:
    header, columns = [""], []
    for beam in BEAMS:
        outputs = {name: decoder(texts, beam) for name, decoder in decoders.items()}  # also warms up
        texts_of = {
            name: outputs[name] if isinstance(outputs[name][0], str) else decoder.text(outputs[name])
            for name, decoder in decoders.items()
        }
        contenders = {
            name: lambda decoder=decoder, beam=beam: len(texts) / seconds(decoder, texts, beam)
            for name, decoder in decoders.items()
        }
        speeds = {name: median(values) for name, values in interleave(rounds, contenders).items()}
        same = {name: sum(map(str.__eq__, own, texts_of[OURS])) for name, own in texts_of.items()}
        header += [f"sentences/s, beam {beam}", "ratio", "to sorted", "BLEU", "same text as PyTorch"]
        columns.append(
            {
                name: [
                    f"{speed:,.1f}",
                    f"{speed / speeds[PLAIN]:.2f}",
                    f"{speed / speeds[SORTED]:.2f}",
                    bleu(texts_of[name], references),
                    f"{same[name]} of {len(texts)}",
                ]
                for name, speed in speeds.items()
            }
        )
    rows = [[name, *(cell for column in columns for cell in column[name])] for name in decoders]
    write_table("decode_cpu", "Decoding on a CPU, many sentences at once", header, rows, notes, keep)


def bleu(found: list[str], references: list[str]) -> str:
    return f"{sacrebleu.corpus_bleu(found, [references]).score:.2f}" if references else "–"


def latency(decoders: dict[str, Decoder], texts: list[str], rounds: int, notes: str, keep: bool) -> None:
    header, columns = [""], []
    for beam in BEAMS:
        times: dict[str, list[float]] = {name: [] for name in decoders}
        for decoder in decoders.values():
            decoder(texts[:1], beam)
        for _ in range(rounds):
            for text in texts:  # sentence by sentence, so that a busy moment hits all alike
                for name, decoder in decoders.items():
                    times[name].append(1000 * seconds(decoder, [text], beam))
        header += [f"median ms, beam {beam}", "p95 ms"]
        columns.append({name: [f"{median(t):.1f}", f"{percentile(t, 95):.1f}"] for name, t in times.items()})
    rows = [[name, *(cell for column in columns for cell in column[name])] for name in decoders]
    write_table("decode_cpu_latency", "Decoding on a CPU, one sentence at a time", header, rows, notes, keep)


def percentile(values: Sequence[float], share: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def start_up(model: Model, text: str, rounds: int, notes: str, keep: bool) -> None:
    def timed(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - began

    commands = start_commands(model, text)
    times = interleave(rounds, {name: lambda c=command: timed(c) for name, command in commands.items()})
    rows = [[name, f"{median(values):.2f}"] for name, values in times.items()]
    title = "From the start of a process to its first sentence, beam 4"
    write_table("decode_cpu_start", title, ["", "seconds"], rows, notes, keep)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("reference", type=Path, nargs="?", help="its translations, for BLEU")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--single", type=int, default=50, help="sentences that are translated one at a time")
    parser.add_argument("--batch", type=int, default=64, help="sentences a batch for HF")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trial", action="store_true", help="print the tables, write none")
    args = parser.parse_args()

    texts = list(read_lines(args.test))[: args.sentences]
    references = list(read_lines(args.reference))[: args.sentences] if args.reference else []
    with tempfile.TemporaryDirectory() as directory:
        model = Model(args.run, Path(directory))
        config, vocab = model.config, model.loaded.model.vocab
        layers = f"{config.num_layers} + {config.num_decoder_layers or config.num_layers}"
        size = f"{layers} layers of width {config.model_dim}, vocabulary {vocab.tgt_size}"
        files = " ".join(path.name for path in (args.test, args.reference) if path)
        command = f"Command: `python benchmarks/decode_cpu.py RUN {files} --sentences {len(texts)}`"
        decoders = many(model, args.batch)
        batches = choose_batches(decoders, texts)
        notes = (
            f"{size}; median of {args.rounds} interleaved rounds over {len(texts)} sentences, natural ends. "
            f"The first ratio is to HF as it comes, the second to HF with batches of {args.batch} sorted by "
            f"length. All go from text to text, but for the rows that say otherwise. CTranslate2 by hand has "
            f"2 workers of 1 thread and the quickest of five batch sizes ({batches}).\n\n{command}"
        )
        throughput(decoders, texts, references, args.rounds, notes, not args.trial)
        single = texts[: args.single]
        notes = f"{size}; {args.rounds} times {len(single)} sentences, all engines in turn.\n\n{command}"
        latency(one_at_a_time(model), single, args.rounds, notes, not args.trial)
        notes = f"{size}; median of {args.rounds} interleaved rounds.\n\n{command}"
        start_up(model, texts[0], args.rounds, notes, not args.trial)


if __name__ == "__main__":
    main()
