"""The machine that a run is planned for, and rough estimates of its training speed."""

from dataclasses import dataclass

from dragoman.system import usable_cores

GIB = 1 << 30
_CORE_FLOPS = 55e9
"""Floating-point operations per second that a core reaches in float32 training with wide matrices."""
_WIDE_ENOUGH = 256
_GPU_FLOPS = 150e12
"""Floating-point operations per second that a large GPU reaches in bfloat16 with a network that fills it."""
_GPU_UPDATE_SECONDS = 0.006
"""Seconds per update of a small network on a GPU, however few tokens it has."""
_GPU_LAYER_SECONDS = 0.0005
_GPU_START_SECONDS = 25.0
"""Seconds until kernels are compiled and CUDA graphs are recorded."""


@dataclass(frozen=True)
class Machine:
    cores: int
    gpu_bytes: int = 0
    """Memory of the GPU. 0: no GPU."""
    speed: float = 1.0
    """Speed relative to the estimates above: 0.5 if a measured update took twice as long, for example on a
    shared GPU."""

    @property
    def gpu(self) -> bool:
        return self.gpu_bytes > 0

    def update_seconds(self, operations: float, layers: int, width: int) -> float:
        """Seconds of an update with this number of floating-point operations, for a model of this width."""
        if not self.gpu:
            core = _CORE_FLOPS * min(1.0, width / _WIDE_ENOUGH)
            return operations / (core * self.cores) / self.speed
        return max(_GPU_UPDATE_SECONDS + layers * _GPU_LAYER_SECONDS, operations / _GPU_FLOPS) / self.speed

    def learning_seconds(self, minutes: float) -> float:
        """Seconds of training within a budget of `minutes`."""
        seconds = 60 * minutes
        return max(seconds / 2, seconds - _GPU_START_SECONDS) if self.gpu else 0.95 * seconds


def this_machine(device: str = "auto") -> Machine:
    import torch

    cores = usable_cores()
    if device == "cpu" or not torch.cuda.is_available():
        return Machine(cores)
    return Machine(cores, torch.cuda.get_device_properties(0).total_memory)
