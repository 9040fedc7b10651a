"""How good are language identification, sentence splitting and Markdown?

    python benchmarks/text_tools.py --news newstest2014.en newstest2014.de newstest2014.fr

Languages and sentences come from the messages of programs (`--locale`, compiled catalogues), which no tool
was tuned on; the READMEs are those of the packages that are installed here.

- Identification: up to 150 messages a language of 2 to 4 and of 8 to 30 words, among 55 languages. Messages
  that several languages have in the same words (names, mostly) are left out.
- Splitting: paragraphs of five sentences; F1 of the boundaries inside them. Sentences of messages have one
  mark at their end and none before it.
- Markdown: all text is translated into capitals. Blocks and code must be the same as before.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions, version
from pathlib import Path

from markdown_it import MarkdownIt

from common import write_table
from dragoman.data.config import SourceConfig
from dragoman.data.documents import parse_document
from dragoman.data.documents.translate import translate_units
from dragoman.data.formats.gettext import read_mo
from dragoman.errors import UserError
from dragoman.text.identify import confidences, identification_model
from dragoman.text.sentences import split_sentences

_CODES = """
en de fr es it pt nl sv da nb fi et pl cs sk sl hr hu ro tr ca id vi lt lv is ru uk be bg sr mk ar fa ur hi
mr ne ja zh ko th el he ka hy ta te bn gu pa ml kn my km
"""
LANGUAGES = _CODES.split()
WITHOUT_SPACES = ("ja", "zh", "th", "km", "my")
FOLDERS = {"zh": ["zh_CN", "zh_TW"], "pt": ["pt", "pt_BR"], "nb": ["nb", "no"], "en": ["en_GB", "en@quot"]}
MOST, PARAGRAPHS = 150, 60
_MARKUP = re.compile(r"[<>%{}\\_&|=$@/#]|\.\w|--")
_SENTENCE = re.compile(r"[^.!?…。！？।۔؟։။።:;\n]{15,200}[.!?。！？।۔؟։။።]")


class Messages:
    """The translated messages of a language."""

    def __init__(self, locale: Path) -> None:
        self.locale, self.files, self.refused = locale, 0, []

    def of(self, code: str) -> list[str]:
        found: dict[str, None] = {}
        for folder in FOLDERS.get(code, [code]):
            for path in sorted((self.locale / folder).glob("LC_MESSAGES/*.mo")):
                self.files += 1
                try:
                    pairs = list(read_mo(SourceConfig((str(path),)), "en", code))
                except UserError as error:
                    self.refused.append(str(error))
                    continue
                for pair in pairs:
                    text = pair.src if code == "en" else pair.tgt
                    if not _MARKUP.search(text) and "\n" not in text and (code == "en" or text != pair.src):
                        found[text] = None
        texts = sorted(found)
        random.Random(1).shuffle(texts)
        return texts


def words(text: str, code: str) -> int:
    letters = sum(map(str.isalpha, text))
    return letters // 3 if code in WITHOUT_SPACES else len(text.split())


def identification(messages: dict[str, list[str]]) -> tuple[list[list[str]], list[str]]:
    identification_model()
    rows, notes = [], []
    for name, low, high in (("short (2 to 4 words)", 2, 4), ("long (8 to 30 words)", 8, 30)):
        right, spent, count = {}, 0.0, 0
        for code, texts in messages.items():
            chosen = [text for text in texts if low <= words(text, code) <= high][:MOST]
            if len(chosen) < 20:
                notes.append(f"{code} has too few {name.split()[0]} texts")
                continue
            started = time.perf_counter()
            best = confidences(chosen, LANGUAGES).argmax(axis=1)
            spent, count = spent + time.perf_counter() - started, count + len(chosen)
            right[code] = sum(LANGUAGES[at] == code for at in best) / len(chosen)
        low_ones = ", ".join(f"{code} {100 * share:.0f}" for code, share in right.items() if share < 0.9)
        mean = 100 * sum(right.values()) / len(right)
        cells = [name, str(len(right)), str(count), f"{mean:.1f}%", low_ones, f"{1e6 * spent / count:.0f}"]
        rows.append(cells)
    return rows, notes


def boundary_f1(sentences: Sequence[str], code: str) -> float:
    glue = "" if code in ("ja", "zh") else " "
    right = wanted = given = 0
    for start in range(0, len(sentences) - 4, 5):
        five = sentences[start : start + 5]
        expected = {len(glue.join(five[:n])) for n in range(1, 5)}
        at, found = 0, set()
        for piece in split_sentences(glue.join(five), code)[:-1]:
            at += len(piece)
            found.add(at - len(piece) + len(piece.rstrip()))
        right, wanted, given = right + len(expected & found), wanted + len(expected), given + len(found)
    return 200 * right / max(1, wanted + given)


def splitting(messages: dict[str, list[str]], news: Sequence[Path]) -> list[tuple[str, float]]:
    sets = []
    for path in news:
        lines = path.read_text("utf-8").split("\n")
        sets.append(
            (f"{path.suffix[1:]} news", boundary_f1([line.strip() for line in lines], path.suffix[1:]))
        )
    for code, texts in messages.items():
        found = [text for text in texts if _SENTENCE.fullmatch(text)][: 5 * PARAGRAPHS]
        if len(found) >= 50:
            sets.append((code, boundary_f1(found, code)))
    return sets


def readmes() -> Iterator[tuple[str, str]]:
    for one in distributions():
        kind = one.metadata.get("Description-Content-Type") or ""
        text = one.metadata.get_payload() or one.metadata.get("Description")
        if kind.startswith("text/markdown") and isinstance(text, str) and text.strip():
            yield one.metadata["Name"], text


def shape(text: str) -> list[tuple[str, str]]:
    """The blocks of a text, with what must not change."""
    kept = ("fence", "code_block", "html_block")
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    return [(token.type, token.content if token.type in kept else "") for token in parser.parse(text)]


def markdown() -> tuple[int, int, list[str]]:
    units, damaged, count = 0, [], 0
    for name, text in readmes():
        count += 1
        opened = parse_document(text.encode("utf-8", "surrogateescape"), "README.md")
        outcome = translate_units(opened.units, lambda texts: [_shout(text) for text in texts])
        units += len(outcome.texts)
        if shape(text) != shape(opened.written(outcome.texts).decode("utf-8")):
            damaged.append(name)
    return count, units, damaged


def _shout(text: str) -> str:
    """In capitals, but for the tags."""
    return "".join(part if part.startswith("<") else part.upper() for part in re.split(r"(<[^>]*>)", text))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--locale", type=Path, default=Path("/usr/share/locale"))
    parser.add_argument("--news", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    catalogues = Messages(options.locale)
    messages = {code: catalogues.of(code) for code in LANGUAGES}
    times = Counter(text for texts in messages.values() for text in texts)
    messages = {code: [text for text in texts if times[text] == 1] for code, texts in messages.items()}
    rows, notes = identification(messages)
    tools = ", ".join(f"{name} {version(name)}" for name in ("py3langid", "sentencex", "markdown-it-py"))
    header = ["texts", "languages", "number", "right (mean of languages)", "under 90%", "µs a text"]
    write_table("identification", "Language identification among 55 languages", header, rows,
                f"{'; '.join(notes) or 'All languages have enough texts'}. {tools}.")  # fmt: skip
    sets = splitting(messages, options.news)
    mean = sum(score for _, score in sets) / len(sets)
    lowest = ", ".join(f"{name} {score:.0f}" for name, score in sorted(sets, key=lambda one: one[1])[:8])
    write_table(
        "sentences", "Sentence splitting", ["sets", "mean F1", "lowest", "at 95 or more"],
        [[str(len(sets)), f"{mean:.1f}", lowest, str(sum(score >= 95 for _, score in sets))]],
        f"{', '.join(f'{name} {score:.1f}' for name, score in sets)}. {tools}.",
    )  # fmt: skip
    count, units, damaged = markdown()
    write_table(
        "markdown", "Markdown and compiled catalogues", ["files", "read", "damaged or refused"],
        [[f"READMEs of installed packages ({units} units)", str(count), ", ".join(damaged) or "0"],
         ["catalogues (.mo)", str(catalogues.files), str(len(catalogues.refused))]],
        f"{tools}. " + " ".join(catalogues.refused[:5]),
    )  # fmt: skip


if __name__ == "__main__":
    main()
