"""What the machine offers a run: device, precision, memory counters, versions."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path

import torch

from vitpos.training.allocator import release_freed_memory

_PACKAGES = ("vitpos", "torch", "torchvision", "pytorch-lightning", "timm", "torchmetrics", "wandb", "numpy")


def pick_device(accelerator: str) -> torch.device:
    """Return the device of a single-process evaluation for an accelerator setting of the trainer."""
    if accelerator in ("gpu", "cuda", "auto") and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def pick_precision(precision: str, accelerator: str) -> str:
    """Resolve `auto`: bf16 mixed on a GPU that computes it, single precision elsewhere."""
    if precision != "auto":
        return str(precision)
    on_gpu = pick_device(accelerator).type == "cuda"
    return "bf16-mixed" if on_gpu and torch.cuda.is_bf16_supported() else "32-true"


def describe_device(device: torch.device) -> str:
    """Return the device's name for the record."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {torch.get_num_threads()} threads)"


def reset_peak_memory(device: torch.device) -> None:
    """Start a new peak-memory measurement, so that jobs that share a process do not share a peak."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    release_freed_memory()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, see proc(5)
    except OSError:  # not Linux, or not permitted
        return


def peak_memory_mib(device: torch.device) -> float | None:
    """Return the peak since `reset_peak_memory` in MiB.

    On a GPU what PyTorch allocated; on a CPU the resident set of the process, libraries included; None where the system
    does not say.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0][1]) / 1024 if lines else None


@functools.cache
def commit() -> str | None:
    """Return the git commit of the code, with `+` appended when it has uncommitted changes; None outside a checkout."""
    root = Path(__file__).resolve().parents[3]
    try:
        sha = _git(root, "rev-parse", "HEAD")
        return sha + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a result."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in _PACKAGES}


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
