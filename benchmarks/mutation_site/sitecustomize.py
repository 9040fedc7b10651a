"""Run at the start of every Python process that a test starts: it has the fault too, or is recorded.

`mutations.py` puts this folder first on PYTHONPATH. A fault is described in a folder after it: tests may
start a process with few variables of the environment, but not without the path.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))
from mutation_import import FAULT, put_in
from mutation_marks import MAPPED, Marks

for folder in sys.path:
    if (Path(folder) / FAULT).is_file():
        fault = json.loads((Path(folder) / FAULT).read_text())
        put_in(Path(fault["file"]), Path(fault["text"]).read_bytes())
    if (Path(folder) / MAPPED).is_file():
        Marks(Path(folder), Path(json.loads((Path(folder) / MAPPED).read_text()))).put_in()
