"""What training loaders share: epochs that can be continued in the middle, and mixing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from vitpos.data.base import Batch
from vitpos.data.mix import Mix
from vitpos.data.sampler import EpochSampler


class EpochLoader(ABC):
    """Shuffled batches of one rank.

    Args:
        sampler: the order of each epoch; Lightning sets its epoch.
        mix: mixup or cutmix; None for neither.
    """

    def __init__(self, sampler: EpochSampler, mix: Mix | None) -> None:
        self.sampler, self.mix = sampler, mix
        self._done = 0  # batches handed out in this epoch
        self._start = 0  # first batch of the next iteration

    @abstractmethod
    def batches(self, start: int) -> Iterator[Batch]:
        """Yield the sampler's present epoch from batch `start`, not mixed."""

    def __len__(self) -> int:
        return self.sampler.steps

    def __iter__(self) -> Iterator[Batch]:
        # A generator, so the epoch is read when the first batch is asked for: after Lightning has set it.
        epoch, start, self._start = self.sampler.epoch, self._start, 0
        for step, (images, labels, index) in enumerate(self.batches(start), start):
            self._done = step + 1
            if self.mix is None:
                yield images, labels, index
            else:
                yield *self.mix(images, labels, epoch, step), index

    def state_dict(self) -> dict[str, int]:
        """Return where this epoch stands; Lightning stores it in the checkpoint."""
        return {"step": self._done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue the next iteration where the stored one stood; a finished epoch starts over."""
        self._start = self._done = state["step"] % len(self)
