"""A disk that is really full: a small tmpfs in a mount namespace of its own, where the system allows one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import shutil, subprocess, sys
from pathlib import Path
import torch
from dragoman import checkpoint
from dragoman.errors import UserError

disk, told_free = Path(sys.argv[1]), sys.argv[2] == "told"
tensors = {"model": {f"w{i}": torch.randn(40, 100) for i in range(8)}}  # 128 kB
usage = shutil.disk_usage
outcomes = []
for size in range(200, 280, 2):  # kB: one checkpoint fits, two do not until the end
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True)
    shutil.disk_usage = usage
    checkpoint.save(disk, "0000001", tensors, {"update": 1})
    if not told_free:  # as if another program took the space in the meantime
        shutil.disk_usage = lambda path: usage(path)._replace(free=1 << 40)
    try:
        checkpoint.save(disk, "0000002", tensors, {"update": 2})
        outcomes.append("saved")
    except UserError as error:
        assert "disk is full: a checkpoint needs" in str(error), error
        outcomes.append("full")
    newest = checkpoint.newest(disk)
    assert newest.state["update"] == (2 if outcomes[-1] == "saved" else 1)
    assert all(torch.equal(newest.read("model")[n], t) for n, t in tensors["model"].items())
    assert not [p for p in disk.iterdir() if p.name.startswith(".")]
    subprocess.run(["umount", disk], check=True)
print(len(outcomes), outcomes.count("full"))
"""


@pytest.mark.parametrize("space", ["told", "gone"], ids=["seen ahead", "gone while writing"])
def test_forty_sizes_of_a_full_disk(tmp_path: Path, space: str) -> None:
    in_namespace = ["unshare", "--map-root-user", "--mount"]
    probe = [*in_namespace, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us mount a tmpfs")
    command = [*in_namespace, sys.executable, "-c", SCRIPT, str(tmp_path), space]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sizes, full = map(int, done.stdout.split())
    assert sizes == 40
    assert full >= 25
