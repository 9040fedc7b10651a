"""Reads labelled examples from any file: detects the format and checks the labels against the task."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from dragoman.data.config import SourceConfig
from dragoman.data.formats.lines import read_lines
from dragoman.data.labelled.config import LABELLED, TaskConfig
from dragoman.data.labelled.conll import read_conll
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.records import read_json_lines, read_table
from dragoman.data.labelled.squad import read_squad
from dragoman.data.vectors.images import read_images
from dragoman.data.vectors.series import read_labelled_series
from dragoman.errors import UserError

TASK_FORMATS = ("tsv", "csv", "jsonl", "conll", "squad", "lines")
_SUFFIXES = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_VECTOR_READERS = {"image": read_images, "caption": read_images, "series": read_labelled_series}
_MANY = 1000
"""Number of labels above which the column is taken for texts."""


def read_examples(source: SourceConfig, task: TaskConfig, labelled: bool = True) -> Iterator[Example]:
    """The examples of one corpus. With `labelled=False` targets may be missing."""
    for path in source.files:
        if task.kind in _VECTOR_READERS:
            yield from _VECTOR_READERS[task.kind](path, task, labelled)
            continue
        format = detect(path, task) if source.format == "auto" else source.format
        if format in ("tsv", "csv"):
            yield from read_table(path, format, task, labelled)
        elif format == "jsonl":
            yield from read_json_lines(path, task, labelled)
        elif format == "conll":
            yield from read_conll(path, task, labelled)
        elif format == "squad":
            yield from read_squad(path)
        elif format == "lines":
            yield from _read_class(path, task, labelled)
        else:
            raise UserError(
                f"{path}: the format {format} has no labels; expected one of {', '.join(TASK_FORMATS)}"
            )


def detect(path: str, task: TaskConfig) -> str:
    """The format of a file, from its suffix or else its first line. A file of plain lines holds one class,
    named by its suffix."""
    suffix = _suffix(path)
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix == ".json":
        return "squad" if task.kind == "span" else "jsonl"
    head = next((line for line in itertools.islice(read_lines(path), 100) if line.strip()), "")
    if head.lstrip().startswith("{"):
        return "jsonl"
    if task.kind == "tag":
        return "conll"
    if "\t" in head:
        return "tsv"
    if task.kind == "classify":
        return "lines"
    raise UserError(
        f"{path}: one file, and it is not one of {', '.join(TASK_FORMATS)}; name its format under data.train"
    )


def _suffix(path: str) -> str:
    pure = PurePath(path)
    return (pure.with_suffix("") if pure.suffix.lower() == ".gz" else pure).suffix.lower()


def _read_class(path: str, task: TaskConfig, labelled: bool) -> Iterator[Example]:
    label = _suffix(path).removeprefix(".")
    if labelled and (task.kind != "classify" or label in ("", "txt")):
        raise UserError(
            f"{path}: plain lines have no labels; expected a table, or for classify a file a class, named by "
            "the end of its name, such as reviews.pos and reviews.neg"
        )
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        if not line.strip():
            raise UserError(f"{where}: this line is empty; remove it")
        yield Example((line.strip(),), label if labelled else None, where)


def check_targets(examples: Iterable[Example], task: TaskConfig) -> Iterator[Example]:
    """The same examples. Raises an error at the first target that the task does not allow."""
    known, two = set(task.labels), len(task.scores) == 2
    for example in examples:
        target = example.target
        if task.kind in LABELLED:
            for label in target if isinstance(target, tuple) else (target,):
                if label not in known:
                    more = " …" if len(task.labels) > 20 else ""
                    raise UserError(
                        f"{example.origin}: the label '{label}' is not one of those that training has: "
                        f"{', '.join(task.labels[:20])}{more}"
                    )
        elif task.kind == "similarity" and two and isinstance(target, float):
            if not task.scores[0] <= target <= task.scores[1]:
                raise UserError(
                    f"{example.origin}: the score {target:g} is not between {task.scores[0]:g} and "
                    f"{task.scores[1]:g}; set task.scores to the lowest and the highest"
                )
        elif task.kind == "choice" and isinstance(target, int) and target >= len(example.texts) - 1:
            raise UserError(
                f"{example.origin}: the right choice is number {target}, counted from 0, and there are "
                f"{len(example.texts) - 1}"
            )
        elif task.kind == "span" and not target and not task.no_answer:
            raise UserError(
                f"{example.origin}: this question has no answer; set task.no_answer=true if that may be"
            )
        yield example


def labels_of(examples: Sequence[Example], task: TaskConfig) -> tuple[str, ...]:
    """The labels that occur: numbers in numeric order, other labels by name, and the O of entities first."""
    found: set[str] = set()
    for example in examples:
        target = example.target
        found.update(map(str, target) if isinstance(target, tuple) else [str(target)])
    if task.kind != "tag" and (len(found) > _MANY or (len(found) > 20 and len(found) > len(examples) // 2)):
        raise UserError(
            f"{examples[0].origin}: there are {len(found):,} labels in {len(examples):,} examples, the first "
            f"is {str(examples[0].target)!r:.40}; say which column has them with  task.label=COLUMN"
        )
    if len(found) < 2:
        raise UserError(
            f"{examples[0].origin}: all examples have the label {next(iter(found))!r:.40}; there is nothing "
            "to tell apart"
        )
    numbers = all(label.lstrip("-").isdigit() and label.isascii() for label in found)
    order = sorted(found, key=int) if numbers else sorted(found, key=lambda label: (label != "O", label))
    return tuple(order)
