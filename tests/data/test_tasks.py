import numpy as np
import pytest

from vitpos.data.tasks import Absolute, Arrow, Bag, Distance, Relative

POSITIONAL = [Absolute(2), Absolute(3), Relative(), Distance(), Arrow()]
TASKS = [*POSITIONAL, Bag()]
GRIDS = [(4, 4), (5, 7), (8, 4), (9, 9)]


def name(value):
    return type(value).__name__ if not isinstance(value, tuple) else "x".join(map(str, value))


def scenes(task, grid, groups=400, seed=0):
    return task.place(np.random.default_rng(seed).random((groups, task.draws(grid))), grid)


@pytest.fixture(params=TASKS, ids=name)
def task(request):
    return request.param


@pytest.fixture(params=GRIDS, ids=name)
def grid(request):
    return request.param


def test_objects_lie_in_different_cells_of_the_grid(task, grid):
    scene = scenes(task, grid)
    assert scene.rows.shape == scene.columns.shape == scene.kinds.shape
    assert scene.rows.shape[:2] == (400, task.classes)
    assert scene.rows.min() >= 0 and scene.rows.max() < grid[0]
    assert scene.columns.min() >= 0 and scene.columns.max() < grid[1]
    cells = np.sort(scene.rows * grid[1] + scene.columns, -1)
    assert (np.diff(cells, axis=-1) > 0).all()


def test_every_task_exists_on_its_smallest_grid(task):
    scene = scenes(task, task.least)
    assert scene.rows.max() == task.least[0] - 1
    assert scene.columns.max() == task.least[1] - 1


def test_absolute_labels_are_the_regions_in_raster_order(grid):
    scene = scenes(Absolute(3), grid)
    region = scene.rows * 3 // grid[0] * 3 + scene.columns * 3 // grid[1]
    assert (region[..., 0] == np.arange(9)).all()
    assert len(np.unique(scene.rows * grid[1] + scene.columns)) == grid[0] * grid[1]


def test_relative_labels_say_below_and_right(grid):
    rows, columns, _ = scenes(Relative(), grid)
    assert (2 * (rows[..., 0] > rows[..., 1]) + (columns[..., 0] > columns[..., 1]) == np.arange(4)).all()
    assert (rows[..., 0] != rows[..., 1]).all() and (columns[..., 0] != columns[..., 1]).all()


def test_distance_labels_are_steps_of_a_king(grid):
    rows, columns, _ = scenes(Distance(), grid)
    steps = np.maximum(abs(rows[..., 0] - rows[..., 1]), abs(columns[..., 0] - columns[..., 1]))
    assert (steps == [1, 2, 3]).all()


def test_all_offsets_of_a_ring_occur_equally_often():
    rows, columns, _ = scenes(Distance(), (9, 9), groups=24_000)
    for label in range(3):
        offsets = np.stack((np.diff(rows[:, label]), np.diff(columns[:, label])), -1).reshape(-1, 2)
        _, counts = np.unique(offsets, axis=0, return_counts=True)
        assert len(counts) == 8 * (label + 1)
        assert abs(counts / 24_000 * len(counts) - 1).max() < 0.15


def test_arrow_labels_are_eighths_of_a_turn(grid):
    rows, columns, kinds = scenes(Arrow(), grid)
    down, across = rows[..., 2] - rows[..., 0], columns[..., 2] - columns[..., 0]
    assert (np.rint(np.arctan2(-down, across) / (np.pi / 4)) % 8 == np.arange(8)).all()
    assert (rows[..., 0] + rows[..., 2] == 2 * rows[..., 1]).all()
    assert (rows[..., 1] == rows[:, :1, 1]).all() and (columns[..., 1] == columns[:, :1, 1]).all()
    assert (kinds == [0, 1, 2]).all()


def test_bag_labels_are_the_most_frequent_kind(grid):
    rows, columns, kinds = scenes(Bag(), grid)
    counts = (kinds[..., None] == np.arange(4)).sum(-2)
    assert (counts.argmax(-1) == np.arange(4)).all()
    assert (np.sort(counts) == [1, 1, 1, 3]).all()
    # The places are those of every other label, so they can't tell the label.
    assert (rows == rows[:, :1]).all() and (columns == columns[:, :1]).all()
    # Nor can what lies at one of them.
    share = [(kinds[:, label] == label).mean(0) for label in range(4)]
    assert abs(np.array(share) - 0.5).max() < 0.1


def test_uniform_numbers_at_the_ends_stay_on_the_grid(task, grid):
    for value in (0.0, np.nextafter(1, 0)):
        rows, columns, _ = task.place(np.full((1, task.draws(grid)), value), grid)
        assert rows.min() >= 0 and rows.max() < grid[0]
        assert columns.min() >= 0 and columns.max() < grid[1]


def test_one_region_is_refused_by_name():
    with pytest.raises(ValueError, match=r"data\.task\.regions=1"):
        Absolute(1)
