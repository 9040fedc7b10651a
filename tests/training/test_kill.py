"""kill -9 at random moments, resume, and compare every byte: the benchmark's own script, with fewer kills."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


def test_kills_change_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "2", "--no-write"],
        env={"PATH": "", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| 2 | 2 | 0 |" in done.stdout
