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
    lies on another disk. The same epoch saved under a second name becomes a second link to the same file.
    """

    def __init__(self) -> None:
        super().__init__()
        self._saved: tuple[tuple[Any, Any], Path] | None = None

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
        when = checkpoint.get("epoch"), checkpoint.get("global_step")
        try:
            if not self._link(when, path, temporary):
                content = io.BytesIO()
                torch.save(checkpoint, content)
                with temporary.open("wb") as file:
                    file.write(content.getbuffer())
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._saved = when, path

    def _link(self, when: tuple[Any, Any], path: Path, new: Path) -> bool:
        """Return whether the epoch is saved already, under another name, and could be linked; not every disk can."""
        if self._saved is None or self._saved[0] != when or None in when or self._saved[1] == path:
            return False
        try:
            new.unlink(missing_ok=True)
            new.hardlink_to(self._saved[1])
        except OSError:
            return False
        return True
