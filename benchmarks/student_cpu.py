"""A teacher and its students on a CPU: BLEU and sentences a second in one table.

    python benchmarks/student_cpu.py TEACHER test.en test.de --student STUDENT [--student …]

The teacher as a user has it without asking: its beam, float32, in PyTorch and in CTranslate2. The students in
CTranslate2 with int8 weights, greedy and with a beam of 2, and with a shortlist where the run has one or can
learn it. The teacher may be its own student: that is what int8 and greedy search give without distillation.
Everybody goes from text to text, once a round, in turn.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from common import interleave, median, write_table
from dragoman.checkpoint.model import load_model
from dragoman.data.formats import read_lines
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.shortlist import Shortlist
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import Quantization, export_ctranslate2
from dragoman.errors import UserError
from dragoman.evaluate.metrics import make_scorers
from dragoman.runs.directory import Run

STUDENT_BEAMS = (1, 2)


@dataclass(frozen=True)
class Contender:
    name: str
    translate: Callable[[list[str]], list[str]]


def teacher_contenders(path: Path, directory: Path, beam: int) -> list[Contender]:
    run = Run.open(path)
    search = replace(run.config.search, beam=beam)
    torch_translator = run.translator(device="cpu")
    fast = exported(run, directory / "teacher", "float32", search, None)
    label = f"teacher: {size_of(run)}, beam {beam}, float32"
    return [
        Contender(f"{label}, PyTorch", lambda texts: torch_translator.translate(texts, search=search)),
        Contender(f"{label}, CTranslate2", lambda texts: fast.translate(texts, search=search)),
    ]


def student_contenders(path: Path, directory: Path) -> list[Contender]:
    run = Run.open(path)
    contenders = []
    shortlist = shortlist_of(run)
    for listed in (None, shortlist) if shortlist else (None,):
        name = f"{path.name}-{'listed' if listed else 'full'}"
        fast = exported(run, directory / name, "int8", run.config.search, listed)
        for beam in STUDENT_BEAMS:
            search = replace(run.config.search, beam=beam)

            def translate(
                texts: list[str], fast: CTranslate2Translator = fast, search: SearchConfig = search
            ) -> list[str]:
                return fast.translate(texts, search=search)

            with_list = ", shortlist" if listed else ""
            contenders.append(
                Contender(
                    f"{path.name}: {size_of(run)}, beam {beam}, int8, CTranslate2{with_list}", translate
                )
            )
    return contenders


def shortlist_of(run: Run) -> Shortlist | None:
    """None where neither the list nor the training data are with the run."""
    try:
        return run.shortlist()
    except UserError:
        return None


def exported(
    run: Run, out: Path, quantize: Quantization, search: SearchConfig, shortlist: Shortlist | None
) -> CTranslate2Translator:
    """With the settings that `dragoman translate EXPORT` has by default."""
    written = export_ctranslate2(
        load_model(run.directory), out, search=search, quantize=quantize, shortlist=shortlist
    )
    return CTranslate2Translator.open(written, shortlist=shortlist is not None)


def size_of(run: Run) -> str:
    model = run.config.model
    decoder = model["num_decoder_layers"] or model["num_layers"]
    return f"{model['num_layers']} + {decoder} × {model['model_dim']}"


def speed_of(contender: Contender, texts: list[str]) -> float:
    began = time.perf_counter()
    contender.translate(texts)
    return len(texts) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("teacher", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--student", type=Path, action="append", required=True, help="may be repeated")
    parser.add_argument("--beam", type=int, default=5, help="of the teacher")
    parser.add_argument("--sentences", type=int, help="only the first so many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trial", action="store_true", help="print the table, write none")
    args = parser.parse_args()

    texts = list(read_lines(args.test))[: args.sentences]
    references = list(read_lines(args.reference))[: args.sentences]
    with tempfile.TemporaryDirectory() as directory:
        contenders = teacher_contenders(args.teacher, Path(directory), args.beam)
        for path in args.student:
            contenders += student_contenders(path, Path(directory))
        scorer = make_scorers()["bleu"]
        # The first translation warms up, too.
        bleu = {
            each.name: scorer.corpus_score(each.translate(texts), [references]).score for each in contenders
        }
        speeds = interleave(
            args.rounds, {each.name: lambda e=each: speed_of(e, texts) for each in contenders}
        )
    rates = {name: median(values) for name, values in speeds.items()}
    in_torch, in_fast = (each.name for each in contenders[:2])
    rows = [
        [
            name,
            f"{bleu[name]:.2f}",
            f"{bleu[name] - bleu[in_torch]:+.2f}",
            f"{rate:,.0f}",
            f"{rate / rates[in_torch]:.1f}",
            f"{rate / rates[in_fast]:.1f}",
        ]
        for name, rate in rates.items()
    ]
    header = ["", "BLEU", "against the teacher", "sentences/s", "× teacher in PyTorch", "× in CTranslate2"]
    notes = (
        f"Median of {args.rounds} interleaved rounds over {len(texts)} sentences, from text to text, natural "
        f"ends. Layers are encoder + decoder × width. BLEU: `{scorer.get_signature()}`.\n\n"
        f"Command: `python benchmarks/student_cpu.py TEACHER {args.test.name} {args.reference.name} "
        f"{' '.join(f'--student {path.name}' for path in args.student)}`"
    )
    write_table("student_cpu", "A teacher and its students on a CPU", header, rows, notes, not args.trial)


if __name__ == "__main__":
    main()
