"""Checkpoints that are there whole or not at all, whenever the process is killed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, final

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO


@final
class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its place and renames it once it has reached the disk.

    Lightning's own way goes through the system's temporary folder, from where a file is copied, not renamed, when that
    lies on another disk.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        """Save a checkpoint.

        Raises:
            OSError: no space or no permission; the checkpoint that was there before is untouched.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")  # one writer per run folder: the same name each time
        content = io.BytesIO()
        torch.save(checkpoint, content)
        try:
            with temporary.open("wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
