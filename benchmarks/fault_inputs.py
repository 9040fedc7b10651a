"""Inputs that nobody means: files, directories, options and fields that are wrong, for every command."""

import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.main import get_command

from dragoman.cli.main import app
from dragoman.config import to_dict
from dragoman.learning.resolve import resolve
from dragoman.training.leftovers import is_leftover
from fault_commands import run_command
from fault_common import Found
from odd_inputs import odd_texts

LIMIT_SECONDS = 90.0
MEMORY = 12 << 30
"""Address space; what torch maps alone is some of it."""
_QUICK = (
    "tokenizer.vocab_size=300 train.device=cpu train.max_updates=1 model.num_layers=1 model.model_dim=16 "
    "model.num_heads=2 model.ff_dim=32 --dry-run -q --out runs/x"
)


@dataclass(frozen=True)
class Case:
    kind: str
    what: str
    arguments: tuple[str, ...]
    file: str = ""
    """A file to write before."""
    content: bytes = b""


FILES: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "blank lines": b"\n\n \n\t\n",
    "one line": b"a\n",
    "no last newline": b"red cat\nblue dog",
    "other count": b"red cat\n" * 7,
    "binary": bytes(range(256)) * 40,
    "NUL": b"red cat\n" + b"a\0b\n" * 20,
    "not UTF-8": b"red cat\n" + "käse\n".encode("latin-1") * 20,
    "UTF-16": ("red cat\n" * 30).encode("utf-16"),
    "mark of byte order": "\ufeffred cat\n".encode() * 20,
    "surrogates": b"\xed\xa0\x80\n" * 20,
    "long line": b"word " * 1000 + b"\n",
    "gzip": gzip.compress(b"red cat\n" * 50),
    "cut gzip": gzip.compress(b"red cat\n" * 50)[:-9],
    "JSON": json.dumps({"a": [1, 2, {"b": None}]}).encode(),
    "JSON lines": b'{"src": "a", "tgt": 3}\n{"src": 1}\n[]\nnull\n',
    "deep JSON": b"[" * 3000,
    "XML": b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><tmx><body><tu>&b;</tu></body></tmx>",
    "zip": b"PK\x03\x04" + bytes(60),
    "table": b'a\tb\tc\n"x\ty\n\t\t\t\t\n',
    "tabs": b"\t\n" * 30,
}
SLOTS = {
    "train": f"train bad.en a.de {_QUICK}",
    "train table": f"train bad.tsv {_QUICK}",
    "train csv": f"train bad.csv {_QUICK}",
    "train jsonl": f"train bad.jsonl {_QUICK}",
    "train tmx": f"train bad.tmx {_QUICK}",
    "train parquet": f"train bad.parquet {_QUICK}",
    "train po": f"train bad.po {_QUICK}",
    "train zip": f"train bad.zip {_QUICK}",
    "recipe": "train bad.yaml --out runs/x -q --dry-run",
    "valid": f"train a.en a.de --valid bad.en --valid a.de {_QUICK}",
    "pretrain": f"pretrain bad.txt {_QUICK}",
    "classify": f"finetune bad.tsv --task classify {_QUICK}",
    "tag": f"finetune bad.conll --task tag {_QUICK}",
    "span": f"finetune bad.json --task span {_QUICK}",
    "translate": "translate runs/t -i bad.txt -o x.out --device cpu",
    "translate export": "translate ct2 -i bad.txt -o x.out",
    "document html": "translate runs/t bad.html -o x.html --device cpu",
    "document xliff": "translate runs/t bad.xliff -o x.xliff --device cpu",
    "document srt": "translate runs/t bad.srt -o x.srt --device cpu",
    "glossary": "translate runs/t cat --glossary bad.tsv --device cpu",
    "prefix": "translate runs/t cat --prefix @bad.txt --device cpu",
    "forbid": "translate runs/t cat --forbid @bad.txt --device cpu",
    "evaluate": "evaluate runs/t bad.en test.de --device cpu --bootstrap 0",
    "score": "score runs/t bad.tsv --device cpu",
    "align": "align runs/t bad.tsv --device cpu",
    "predict": "predict runs/c bad.tsv --device cpu",
    "generate": "generate runs/g -i bad.txt --max-tokens 3 --device cpu",
    "embed": "embed runs/c bad.txt -o x.npy --device cpu",
    "align-corpus": "align-corpus bad.en a.de -o x.links",
    "gold": "align-corpus a.en a.de --gold bad.txt -o x.links",
    "back-translate": "back-translate runs/t bad.txt -o x.bt --beam 1 --device cpu",
    "corpus": "corpus bad.en a.de",
    "tokenize": "tokenize bad.json cat",
    "verify": "verify bad.json",
}
"""Where a file is read; it is called bad."""
RUN_SLOTS = {
    "resume": "resume RUN -q",
    "translate": "translate RUN cat --device cpu",
    "generate": "generate RUN a --max-tokens 2 --device cpu",
    "score": "score RUN a.en a.de --device cpu",
    "align": "align RUN test.en test.de --device cpu",
    "evaluate": "evaluate RUN test.en test.de --device cpu --bootstrap 0",
    "explain": "explain RUN cat --device cpu",
    "compare": "compare RUN runs/l --test test.en --test test.de --device cpu",
    "predict": "predict RUN labels.tsv --device cpu",
    "embed": "embed RUN test.en -o x.npy --device cpu",
    "search-report": "search-report RUN test.en test.de --beams 1 --sentences 2 --device cpu",
    "average": "average RUN --last 2 --device cpu",
    "tune": "tune RUN --beams 1 --alphas 1 --device cpu",
    "distill": "distill RUN --out runs/x --no-train --beam 1 --device cpu -q",
    "back-translate": "back-translate RUN mono.en -o x.bt --beam 1 --device cpu",
    "export": "export RUN --out x-ct2",
    "export hf": "export RUN --to huggingface --out x-hf",
    "import": "import RUN --out runs/x",
    "finetune": f"finetune RUN labels.tsv --task classify {_QUICK}",
    "tokenize": "tokenize RUN cat",
    "verify": "verify RUN",
    "corpus": "corpus a.en a.de --tokenizer RUN",
}
"""Where a directory is read."""
OPTION_BASES = {
    **{name: text.replace("RUN", "runs/t") for name, text in RUN_SLOTS.items()},
    "predict": "predict runs/c labels.tsv --device cpu",
    "generate": "generate runs/g the --max-tokens 2 --device cpu",
    "import": "import hf --out runs/x",
    "train": f"train a.en a.de {_QUICK}",
    "pretrain": f"pretrain text.txt {_QUICK}",
    "finetune": f"finetune labels.tsv --task classify {_QUICK}",
    "align-corpus": "align-corpus a.en a.de -o x.links",
}
"""Commands that would do something; options are added."""
DIRECTORIES = (
    *("nowhere", "empty", "a.en", "runs", "runs/l", "runs/g", "runs/m", "runs/c", "runs/i", "ct2", "hf"),
    *("runs/t/data", "runs/t/checkpoints", "tokenizer", "", ".", "/dev/null"),
)
_WORK = (
    *(
        "--bootstrap",
        "--iterations",
        "--lines",
        "--max-tokens",
        "--max-nodes",
        "--n-best",
        "--beam",
        "--beams",
    ),
    "--positions",
)
"""Options that ask for as much work as they say."""
_TOO_MUCH = "99999999999999999999"
_OPTION_VALUES = (
    *("-1", "0", "nan", "1e999", "x", "", _TOO_MUCH, "a.en", "nowhere/x", ".", "runs/t", "\udcff", "$(x)"),
    "é" * 300,
)
_FIELD_VALUES = (
    *("-1", "0", "1e999", ".nan", "x", "[]", "{a: 1}", "true", "null", _TOO_MUCH, "[1, 2]", "'", "-0.5"),
)


def _file_cases() -> Iterator[Case]:
    for slot, text in SLOTS.items():
        arguments = tuple(text.split())
        name = next(argument for argument in arguments if "bad." in argument).lstrip("@")
        for what, content in FILES.items():
            path, data = ("", b"") if content is None else (name, content)
            yield Case("files", f"{slot}: {what}", arguments, path, data)


def _directory_cases() -> Iterator[Case]:
    for slot, text in RUN_SLOTS.items():
        for directory in DIRECTORIES:
            arguments = (directory if argument == "RUN" else argument for argument in text.split())
            yield Case("directories", f"{slot}: {directory!r}", tuple(arguments))


def _option_cases() -> Iterator[Case]:
    """Every option that takes a value, with values that it cannot take."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, text in OPTION_BASES.items():
        for option in commands[name].params if name in commands else ():
            flag = option.opts[-1]
            if not flag.startswith("-") or option.is_flag:
                continue
            for value in _OPTION_VALUES:
                if value != _TOO_MUCH or flag not in _WORK:
                    yield Case("options", f"{name} {flag} {value!r}", (*text.split(), flag, value))


def _field_cases() -> Iterator[Case]:
    """Every field of a configuration, with values that it cannot have."""
    plain = to_dict(resolve({"data": {"train": [{"files": ["a.en", "a.de"]}]}, "train": {"max_updates": 1}}))
    for name in _leaves(plain, ""):
        for value in _FIELD_VALUES:
            assignment = f"{name}={value}"
            yield Case("fields", assignment, (*OPTION_BASES["train"].split(), assignment))


def _leaves(plain: dict[str, object], prefix: str) -> Iterator[str]:
    for name, value in plain.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _odd_text_cases(seed: int) -> Iterator[Case]:
    """Texts of all kinds as lines: what cannot be a line is left out."""
    texts = [
        text for _, text in odd_texts(400, seed) if "\n" not in text and "\0" not in text and len(text) < 500
    ]
    data = "".join(f"{text}\n" for text in texts).encode()
    for slot in (
        "translate",
        "translate export",
        "embed",
        "generate",
        "pretrain",
        "corpus",
        "back-translate",
    ):
        arguments = tuple(SLOTS[slot].split())
        name = next(argument for argument in arguments if argument.startswith("bad."))
        yield Case("odd texts", slot, arguments, name, data)
    for number, text in enumerate(texts[:60]):
        if text and not text.startswith("-"):
            yield Case("odd texts", f"argument {number}", ("tokenize", "runs/t", "--", text))


def all_cases(seed: int) -> list[Case]:
    found = [*_file_cases(), *_directory_cases(), *_odd_text_cases(seed)]
    chance = random.Random(seed)
    for many, most in ((list(_option_cases()), 400), (list(_field_cases()), 300)):
        found += chance.sample(many, min(most, len(many)))
    return found


class Place:
    """A copy of everything that was made, which commands may look at and write to."""

    def __init__(self, made: Path, work: Path) -> None:
        self.directory = work / "place"
        shutil.copytree(made, self.directory, symlinks=True)
        (self.directory / "empty").mkdir()
        (self.directory / "temporary").mkdir()
        self.entries = self._now()
        self.original = made

    def _now(self) -> dict[Path, tuple[int, int]]:
        files = (p for p in self.directory.rglob("*") if not p.is_dir() or not any(p.iterdir()))
        return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in files}

    def try_case(self, case: Case) -> tuple[str, bool, str]:
        if case.file:
            (self.directory / case.file).write_bytes(case.content)
        ended = run_command(case.arguments, self.directory, memory=MEMORY, limit=LIMIT_SECONDS)
        outcome = ended.fault or ("refused" if ended.status else "harmless")
        if outcome == "refused" and ended.status not in (1, 2):
            outcome = "traceback"
        left = [path for path in self.directory.rglob("*") if is_leftover(path) and path not in self.entries]
        said = ended.output[-1500:] if outcome not in ("refused", "harmless") else ", ".join(map(str, left))
        self._restore()
        return outcome, bool(left), said

    def _restore(self) -> None:
        now = self._now()
        for path in now.keys() - self.entries.keys():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        for name in ("runs/x", "runs/x-corpus"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
        changed = [path for path, stamp in self.entries.items() if now.get(path) != stamp]
        if changed:
            shutil.rmtree(self.directory)
            self.__init__(self.original, self.directory.parent)


def run_inputs(
    made: Path, work: Path, every: int, seed: int, mine: Callable[[str, str, int], bool]
) -> Iterator[Found]:
    """Every so manieth case. `mine` says which are to be tried."""
    place = None
    for number, case in enumerate(all_cases(seed)):
        if number % every == 0 and mine("inputs", case.kind, number):
            place = place or Place(made, work)
            outcome, left, said = place.try_case(case)
            yield Found("inputs", case.kind, number, outcome, left, case.what, said)
    if place is not None:
        shutil.rmtree(place.directory)
