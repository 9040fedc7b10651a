"""The machine that a run is planned for, and how fast it learns: rough figures, only to choose by."""

from dataclasses import dataclass

from dragoman.system import usable_cores

GIB = 1 << 30
_CORE_FLOPS = 55e9
"""Operations a second that a core reaches in training in float32, with matrices that are wide enough."""
_WIDE_ENOUGH = 256
_GPU_FLOPS = 150e12
"""What a large card reaches in bfloat16 with a network that fills it."""
_GPU_UPDATE_SECONDS = 0.006
"""An update of a small network takes so long on a card, however few tokens it has."""
_GPU_LAYER_SECONDS = 0.0005
_GPU_START_SECONDS = 25.0
"""Until kernels are compiled and batches are recorded."""


@dataclass(frozen=True)
class Machine:
    cores: int
    gpu_bytes: int = 0
    """0 where there is no GPU."""
    speed: float = 1.0
    """Beside the figures above: 0.5 where an update was measured to take twice as long, as on a card that
    others use too."""

    @property
    def gpu(self) -> bool:
        return self.gpu_bytes > 0

    def update_seconds(self, operations: float, layers: int, width: int) -> float:
        """Of an update with so many floating-point operations, by a model of this width."""
        if not self.gpu:
            core = _CORE_FLOPS * min(1.0, width / _WIDE_ENOUGH)
            return operations / (core * self.cores) / self.speed
        return max(_GPU_UPDATE_SECONDS + layers * _GPU_LAYER_SECONDS, operations / _GPU_FLOPS) / self.speed

    def learning_seconds(self, minutes: float) -> float:
        """What is left of so many minutes for learning."""
        seconds = 60 * minutes
        return max(seconds / 2, seconds - _GPU_START_SECONDS) if self.gpu else 0.95 * seconds


def this_machine(device: str = "auto") -> Machine:
    import torch

    cores = usable_cores()
    if device == "cpu" or not torch.cuda.is_available():
        return Machine(cores)
    return Machine(cores, torch.cuda.get_device_properties(0).total_memory)
