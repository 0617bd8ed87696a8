"""Growth of a cost as a power of a size, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike

from vitpos.figures.style import PALETTE, new_figure, styled


@dataclass(frozen=True)
class Curve:
    """One module's cost along one axis.

    Attributes:
        module: file of `conf/position`.
        axis: what grows: tokens, depth or heads.
        sizes: its values, ascending.
        seconds: measured.
        flops: of the matrix products of the network without positions.
    """

    module: str
    axis: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    flops: tuple[float, ...]

    @property
    def measured(self) -> float:
        """Exponent of the measured seconds."""
        return slope(self.sizes, self.seconds)

    @property
    def theory(self) -> float:
        """Exponent of the FLOPs over the same sizes."""
        return slope(self.sizes, self.flops)


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the exponent p of the power law c n^p that fits best, in least squares of logarithms.

    Raises:
        ValueError: fewer than two sizes, or something that is not positive.
    """
    if len(sizes) < 2 or min(*sizes, *costs) <= 0:
        raise ValueError(f"sizes={list(sizes)}, costs={list(costs)}: a slope needs two points above zero")
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


@styled
def draw_curves(curves: Sequence[Curve], caption: str) -> tuple[Figure, dict[str, ArrayLike]]:
    """Draw seconds against size in logarithms, one panel per axis, theory dashed through the first module's last point.

    Returns:
        The figure, and the numbers drawn.
    """
    axes_names = list(dict.fromkeys(curve.axis for curve in curves))
    figure = new_figure(2.5 * len(axes_names), 2.6, "Cost of a training step", caption)
    panels = np.atleast_1d(figure.subplots(1, len(axes_names), sharey=True))  # a flat curve must look flat
    for panel, axis in zip(panels, axes_names, strict=True):
        here = [curve for curve in curves if curve.axis == axis]
        for curve, color in zip(here, PALETTE, strict=False):
            panel.plot(curve.sizes, curve.seconds, color=color, marker="o", markersize=2.5, label=curve.module)
        first = here[0]
        theory = np.asarray(first.flops) * first.seconds[-1] / first.flops[-1]
        panel.plot(first.sizes, theory, color="0.4", linestyle=(0, (4, 3)), label="FLOPs")
        panel.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds" if axis == axes_names[0] else "")
        panel.set_xticks(first.sizes, [str(size) for size in first.sizes])
        panel.minorticks_off()
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        if axis == axes_names[0]:
            panel.legend(frameon=False)
    numbers: dict[str, ArrayLike] = {}
    for curve in curves:
        numbers[f"{curve.axis}_{curve.module}"] = np.column_stack((curve.sizes, curve.seconds, curve.flops))
    return figure, numbers
