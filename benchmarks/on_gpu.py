"""What the benchmarks of training on a GPU share: its matrix rate, turns of updates, and profiles."""

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

HALF = torch.bfloat16
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def matrix_rate() -> float:
    """Floating-point operations a second that this device reaches in a large product."""
    side = 8192 if DEVICE.type == "cuda" else 512
    square = torch.randn(side, side, dtype=HALF, device=DEVICE)
    for _ in range(3):
        square @ square
    wait()
    began = time.perf_counter()
    for _ in range(10):
        square @ square
    wait()
    return 10 * 2 * side**3 / (time.perf_counter() - began)


def turn(step: Callable[[], int | torch.Tensor], updates: int) -> float:
    """Tokens a second; a step gives those of an update, on the device perhaps."""
    wait()
    began = time.perf_counter()
    tokens = [step() for _ in range(updates)]
    wait()
    seconds = time.perf_counter() - began
    return int(sum(tokens)) / seconds


def show_profile(step: Callable[[], object], updates: int = 5, file: Path | None = None) -> None:
    """Where the time of some updates goes, by kernel."""
    activities = [ProfilerActivity.CPU]
    if DEVICE.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiled:
        for _ in range(updates):
            step()
        wait()
    order = "self_cuda_time_total" if DEVICE.type == "cuda" else "self_cpu_time_total"
    table = profiled.key_averages().table(order, row_limit=45, max_name_column_width=60)
    print(table, flush=True)
    if file is not None:
        file.write_text(table, encoding="utf-8")
