"""Stored answers per test image, compared between arms on the same images."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from vitpos.record import PREDICTIONS_FILE
from vitpos.report.statistics import image_bootstrap, mcnemar_p
from vitpos.report.study import Run


@dataclass(frozen=True)
class Answers:
    """Which test images a run got right, in the order of their index.

    Attributes:
        index: index of each image in its data set (N,).
        correct: whether the prediction was right (N,).
    """

    index: NDArray[np.int64]
    correct: NDArray[np.bool_]


@dataclass(frozen=True)
class ImageComparison:
    """Two arms on the same images, over the seeds that both have.

    Attributes:
        n: number of seeds with stored predictions of both arms.
        only_arm: images that only the arm got right, summed over seeds.
        only_reference: images that only the reference got right, summed over seeds.
        mcnemar: seed -> McNemar's p of the two networks of that seed.
        interval: ends of the 95 % two-level bootstrap interval of the difference; None for one seed.
    """

    n: int
    only_arm: int
    only_reference: int
    mcnemar: dict[int, float]
    interval: tuple[float, float] | None

    @property
    def mcnemar_median(self) -> float:
        """Median over seeds of McNemar's p: all seeds answer the same images, so their counts may not be pooled."""
        return median(self.mcnemar.values())


def read_answers(run: Run) -> Answers | None:
    """Read the stored predictions of a run; None where there are none or they can't be read."""
    try:
        with np.load(run.folder / PREDICTIONS_FILE, allow_pickle=False) as stored:
            index, correct = stored["index"], stored["prediction"] == stored["label"]
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    if index.ndim != 1 or correct.shape != index.shape or len(index) == 0:
        return None
    order = np.argsort(index, kind="stable")
    return Answers(index[order].astype(np.int64), correct[order])


def read_all_answers(runs: Iterable[Run]) -> dict[str, Answers]:
    """Read the stored predictions of many runs, by run name; equal indices share one array, to save memory."""
    found: dict[str, Answers] = {}
    known: list[NDArray[np.int64]] = []
    for run in runs:
        answers = read_answers(run)
        if answers is None:
            continue
        index = next((other for other in known if np.array_equal(other, answers.index)), None)
        if index is None:
            known.append(index := answers.index)
        found[run.name] = Answers(index, answers.correct)
    return found


Pairs = Sequence[tuple[int, Answers, Answers]]


def compare_images(arms: Mapping[str, Pairs]) -> dict[str, ImageComparison]:
    """Compare arms with the reference on stored predictions.

    Args:
        arms: arm -> (seed, arm, reference) for every seed that both have.

    Returns:
        arm -> comparison; arms without pairs, or whose runs did not answer the same images, are left out.
    """
    usable = {arm: pairs for arm, pairs in arms.items() if pairs and _same_images(pairs)}
    differences = {arm: _differences(pairs) for arm, pairs in usable.items()}
    intervals = image_bootstrap({arm: found for arm, found in differences.items() if len(found) > 1})
    result = {}
    for arm, pairs in usable.items():
        only_arm, only_reference = ((differences[arm] == sign).sum(axis=1).tolist() for sign in (1, -1))
        seeds = [seed for seed, _, _ in pairs]
        counts = zip(seeds, only_arm, only_reference, strict=True)
        result[arm] = ImageComparison(
            n=len(pairs),
            only_arm=sum(only_arm),
            only_reference=sum(only_reference),
            mcnemar={seed: mcnemar_p(first, second) for seed, first, second in counts},
            interval=intervals.get(arm),
        )
    return result


def _same_images(pairs: Pairs) -> bool:
    index = pairs[0][1].index
    sides = [side for _, arm, reference in pairs for side in (arm, reference)]
    return all(side.index is index or np.array_equal(index, side.index) for side in sides)


def _differences(pairs: Pairs) -> NDArray[np.int8]:
    """Return, per seed and image, 1 where only the arm is right, -1 where only the reference is, else 0."""
    return np.stack([arm.correct.astype(np.int8) - reference.correct for _, arm, reference in pairs])
