"""The book of our runs: pages of `dragoman lab` as chapters of the documentation, with small pictures.

    python docs/site_tools/lab_book.py lab/quick lab/full lab/gpu

Of an experiment that is in several folders the last page counts; the others are told in a line. One that is
in no folder keeps the page that it has in the book.
"""

import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.lab.catalogue import all_experiments
from dragoman.lab.experiment import LECTURES, Experiment

BOOK = Path(__file__).parents[1] / "book"
WIDE = 560
"""Pixels of a picture."""
RUNS = re.compile(r"^\| run \| seed .*?\n\n", re.MULTILINE | re.DOTALL)
VERDICT = re.compile(r"^\*\*Verdict\.\*\* (.*)$", re.MULTILINE)
MADE = re.compile(r"^Size: (\w+)\. .*$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    experiment: Experiment
    folder: Path
    text: str

    @property
    def verdict(self) -> str:
        found = VERDICT.search(self.text)
        assert found, self.folder
        return found[1]

    @property
    def made(self) -> str:
        found = MADE.search(self.text)
        assert found, self.folder
        return found[0]


def pages_of(folders: Sequence[Path]) -> dict[str, list[Page]]:
    """By experiment, in the order of the folders."""
    found: dict[str, list[Page]] = {}
    for experiment in all_experiments().values():
        for folder in folders:
            path = folder / experiment.name / f"{experiment.name}.md"
            if path.is_file():
                page = Page(experiment, path.parent, path.read_text("utf-8"))
                found.setdefault(experiment.name, []).append(page)
    return found


def chapter(pages: Sequence[Page]) -> str:
    """The last page, one heading lower and with its runs summed up, and the verdicts of the others."""
    page = pages[-1]
    text = page.text.replace(f"# {page.experiment.name}\n", f"## {page.experiment.name}\n", 1)
    text = text.replace("(figure.png)", f"(images/{page.experiment.name}.png)")
    text = re.sub(
        r"dragoman explain \S*/runs/", "dragoman explain lab/runs/", text
    )  # wherever they were made
    text = re.sub(r"^\*\*Lecture\.\*\* .*\n\n", "", text, flags=re.MULTILINE)
    if runs := RUNS.search(text):
        rows = [line.split(" | ") for line in runs[0].strip().split("\n")[2:]]
        seconds = sorted(float(row[3].replace(",", "")) for row in rows)
        seeds = sorted({int(row[1]) for row in rows})
        times = f"{seconds[0]:.1f} to {seconds[-1]:.1f} s each"
        told = f"{len(rows)} runs, seeds {seeds[0]} to {seeds[-1]}, {times}."
        text = text.replace(runs[0], f"{told}\n\n")
    for other in pages[:-1]:
        text += f"\nAnother run. {other.made} Verdict: {other.verdict}.\n"
    return text


def small(png: bytes) -> bytes:
    """The picture for the site: narrower, and with 32 colours."""
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB")
    image = image.resize((WIDE, round(image.height * WIDE / image.width)), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.quantize(32).save(stream, "png", optimize=True)
    return stream.getvalue()


def kept() -> dict[str, str]:
    """The pages that are in the book, by experiment."""
    found: dict[str, str] = {}
    for path in BOOK.glob("lecture-*.md"):
        for part in re.split(r"^(?=## )", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            name, _, _ = part.removeprefix("## ").partition("\n")
            found[name] = part.rstrip("\n") + "\n"
    return found


def summary(parts: dict[str, str]) -> str:
    lines = ["| experiment | claim | verdict |", "|---|---|---|"]
    for name, own in all_experiments().items():
        if name in parts:
            found = VERDICT.search(parts[name])
            assert found, name
            link = f"[{name}](lecture-{own.lecture}.md#{name})"
            verdict = found[1].replace("|", "\\|")
            lines.append(f"| {link} | {own.claim} | {verdict} |")
    return "\n".join(lines)


def write(folders: Sequence[Path]) -> None:
    found = pages_of(folders)
    parts = kept() | {name: chapter(pages) for name, pages in found.items()}
    (BOOK / "images").mkdir(parents=True, exist_ok=True)
    for name, pages in found.items():
        (BOOK / "images" / f"{name}.png").write_bytes(small((pages[-1].folder / "figure.png").read_bytes()))
    for number, title in LECTURES.items():
        own = [each.name for each in all_experiments().values() if each.lecture == number]
        text = "\n".join([f"# {number}. {title}\n", *(parts[name] for name in own if name in parts)])
        (BOOK / f"lecture-{number}.md").write_text(text, encoding="utf-8")
    (BOOK / "verdicts.md").write_text(f"# All verdicts\n\n{summary(parts)}\n", encoding="utf-8")


if __name__ == "__main__":
    write([Path(name) for name in sys.argv[1:]])
