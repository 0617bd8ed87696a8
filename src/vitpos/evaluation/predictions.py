"""What a network answers for every image, once each, whatever the batches and the number of processes.

Letters: B batch, C classes, n images.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vitpos.evaluation.inference import answer, evaluating, gather

CALIBRATION_BINS = 15


@dataclass(frozen=True)
class Predictions:
    """One entry per image, sorted by the image's index in its data set.

    Attributes:
        index: position of the image in its data set (n,).
        label: true class (n,).
        prediction: class of the largest logit (n,).
        confidence: softmax probability of the predicted class (n,).
        nll: negative log-likelihood of the true class in nats (n,).
        rank: number of classes placed before the true one, so 0 is a correct answer (n,).
    """

    index: NDArray[np.int64]
    label: NDArray[np.int64]
    prediction: NDArray[np.int64]
    confidence: NDArray[np.float64]
    nll: NDArray[np.float64]
    rank: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.index)

    @property
    def top1(self) -> float:
        """Share of correct answers, correct / n."""
        return int((self.prediction == self.label).sum()) / self.n

    def topk(self, k: int) -> float:
        """Share of images whose true class is among the `k` largest logits."""
        return int((self.rank < k).sum()) / self.n

    def ece(self, bins: int = CALIBRATION_BINS) -> float:
        """Expected calibration error: sum over equal-width bins of |accuracy - confidence| x share of the images.

        Source: Guo et al. 2017, arXiv 1706.04599, equation 3.
        """
        place = np.clip(np.ceil(self.confidence * bins).astype(int) - 1, 0, bins - 1)  # bins are open on the left
        gap = (self.prediction == self.label) - self.confidence
        return float(np.abs(np.bincount(place, weights=gap, minlength=bins)).sum() / self.n)

    def metrics(self) -> dict[str, float]:
        """Return top1, top5, nll (mean, nats) and ece."""
        return {"top1": self.top1, "top5": self.topk(5), "nll": float(self.nll.mean()), "ece": self.ece()}

    def save(self, path: Path) -> None:
        """Write an .npz of all attributes, whole or not at all."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                np.savez_compressed(file, **{field.name: getattr(self, field.name) for field in fields(self)})
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Predictions:
        """Read what `save` wrote.

        Raises:
            ValueError: an attribute is missing, or their lengths differ.
        """
        with np.load(path, allow_pickle=False) as file:
            missing = [field.name for field in fields(cls) if field.name not in file.files]
            if missing:
                raise ValueError(f"{path}: lacks {', '.join(missing)}")
            columns = {field.name: file[field.name] for field in fields(cls)}
        if len({len(column) for column in columns.values()}) != 1:
            raise ValueError(f"{path}: its arrays differ in length")
        return cls(**columns)


def predict(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor, Tensor]],
    device: torch.device | str,
    precision: str = "32-true",
) -> Predictions:
    """Return the answers of `model`, in evaluation mode and never compiled, for every image of `loader`.

    In a process group each process passes its share of the images, or all of them: an image that several processes
    saw, as when a sampler pads its shares, counts once. All processes must call, and return the same result.

    Args:
        model: network, already on `device`.
        loader: batches of images, classes (B,) and indices (B,).
        device: where the network is.
        precision: as Lightning names it, such as 32-true or bf16-mixed.

    Raises:
        FloatingPointError: a logit that is NaN or infinite.
        ValueError: no images, an unknown precision, or one index with two labels.
    """
    parts = []
    with evaluating(model):
        for images, labels, index in loader:
            logits = answer(model, images.to(device), precision)
            parts.append(score(logits, labels.to(device), index.to(device)))
    return collect(parts, device)


def score(logits: Tensor, labels: Tensor, index: Tensor) -> Tensor:
    """Return what `collect` needs of each image of a batch (B, 6), on the device of the logits (B, C).

    Columns: index, label, prediction, confidence, nll, rank; a logit that is not finite makes confidence and nll NaN.
    """
    log_probability = logits.log_softmax(-1)
    confidence, prediction = log_probability.max(-1)
    true = log_probability.gather(1, labels[:, None])  # B 1
    # A tie with the predicted class is no correct answer.
    rank = torch.where(prediction == labels, 0, (log_probability > true).sum(-1).clamp(min=1))
    mark = torch.where(torch.isfinite(logits).all(-1), 1.0, torch.nan)  # refused later: looking now makes a GPU wait
    columns = (index, labels, prediction, confidence.exp() * mark, -true[:, 0] * mark, rank)
    exact = "cpu" if logits.device.type == "mps" else logits.device  # MPS has no float64
    return torch.stack([column.to(exact).double() for column in columns], dim=1)


def collect(parts: list[Tensor], device: torch.device | str) -> Predictions:
    """Join the scores of all batches and all processes, each image once.

    Raises:
        FloatingPointError: a logit that was NaN or infinite.
        ValueError: no images, or one index with two labels.
    """
    mine = torch.cat(parts) if parts else torch.empty(0, len(fields(Predictions)), dtype=torch.float64)
    rows = gather(mine, device).numpy()
    if not len(rows):
        raise ValueError("no images to evaluate: the split is empty")
    _, first, place = np.unique(rows[:, 0], return_index=True, return_inverse=True)
    clash = rows[:, 1] != rows[first[place], 1]
    if clash.any():
        raise ValueError(f"image index {int(rows[clash][0, 0])} comes with two labels: indices must be unique")
    rows = rows[first]
    wild = int((~np.isfinite(rows[:, 3])).sum())
    if wild:
        raise FloatingPointError(f"{wild} of {len(rows)} images have logits that are NaN or infinite")
    whole = rows[:, [0, 1, 2, 5]].astype(np.int64)
    return Predictions(whole[:, 0], whole[:, 1], whole[:, 2], rows[:, 3], rows[:, 4], whole[:, 3])
