"""Classifiers in closed form on frozen features: ridge regression and nearest neighbours, in float64.

Letters: n support images, m query images, D features, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Classes = NDArray[np.int64]

PAPER_L2 = 2.0**10
BIAS = 100.0  # so large that the penalty hardly touches the intercept
STD_FLOOR = 1e-5
CHUNK = 1024


class Classifier(Protocol):
    """Learns from support features and answers for query features."""

    def __call__(self, support: Matrix, labels: Classes, query: Matrix, classes: int) -> dict[str, Classes]:
        """Return the predicted classes (m,) per variant, by the first part of the metric's name.

        Args:
            support: features (n, D).
            labels: their classes (n,).
            query: features (m, D).
            classes: number of classes C.
        """


@final
class Ridge:
    """Linear regression of {-1, +1} targets with an L2 penalty; the answer is the class of the largest score.

    W = (X'X + l2 I)^-1 X'Y. X holds the features, standardised by mean and deviation (plus 1e-5) of the support
    images, and a constant feature of 100. Metric names start with `fewshot`, and name an l2 other than 2^10.

    Source: the evaluator of Dosovitskiy et al. 2020, D.4, with the constants of big_vision.

    Args:
        l2: penalty, or several; all of them cost one eigendecomposition.

    Raises:
        ValueError: no penalty, or one that is not positive.
    """

    def __init__(self, l2: float | Sequence[float] = PAPER_L2) -> None:
        self.l2 = [float(value) for value in (l2 if isinstance(l2, Sequence) else [l2])]
        if not self.l2 or min(self.l2) <= 0:
            raise ValueError(f"fewshot.classifier.l2={l2!r}: give one or several positive numbers")

    def __call__(self, support: Matrix, labels: Classes, query: Matrix, classes: int) -> dict[str, Classes]:
        """Return the predicted classes (m,) per penalty."""
        mean, std = support.mean(axis=0), support.std(axis=0) + STD_FLOOR
        x, z = with_bias((support - mean) / std), with_bias((query - mean) / std)
        targets = 2.0 * np.eye(classes)[labels] - 1.0  # n C
        solutions = solve_ridge(x, targets, self.l2)
        names = ["fewshot" if l2 == PAPER_L2 else f"fewshot/l2_{l2:g}" for l2 in self.l2]
        return {name: (z @ weights).argmax(axis=1) for name, weights in zip(names, solutions, strict=True)}


@final
class NearestNeighbours:
    """Vote of the k support images of largest cosine similarity s, each with weight exp(s / temperature).

    Metric names start with `knn<k>`. Source: Wu et al. 2018, arXiv 1805.01978, section 3.4.

    Args:
        k: neighbours that vote.
        temperature: the smaller, the more the nearest counts.

    Raises:
        ValueError: a setting that is not positive; on use, fewer support images than `k`.
    """

    def __init__(self, k: int = 20, temperature: float = 0.07) -> None:
        for name, value in (("k", k), ("temperature", temperature)):
            if value <= 0:
                raise ValueError(f"fewshot.classifier.{name}={value}: must be positive")
        self.k, self.temperature = k, temperature

    def __call__(self, support: Matrix, labels: Classes, query: Matrix, classes: int) -> dict[str, Classes]:
        """Return the predicted classes (m,)."""
        if len(support) < self.k:
            raise ValueError(f"fewshot.classifier.k={self.k}: there are {len(support)} support images only")
        support, query = unit_rows(support), unit_rows(query)
        one_hot = np.eye(classes)[labels]  # n C
        found = []
        for start in range(0, len(query), CHUNK):
            similarity = query[start : start + CHUNK] @ support.T  # m n
            nearest = np.argpartition(-similarity, self.k - 1, axis=1)[:, : self.k]  # m k
            weights = np.exp((np.take_along_axis(similarity, nearest, axis=1) - 1.0) / self.temperature)
            found.append((weights[:, :, None] * one_hot[nearest]).sum(axis=1).argmax(axis=1))
        return {f"knn{self.k}": np.concatenate(found)}


def solve_ridge(x: Matrix, targets: Matrix, l2: Sequence[float]) -> list[Matrix]:
    """Return W = (X'X + l2 I)^-1 X'Y (D, C) for each l2, from one eigendecomposition of the smaller Gram matrix.

    With fewer rows than columns, the equal form X'(XX' + l2 I)^-1 Y decomposes (n, n) instead of (D, D).

    Args:
        x: (n, D).
        targets: Y (n, C).
        l2: penalties, positive.
    """
    if len(x) < x.shape[1]:
        values, vectors = np.linalg.eigh(x @ x.T)
        left, right = x.T @ vectors, vectors.T @ targets
    else:
        values, vectors = np.linalg.eigh(x.T @ x)
        left, right = vectors, vectors.T @ (x.T @ targets)
    return [left @ (right / (values + penalty)[:, None]) for penalty in l2]


def with_bias(x: Matrix) -> Matrix:
    """Return x (n, D) with a constant feature behind (n, D + 1)."""
    return np.pad(x, ((0, 0), (0, 1)), constant_values=BIAS)


def unit_rows(x: Matrix) -> Matrix:
    """Return x with rows of length one; a row of zeros stays."""
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: Matrix = x / np.where(norm > 0, norm, 1.0)
    return scaled
