"""The device that a model runs on."""

import torch

from dragoman.errors import UserError


def pick_device(name: str, local_rank: int | None = None) -> torch.device:
    """`auto`: the GPU if there is one; with several processes on a machine, each uses its own GPU. Apple's
    GPU (`mps`) is used only where it is asked for: nobody has tried it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and local_rank is not None:
        if local_rank >= (count := torch.cuda.device_count()) > 0:
            raise UserError(
                f"train.device: process {local_rank} of this machine has no GPU, there are {count}; start "
                f"as many processes as GPUs (--nproc-per-node {count})"
            )
        name = f"cuda:{local_rank}"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(
            f"device: '{name}' is not known; use auto, cpu, cuda, cuda:1 and so on, or mps"
        ) from None
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"device: '{name}' cannot be used here ({reason})") from None
    if device.type == "cuda":
        # cuDNN's attention plans every new shape for about 0.2 s, and sentences come in hundreds of shapes.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Use full float32: by default recurrent and convolutional layers round to TF32, with errors of 1e-3.
        torch.backends.cudnn.allow_tf32 = False
    return device
