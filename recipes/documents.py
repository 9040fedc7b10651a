"""Pronouns that need the sentence before: English–French without context, with the source before, and with
both sides before.

    python recipes/documents.py DATA OUT [--arm none|source|both] [--minutes 2.2]
    python recipes/documents.py --table OUT

DATA has the folders tatoeba/en-fr, libreoffice-help/en-fr and contrastive-en-fr. An arm trains on the same
sentences as every other one:

- 100,000 pairs of Tatoeba, each a document by itself;
- the help of LibreOffice in its order, one document (the ends of pages are not marked);
- documents of two sentences that follow from a rule, since neither of these has pronouns with their nouns.

The rule. A noun's gender is that of its singular articles in Tatoeba. An antecedent is a pair whose French
has exactly one plural determiner before a known noun, and no «ils» or «elles». It is followed by a pair
«They …» – «Ils …» or «Elles …» of the same gender. For the test, 150 English sentences that have both an
«Ils» and an «Elles» translation whose words begin alike are held out with all their translations, and so
are the antecedents before them. Each is asked twice, after a masculine and after a feminine noun, and the
model has to find the right translation more probable than the other one. So without context half is right.

DiscEvalMT (Bawden et al. 2018), written by hand, is asked too. There only the French before tells.
"""

import argparse
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dragoman
from dragoman.data.contexts import in_their_documents
from dragoman.data.formats import Pair, read_lines
from dragoman.decode.translator.translator import Translator
from dragoman.errors import run_script
from dragoman.evaluate.metrics import bleu, chrf
from dragoman.text.context import in_context, sentence_of

ARMS: dict[str, list[str]] = {
    "none": [],
    "source": ["data.context.source=1"],
    "both": ["data.context.source=1", "data.context.target=1"],
}
QUICK = ["train.validations=5", "train.tune_search=false", "train.report=false", "train.samples=0"]
HELD_OUT, FOLLOWERS, SINGLE = 150, 4, 100_000
SINGULAR = {"la": "f", "une": "f", "cette": "f", "ma": "f", "le": "m", "un": "m", "ce": "m", "du": "m"}
_SINGULAR = re.compile(r"\b(la|une|cette|ma|le|un|ce|du) (\w{3,})", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:les|des|mes|tes|ses|nos|vos|leurs|ces|aux) (\w{4,}s)\b", re.IGNORECASE)
_OTHERS = re.compile(r"\b(ils|elles|eux|they|them)\b", re.IGNORECASE)


class Both(NamedTuple):
    en: str
    fr: str


class Item(NamedTuple):
    """Which of two translations is right after a pair."""

    before: Both
    en: str
    right: str
    wrong: str


def read(folder: Path, name: str) -> list[Both]:
    lines = (read_lines(folder / f"{name}.{language}.gz") for language in ("en", "fr"))
    return [Both(*pair) for pair in zip(*lines, strict=True)]


def genders(pairs: Sequence[Both]) -> dict[str, str]:
    """Of nouns: what nine of ten of their singular articles say."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        for article, noun in _SINGULAR.findall(pair.fr.lower()):
            found[noun][SINGULAR[article]] += 1
    return {
        noun: gender
        for noun, counts in found.items()
        for gender, count in counts.most_common(1)
        if count >= 3 and count >= 0.9 * counts.total()
    }


def antecedents(pairs: Sequence[Both]) -> dict[str, list[Both]]:
    """By gender."""
    known, found = genders(pairs), defaultdict(list)
    for pair in pairs:
        nouns = _PLURAL.findall(pair.fr.lower())
        plural = len(nouns) == 1 and nouns[0] not in known  # «le cours» has its s in the singular too
        gender = known.get(nouns[0][:-1]) if plural else None
        if gender and len(pair.en.split()) <= 12 and not _OTHERS.search(f"{pair.en} {pair.fr}"):
            found[gender].append(pair)
    return found


def followers(pairs: Sequence[Both]) -> dict[str, list[Both]]:
    found = defaultdict(list)
    for pair in pairs:
        word = pair.fr.split(maxsplit=1)[0]
        if re.match(r"They\b", pair.en) and word in ("Ils", "Elles"):
            found["m" if word == "Ils" else "f"].append(pair)
    return found


def frames(pairs: Sequence[Both]) -> dict[str, tuple[str, str]]:
    """English sentences with a masculine and a feminine translation that differ in the gender alone."""
    own = followers(pairs)
    by_english: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"m": [], "f": []})
    for gender in "mf":
        for pair in own[gender]:
            by_english[pair.en][gender].append(pair.fr)
    found = {}
    for english, said in by_english.items():
        ways = ((m, f) for m in said["m"] for f in said["f"])
        if way := next((way for way in ways if alike(*way)), None):
            found[english] = way
    return found


def alike(masculine: str, feminine: str) -> bool:
    """Whether all words after the first begin with the same three letters."""
    rows = [[word[:3] for word in text.split()[1:]] for text in (masculine, feminine)]
    return rows[0] == rows[1]


def build(data: Path, out: Path, seed: int) -> list[Item]:
    """Write the corpora; return the contrastive test."""
    dice, pairs = random.Random(seed), read(data / "tatoeba/en-fr", "train")
    possible = frames(pairs)
    chosen = dict(dice.sample(sorted(possible.items()), HELD_OUT))
    before = antecedents(pairs)
    tested = {gender: dice.sample(before[gender], HELD_OUT) for gender in "mf"}
    items = []
    for number, (english, (masculine, feminine)) in enumerate(chosen.items()):
        items.append(Item(tested["m"][number], english, masculine, feminine))
        items.append(Item(tested["f"][number], english, feminine, masculine))
    hidden = {*chosen, *(pair.en for own in tested.values() for pair in own)}
    kept = [pair for pair in pairs if pair.en not in hidden]
    before, after = antecedents(kept), followers(kept)
    documents = [
        [dice.choice(before[gender]), pair]
        for gender in "mf"
        for pair in after[gender]
        for _ in range(FOLLOWERS)
    ]
    libreoffice = data / "libreoffice-help/en-fr"
    write(out / "single", [[pair] for pair in dice.sample(kept, min(SINGLE, len(kept)))])
    write(out / "ruled", documents)
    write(out / "help", [read(libreoffice, "train")])
    dev = read(data / "tatoeba/en-fr", "dev")[:500]
    write(out / "valid", [*([pair] for pair in dev), read(libreoffice, "dev")[:500]])
    return items


def write(stem: Path, documents: Sequence[Sequence[Both]]) -> None:
    """A blank line ends a document."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(("en", "fr")):
        lines = (line for document in documents for line in (*(pair[side] for pair in document), ""))
        text = "".join(f"{line}\n" for line in lines)
        Path(f"{stem}.{language}").write_text(text, encoding="utf-8")


def written_by_hand(folder: Path, name: str) -> list[Item]:
    """Pairs of lines of DiscEvalMT: the first is right."""
    rows = zip(*(read(folder, f"disceval.{name}.{part}") for part in ("prev", "current")), strict=True)
    pairs = list(rows)
    return [
        Item(before, right.en, right.fr, wrong.fr)
        for (before, right), (_, wrong) in zip(pairs[::2], pairs[1::2], strict=True)
    ]


def accuracy(translator: Translator, items: Sequence[Item]) -> float:
    """Of how many the right translation is the more probable one, in percent."""

    def asked(item: Item, said: str) -> tuple[str, str]:
        if translator.context is None:
            return item.en, said
        return in_context([item.before.en], item.en), in_context([item.before.fr], said)

    pairs = [asked(item, said) for item in items for said in (item.right, item.wrong)]
    scores = [one.log_prob for one in translator.score(pairs)]
    return 100 * sum(a > b for a, b in zip(scores[::2], scores[1::2], strict=True)) / len(items)


def quality(translator: Translator, pairs: Sequence[Both]) -> dict[str, float]:
    """Of one document."""
    rows = in_their_documents([Pair(*pair, 0) for pair in pairs], translator.context)
    sources = [source for source, _ in rows]
    found = translator.hypotheses(sources)
    outputs, references = [best.text for best, *_ in found], [sentence_of(pair.fr) for pair in pairs]
    alone = sum(best.alone for best, *_ in found)
    return {"bleu": bleu(outputs, references), "chrf": chrf(outputs, references), "alone": alone}


def run_arm(data: Path, out: Path, arm: str, minutes: float, seed: int, more: Sequence[str]) -> None:
    corpus = out / "corpora" / arm
    items = build(data, corpus, seed=1)

    def source(name: str) -> dict[str, list[str]]:
        return {"files": [f"{corpus / name}.{language}" for language in ("en", "fr")]}

    config = {
        "seed": seed,
        "data": {
            "train": [source("single"), source("ruled"), source("help")],
            "valid": [source("valid")],
            "src_lang": "en",
            "tgt_lang": "fr",
            "clean": {"drop_duplicates": False},
        },
    }
    name, began = f"{arm}-{seed}", time.monotonic()
    run = dragoman.train(config, out=out / name, overrides=[*QUICK, *ARMS[arm], *more], minutes=minutes)
    translator, folder = run.translator("best"), data / "contrastive-en-fr"
    found: dict[str, Any] = {"arm": arm, "seed": seed, "updates": run.outcome.update if run.outcome else None}

    def tell(**measured: Any) -> None:
        found.update(measured, seconds=round(time.monotonic() - began, 1))
        (out / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")

    tell(rule=accuracy(translator, items))
    tell(pronouns=accuracy(translator, written_by_hand(folder, "anaphora")))
    tell(words=accuracy(translator, written_by_hand(folder, "lexical_choice")))
    tell(**quality(translator, read(data / "libreoffice-help/en-fr", "test")))
    alone = read(data / "tatoeba/en-fr", "test")[:1000]
    outputs = translator.translate([pair.en for pair in alone])
    tell(tatoeba=bleu(outputs, [pair.fr for pair in alone]))
    print(json.dumps(found), flush=True)


def table(out: Path) -> str:
    lines = [
        "| context | seed | updates | pronouns by rule | DiscEvalMT pronouns | words | help: BLEU | chrF "
        "| made alone | Tatoeba: BLEU | seconds |",
        f"|{'---|' * 11}",
    ]
    fields = ("rule", "pronouns", "words", "bleu", "chrf", "alone", "tatoeba", "seconds")
    for file in sorted(out.glob("*.json")):
        own = json.loads(file.read_text(encoding="utf-8"))
        cells = [own[name] for name in ("arm", "seed", "updates")]
        cells += [f"{own[name]:.1f}" if name in own else "" for name in fields]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+", metavar="DATA OUT")
    parser.add_argument("--arm", choices=ARMS, action="append", help="all by default")
    parser.add_argument("--minutes", type=float, default=2.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="field=value of every run")
    parser.add_argument("--table", action="store_true", help="print what was measured in OUT")
    given = parser.parse_args()
    out = given.paths[-1]
    if not given.table:
        for arm in given.arm or ARMS:
            run_arm(given.paths[0], out, arm, given.minutes, given.seed, given.set)
    if given.table or not given.arm:
        print(table(out))


if __name__ == "__main__":
    run_script(main)
