"""Questions about where objects are, posed so that a network without positions can only guess.

Letters: G groups of scenes, C classes, K objects, H W rows and columns of cells, N = H * W.

A task places K objects for each label of a group, from numbers that the group's scenes share. All scenes of a group
hold the same cells in different places (except for `Bag`), so a network that sees patches as a set can't tell them
apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Grid = tuple[int, int]


class Scene(NamedTuple):
    """Where the objects of each label are, and what they are.

    Attributes:
        rows: (G, C, K).
        columns: (G, C, K).
        kinds: (G, C, K).
    """

    rows: Integers
    columns: Integers
    kinds: Integers


class Task(ABC):
    """A question with `classes` answers.

    Attributes:
        classes: number of labels.
        least: smallest number of (rows, columns) of cells on which every label exists.
    """

    classes: int
    least: Grid

    @abstractmethod
    def draws(self, grid: Grid) -> int:
        """Return how many uniform numbers a group of scenes takes."""

    @abstractmethod
    def place(self, uniform: Floats, grid: Grid) -> Scene:
        """Place the objects, a pure function of uniform numbers (G, draws) in [0, 1)."""


def whole(uniform: Floats, count: int | Integers) -> Integers:
    """Map uniform numbers in [0, 1) to whole numbers below `count`."""
    return np.floor(uniform * count).astype(np.int64)


def _scene(rows: Integers, columns: Integers, kinds: tuple[int, ...]) -> Scene:
    return Scene(rows, columns, np.broadcast_to(np.array(kinds), rows.shape))


@final
class Absolute(Task):
    """Which region of the image holds the object?

    Args:
        regions: regions along each side; there are regions^2 labels, in raster order. Region a of H rows takes those
            whose number r has floor(r * regions / H) = a, at any H.
    """

    regions: int

    def __init__(self, regions: int) -> None:
        if regions < 2:
            raise ValueError(f"data.task.regions={regions}: must be at least 2")
        self.regions, self.classes, self.least = regions, regions**2, (regions, regions)

    def draws(self, grid: Grid) -> int:
        """Return 2: the place inside the region."""
        return 2

    def place(self, uniform: Floats, grid: Grid) -> Scene:
        """Place the object at the same relative place of each region."""
        down, across = np.divmod(np.arange(self.classes), self.regions)  # C
        rows, columns = (
            self._inside(uniform[:, axis, None], region, side)
            for axis, (region, side) in enumerate(zip((down, across), grid, strict=True))
        )
        return _scene(rows[..., None], columns[..., None], (0,))

    def _inside(self, uniform: Floats, region: Integers, side: int) -> Integers:
        edges = -(-np.arange(self.regions + 1) * side // self.regions)
        return edges[region] + whole(uniform, edges[region + 1] - edges[region])


@final
class Relative(Task):
    """Is A above or below B, and left or right of it? Label 2 * (A below B) + (A right of B)."""

    classes = 4
    least = (2, 2)

    def draws(self, grid: Grid) -> int:
        """Return 4: two rows, two columns."""
        return 4

    def place(self, uniform: Floats, grid: Grid) -> Scene:
        """Draw two different rows and columns, and give them to A and B as the label demands."""
        pairs = [_two(uniform[:, 2 * axis : 2 * axis + 2], side) for axis, side in enumerate(grid)]  # G 2 each
        below, right = np.divmod(np.arange(4), 2)  # C
        rows, columns = (
            np.stack((pair[:, far], pair[:, 1 - far]), -1) for pair, far in zip(pairs, (below, right), strict=True)
        )
        return _scene(rows, columns, (0, 1))  # G C 2


def _two(uniform: Floats, side: int) -> Integers:
    """Return two different numbers below `side` in ascending order, (G, 2), every pair with equal chance."""
    first = whole(uniform[:, 0], side)
    second = whole(uniform[:, 1], side - 1)
    second += second >= first
    return np.sort(np.stack((first, second), -1), -1)


@final
class Distance(Task):
    """How far apart are A and B? Label d - 1 for d = max(|rows|, |columns|) cells, 1 to 3."""

    classes = 3
    least = (4, 4)

    def draws(self, grid: Grid) -> int:
        """Return 4: the offset's place on its ring, its mirror image, and the place of the pair."""
        return 4

    def place(self, uniform: Floats, grid: Grid) -> Scene:
        """Draw an offset on the square ring of radius d around A, then a place where both objects fit."""
        reach = np.arange(1, 4)  # C
        # A ring of radius d holds 8d offsets: the long way round, four sides of 2d each.
        side, along = np.divmod(whole(uniform[:, :1], 8 * reach), 2 * reach)  # G C
        down = np.choose(side, [-reach, along - reach, reach, reach - along])
        across = np.choose(side, [along - reach, reach, reach - along, -reach])
        places = []
        for axis, offset in enumerate((down, across)):
            start = whole(uniform[:, 2 + axis, None], grid[axis] - np.abs(offset))
            first = start + np.maximum(0, -offset)
            places.append(np.stack((first, first + offset), -1))
        return _scene(places[0], places[1], (0, 1))


@final
class Arrow(Task):
    """Where does the arrow point? Label = eighths of a turn counter-clockwise from the right.

    An arrow is three cells in a row: tail, shaft and head. No cell shows a direction; their places do.
    """

    classes = 8
    least = (3, 3)

    def draws(self, grid: Grid) -> int:
        """Return 2: the place of the shaft."""
        return 2

    def place(self, uniform: Floats, grid: Grid) -> Scene:
        """Draw the place of the shaft, which the labels share, and turn the arrow around it."""
        turn = np.arange(8) * np.pi / 4
        ends = np.array([-1, 0, 1])  # tail, shaft, head
        steps = [np.rint(-np.sin(turn)).astype(np.int64), np.rint(np.cos(turn)).astype(np.int64)]  # C each
        rows, columns = (
            1 + whole(uniform[:, axis, None, None], grid[axis] - 2) + step[:, None] * ends
            for axis, step in enumerate(steps)
        )
        return _scene(rows, columns, (0, 1, 2))


@final
class Bag(Task):
    """Which of four kinds is the most frequent? Three objects are of that kind, one of each other.

    The negative control, where positions are worth nothing: the labels of a group share the places of their objects,
    and what lies where is at random.
    """

    classes = 4
    least = (2, 3)
    objects = 6

    def draws(self, grid: Grid) -> int:
        """Return one number for each cell, and one for each object of each label."""
        return grid[0] * grid[1] + self.classes * self.objects

    def place(self, uniform: Floats, grid: Grid) -> Scene:
        """Draw places without repetition, and an order of the objects for each label."""
        cells = grid[0] * grid[1]
        rows, columns = np.divmod(np.argsort(uniform[:, :cells])[:, : self.objects], grid[1])  # G K
        kinds = np.array([[label, label, *range(self.classes)] for label in range(self.classes)])  # C K
        order = np.argsort(uniform[:, cells:].reshape(-1, self.classes, self.objects))  # G C K
        kinds = np.take_along_axis(np.broadcast_to(kinds, order.shape), order, -1)
        rows, columns = (np.broadcast_to(each[:, None], order.shape) for each in (rows, columns))
        return Scene(rows, columns, kinds)
