"""`dragoman doctor`: what is installed here, which kernels run, and what would make it faster."""

import json
import os
import platform
import shutil
import sys
import tempfile
import textwrap
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman import __version__
from dragoman.extras import EXTRAS, install_command
from dragoman.system import usable_cores

_PACKAGES = ("torch", "triton", "ctranslate2", "tokenizers", "numpy", "sacrebleu")
_INSTRUCTIONS = ("sse4_2", "avx", "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
_INSTRUCTIONS += ("asimd", "asimddp", "i8mm", "bf16", "sve")
_WIDTH, _INDENT = 80, 13
_FEW_FILES, _LITTLE_ROOM = 1024, 2 << 30


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show versions, extras, CPU, GPU and kernels of this machine, and what would make it faster."""
    found = examine()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for line in report(found):
        typer.echo(line)


def examine() -> dict[str, Any]:
    """Everything that is reported, as plain values."""
    found: dict[str, Any] = {
        "versions": {"dragoman": __version__, "python": platform.python_version(), **_versions()},
        "system": f"{platform.system()} {platform.machine()}",
        "extras": {
            name: {
                "purpose": extra.purpose,
                "missing": extra.missing,
                "install": install_command(name),
            }
            for name, extra in EXTRAS.items()
        },
        "cpu": _cpu(),
        "gpus": [],
        "torch": None,
        "kernels": [],
        "directories": {
            "temp": _directory(Path(tempfile.gettempdir())),
            "cache": _directory(Path("runs", ".prepared").absolute()),
        },
        "open_files": _open_files(),
    }
    if not EXTRAS["train"].missing:
        found |= _examine_torch()
    return found | {"advice": advice(found)}


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _cpu() -> dict[str, Any]:
    usable = usable_cores()
    model, flags = platform.processor() or platform.machine(), set[str]()
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags |= set(value.split())
    except OSError:
        pass  # not Linux: instruction sets are not known
    return {
        "model": model,
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "instruction_sets": [name for name in _INSTRUCTIONS if name in flags],
    }


def _examine_torch() -> dict[str, Any]:
    import torch

    from dragoman.kernels import int8, onednn
    from dragoman.nn.kernel_report import kernel_choices

    gpus = []
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(number)
            gpus.append({"name": about.name, "memory": about.total_memory})
    device = torch.device("cuda" if gpus else "cpu")
    return {
        "gpus": gpus,
        "torch": {
            "cuda": torch.version.cuda,
            "device": device.type,
            "threads": torch.get_num_threads(),
            "instruction_set": torch.backends.cpu.get_cpu_capability(),
            "onednn": onednn.available,
            "int8": int8.available,
        },
        "kernels": [vars(choice) for choice in kernel_choices(device)],
    }


def _directory(place: Path) -> dict[str, Any]:
    """A directory, or the nearest above it that exists."""
    there = next((each for each in (place, *place.parents) if each.is_dir()), Path("/"))
    return {
        "path": str(place),
        "writable": os.access(there, os.W_OK),
        "free": shutil.disk_usage(there).free,
    }


def _open_files() -> dict[str, int | None]:
    """The limits of this process; None: no limit, or not known on this system."""
    if sys.platform == "win32":
        return {"soft": None, "hard": None}
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (None if limit == resource.RLIM_INFINITY else limit for limit in limits)
    return {"soft": soft, "hard": hard}


def advice(found: dict[str, Any]) -> list[str]:
    """Advice for making this installation faster or safer, one sentence each."""
    torch, extras, said = found["torch"], found["extras"], list[str]()
    if torch is None:
        said.append(f"training needs PyTorch: {extras['train']['install']}")
    elif not found["gpus"] and torch["cuda"] is None and _has_nvidia():
        said.append("this machine has an NVIDIA GPU, but this torch is built without CUDA")
    elif found["gpus"] and found["versions"]["triton"] is None:
        said.append("the GPU's kernels need Triton: pip install triton")
    if torch is not None and not found["gpus"] and torch["threads"] < found["cpu"]["usable_cores"]:
        cores = found["cpu"]["usable_cores"]
        said.append(f"torch uses {torch['threads']} of {cores} cores: set OMP_NUM_THREADS={cores}")
    if not found["gpus"]:
        if extras["fast"]["missing"]:
            said.append(f"CTranslate2 translates faster on a CPU: {extras['fast']['install']}")
        else:
            said.append("on a CPU an export translates faster than its run: dragoman export RUN")
    for name, about in found["directories"].items():
        if not about["writable"]:
            said.append(f"the {name} directory {about['path']} cannot be written")
        elif about["free"] < _LITTLE_ROOM:
            cure = "; set TMPDIR to another directory" if name == "temp" else ""
            said.append(f"the {name} directory has only {_gigabytes(about['free'])} left{cure}")
    if (soft := found["open_files"]["soft"]) is not None and soft < _FEW_FILES:
        said.append(f"only {soft} files may be open at once: ulimit -n {_FEW_FILES * 4}")
    return said


def _has_nvidia() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def report(found: dict[str, Any]) -> list[str]:
    """One screen of 80 columns."""
    versions = dict(found["versions"])
    names = [f"{name} {number}" for name, number in versions.items() if number is not None]
    lines = _entry("versions", f"{', '.join(names)} on {found['system']}")
    extras = found["extras"]
    installed = [name for name, about in extras.items() if not about["missing"]]
    lines += _entry("extras", f"installed: {', '.join(installed) or 'none'}")
    for name, about in extras.items():
        if about["missing"]:
            lines += _entry("", f"{name} is missing {', '.join(about['missing'])}: {about['purpose']}")
            lines += _entry("", f"  {about['install']}", whole=True)
    cpu, torch = found["cpu"], found["torch"]
    sets = " ".join(cpu["instruction_sets"]) or "instruction sets unknown"
    lines += _entry("CPU", f"{cpu['model']}, {cpu['usable_cores']} of {cpu['cores']} cores; {sets}")
    gpus = [f"{gpu['name']}, {_gigabytes(gpu['memory'])}" for gpu in found["gpus"]]
    without = "none" if torch is None or torch["cuda"] else "none; this torch is built without CUDA"
    lines += _entry("GPU", "; ".join(gpus) or without)
    lines += _kernels(found)
    for name, about in found["directories"].items():
        state = f"{_gigabytes(about['free'])} free" if about["writable"] else "cannot be written"
        lines += _entry(name, f"{about['path']}, {state}")
    soft, hard = ("no limit" if limit is None else limit for limit in found["open_files"].values())
    lines += _entry("open files", f"{soft}; may be raised to {hard}")
    for number, sentence in enumerate(found["advice"]):
        lines += _entry("advice" if number == 0 else "", sentence)
    return lines


def _kernels(found: dict[str, Any]) -> list[str]:
    if found["torch"] is None:
        return _entry("kernels", "not known without torch")
    torch = found["torch"]
    able = [name for name in ("onednn", "int8") if torch[name]]
    lines = _entry(
        "torch",
        f"{torch['threads']} threads, {torch['instruction_set']}, CPU kernels: {', '.join(able) or 'none'}",
    )
    chosen = {use: [c for c in found["kernels"] if c["use"] == use] for use in ("train", "translate")}
    lines += _row(f"kernels on {torch['device']}", "train", "translate")
    for one, other in zip(*chosen.values(), strict=True):
        names = dict.fromkeys((one["operation"], other["operation"]))
        lines += _row(" / ".join(names), one["kernel"], other["kernel"])
    refused: dict[tuple[str, str], list[str]] = {}
    for choice in found["kernels"]:
        for kernel, reason in choice["refused"].items():
            refused.setdefault((reason, f"{kernel} {choice['operation']}"), []).append(choice["use"])
    by_reason: dict[str, list[str]] = {}
    for (reason, kernel), uses in refused.items():
        in_both = len(uses) == 2 or kernel.endswith(("loss", "beam search"))
        by_reason.setdefault(reason, []).append(kernel if in_both else f"{kernel} ({uses[0]})")
    for reason, kernels in by_reason.items():
        lines += _entry("", f"not {', '.join(kernels)}: {reason}", hanging="  ")
    return lines


def _row(operation: str, train: str, translate: str) -> list[str]:
    return [f"{'':{_INDENT}}{operation:20}{train:16}{translate}".rstrip()]


def _entry(name: str, text: str, hanging: str = "", whole: bool = False) -> list[str]:
    """A name in the left column, and its text beside it; `whole`: a command, which is not broken."""
    if whole:
        return [f"{name:{_INDENT}}{text}"]
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"{name:{_INDENT}}",
        subsequent_indent=" " * _INDENT + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _gigabytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
