"""The kernels in Triton's interpreter, which needs no GPU. It is chosen by the environment of a process."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest


def version_of(package: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version(package).split(".")[:2])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "checks"), [("interpreted.py", 5), ("learning.py", 11)])
def test_every_kernel_against_torch(name: str, checks: int) -> None:
    pytest.importorskip("triton", reason="Triton is for Linux on x86-64")
    if version_of("triton") < (3, 7) and version_of("numpy") >= (2, 5):
        pytest.skip(
            "Triton before 3.7 takes arrays for numbers in its interpreter, and NumPy 2.5 refuses that"
        )
    program = Path(__file__).with_name(name)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("passed") == checks
