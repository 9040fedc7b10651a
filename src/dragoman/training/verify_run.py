"""The checks of a run directory: its own files, its checkpoints, its data, and exports that lie in it."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote

from dragoman import checkpoint
from dragoman.checkpoint.model import BEST, CHECKPOINTS, find_checkpoint, tokenizer_files
from dragoman.decode.search.shortlist import Shortlist
from dragoman.errors import UserError
from dragoman.runs.directory import CONFIG, DATA, MANIFEST, SHORTLIST, Run
from dragoman.runs.records import read_records
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.verify import EXPORT, PUBLISHED, RUN, STORE, Fault, VerifyReport, kind_of, verify_store

_METRICS = "metrics.jsonl"


def verify_run(directory: Path, check: Callable[[Path, str], VerifyReport]) -> VerifyReport:
    """`check` is asked about exports that lie in the run."""
    report = VerifyReport(directory, RUN)
    run = _open(report)
    whole = _verify_checkpoints(report)
    if whole:
        _verify_best(report, whole)
    _verify_data(report, run)
    _verify_further(report, run)
    for entry in sorted(directory.iterdir()):
        if entry.is_dir() and entry.name not in (DATA, CHECKPOINTS):
            kind = kind_of(entry)
            if kind in (EXPORT, PUBLISHED):
                report.parts.append(check(entry, kind))
    return report


def _open(report: VerifyReport) -> Run | None:
    """Configuration and tokenizers against the manifest."""
    directory, found = report.path, None
    try:
        found = Run.open(directory)
    except UserError as error:
        report.faults.append(Fault(str(error), "put the file back from a copy of the run"))
    tokenizers = tokenizer_files(directory)
    for path in tokenizers:
        try:
            Tokenizer.load(path)
        except UserError as error:
            same = directory / DATA / path.name
            copy = f"copy {same} over it" if _is_tokenizer(same) else "put it back from a copy of the run"
            if not any(str(path) in fault.what for fault in report.faults):
                report.faults.append(Fault(str(error), copy))
    report.count(directory / name for name in (CONFIG, MANIFEST))
    report.count(tokenizers)
    return found


def _is_tokenizer(path: Path) -> bool:
    try:
        Tokenizer.load(path)
    except UserError:
        return False
    return True


def _verify_checkpoints(report: VerifyReport) -> list[str]:
    """The names of those that are whole, oldest first; means of others come after them."""
    root = report.path / CHECKPOINTS
    numbered = checkpoint.names(root)
    others = (
        [path.name for path in root.iterdir() if (path / checkpoint.CHECKPOINT_MANIFEST).exists()]
        if root.is_dir()
        else []
    )
    others = sorted(name for name in others if name not in numbered and not name.startswith("."))
    others = [name for name in others if not name.endswith(".damaged")]
    whole: list[str] = []
    damaged: dict[str, str] = {}
    for name in (*numbered, *others):
        try:
            files = checkpoint.verify_checkpoint(root / name)
            checkpoint.load_checkpoint(root / name)
        except UserError as error:
            damaged[name] = str(error)
        else:
            whole.append(name)
            report.count(root / name / file for file in (*files, checkpoint.CHECKPOINT_MANIFEST))
    last = next((name for name in reversed(numbered) if name in whole), None)
    for name, problem in damaged.items():
        report.faults.append(Fault(problem, _cure(report.path, name, last, name in numbered)))
    if not numbered:
        report.notes.append("there is no checkpoint yet")
    report.about = f"{len(whole)} whole checkpoints" if len(whole) != 1 else "1 whole checkpoint"
    return whole


def _cure(run: Path, name: str, last: str | None, numbered: bool) -> str:
    if last is None:
        return "no checkpoint is whole, so the run cannot go on; train it again"
    if not numbered:
        return f"make it again with  dragoman average {run} --name {name}"
    if int(name) > int(last):
        return f"the run resumes from {last}:  dragoman resume {quote(str(run))}"
    return f"{last} is newer and whole, and the run resumes from there; remove {run / CHECKPOINTS / name}"


def _verify_best(report: VerifyReport, whole: list[str]) -> None:
    try:
        find_checkpoint(report.path)
    except UserError as error:
        if not any(fault.what == str(error) for fault in report.faults):
            others = f"choose another with --checkpoint {whole[-1]}"
            again = f"dragoman resume {quote(str(report.path))}"
            report.faults.append(Fault(str(error), f"{others}; {BEST} is written again by  {again}"))


def _verify_data(report: VerifyReport, run: Run | None) -> None:
    data = report.path / DATA
    if not data.is_dir():
        if run is None or run.config.data.imported is None:
            report.notes.append("there are no training data, so the run can be used and cannot go on")
        return
    if kind_of(data) != STORE:
        report.faults.append(Fault(f"{data}: there are no prepared data here", _data_cure(report.path)))
        return
    found = verify_store(data, _data_cure(report.path))
    if run is not None and not found.faults:
        try:
            run.corpus()
        except UserError as error:
            found.faults.append(Fault(str(error), _data_cure(report.path)))
    report.parts.append(found)


def _data_cure(run: Path) -> str:
    return (
        f"the model can be used;  dragoman resume {quote(str(run))}  takes the data from .prepared beside "
        "the run if they are whole there; else train the same files into a new directory, which prepares "
        f"them again, and put its {DATA} in place of {run / DATA}"
    )


def _verify_further(report: VerifyReport, run: Run | None) -> None:
    """The shortlist, and the records of training, which have no hash: they can only be read."""
    directory = report.path
    if run is not None and (directory / SHORTLIST).exists():
        try:
            Shortlist.read(directory / SHORTLIST, run.fingerprint, run.tokenizers()[1].size)
            report.count([directory / SHORTLIST])
        except UserError as error:
            report.faults.append(Fault(str(error), "remove it; it is computed again when needed"))
    try:
        read_records(directory / _METRICS)
    except UserError as error:
        report.faults.append(Fault(str(error), "remove that line; nothing but curves is drawn from it"))
