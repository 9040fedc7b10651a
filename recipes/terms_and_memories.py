"""Terms and similar translations beside the source: what they bring, beside what needs no training.

    python recipes/terms_and_memories.py DATA OUT [--minutes 2.2] [--hold-out 2000] [--seed 1]

DATA has train, dev and test in en and de (or --languages), gzipped or not. Three runs are trained side by
side, each in the same minutes: plain, with `objective.terms`, with `objective.fuzzy`. Some training pairs are
held out, and asked of the memory with the test set.

- Terms: a glossary is made of words of the test set that the aligner finds, each with the shortest form that
  the corpus has, as a dictionary would. Measured: how many of them the translation has in any form (a long
  common beginning, `text/word_forms.py`), and how many in just the form of the reference; of these, apart,
  those whose form is not that of the glossary.
- Memory: the training pairs. Sentences are grouped by the similarity of their best match.

Tables go to `OUT/table.md` and standard output.
"""

import argparse
import gzip
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dragoman
from dragoman.data.formats import read_lines
from dragoman.data.memory import FuzzyMatch, TranslationMemory
from dragoman.data.seeded_random import Dice
from dragoman.data.term_examples import TermLexicon
from dragoman.decode.translator.translator import Translator
from dragoman.errors import run_script
from dragoman.evaluate.metrics import bleu, chrf
from dragoman.serve.masks import mask
from dragoman.text.glossary import Glossary, GlossaryEntry
from dragoman.text.spans import DEFAULT_KINDS
from dragoman.text.word_boundaries import has_phrase
from dragoman.text.word_forms import are_forms, form_in

Pairs = list[tuple[str, str]]
Matched = tuple[tuple[str, str], FuzzyMatch]
KINDS = {
    "plain": (),
    "terms": ("objective.terms=0.3",),
    "fuzzy": ("objective.fuzzy=50",),
}
QUICK = ("train.validations=6", "train.tune_search=false", "train.report=false", "train.samples=0")
BUCKETS = ((50, 60), (60, 70), (70, 80), (80, 90), (90, 100))
_LEXICON = 8000
_CONSISTENT = 0.8
"""Share of the places of a term where its translation is in the reference, for the glossary."""


def read(data: Path, part: str, languages: Sequence[str]) -> Pairs:
    sides = []
    for code in languages:
        (file,) = (path for path in data.glob(f"{part}.{code}*") if path.suffix in (f".{code}", ".gz"))
        sides.append(list(read_lines(file)))
    return [pair for pair in zip(*sides, strict=True) if all(pair)]


def write(path: Path, lines: Sequence[str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def split(data: Path, out: Path, arguments: argparse.Namespace) -> tuple[Pairs, Pairs, Pairs]:
    """Pairs for training, of the test set, and held out; what is trained on is written."""
    train, test = (read(data, part, arguments.languages) for part in ("train", "test"))
    order = Dice(arguments.seed).order(len(train)).tolist()
    held = set(order[: arguments.hold_out])
    kept = [pair for number, pair in enumerate(train) if number not in held]
    parts = {"train": kept, "dev": read(data, "dev", arguments.languages)}
    for name, pairs in parts.items():
        for side, code in enumerate(arguments.languages):
            write(out / f"{name}.{code}.gz", [pair[side] for pair in pairs])
    return kept, test, [train[number] for number in sorted(held)]


def start(out: Path, arguments: argparse.Namespace) -> dict[str, subprocess.Popen[bytes]]:
    """All runs at the same time, in processes of their own."""
    started = {}
    for kind, settings in KINDS.items():
        files = [str(out / f"{part}.{code}.gz") for part in ("train", "dev") for code in arguments.languages]
        command = [sys.executable, "-m", "dragoman", "train", *files[:2], "--valid", files[2]]
        command += ["--valid", files[3], "--out", str(out / kind), "--minutes", str(arguments.minutes)]
        command += [*settings, *QUICK, f"seed={arguments.seed}", *arguments.set]
        with (out / f"{kind}.log").open("w") as log:
            started[kind] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    return started


def finished(started: Mapping[str, subprocess.Popen[bytes]], out: Path) -> dict[str, Translator]:
    for kind, process in started.items():
        if process.wait():
            raise SystemExit(f"{kind}: {(out / f'{kind}.log').read_text()[-800:]}")
    return {kind: dragoman.load(out / kind) for kind in KINDS}


def make_glossary(train: Pairs, test: Pairs) -> Glossary:
    """Terms of the test set with the shortest form that the corpus has of their translation."""
    step = max(1, len(train) // _LEXICON)
    lexicon = TermLexicon([*train[::step], *test])
    written: dict[tuple[str, ...], list[str]] = defaultdict(list)
    places: dict[tuple[str, ...], str] = {}
    for src, tgt in test:
        for start, end, form, key in lexicon.terms(src, tgt):
            written[key].append(form)
            places.setdefault(key, src[start:end])
    entries = []
    for key, found in written.items():
        known = [form for form in lexicon.targets[key] if any(are_forms(form, own) for own in found)]
        if known:
            target = min(known, key=len)
            entries.append(GlossaryEntry(places[key].lower(), (target,), "ignore"))
    seen = list({entry.source: entry for entry in entries}.values())
    glossary = Glossary(seen)
    met: dict[str, list[bool]] = defaultdict(list)
    for src, tgt in test:
        for match in glossary.matches(src):
            met[match.entry.source].append(form_in(tgt, match.entry.targets[0]) is not None)
    return Glossary(
        [e for e in seen if met[e.source] and sum(met[e.source]) >= _CONSISTENT * len(met[e.source])]
    )


def with_placeholders(translator: Translator, texts: Sequence[str], glossary: Glossary) -> list[str]:
    masked = [mask(text, glossary) for text in texts]
    outputs = translator.translate([one.text for one in masked], protect=DEFAULT_KINDS)
    return [own.unmask(output) for own, output in zip(masked, outputs, strict=True)]


def best(translator: Translator, texts: Sequence[str], **how: Any) -> list[str]:
    rows = translator.hypotheses(texts, protect=DEFAULT_KINDS, **how)
    return [row[0].text for row in rows]


def measure_terms(runs: Mapping[str, Translator], test: Pairs, glossary: Glossary) -> list[str]:
    texts, references = [pair[0] for pair in test], [pair[1] for pair in test]
    terms = [
        (number, match.entry.targets[0], form)
        for number, (src, tgt) in enumerate(test)
        for match in glossary.matches(src)
        if (form := form_in(tgt, match.entry.targets[0])) is not None
    ]
    inflected = [one for one in terms if one[1] != one[2]]
    plain, trained = runs["plain"], runs["terms"]
    systems = {
        "plain, no glossary": partial(best, plain),
        "plain, placeholders": partial(with_placeholders, plain, glossary=glossary),
        "terms, no glossary": partial(best, trained),
        "terms, annotated": partial(best, trained, glossary=glossary),
        "plain, constrained": partial(best, plain, glossary=glossary),
    }
    lines = [
        f"{len(glossary.entries):,} terms, {len(terms):,} places in {len(test):,} sentences; in "
        f"{len(inflected):,} the reference has another form than the glossary.",
        "",
        "| | any form % | reference's form % | of those with another form % | BLEU | chrF | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, system in systems.items():
        began = time.monotonic()
        outputs = system(texts)
        shares = [
            sum(form_in(outputs[number], given) is not None for number, given, _ in terms) / len(terms),
            *(
                sum(has_phrase(outputs[number], form) for number, _, form in own) / max(1, len(own))
                for own in (terms, inflected)
            ),
        ]
        told = " | ".join(f"{100 * share:.1f}" for share in shares)
        scores = f"{bleu(outputs, references):.2f} | {chrf(outputs, references):.2f}"
        lines.append(f"| {name} | {told} | {scores} | {time.monotonic() - began:.1f} |")
        print("\n".join(lines[-1:] if len(lines) > 5 else lines), flush=True)
    return lines


def best_matches(memory: TranslationMemory, asked: Pairs) -> tuple[list[Matched], float]:
    """The pairs that have a similar one in the memory; and milliseconds to look for one."""
    began = time.monotonic()
    found = [memory.matches(src, BUCKETS[0][0], 1) for src, _ in asked]
    looked = 1000 * (time.monotonic() - began) / len(asked)
    matched = [(pair, row[0]) for pair, row in zip(asked, found, strict=True) if row and row[0].quality < 100]
    return matched, looked


def measure_memory(
    runs: Mapping[str, Translator], test: Pairs, matched: Sequence[Matched], size: int, looked: float
) -> list[str]:
    similar = {pair[0]: match.target for pair, match in matched}
    texts = list(similar)
    outputs = {
        "plain": dict(zip(texts, best(runs["plain"], texts), strict=True)),
        "fuzzy, without": dict(zip(texts, best(runs["fuzzy"], texts), strict=True)),
        "fuzzy, with": dict(zip(texts, best(runs["fuzzy"], texts, similar=similar), strict=True)),
        "memory alone": similar,
    }
    lines = [
        f"BLEU (chrF) by similarity of the best match; {size:,} sentences in the memory, "
        f"{looked:.1f} ms to look for one.",
        "",
        f"| match % | sentences | {' | '.join(outputs)} |",
        f"|---|---|{'---|' * len(outputs)}",
    ]
    for low, high in (*BUCKETS, (BUCKETS[0][0], BUCKETS[-1][1])):
        own = [pair for pair, match in matched if low <= match.quality < high]
        if own:
            right = [pair[1] for pair in own]
            told = ([by_text[pair[0]] for pair in own] for by_text in outputs.values())
            cells = (f"{bleu(texts, right):.1f} ({chrf(texts, right):.1f})" for texts in told)
            lines.append(f"| {low}–{high - 1} | {len(own)} | {' | '.join(cells)} |")
    everything, references = [pair[0] for pair in test], [pair[1] for pair in test]
    lines += ["", "| the whole test set | BLEU | chrF |", "|---|---|---|"]
    for name, how in (("plain", {}), ("fuzzy", {}), ("fuzzy", {"similar": similar})):
        texts = best(runs[name], everything, **how)
        told = f"{bleu(texts, references):.2f} | {chrf(texts, references):.2f}"
        lines.append(f"| {name}{', with the memory' if how else ''} | {told} |")
    print("\n".join(lines), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=2.2)
    parser.add_argument("--hold-out", type=int, default=2000, help="training pairs to test with")
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=None, help="most of the test set")
    parser.add_argument("--set", action="append", default=[], help="field=value of every run")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    train_pairs, test, held_out = split(arguments.data, arguments.out, arguments)
    test, held_out = test[: arguments.sentences], held_out[: arguments.sentences]
    started = start(arguments.out, arguments)
    glossary = make_glossary(train_pairs, test)
    matched, looked = best_matches(TranslationMemory(train_pairs), [*test, *held_out])
    runs = finished(started, arguments.out)
    for kind in KINDS:
        metrics = [
            json.loads(line) for line in (arguments.out / kind / "metrics.jsonl").read_text().splitlines()
        ]
        print(kind, "updates", max(one.get("update", 0) for one in metrics), flush=True)
    lines = measure_memory(runs, test, matched, len(train_pairs), looked)
    lines += ["", *measure_terms(runs, test, glossary)]
    (arguments.out / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_script(main)
