"""`dragoman align-corpus`: which words of a parallel corpus belong together, learnt from the corpus alone."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Cluster, FirstWord, Output


def align_corpus(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="Source and target file (any number of such pairs), or tables of pairs."
        ),
    ],
    output: Output = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Hand-made links (0-0 1p2) of the first pairs; prints the alignment error rate."),
    ] = None,
    gold_first: FirstWord = 0,
    iterations: Annotated[int, typer.Option(min=1, help="EM iterations of each of the two models.")] = 5,
    cluster: Cluster = None,
) -> None:
    """Learn word alignments from a parallel corpus, without a model.

    Prints one line for each pair, as 0-0 1-2: the format of data.train[].alignment. More text gives better
    links."""
    from dragoman.cli.clustered import computing_on
    from dragoman.cli.output import open_output
    from dragoman.data.alignment import CorpusAligner
    from dragoman.data.alignment.links import pharaoh
    from dragoman.data.formats import group_files, read_pairs
    from dragoman.data.languages import languages_of
    from dragoman.evaluate.alignment import read_gold, score_alignments

    sources = group_files(files)
    languages = languages_of(sources[0]) or ("src", "tgt")
    right = [] if gold is None else read_gold(gold, gold_first)
    pairs = (pair for source in sources for pair in read_pairs(source, *languages))
    found: list[list[tuple[int, int]]] = []
    with computing_on(cluster) as each:
        aligner = CorpusAligner(((pair.src, pair.tgt) for pair in pairs), each)
        aligner.learn(iterations, lambda step: typer.echo(f"step {step} of {2 * iterations}", err=True))
        if aligner.too_long:
            numbers = ", ".join(str(number + 1) for number in aligner.too_long[:5])
            typer.echo(
                f"{len(aligner.too_long)} pairs are too long and get no links: pair {numbers}", err=True
            )
        with open_output(output) as write:
            for links in aligner.links():
                write(pharaoh(links))
                if len(found) < len(right):
                    found.append(links)
    if right:
        typer.echo(str(score_alignments(found, right)), err=True)
