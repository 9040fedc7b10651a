"""`dragoman filter`: the pairs of a corpus that are worth learning from."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import Device
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.data.filter import PairScorer
    from dragoman.data.formats import Pair


def filter_corpus(
    files: Annotated[
        list[str], typer.Argument(metavar="FILES", help="Source and target file, tables, memories.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Name of the files: NAME.en, NAME.de, NAME.dropped.tsv."),
    ],
    run: Annotated[
        Path | None, typer.Option(help="Run that translates this direction: improbable pairs go too.")
    ] = None,
    backward: Annotated[
        Path | None, typer.Option(help="Run for the other direction; a run of several languages has both.")
    ] = None,
    keep: Annotated[
        float, typer.Option(min=0.01, max=1, help="With --run: share of the faultless pairs to keep.")
    ] = 0.9,
    device: Device = "auto",
) -> None:
    """Write the pairs of a corpus without its faults: empty, copied, repeated, misaligned, other languages.

    With a run, the pairs that it finds least probable are left out too. NAME.dropped.tsv has the reason for
    each pair that is left out.
    """
    from collections import Counter

    from dragoman.cli.corpus import progress_of_stages
    from dragoman.cli.output import open_output
    from dragoman.data.filter import judged_pairs
    from dragoman.data.formats import group_files
    from dragoman.data.languages import languages_of
    from dragoman.files import scratch_directory

    if backward is not None and run is None:
        raise UserError("--backward: it goes together with --run, which translates this direction")
    if not out.name or out.is_dir():
        raise UserError(f"--out {out}: this is a directory; give a name for the files, as in {out / 'clean'}")
    sources = group_files(files)
    languages = languages_of(sources[0]) or ("src", "tgt")
    score = None if run is None else pair_score(run, backward, languages, device)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory())
        progress = stack.enter_context(progress_of_stages())
        names = [*(out.with_name(f"{out.name}.{code}") for code in languages)]
        src, tgt = (stack.enter_context(open_output(name)) for name in names)
        dropped = stack.enter_context(open_output(out.with_name(f"{out.name}.dropped.tsv")))
        for one in judged_pairs(sources, languages, scratch, progress, score, keep if run else 1.0):
            counts[one.reason or "kept"] += 1
            if one.reason is None:
                src(_one_line(one.pair.src))
                tgt(_one_line(one.pair.tgt))
            else:
                told = "" if one.score is None else f"{one.score:.4f}"
                dropped(
                    "\t".join((one.reason, one.origin, told, *map(_one_line, (one.pair.src, one.pair.tgt))))
                )
    total = sum(counts.values())
    typer.echo(f"{counts['kept']:,} of {total:,} pairs written to {names[0]} and {names[1]}")
    for reason, count in counts.most_common():
        if reason != "kept":
            typer.echo(f"  {count:9,}  {reason.replace('_', ' ')} ({count / total:.1%})")


def pair_score(run: Path, backward: Path | None, languages: tuple[str, str], device: str) -> "PairScorer":
    """Scores pairs by the cross-entropies of the run and, if given, of a run for the reverse direction."""
    from dragoman.cli.translators import open_translator
    from dragoman.data.directions import Directions
    from dragoman.data.filter import dual_score
    from dragoman.runs.directory import Run

    directions: Directions | None = Run.open(run).config.data.directions
    src, tgt = languages if directions is not None else (None, None)
    ahead = open_translator(run, [], "best", device, "float32", tgt, src).translator
    back: Any = None
    if backward is not None:
        back = open_translator(backward, [], "best", device).translator
    elif directions is not None and languages[::-1] in directions.trained:
        back = open_translator(run, [], "best", device, "float32", src, tgt).translator

    def entropies(translator: Any, pairs: "list[tuple[str, str]]") -> list[float]:
        found = translator.score(pairs, alpha=1.0)
        return [-one.log_prob / max(1, len(one.token_scores)) for one in found]

    def score(pairs: "Sequence[Pair]") -> list[float]:
        forward = entropies(ahead, [(pair.src, pair.tgt) for pair in pairs])
        if back is None:
            return [dual_score(own, None) for own in forward]
        other = entropies(back, [(pair.tgt, pair.src) for pair in pairs])
        return list(map(dual_score, forward, other))

    return score


def _one_line(text: str) -> str:
    from dragoman.text.normalize import one_line

    return one_line(text).replace("\t", " ")
