"""The ways of `dragoman train` and `dragoman translate` through the code, recorded and compared with
docs/architecture.md.

A file is on the way if one of its functions is called. What runs while a module is imported does not count.
`train` is recorded up to its first update, with the files of the corpus as they are given.
After a change:  python tests/structure/test_trace.py  writes the drawings anew.
"""

import json
import os
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MOST_FILES = {"train": 106, "translate": 47}
"""They only become smaller. The aims are 55 and 40."""
NOT_NEEDED = ("training", "learning", "evaluate", "probe", "serve", "studio")
"""Packages that `translate` does not load."""
END = "<!-- end of trace -->\n"

RECORDER = """
import json, os, sys
from pathlib import Path
import torch  # here, where it is not recorded: that takes longer than all the rest
import dragoman
from dragoman.cli.main import main

root = str(Path(dragoman.__file__).parent) + os.sep
files, importing = {}, 0


def record(frame, event, _):
    global importing
    code = frame.f_code
    if code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not importing and code.co_filename.startswith(root):
        files.setdefault(code.co_filename[len(root):], set()).add(code.co_qualname)
    elif event == "return" and code.co_qualname == "Loop._learn":  # the first update is done
        sys.setprofile(None)


out, sys.argv = sys.argv[1], ["dragoman", *sys.argv[2:]]
sys.setprofile(record)
try:
    main()
except SystemExit as error:
    assert not error.code, error.code
sys.setprofile(None)
loaded = sorted(name for name in sys.modules if name.startswith("dragoman."))
trace = {"files": {file: len(names) for file, names in files.items()}, "loaded": loaded}
Path(out).write_text(json.dumps(trace))
"""
SMALL = (
    *("tokenizer.vocab_size=300", "model.num_layers=1", "model.model_dim=16", "model.num_heads=2"),
    *("model.ff_dim=32", "data.valid_size=16", "train.max_updates=1", "train.batch_tokens=200"),
    *("train.metric=loss", "train.validate_sentences=0", "train.device=cpu"),
    "search.loop_guard=false",  # what such a model writes may go in circles, and would be searched again
)


def recorded(directory: Path, *arguments: str) -> tuple[dict[str, int], list[str]]:
    """Files in the order in which they are reached, with the number of their functions; and all that is
    loaded."""
    out = directory / "trace.json"
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(directory / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", RECORDER, str(out), *arguments],
        capture_output=True,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr.decode()
    trace = json.loads(out.read_text())
    return {Path(file).as_posix(): count for file, count in trace["files"].items()}, trace["loaded"]


def traces(directory: Path) -> dict[str, tuple[dict[str, int], list[str]]]:
    """A run is trained, and then it translates."""
    from toy import toy_pairs, write_pairs

    corpus, run = write_pairs(directory, toy_pairs(64)), str(directory / "run")
    return {
        "train": recorded(directory, "train", *map(str, corpus), "--out", run, *SMALL),
        "translate": recorded(directory, "translate", run, "x", "--device", "cpu"),
    }


def drawn(files: dict[str, int]) -> str:
    """One line for each stay in a room, in the order of the first calls."""
    lines = [f"{len(files)} files, {sum(files.values())} functions", ""]
    for room, stay in groupby(files, key=lambda file: file.rpartition("/")[0]):
        names = ", ".join(Path(file).stem.replace("__init__", "(package)") for file in stay)
        lines.append(f"{room + '/' if room else '':<20} {names}")
    return "```\n" + "\n".join(lines) + "\n```\n"


def drawing_of(command: str, page: str) -> tuple[str, str, str]:
    """The page before, in and after the drawing."""
    before, begin, rest = page.partition(f"<!-- trace of {command} -->\n")
    drawing, end, after = rest.partition(END)
    assert begin and end, f"{PAGE}: there is no place for the trace of {command}"
    return before + begin, drawing, end + after


def test_the_ways_of_train_and_translate_are_short_and_drawn(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    for command, (files, loaded) in traces(tmp_path).items():
        assert len(files) <= MOST_FILES[command], "\n".join(files)
        if command == "translate":
            assert [name for name in loaded if name.split(".")[1] in NOT_NEEDED] == []
        _, old, _ = drawing_of(command, page)
        # The numbers of functions differ a little between versions of Python.
        assert old.splitlines()[3:] == drawn(files).splitlines()[3:], (
            "run  python tests/structure/test_trace.py  and look at what has changed"
        )


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
    text = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        for command, (files, _) in traces(Path(temporary)).items():
            before, _, after = drawing_of(command, text)
            text = before + drawn(files) + after
            print(command, drawn(files), sep="\n")
    PAGE.write_text(text, "utf-8")
