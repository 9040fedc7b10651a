"""What a shortlist gains on a CPU, and what it costs: our CTranslate2 engine with and without one.

    python benchmarks/shortlist_cpu.py RUN test1.en test1.de [test2.en test2.de …]

A shortlist changes the probabilities that are left a little, so translations that are nearly as good as
each other change places. On one set of a thousand sentences that moves BLEU by some tenths, either way;
hence several.
"""

import argparse
import tempfile
import time
from pathlib import Path

import sacrebleu

from common import interleave, median, write_table
from decoders import Fast, Model
from dragoman.data.formats import read_lines

BEAMS = (4, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("files", type=Path, nargs="+", help="sources and references in turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trial", action="store_true", help="print the table, write none")
    args = parser.parse_args()
    sets = {
        src.name.split(".")[0]: (list(read_lines(src)), list(read_lines(tgt)))
        for src, tgt in zip(args.files[::2], args.files[1::2], strict=True)
    }
    texts = [text for sources, _ in sets.values() for text in sources]
    references = [text for _, own in sets.values() for text in own]
    with tempfile.TemporaryDirectory() as directory:
        model = Model(args.run, Path(directory))
        decoders = {
            f"{quantize}{', shortlist' if listed else ''}": Fast(path, shortlist=listed)
            for quantize, path in model.exports.items()
            for listed in (False, True)
        }
        rows = [
            row for beam in BEAMS for row in measured(decoders, beam, sets, texts, references, args.rounds)
        ]
    header = ["", "beam", "sentences/s", "to that without", "BLEU of all", *sets]
    notes = (
        f"Median of {args.rounds} interleaved rounds over {len(texts):,} sentences, 2 workers of 1 thread, "
        "batches as they come by default; cased BLEU.\n\n"
        f"Command: `python benchmarks/shortlist_cpu.py RUN {' '.join(path.name for path in args.files)}`"
    )
    write_table("shortlist_cpu", "Shortlists on a CPU", header, rows, notes, not args.trial)


def measured(
    decoders: dict[str, Fast],
    beam: int,
    sets: dict[str, tuple[list[str], list[str]]],
    texts: list[str],
    references: list[str],
    rounds: int,
) -> list[list[str]]:
    found = {name: decoder(texts, beam) for name, decoder in decoders.items()}

    def speed(decoder: Fast) -> float:
        began = time.perf_counter()
        decoder(texts, beam)
        return len(texts) / (time.perf_counter() - began)

    turns = {name: lambda decoder=decoder: speed(decoder) for name, decoder in decoders.items()}
    speeds = {name: median(values) for name, values in interleave(rounds, turns).items()}
    rows = []
    for name, own in found.items():
        scores, start = [bleu(own, references)], 0
        for _, expected in sets.values():
            scores.append(bleu(own[start : start + len(expected)], expected))
            start += len(expected)
        ratio = speeds[name] / speeds[name.removesuffix(", shortlist")]
        rows.append([name, str(beam), f"{speeds[name]:,.0f}", f"{ratio:.2f}", *scores])
    return rows


def bleu(found: list[str], references: list[str]) -> str:
    return f"{sacrebleu.corpus_bleu(found, [references]).score:.2f}"


if __name__ == "__main__":
    main()
