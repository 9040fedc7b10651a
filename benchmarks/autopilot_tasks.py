"""The tasks of `benchmarks/autopilot.py`: their files, their metric, and what an expert would set.

Files are named below a folder of data sets. A task whose files are not in a format of pairs is written as one
first. The rules of the autopilot were tuned on `TUNED`; nothing was tuned on `HELD_OUT`.
"""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autopilot_cut import CUTS, cut_writer
from autopilot_made import RULES, writer
from autopilot_unseen import UNSEEN_RULES

Pairs = tuple[str, str]
Setting = tuple[str, ...]
_ADAMW = ("optim={name: adamw, rate: 1.0e-3, weight_decay: 0.01}", "schedule={name: linear, warmup: 400}")
_SPELT: Setting = ("tokenizer.kind=char", "data.clean.drop_duplicates=false", "train.metric=exact", *_ADAMW)
_SMALL = "model={preset: transformer-small, num_layers: 4, norm: pre, positions: rotary, dropout: 0.3}"
_TINY = "model={preset: transformer-tiny, norm: pre, positions: rotary, dropout: 0.2}"
_WORDS: tuple[Setting, ...] = (
    (*_SPELT, _SMALL, "train.batch_tokens=8000", "train.validate_sentences=1000"),
    (*_SPELT, _TINY, "optim.rate=3.0e-3", "train.batch_tokens=4000", "train.validate_sentences=1000"),
    (*_SPELT, _SMALL, "objective.r_drop=3", "train.batch_tokens=4000", "train.validate_sentences=1000"),
)
"""What a person would try for words."""
_FEW_WORDS: tuple[Setting, ...] = (
    _WORDS[1],
    (*_WORDS[1], "train.batch_tokens=2000", "objective.r_drop=3"),
    (*_WORDS[1], "train.batch_tokens=2000", "objective.invented=10"),
)
_PLAIN = "model={preset: transformer-small, norm: pre, dropout: 0.3}"
_SENTENCES: tuple[Setting, ...] = (
    (*_ADAMW, _PLAIN, "tokenizer.vocab_size=4000", "train.batch_tokens=8000", "train.validate_sentences=500"),
    (
        *(*_ADAMW, _PLAIN, "tokenizer.vocab_size=8000", "train.batch_tokens=12000"),
        *("objective.r_drop=5", "optim.rate=2.0e-3", "train.validate_sentences=500"),
    ),
    (*_ADAMW, _TINY, "tokenizer.vocab_size=2000", "optim.rate=3.0e-3", "train.batch_tokens=4000"),
)
_FORMAL: tuple[Setting, ...] = tuple(
    (
        *setting,
        "data.clean={max_length: 1000, max_ratio: 100}",
        "search={max_ratio: 40, loop_guard: false}",
        "train.metric=exact",
    )
    for setting in (_SENTENCES[0], _SENTENCES[2])
)
_ON_CPU: Setting = ("model.model_dim=128", "model.ff_dim=512", "train.batch_tokens=2500")
"""On a CPU a person takes a narrower model and smaller batches; the last setting stays as it is."""


def _with(settings: tuple[Setting, ...], *more: str) -> tuple[Setting, ...]:
    return tuple((*setting, *more) for setting in settings)


def by_hand(task: "Task", device: str) -> list[Setting]:
    """The settings of a task that are tried by hand."""
    if device != "cpu":
        return list(task.by_hand)
    return [*_with(task.by_hand[:-1], *_ON_CPU), task.by_hand[-1]]


@dataclass(frozen=True)
class Task:
    train: Pairs
    valid: Pairs
    test: Pairs
    metric: str
    """What it is judged by: exact, bleu or chrf."""
    by_hand: tuple[Setting, ...]
    """One to three settings that a person would try."""
    published: str = ""
    """Figure of a model that was trained on the same data alone."""
    write: Callable[[Path, Path], None] | None = field(default=None, compare=False)
    """Writes the files of the task into a folder, where they are not in the data."""


def _sides(
    folder: str, src: str = "src", tgt: str = "tgt", train: str = "train", valid: str = "dev"
) -> list[Pairs]:
    return [(f"{folder}/{name}.{src}.gz", f"{folder}/{name}.{tgt}.gz") for name in (train, valid, "test")]


def _task(files: list[Pairs], metric: str, by_hand: tuple[Setting, ...], published: str = "") -> Task:
    return Task(files[0], files[1], files[2], metric, by_hand, published)


def _write_scan(data: Path, out: Path) -> None:
    """`IN: run twice OUT: I_RUN I_RUN`, with a tenth of the training data held out."""
    for split, name in (("train", "tasks_train_simple"), ("test", "tasks_test_simple")):
        pairs = list(_scan_pairs(data / f"scan/{name}.txt.gz"))
        parts = {"test": pairs} if split == "test" else {"train": pairs[1000:], "dev": pairs[:1000]}
        for part, own in parts.items():
            (out / f"{part}.src").write_text("".join(f"{src}\n" for src, _ in own), encoding="utf-8")
            (out / f"{part}.tgt").write_text("".join(f"{tgt}\n" for _, tgt in own), encoding="utf-8")


def _scan_pairs(path: Path) -> Iterator[Pairs]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            src, tgt = line.removeprefix("IN:").split("OUT:")
            yield src.strip(), tgt.strip()


def _write_cmudict(data: Path, out: Path) -> None:
    """Every word once, with its first pronunciation; stress is left out. Every 50th word is for validation,
    and the one after it for testing."""
    parts: dict[str, list[Pairs]] = {"train": [], "dev": [], "test": []}
    with gzip.open(data / "cmudict/cmudict.dict.gz", "rt", encoding="utf-8") as file:
        entries = [line.split("#")[0].split() for line in file]
    words = [entry for entry in entries if entry and "(" not in entry[0]]
    for number, (word, *phones) in enumerate(words):
        part = {0: "dev", 1: "test"}.get(number % 50, "train")
        parts[part].append((word, " ".join(phone.rstrip("012") for phone in phones)))
    for part, pairs in parts.items():
        (out / f"{part}.src").write_text("".join(f"{src}\n" for src, _ in pairs), encoding="utf-8")
        (out / f"{part}.tgt").write_text("".join(f"{tgt}\n" for _, tgt in pairs), encoding="utf-8")


_INFLECTION, _G2P = "inflection-sigmorphon2018", "g2p-sigmorphon2020"
_G2P_LATER = "g2p-sigmorphon2021"
_PARTS_OF_IRISH = ("train", "dev", "test-en2ga")
_CUT_METRICS = {
    **dict.fromkeys(("accents 10k", "capitals 10k", "spaces 10k", "gn-es 13k", "tr-ru 9k"), "bleu"),
    **dict.fromkeys(("keywords 10k", "en-sw 2k", "zh-ja 9k", "replies 50k", "terms en-hi 400"), "chrf"),
}
_WRITTEN = [("train.src", "train.tgt"), ("dev.src", "dev.tgt"), ("test.src", "test.tgt")]


def _captions(language: str) -> list[Pairs]:
    parts = ("train", "val", "test_2016_flickr")
    return [(f"multi30k/{part}.en.gz", f"multi30k/{part}.{language}.gz") for part in parts]


def _equations(folder: str, published: str) -> Task:
    train, test = (
        (f"math-word-problems/{folder}/{part}.src.gz", f"math-word-problems/{folder}/{part}.tgt.gz")
        for part in ("train", "test")
    )
    return Task(train, ("", ""), test, "exact", _with(_FORMAL, "tokenizer.vocab_size=1000"), published)


TUNED: dict[str, Task] = {
    "inflection fi 10k": _task(
        _sides(f"{_INFLECTION}/finnish", train="train-high"), "exact", _WORDS, "96 (mean)"
    ),
    "inflection tr 1k": _task(
        _sides(f"{_INFLECTION}/turkish", train="train-medium"), "exact", _FEW_WORDS, "87 (mean)"
    ),
    "inflection es 100": _task(
        _sides(f"{_INFLECTION}/spanish", train="train-low"), "exact", _FEW_WORDS, "57 (mean)"
    ),
    "g2p fr 3.6k": _task(_sides(f"{_G2P}/fre"), "exact", _WORDS, "94"),
    "g2p ja 3.6k": _task(_sides(f"{_G2P}/jpn"), "exact", _WORDS, "94"),
    "g2p en 33k": _task(_sides("g2p-sigmorphon2021/high-eng_us"), "exact", _WORDS, "58"),
    "transliteration 13k": _task(_sides("translit-ar-en", "ar", "en"), "exact", _WORDS),
    "old German 49k": _task(_sides("histnorm/german-ridges"), "exact", _WORDS, "84"),
    "lemmas tr 4.5k": _task(
        _sides("lemmatise-ud/Turkish-IMST"), "chrf", _with(_SENTENCES, "tokenizer.vocab_size=1000")
    ),
    "normalisation vi 8k": _task(
        _sides("lexnorm-vi"), "bleu", _with(_SENTENCES, "tokenizer.vocab_size=2000")
    ),
    "SQL geo 549": _task(
        _sides("text2sql/geography-question-split"),
        "exact",
        _with(_FORMAL, "tokenizer.vocab_size=500"),
        "71 (copying)",
    ),
    "SQL advising 2.6k": _task(_sides("text2sql/advising-question-split"), "exact", _FORMAL, "70 (copying)"),
    "COGS 24k": _task(_sides("cogs"), "exact", _FORMAL, "96"),
    "SCAN 16k": Task(
        *_WRITTEN,
        "exact",
        _with(_FORMAL, "tokenizer.vocab_size=500"),
        "99",
        _write_scan,
    ),
    "Python 16k": _task(_sides("django"), "exact", _FORMAL, "45"),
    "equations 1.5k": _equations("mawps-fold0", "80"),
    "captions en-de 29k": _task(
        _captions("de"),
        "bleu",
        _SENTENCES,
        "41",
    ),
    "en-ja 50k": _task(
        _sides("enja-small", "en", "ja"),
        "bleu",
        _SENTENCES,
    ),
    "en-hau 3k": _task(_sides("lafand-mt/en-hau", "en", "hau"), "chrf", _SENTENCES),
    "es-gn 26k": _task(_sides("americasnlp2021/es-gn", "es", "gn"), "chrf", _SENTENCES, "22"),
}
HELD_OUT: dict[str, Task] = {
    "inflection ar 10k": _task(
        _sides(f"{_INFLECTION}/arabic", train="train-high"), "exact", _WORDS, "96 (mean)"
    ),
    "inflection ka 1k": _task(
        _sides(f"{_INFLECTION}/georgian", train="train-medium"), "exact", _FEW_WORDS, "87 (mean)"
    ),
    "inflection fi 100": _task(
        _sides(f"{_INFLECTION}/finnish", train="train-low"), "exact", _FEW_WORDS, "57 (mean)"
    ),
    "g2p hi 3.6k": _task(_sides(f"{_G2P}/hin"), "exact", _WORDS, "85 (mean)"),
    "g2p el 3.6k": _task(_sides(f"{_G2P}/gre"), "exact", _WORDS, "85 (mean)"),
    "g2p it 800": _task(_sides(f"{_G2P_LATER}/low-ita"), "exact", _FEW_WORDS, "81"),
    "g2p nl 8k": _task(_sides(f"{_G2P_LATER}/medium-dut"), "exact", _WORDS, "85"),
    "g2p cmudict 121k": Task(*_WRITTEN, "exact", _WORDS, "", _write_cmudict),
    "old Swedish 28k": _task(_sides("histnorm/swedish"), "exact", _WORDS, ""),
    "old Spanish 100k": _task(_sides("histnorm/spanish"), "exact", _WORDS, "93"),
    "lemmas hu 1.4k": _task(
        _sides("lemmatise-ud/Hungarian-Szeged"), "chrf", _with(_SENTENCES, "tokenizer.vocab_size=1000")
    ),
    "equations ASDiv 1k": _equations("asdiv-a-fold0", "56"),
    "trees 10k": _task(_sides("trees-gum", "src", "tree"), "exact", _FORMAL),
    "captions en-fr 29k": _task(_captions("fr"), "bleu", _SENTENCES),
    "captions en-cs 29k": _task(_captions("cs"), "bleu", _SENTENCES),
    "en-ga 8k": Task(
        *((f"loresmt-en-ga/{part}.en.gz", f"loresmt-en-ga/{part}.ga.gz") for part in _PARTS_OF_IRISH),
        "bleu",
        _SENTENCES,
        "9.8",
    ),
    **{name: Task(*_WRITTEN, "exact", _WORDS, "", writer(name)) for name in RULES},
}
UNSEEN: dict[str, Task] = {
    **{name: Task(*_WRITTEN, "exact", _WORDS, "", writer(name)) for name in UNSEEN_RULES},
    **{
        name: Task(*_WRITTEN, _CUT_METRICS.get(name, "exact"), _SENTENCES, "", cut_writer(name))
        for name in CUTS
    },
}
"""Tasks of many kinds, for mistakes of the plans."""
TASKS = {**TUNED, **HELD_OUT, **UNSEEN}
