"""Write a figure so that the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

PRINT_DPI = 200


def save(figure: Figure, path: str | Path, arrays: Mapping[str, ArrayLike]) -> list[Path]:
    """Write `path`.png, `path`.svg and `path`.npz, the numbers drawn, and release the figure.

    The files carry neither a date nor a software version nor random identifiers, so drawing the same numbers again
    changes no byte.

    Args:
        figure: what to write; it is emptied afterwards and cannot be used again.
        path: file name without its ending; missing folders are made.
        arrays: the numbers behind the picture, by name.

    Returns:
        The three files written.
    """
    stem = Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg", "npz")]
    with mpl.rc_context({"svg.hashsalt": "vitpos", "svg.fonttype": "path"}):
        # `savefig` would draw everything twice for each file, the first time only to find places.
        figure.set_dpi(PRINT_DPI)
        FigureCanvasAgg(figure).print_png(files[0], metadata={"Software": None})  # type: ignore[no-untyped-call]
        figure.set_layout_engine("none")  # the places found for the first file serve the second
        # A vector viewer enlarges pixels by itself and crisply: embed each once instead of resampled ones.
        for image in figure.findobj(AxesImage):
            assert isinstance(image, AxesImage)
            image.set_interpolation("none")
        FigureCanvasSVG(figure).print_svg(files[1], metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    numbers: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
    np.savez_compressed(files[2], **numbers)
    figure.clear()
    return files
