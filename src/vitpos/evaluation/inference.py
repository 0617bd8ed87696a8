"""How a finished network is asked: evaluation mode, no gradients, nothing compiled, one precision, all processes.

Letters: B batch, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn

AUTOCAST = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
PLAIN = ("32-true", "bf16-true", "16-true")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Context in which `model` is in evaluation mode, without gradients and without compiled code.

    Compiled code would be rebuilt for every image size, and differs from plain code in the last digits.
    """
    training = model.training
    model.eval()
    try:
        # no_grad, not inference_mode: tables that a module makes in here must still serve training.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        model.train(training)


def precision_context(device: torch.device | str, precision: str) -> AbstractContextManager[object]:
    """Return the context in which a network answers under a precision that Lightning names.

    Raises:
        ValueError: an unknown precision.
    """
    if precision in AUTOCAST:
        return torch.autocast(torch.device(device).type, dtype=AUTOCAST[precision])
    if precision in PLAIN:
        return nullcontext()
    raise ValueError(f"trainer.precision={precision!r}: choose one of {', '.join((*PLAIN, *AUTOCAST))}")


def answer(model: nn.Module, images: Tensor, precision: str) -> Tensor:
    """Return float32 logits (B, C) of images on the device of `model`.

    Raises:
        ValueError: an unknown precision.
    """
    if precision in PLAIN:
        images = images.to(next((p.dtype for p in model.parameters()), images.dtype))
    with precision_context(images.device, precision):
        logits: Tensor = model(images)
    return logits.float()


def processes() -> int:
    """Return the number of processes in the process group, 1 without one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def gather(mine: Tensor, device: torch.device | str) -> Tensor:
    """Return the rows (n, c) of all processes one after the other, however many each has; on the CPU.

    Args:
        mine: rows of this process.
        device: where the process group communicates.
    """
    if processes() == 1:
        return mine.cpu()
    lengths = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(processes())]
    dist.all_gather(lengths, torch.tensor([len(mine)], dtype=torch.int64, device=device))
    sizes = [int(length.item()) for length in lengths]
    # Collectives move equal shapes: fill up to the longest, cut back to what each process had.
    padded = torch.zeros(max(sizes), mine.shape[1], dtype=mine.dtype, device=device)
    padded[: len(mine)] = mine.to(device)
    pieces = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(pieces, padded)
    return torch.cat([piece[:size] for piece, size in zip(pieces, sizes, strict=True)]).cpu()
