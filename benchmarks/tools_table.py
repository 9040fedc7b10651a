"""Do outside tools give the same translations as dragoman? Each in an environment of its own, on 70 lines.

    python benchmarks/tools_table.py                       all tools; trains four small models, a minute each
    python benchmarks/tools_table.py optimum argos         some, and the table keeps the others
    python benchmarks/tools_table.py --scratch DIR         keep models and environments there
    python benchmarks/tools_table.py --check               fail where a line differs for no known reason

The models: one trained with no option but the time (`default`, which has rotary positions), an LSTM, one with
the positions that transformers' Marian has, and one of three languages in all directions (`languages`). The
lines are 60 that were held out and 10 odd ones. They are compared with `dragoman translate` with the same
beam: of the run or, for int8, of the same export. The table is benchmarks/results/tools.md.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import tool_programs as programs
from tools_corpus import ODD, in_french, pairs

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "tools.md"
TORCH = ("torch",)
HEAD = ("tool", "version", "model", "search", "lines equal of 70", "the others", "a test in CI")
RUNS = {
    "default": (),
    "lstm": ("model.preset=lstm", "model.model_dim=128"),
    "sinusoidal": ("model.positions=sinusoidal",),
    "languages": (),
}


@dataclass(frozen=True)
class Tool:
    """One way to translate."""

    name: str
    program: str
    packages: tuple[str, ...]
    models: tuple[tuple[str, tuple[str, ...] | None], ...]
    """Runs with the arguments of `dragoman export`; None for the run itself."""
    beam: int | None = 1
    """None where a server searches as its run does."""
    alpha: float | None = None
    """Length penalty, if the tool has its own."""
    served: bool = False
    """Whether the tool is a client of `dragoman serve`."""
    test: str = ""
    """The test that does the same with a given model, and is part of the suite."""


INT8 = ("--quantize", "int8")
ONNX, HF, CT2 = ("--to", "onnx"), ("--to", "huggingface"), ("--to", "ctranslate2")
OPTIMUM = ("optimum[onnxruntime]", "transformers<5", *TORCH, "ctranslate2", "sentencepiece")
SERVED = (("default", None), ("default", (*CT2, *INT8)), ("lstm", None), ("languages", None))
OF_HF, OF_SERVER = "checkpoint/huggingface", "serve/test_live.py"
TOOLS = (
    Tool(
        "transformers",
        programs.TRANSFORMERS,
        ("transformers>=5", *TORCH),
        (("sinusoidal", HF),),
        5,
        test=f"{OF_HF}/test_models.py",
    ),
    Tool("transformers 4", programs.TRANSFORMERS, OPTIMUM, (("sinusoidal", HF),), 5),
    Tool("transformers 4, pipeline", programs.PIPELINE, OPTIMUM, (("sinusoidal", HF),), 5),
    Tool(
        "ct2-transformers-converter",
        programs.CONVERTER,
        OPTIMUM,
        (("sinusoidal", HF),),
        test=f"{OF_HF}/test_elsewhere.py",
    ),
    Tool(
        "CTranslate2 and tokenizers",
        programs.CTRANSLATE2,
        ("ctranslate2", "tokenizers"),
        (("default", CT2), ("default", (*CT2, *INT8))),
        test="engines/test_export.py",
    ),
    Tool(
        "optimum, ONNX Runtime",
        programs.OPTIMUM,
        OPTIMUM,
        (("default", ONNX), ("default", (*ONNX, *INT8)), ("lstm", ONNX)),
        5,
        test="engines/test_onnx.py (without optimum)",
    ),
    Tool(
        "transformers.js",
        programs.TRANSFORMERS_JS,
        ("npm:@huggingface/transformers",),
        (("default", ONNX), ("default", (*ONNX, *INT8)), ("lstm", ONNX)),
    ),
    Tool(
        "argostranslate",
        programs.ARGOS,
        ("argostranslate", *TORCH),
        (("default", ("--to", "argos")), ("default", ("--to", "argos", *INT8))),
        beam=4,
        alpha=0.2,
        test="engines/test_export.py (its two libraries)",
    ),
    Tool(
        "libretranslatepy",
        programs.LIBRETRANSLATE,
        ("libretranslatepy",),
        SERVED,
        served=True,
        beam=None,
        test=OF_SERVER,
    ),
    Tool("deepl", programs.DEEPL, ("deepl",), SERVED, served=True, beam=None, test=OF_SERVER),
)


class Bench:
    def __init__(self, scratch: Path, minutes: float) -> None:
        self.scratch, self.minutes = scratch, minutes
        known = pairs(2560)
        self.lines = [src for src, _ in known[-60:]] + list(ODD)
        self.data = scratch / "train.tsv"
        self.data.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in known[:-60]), "utf-8")
        self.languages = scratch / "data"
        self.languages.mkdir(exist_ok=True)
        sides = zip(*((src, tgt, in_french(tgt)) for src, tgt in known[:-60]), strict=True)
        for language, lines in zip(("en", "de", "fr"), sides, strict=True):
            text = "".join(f"{line}\n" for line in lines)
            (self.languages / f"train.{language}").write_text(text, "utf-8")

    def run(self, name: str) -> Path:
        out = self.scratch / name
        if not (out / "checkpoints").exists():
            data = [self.data, "data.src_lang=en", "data.tgt_lang=de"]
            if name == "languages":
                data = [self.languages]
            self.dragoman("train", *data, *RUNS[name], "--minutes", self.minutes, "--out", out)
        return out

    def exported(self, run: Path, arguments: tuple[str, ...]) -> Path:
        name = "-".join(part.strip("-") for part in (run.name, *arguments))
        out = self.scratch / (f"{name}.argosmodel" if "argos" in arguments else name)
        if not out.exists():
            self.dragoman("export", run, *arguments, "--out", out)
        return out

    def expected(self, model: Path, tool: Tool) -> list[str]:
        options = {"--beam": tool.beam, "--alpha": tool.alpha}
        search = [str(part) for pair in options.items() if pair[1] is not None for part in pair]
        if model.name == "languages":
            search += ["--from", "en", "--to", "de"]
        out = self.dragoman("translate", model, *search, text="".join(f"{line}\n" for line in self.lines))
        return out.splitlines()

    def dragoman(self, *arguments: object, text: str | None = None) -> str:
        command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
        return subprocess.run(command, check=True, text=True, input=text, stdout=subprocess.PIPE).stdout

    def environment(self, packages: tuple[str, ...]) -> Path:
        """The program that runs a tool, with its packages installed."""
        name = re.sub(r"[^a-z0-9]+", "-", "-".join(packages)).strip("-")
        folder = self.scratch / f"env-{name}"
        if packages[0].startswith("npm:"):
            if not folder.exists():
                folder.mkdir()
                names = [package.removeprefix("npm:") for package in packages]
                # Its scripts download what a CPU does not need.
                subprocess.run(["npm", "install", "--ignore-scripts", *names], cwd=folder, check=True)
            return Path("node")
        if not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            constraints = ROOT / "constraints.txt"
            install = [folder / "bin" / "pip", "install", "--quiet", "--constraint", constraints, *packages]
            subprocess.run(install, check=True)
        return folder / "bin" / "python"

    def translated(self, tool: Tool, model: str) -> tuple[str, list[str]]:
        python = self.environment(tool.packages)
        script = self.scratch / ("program.py" if python.name != "node" else "program.mjs")
        if python.name == "node":
            name = re.sub(r"[^a-z0-9]+", "-", "-".join(tool.packages)).strip("-")
            script = self.scratch / f"env-{name}" / script.name
        script.write_text(tool.program, "utf-8")
        done = subprocess.run(
            [python, script, model, str(tool.beam or 1)],
            input=json.dumps(self.lines),
            text=True,
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
        found = json.loads(done.stdout.splitlines()[-1])
        return found["version"], [line.strip() for line in found["lines"]]

    def rows(self, tool: Tool) -> Iterator[tuple[str, ...]]:
        given = tool
        for name, export in tool.models:
            run = self.run(name)
            int8 = export is not None and "int8" in export
            # ONNX Runtime quantises all hypotheses of a beam with one scale, and each search has others.
            tool = replace(given, beam=1) if int8 and "onnx" in (export or ()) else given
            title = f"{name}, int8" if int8 else name
            model = run if export is None else self.exported(run, export)
            if tool.served:
                with served(model) as address:
                    version, found = self.translated(tool, address)
                expected = self.expected(model, tool)
            else:
                version, found = self.translated(tool, str(model))
                # A package of Argos holds what an export for CTranslate2 holds.
                same = self.exported(run, (*CT2, *INT8)) if model.suffix == ".argosmodel" else model
                expected = self.expected(same if int8 else run, tool)
            others = [
                (line, mine, theirs.strip())
                for line, mine, theirs in zip(self.lines, expected, found, strict=True)
                if mine.strip() != theirs.strip()
            ]
            search = {None: "the run's own", 1: "greedy"}.get(tool.beam, f"beam {tool.beam}")
            for line, mine, theirs in others:
                print(f"  {tool.name} ({title}): {line!r}: {theirs!r}, dragoman: {mine!r}")
            told = ", ".join(f"{n} {reason}" for reason, n in self.reasons(run, tool, others).items())
            equal = str(len(self.lines) - len(others))
            yield tool.name, version, title, search, equal, told, tool.test

    def reasons(self, run: Path, tool: Tool, others: list[tuple[str, str, str]]) -> Counter[str]:
        """Why translations differ: each line with ours and theirs."""
        found: Counter[str] = Counter()
        if not others:
            return found
        import dragoman

        translator = dragoman.load(run, device="cpu")
        asked = {"beam": tool.beam or 1, "stop": "complete"}
        search = replace(translator.search, **asked, **({} if tool.alpha is None else {"alpha": tool.alpha}))
        for line, mine, theirs in others:
            ours, other = (one.score for one in translator.score([(line, mine), (line, theirs)]))
            if line.isupper() and mine.isupper():
                found["in capitals"] += 1
            elif translator.translate([line], search=search)[0].strip() == theirs:
                found["stopped earlier"] += 1
            elif other > ours:
                found["searched longer"] += 1
            else:
                found["not explained"] += 1
        return found


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of `dragoman serve`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "dragoman", "serve", run, "--port", str(port)])
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1500):
            try:
                urllib.request.urlopen(f"{address}/languages", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait()


def read_table() -> dict[str, list[tuple[str, ...]]]:
    """Rows by tool."""
    kept: dict[str, list[tuple[str, ...]]] = {}
    if RESULTS.exists():
        for line in RESULTS.read_text("utf-8").splitlines():
            cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
            if line.startswith("|") and len(cells) == len(HEAD) and cells != HEAD and "---" not in line:
                kept.setdefault(cells[0], []).append(cells)
    return kept


def write_results(table: dict[str, list[tuple[str, ...]]]) -> None:
    rows = [row for tool in TOOLS for row in table.get(tool.name, [])]
    lines = [
        "# The same translations in other tools",
        "",
        "Written by `benchmarks/tools_table.py`, which says what is compared. `default` is a run that was",
        "trained with no option but the time. It has rotary positions, which no such class of transformers",
        "has; transformers is shown with a run of `model.positions=sinusoidal`. Of these tools those on ONNX",
        "Runtime and the clients of `dragoman serve` run an LSTM. `languages` has English, German and French",
        "in all directions. Where lines differ: text in capitals is translated in lower case by dragoman and",
        "by no other tool; *stopped earlier*: the same as with `search.stop=complete`; *searched longer*: by",
        "the score of our model their translation is better. Tests of CI are in `tests/`; they hold a small",
        "model with given weights to the same translations. All tools for Python run once a week in CI.",
        "",
        f"| {' | '.join(HEAD)} |",
        "|---|---|---|---|---:|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tools", nargs="*", help="Parts of names of tools; by default all.")
    parser.add_argument("--scratch", type=Path, help="Folder for models and environments.")
    parser.add_argument("--minutes", type=float, default=1.5, help="For the training of each model.")
    parser.add_argument("--check", action="store_true", help="Fail where a line differs for no known reason.")
    given = parser.parse_args()
    chosen = [tool for tool in TOOLS if not given.tools or any(part in tool.name for part in given.tools)]
    scratch = given.scratch or Path(tempfile.mkdtemp())
    scratch.mkdir(exist_ok=True, parents=True)
    bench, table, fine = Bench(scratch, given.minutes), read_table(), True
    for tool in chosen:
        try:
            table[tool.name] = list(bench.rows(tool))
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            print(f"{tool.name}: {error}", file=sys.stderr)
            fine = False
            continue
        for row in table[tool.name]:
            print(" | ".join(row), flush=True)
            fine = fine and "not explained" not in row[5]
        write_results(table)
    if given.check and not fine:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
