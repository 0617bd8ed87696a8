"""Which images a step sees, and which of them a rank sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitpos.data.streams import ORDER, torch_stream


@dataclass(frozen=True)
class Shard:
    """One process's share of every batch.

    Attributes:
        rank: number of this process, from 0.
        world: number of processes.
    """

    rank: int = 0
    world: int = 1

    def columns(self, batch_size: int) -> Tensor:
        """Return which positions of a global batch this rank takes, (batch_size / world,).

        Position i and its mirror image batch_size - 1 - i stay on one rank, in mirrored places, wherever the sizes
        allow: mixing a local batch with its own reverse then mixes the same pairs on any number of ranks.

        Raises:
            ValueError: the ranks would get unequal shares.
        """
        if batch_size % self.world:
            raise ValueError(
                f"data.batch_size={batch_size} is the batch of all ranks together and must be divisible by their "
                f"number, {self.world}"
            )
        if batch_size % (2 * self.world):
            return torch.arange(self.rank, batch_size, self.world)
        front = torch.arange(self.rank, batch_size // 2, self.world)
        return torch.cat((front, batch_size - 1 - front.flip(0)))


def current_shard() -> Shard:
    """Return the share of this process in the running job."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return Shard(torch.distributed.get_rank(), torch.distributed.get_world_size())
    return Shard()


class EpochSampler:
    """The shuffled batches of an epoch: a pure function of (seed, epoch), drawn for all ranks together.

    Args:
        count: training images.
        batch_size: images per step over all ranks; a ragged last batch is dropped, so that shapes are static.
        seed: training seed.
        shard: this rank's share.

    Raises:
        ValueError: not one full batch, or a batch that the ranks can't share equally.
    """

    def __init__(self, count: int, batch_size: int, seed: int, shard: Shard) -> None:
        if batch_size > count:
            raise ValueError(f"data.batch_size={batch_size} is larger than the {count} training images")
        self.count, self.batch_size, self.seed = count, batch_size, seed
        self.steps = count // batch_size
        self.epoch = 0
        self.columns = shard.columns(batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration runs; Lightning calls this."""
        self.epoch = epoch

    def positions(self) -> Tensor:
        """Return the positions of the images of each step, all ranks, (steps, batch_size)."""
        order = torch.randperm(self.count, generator=torch_stream(self.seed, ORDER, self.epoch))
        return order[: self.steps * self.batch_size].view(self.steps, self.batch_size)

    def local(self, table: Tensor) -> Tensor:
        """Return this rank's columns of a (steps, batch_size, …) table drawn for all ranks."""
        return table[:, self.columns]
