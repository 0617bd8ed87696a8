"""A table of positions in numbers, and the numbers in words.

Letters: T positions, P prefix, H W grid, N = H*W patches, D width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vitpos.evaluation.similarity import cosine_similarity

SHUFFLES = 100
STRUCTURE = {
    "additive": "Share of the table that is a row part plus a column part",
    "offset": "Share of the variation of similarity that follows the offset in rows and columns",
}
CYCLES = 3  # a period must fit so often into the lags looked at, or a slow decay would count as one


def summarise(table: Tensor, grid: tuple[int, int] | None, prefix: int, seed: int) -> dict[str, Any]:
    """Return the numbers that describe a table (T, D), rows after the prefix unless said otherwise.

    Returns:
        `positions`, `dimensions`, `prefix`, `grid`;
        `effective_rank`: exp of the entropy of the singular values as shares (Roy and Vetterli 2007);
        `norm`: mean, least and largest row norm, and those of the prefix rows;
        `similarity_by_distance`: mean cosine similarity of pairs at each distance, in patches on a grid (Euclidean,
        rounded), in positions without;
        `period`: the strongest period of similarity over the raster index, in positions, and the share of the
        detrended variation it carries;
        `structure` on a grid: see `structure`;
        `prefix_similarity`: mean cosine similarity of each prefix row with the patches, and `patch_similarity`, that
        of different patches with each other.
    """
    patches = table[prefix:].double()
    similarity = cosine_similarity(patches).double().numpy()
    norms = patches.norm(dim=1)
    different = ~np.eye(len(patches), dtype=bool)
    period, strength = strongest_period(similarity)
    summary: dict[str, Any] = {
        "positions": len(table),
        "dimensions": table.shape[1],
        "prefix": prefix,
        "grid": list(grid) if grid else None,
        "effective_rank": effective_rank(patches),
        "norm": {"mean": float(norms.mean()), "min": float(norms.min()), "max": float(norms.max())},
        "similarity_by_distance": similarity_by_distance(similarity, grid),
        "period": {"positions": period, "strength": strength},
        "patch_similarity": float(np.nanmean(similarity[different])),
    }
    if grid:
        summary["structure"] = structure(patches, grid, seed)
    if prefix:
        everything = cosine_similarity(table.double()).double()
        summary["norm"]["prefix"] = table[:prefix].double().norm(dim=1).tolist()
        summary["prefix_similarity"] = [_number(value) for value in everything[:prefix, prefix:].nanmean(1)]
    return summary


def effective_rank(table: Tensor) -> float:
    """Return exp(-sum p log p) for singular values as shares p: D for equal ones, 1 for a single one."""
    values = torch.linalg.svdvals(table.double())
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp()) if values.sum() > 0 else 0.0


def similarity_by_distance(similarity: NDArray[np.float64], grid: tuple[int, int] | None) -> dict[str, list[float]]:
    """Return the mean similarity of the pairs at each rounded distance, by rising distance."""
    index = np.arange(len(similarity))
    if grid:
        places = np.stack(np.divmod(index, grid[1]), -1)
        distance = np.linalg.norm(places[:, None] - places[None], axis=-1).round().astype(int)
    else:
        distance = np.abs(index[:, None] - index[None])
    known = np.isfinite(similarity)
    count = np.bincount(distance[known])
    total = np.bincount(distance[known], weights=similarity[known])
    present = np.flatnonzero(count)
    return {"distance": present.tolist(), "similarity": (total[present] / count[present]).tolist()}


def strongest_period(similarity: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Return the period, in positions, that shows as bands off the diagonal, and its share of the variation.

    The mean similarity at each lag up to half the positions, less its straight trend, is weighed by a Hann window and
    decomposed into frequencies; the share is that of the strongest one and what leaks around it. None for fewer than
    16 positions or without any variation.
    """
    count = len(similarity)
    if count < 16:
        return None, None
    lags = np.arange(1, count // 2 + 1)
    profile = np.array([np.nanmean(np.diagonal(similarity, lag)) for lag in lags])
    profile = profile - np.polynomial.Polynomial.fit(lags, profile, 1)(lags)
    if np.abs(profile).max() < 1e-9:
        return None, None
    length = 8 * len(lags)  # padded, so that the period is not tied to whole fractions of the range
    power = np.abs(np.fft.rfft(profile * np.hanning(len(lags)), length)) ** 2
    lowest = CYCLES * 8
    peak = lowest + int(power[lowest:].argmax())
    band = power[max(peak - 16, 0) : peak + 17].sum()  # two bins of the unpadded transform to each side
    return float(length / peak), float(band / power.sum())


def structure(patches: Tensor, grid: tuple[int, int], seed: int) -> dict[str, dict[str, float]]:
    """Return how much of a table (N, D) follows the grid, beside tables with the same rows in random places.

    Returns:
        `additive`: the share of the table's variance that a sum of a row part and a column part explains,
        (|row means|^2 + |column means|^2) / |table|^2 of the table less its mean; 1 for a factorised table, about
        (H + W - 2) / (N - 1) by chance.
        `offset`: the share of the variation of cosine similarity that the offset (|rows|, |columns|) between two
        different patches explains; 1 where similarity depends on nothing else.
        Each with `score`, and `shuffled_mean` and `shuffled_max` over `SHUFFLES` permutations.
    """
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(patches), generator=generator) for _ in range(SHUFFLES)]
    similarity = cosine_similarity(patches).double()
    found = {}
    for name, real, shuffled in (
        ("additive", _additive(patches, grid), [_additive(patches[order], grid) for order in orders]),
        ("offset", _offset(similarity, grid), [_offset(similarity[order][:, order], grid) for order in orders]),
    ):
        found[name] = {"score": real, "shuffled_mean": float(np.mean(shuffled)), "shuffled_max": max(shuffled)}
    return found


def _additive(patches: Tensor, grid: tuple[int, int]) -> float:
    centred = (patches - patches.mean(0)).reshape(*grid, -1)  # H W D
    total = centred.square().mean()
    explained = centred.mean(1).square().mean() + centred.mean(0).square().mean()
    return float(explained / total) if total > 0 else 0.0


def _offset(similarity: Tensor, grid: tuple[int, int]) -> float:
    first, second = torch.triu_indices(len(similarity), len(similarity), 1)
    values = similarity[first, second]
    offset = (first // grid[1] - second // grid[1]).abs() * grid[1] + (first % grid[1] - second % grid[1]).abs()
    known = torch.isfinite(values)
    values, offset = values[known], offset[known]
    count = torch.bincount(offset).clamp(min=1)
    means = torch.bincount(offset, weights=values) / count
    total = (values - values.mean()).square().sum()
    return float(1 - (values - means[offset]).square().sum() / total) if total > 1e-12 else 0.0


def _number(value: Tensor) -> float | None:
    return float(value) if torch.isfinite(value) else None


def in_words(summary: dict[str, Any]) -> list[str]:
    """Return the summary as sentences."""
    norm, near = summary["norm"], summary["similarity_by_distance"]
    grid, period = summary["grid"], summary["period"]
    place = f", of which {summary['prefix']} prefix and {grid[0]}x{grid[1]} patches" if grid else ""
    words = [
        f"{summary['positions']} positions of {summary['dimensions']} dimensions{place}.",
        f"Effective rank {summary['effective_rank']:.1f} of at most "
        f"{min(summary['positions'] - summary['prefix'], summary['dimensions'])}.",
        f"Row norms {norm['min']:.3g} to {norm['max']:.3g}, mean {norm['mean']:.3g}.",
    ]
    steps = [(d, s) for d, s in zip(near["distance"], near["similarity"], strict=True) if d in (1, 2, 4, 8, 16, 32, 64)]
    words.append(
        f"Mean cosine similarity by distance in {'patches' if grid else 'positions'}: "
        + ", ".join(f"{distance}: {value:.2f}" for distance, value in steps)
        + f"; over all pairs {summary['patch_similarity']:.2f}."
    )
    if period["positions"] is not None:
        words.append(
            f"Strongest period off the diagonal: {period['positions']:.1f} positions, with {period['strength']:.0%} of "
            f"the variation of similarity with distance."
        )
    for name, score in summary.get("structure", {}).items():
        verdict = "above" if score["score"] > score["shuffled_max"] else "not above"
        words.append(
            f"{STRUCTURE[name]}: {score['score']:.2f}, {verdict} all {SHUFFLES} tables with shuffled rows "
            f"(mean {score['shuffled_mean']:.2f}, largest {score['shuffled_max']:.2f})."
        )
    if "prefix_similarity" in summary:
        values = ", ".join("undefined" if v is None else f"{v:.2f}" for v in summary["prefix_similarity"])
        words.append(
            f"Similarity of the prefix rows with the patches: {values} (patches with each other "
            f"{summary['patch_similarity']:.2f})."
        )
    return words
