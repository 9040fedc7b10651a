"""The way of `dragoman translate RUN TEXT` through the code, recorded and compared with docs/architecture.md.

A file is on the way if one of its functions is called. What runs while a module is imported does not count.
After a change:  python tests/structure/test_trace.py  writes the drawing anew.
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
MOST_FILES = 59
"""It only becomes smaller. The aim is 40."""
NOT_NEEDED = ("training", "learning", "evaluate", "probe", "serve", "studio")
BEGIN, END = "<!-- trace of translate -->\n", "<!-- end of trace -->\n"

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


out, sys.argv = sys.argv[1], ["dragoman", "translate", *sys.argv[2:]]
sys.setprofile(record)
try:
    main()
except SystemExit as error:
    assert not error.code, error.code
sys.setprofile(None)
loaded = sorted(name for name in sys.modules if name.startswith("dragoman."))
found = {"files": {file: len(names) for file, names in files.items()}, "loaded": loaded}
Path(out).write_text(json.dumps(found))
"""


def recorded(directory: Path) -> tuple[dict[str, int], list[str]]:
    """Files in the order in which they are reached, with the number of their functions; and all that is
    loaded."""
    run, out = _small_run(directory), directory / "trace.json"
    command = [sys.executable, "-c", RECORDER, str(out), str(run), "x", "--device", "cpu"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, env=environment, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(out.read_text())
    return {Path(file).as_posix(): count for file, count in found["files"].items()}, found["loaded"]


def _small_run(directory: Path) -> Path:
    import torch

    from dragoman import checkpoint
    from dragoman.data.corpus import prepare
    from dragoman.learning.resolve import resolve
    from dragoman.runs.directory import Run
    from dragoman.training.state import Training
    from toy import toy_config, toy_pairs, write_pairs

    corpus = write_pairs(directory, toy_pairs(64))
    # What such a model writes may go in circles, and would be searched again.
    config = resolve(toy_config(corpus) | {"search": {"loop_guard": False}})
    prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=directory / "cache")
    run = Run.create(directory / "run", config, prepared)
    training = Training(config, prepared, torch.device("cpu"))
    training.progress.update = 1
    checkpoint.save(run.checkpoints, checkpoint.name_of(1), training.tensors(), training.state())
    return run.directory


def drawn(files: dict[str, int]) -> str:
    """One line for each stay in a room, in the order of the first calls."""
    lines = [f"{len(files)} files, {sum(files.values())} functions", ""]
    for room, stay in groupby(files, key=lambda file: file.rpartition("/")[0]):
        names = ", ".join(Path(file).stem.replace("__init__", "(package)") for file in stay)
        lines.append(f"{room + '/' if room else '':<20} {names}")
    return "```\n" + "\n".join(lines) + "\n```\n"


def test_the_way_of_translate_is_short_and_drawn(tmp_path: Path) -> None:
    files, loaded = recorded(tmp_path)
    assert len(files) <= MOST_FILES, "\n".join(files)
    assert [name for name in loaded if name.split(".")[1] in NOT_NEEDED] == []
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    old, _, _ = rest.partition(END)
    # The numbers of functions differ a little between versions of Python.
    assert old.splitlines()[3:] == drawn(files).splitlines()[3:], (
        "run  python tests/structure/test_trace.py  and look at what has changed"
    )


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
    with tempfile.TemporaryDirectory() as temporary:
        picture = drawn(recorded(Path(temporary))[0])
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(before + begin + picture + END + rest.partition(END)[2], "utf-8")
    print(picture)
