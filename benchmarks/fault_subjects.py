"""What the faults are made in: tiny runs of several families and everything that is made of them, and the
commands that write, each with what it needs."""

import hashlib
import json
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fault_commands import run_command

_WORDS = ("red", "blue", "old", "new", "cat", "dog", "fish", "hill", "the", "and")
_SMALL = "tokenizer.vocab_size=300 train.device=cpu train.log_every=2 train.save_every=3 data.valid_size=12"
_SHORT = "train.max_updates=9 train.validate_every=3 train.validate_sentences=4 train.batch_tokens=200"
_SEARCH = "search.beam=2 search.max_ratio=1 search.max_extra=3"
_WIDTHS = "model.num_layers=1 model.model_dim=16 model.num_heads=2 model.ff_dim=32"
_TRANSFORMER = f"{_WIDTHS} model.positions=sinusoidal train.ema=0.9 train.average=2"
_RNN = "model.kind=rnn model.num_layers=1 model.model_dim=16"
_GPT = f"--model gpt-tiny {_WIDTHS} model.max_positions=32 objective.block=24"
_BERT = f"model.kind=bert {_WIDTHS} model.max_positions=64 task.max_length=24"
_READER = f"train.device=cpu train.log_every=2 train.save_every=3 {_SHORT} {_WIDTHS}"
_HALVES = " ".join(
    f"model.{half}.{field.removeprefix('model.')}"
    for half in ("encoder", "decoder")
    for field in _WIDTHS.split()
)
_PAIRS = ("a.en", "a.de")
_DOCUMENTS = ("documents.en", "documents.de")
VARIES = ("log.txt", "timing.jsonl", "samples.jsonl", ".lock")
"""Files of a run that tell of times, or of a line twice after a kill."""
CHUNK = 8
"""Lines that a corpus is translated by, so that a small one has several chunks."""
_COPY = re.compile("addresses/[0-9a-f]{32}")
"""Where the copy of an address is kept: a hash of the address, which has the working directory in it."""


@dataclass(frozen=True)
class Command:
    """A command that writes: what it needs of what was made before, and how to go on after a kill."""

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    """Where it is there, how to go on once the run exists; without it, the same command."""
    run: str = ""
    varies: tuple[str, ...] = field(default=())
    status: int = 0
    """Of a command that nothing happens to: `adapt` has 1 where the new model is no better."""


def _command(name: str, text: str, *needs: str, varies: tuple[str, ...] = ()) -> Command:
    return Command(name, tuple(text.split()), needs, varies=varies)


def _training(name: str, text: str, out: str, *needs: str) -> Command:
    return Command(name, (*text.split(), "--out", out, "-q"), needs, ("resume", out, "-q"), out)


_PAIR_TRAINING = f"train a.en a.de {_SMALL} {_SHORT} {_SEARCH}"
_RUN_T = ("runs/t", *_PAIRS)
COMMANDS = (
    _training("train transformer", f"{_PAIR_TRAINING} {_TRANSFORMER}", "runs/t", *_PAIRS),
    _training("train LSTM", f"{_PAIR_TRAINING} {_RNN}", "runs/l", *_PAIRS),
    _training("pretrain GPT", f"pretrain text.txt {_GPT} {_SMALL} {_SHORT}", "runs/g", "text.txt"),
    _training("count", f"train a.en a.de {_SMALL} model.kind=markov model.order=2", "runs/m", *_PAIRS),
    _training(
        "finetune", f"finetune labels.tsv --task classify {_SMALL} {_SHORT} {_BERT}", "runs/c", "labels.tsv"
    ),
    _command("prepare", f"{_PAIR_TRAINING} {_TRANSFORMER} --out runs/t --dry-run", *_PAIRS),
    _command("average", "average runs/t --last 2 --device cpu", *_RUN_T),
    _command("export CTranslate2", "export runs/t --out ct2 --shortlist", *_RUN_T),
    _command("export Hugging Face", "export runs/t --to huggingface --out hf", *_RUN_T),
    _command("import", "import hf --out runs/i", "hf"),
    _command("translate", "translate runs/t -i test.en -o test.out --device cpu", *_RUN_T, "test.en"),
    _command(
        "back-translate",
        "back-translate runs/t mono.en -o mono.out --beam 1 --device cpu",
        *_RUN_T,
        "mono.en",
    ),
    _command(
        "distill",
        f"distill runs/t --out runs/s --beam 1 --device cpu -q {_WIDTHS} {_SMALL} {_SHORT} {_SEARCH}",
        *_RUN_T,
    ),
    _command("embed", "embed runs/c test.en -o vectors.npy --device cpu", "runs/c", "test.en"),
    _command("align-corpus", "align-corpus a.en a.de -o links.txt", *_PAIRS),
    _command(
        "evaluate",
        "evaluate runs/t test.en test.de --device cpu --bootstrap 10",
        *(*_RUN_T, "test.en", "test.de"),
        varies=("report.json",),
    ),
    _command("predict", "predict runs/c labels.tsv -o labels.out --device cpu", "runs/c", "labels.tsv"),
    _command("generate", "generate runs/g the -o generated.txt --device cpu", "runs/g"),
    _training(
        "train three languages",
        f"train languages.yaml {_SMALL} {_SHORT} {_SEARCH} {_TRANSFORMER}",
        *("runs/n", "languages.yaml", *_PAIRS, "a.fr"),
    ),
    _command("filter", "filter a.en a.de -o clean", *_PAIRS),
    Command(
        "adapt",
        tuple(f"adapt runs/t memory.tsv --updates 6 --device cpu -q {_SEARCH}".split()),
        (*_RUN_T, "memory.tsv"),
        status=1,
    ),
    _command("export ONNX", "export runs/t --to onnx --out onnx", *_RUN_T),
    _command("lab", "lab softmax-scale --quick -o lab --device cpu", varies=("numbers.json",)),  # seconds
    _training(
        "finetune images",
        f"finetune pictures.csv --task image {_READER} task.image.shift=1",
        *("runs/v", "pictures.csv", "pictures"),
    ),
    _training(
        "finetune forecast",
        f"finetune waves.csv --task forecast {_READER} task.series.horizon=4 task.series.window=16",
        *("runs/f", "waves.csv"),
    ),
    _training(
        "finetune captions",
        f"finetune shown.images.npy --task caption {_SMALL} {_SHORT} {_SEARCH} {_HALVES}",
        *("runs/k", "shown.images.npy", "shown.labels.npy"),
    ),
    _training(
        "train with context",
        f"train {' '.join(_DOCUMENTS)} {_SMALL} {_SHORT} {_SEARCH} {_TRANSFORMER} data.context.source=1 "
        "data.context.target=1",
        *("runs/d", *_DOCUMENTS),
    ),
    _training(
        "train with terms and memories",
        f"train things.tsv {_SMALL} {_SHORT} {_SEARCH} {_TRANSFORMER} objective.terms=0.5 objective.fuzzy=50",
        *("runs/w", "things.tsv"),
    ),
    _training(
        "train dialogues",
        f"train talk.dialogues {_SMALL} {_SHORT} {_SEARCH} {_TRANSFORMER} data.turns=2 "
        "train.metric=perplexity",
        *("runs/q", "talk.dialogues"),
    ),
    Command(
        "train at an address",
        (*f"{_PAIR_TRAINING} {_TRANSFORMER}".split(), "--out", "file://{here}/there/t", "-q"),
        _PAIRS,
    ),
    _command(
        "translate to an address",
        "translate runs/t -i file://{here}/test.en -o file://{here}/there.out --device cpu",
        *_RUN_T,
        "test.en",
    ),
    _command(
        "predict images",
        "predict runs/v pictures.csv -o shown.out --device cpu",
        "runs/v",
        "pictures.csv",
        "pictures",
    ),
    _command("predict forecast", "predict runs/f waves.csv -o waves.out --device cpu", "runs/f", "waves.csv"),
    _command(
        "translate with a memory",
        "translate runs/w -i things.txt -o things.out --memory things.tsv --glossary terms.tsv --device cpu",
        *("runs/w", "things.txt", "things.tsv", "terms.tsv"),
    ),
    _command("tune", "tune runs/t --beams 1,2 --alphas 0,1 --write --device cpu", *_RUN_T),
)


def write_texts(directory: Path) -> None:
    """The corpora and everything else that a person brings."""
    chance = random.Random(1)

    def sentences(count: int) -> list[str]:
        return sorted({" ".join(chance.choices(_WORDS, k=chance.randint(2, 6))) for _ in range(count)})

    texts = {"a": sentences(200), "test": sentences(12), "mono": sentences(40)}
    (directory / "a.fr").write_text("".join(f"{line.swapcase()}!\n" for line in texts["a"]))
    train = [
        {"files": [f"a.{src}", f"a.{tgt}"], "src_lang": src, "tgt_lang": tgt}
        for src, tgt in (("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "en"))
    ]
    (directory / "languages.yaml").write_text(json.dumps({"data": {"train": train}}))  # JSON is YAML, too
    memory = [f"{line}\t{line[::-1].upper()}!\n" for line in texts["mono"]]
    (directory / "memory.tsv").write_text("".join(memory))
    for stem, lines in texts.items():
        (directory / f"{stem}.en").write_text("".join(f"{line}\n" for line in lines))
        (directory / f"{stem}.de").write_text("".join(f"{line[::-1].upper()}\n" for line in lines))
    (directory / "text.txt").write_text("".join(f"{line}.\n" for line in sentences(300)))
    labels = [f"{line}\t{'pos' if 'red' in line else 'neg'}\n" for line in sentences(150)]
    (directory / "labels.tsv").write_text("".join(labels))
    (directory / "glossary.tsv").write_text("cat\tKATZE\ndog\tHUND|KÖTER\nhill\n")
    things = [f"{a}{b}{c}" for a in "bdgklm" for b in "aeiou" for c in "nrst"]
    two = [chance.sample(things, 2) for _ in range(240)]
    (directory / "things.tsv").write_text(
        "".join(f"the {a} and the {b}\t{a.upper()} + {b.upper()}\n" for a, b in two)
    )
    (directory / "things.txt").write_text("".join(f"the {a} and a {b}\n" for a, b in two[:12]))
    (directory / "terms.tsv").write_text("".join(f"{a}\t{a.upper()}\n" for a in things[::2]))
    for path in _DOCUMENTS:
        lines = (directory / path.replace("documents", "a")).read_text().splitlines()
        parts = ("".join(f"{line}\n" for line in lines[at : at + 4]) for at in range(0, len(lines), 4))
        (directory / path).write_text("\n".join(parts))
    talks = [" __eou__ ".join(texts["a"][at : at + 3]) for at in range(0, len(texts["a"]) - 2, 2)]
    (directory / "talk.dialogues").write_text("".join(f"{talk}\n" for talk in talks))
    write_vectors(directory)


def write_vectors(directory: Path) -> None:
    """Images, in files and in one array, and a series."""
    from PIL import Image

    chance = np.random.default_rng(1)
    labels = np.arange(60) % 3
    images = chance.integers(0, 60, size=(60, 4, 6), dtype=np.uint8)
    images[np.arange(60), labels] = 250
    np.save(directory / "shown.images.npy", images)
    np.save(directory / "shown.labels.npy", np.array([f"row {label} is bright" for label in labels]))
    (directory / "pictures").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(directory / "pictures" / f"{number}.png")
    rows = [f"pictures/{number}.png,{label}\n" for number, label in enumerate(labels)]
    (directory / "pictures.csv").write_text("".join(["image,label\n", *rows]))
    steps = np.arange(120)
    waves = np.stack([np.sin(steps / 2), 5 + 3 * np.cos(steps / 2)], axis=1) + chance.normal(0, 0.1, (120, 2))
    (directory / "waves.csv").write_text("a,b\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in waves))


MADE = (
    *("train transformer", "train LSTM", "pretrain GPT", "count", "finetune"),
    *("export CTranslate2", "export Hugging Face", "import", "back-translate"),
    *("train three languages", "export ONNX", "finetune images", "finetune forecast", "finetune captions"),
    *("train with context", "train with terms and memories", "train at an address"),
)


def make_subjects(directory: Path, names: Sequence[str] = MADE) -> None:
    """Tiny runs, exports, and a half-translated corpus."""
    directory.mkdir(parents=True)
    write_texts(directory)
    for command in COMMANDS:
        if command.name in names:
            ended = run_command(command.arguments, directory, prepare=small_chunks)
            if ended.status:
                raise SystemExit(f"{command.name}: exit status {ended.status}\n{ended.output}")
    shutil.rmtree(directory / "temporary", ignore_errors=True)


def small_chunks(_operations: object) -> None:
    from dragoman.runs import corpus_job as corpus

    corpus.LINES_AT_ONCE = CHUNK


def workspace(made: Path, command: Command, target: Path) -> Path:
    """A directory with what a command needs, and no more. It may be there, and empty."""
    target.mkdir(parents=True, exist_ok=True)
    for name in command.needs:
        source = made / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / name, symlinks=True)
        else:
            shutil.copyfile(source, target / name)
    return target


def digest(directory: Path, varies: Sequence[str] = ()) -> dict[str, str]:
    """SHA-256 of every file by its path; of one that varies, and of a directory, only that it is there."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = _COPY.sub("addresses/", str(path.relative_to(directory)))
        if path.parent.name == "blocks" and path.is_file():
            continue  # named by what is in it, also where that varies
        if path.name == "files.json" and path.with_name("blocks").is_dir():
            files = json.loads(path.read_bytes())["files"]
            found[name] = str(
                {each: entry["sha256"] for each, entry in files.items() if Path(each).name not in VARIES}
            )
        elif path.is_symlink() or not path.is_file():
            found[name] = "link" if path.is_symlink() else "directory"
        elif path.name in (*VARIES, *varies):
            found[name] = "varies"
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
