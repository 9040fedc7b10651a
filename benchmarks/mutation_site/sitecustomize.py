"""Run at the start of every Python process that a test starts: it has the fault too, or is recorded.

`mutations.py` puts this folder first on PYTHONPATH and says in the environment what is wanted.
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))
if "MUTATION_FAULT" in os.environ:
    from mutation_import import put_in

    put_in(Path(os.environ["MUTATION_FILE"]), Path(os.environ["MUTATION_FAULT"]).read_bytes())
elif "MUTATION_MAP_CONTEXT" in os.environ:
    import atexit

    from mutation_map import Lines

    folder, source = (Path(os.environ[f"MUTATION_MAP_{name}"]) for name in ("CACHE", "SOURCE"))
    atexit.register(Lines(folder, source, os.environ["MUTATION_MAP_CONTEXT"]).save)
