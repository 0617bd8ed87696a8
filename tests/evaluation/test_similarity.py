"""Maps of positions from the hooks alone, against tables and kernels known in closed form."""

import math

import pytest
import torch
from torch import nn

from vitpos.cli import CONFIG_FOLDER
from vitpos.evaluation.portrait import draw_position
from vitpos.evaluation.similarity import added_tables, cosine_similarity, nothing_to_draw, position_maps
from vitpos.position import Geometry, Position

NAMES = sorted(path.stem for path in (CONFIG_FOLDER / "position").glob("*.yaml"))
GRID, PREFIX, DIM, HEADS, DEPTH = (4, 6), 2, 32, 2, 3
GEOMETRY = Geometry(GRID, PREFIX, DIM, HEADS, DEPTH)
WIDTH = DIM // HEADS


class Table(Position):
    """Adds a given table (T, D) at the stem."""

    label, family, injection = "table", "additive", "stem"

    def __init__(self, geometry, table):
        super().__init__(geometry)
        self.table = nn.Parameter(table)

    def embed(self, x):
        return x + self.table


class Bias(Position):
    """Adds a function of the query to the logits."""

    label, family, injection = "bias", "bias", "bias"

    def __init__(self, geometry, function):
        super().__init__(geometry)
        self.function = function

    def bias(self, q, k, layer):
        return self.function(q)


def build(position, name, geometry=GEOMETRY):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = position(name)(geometry=geometry)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))  # what starts at zero has nothing to show
        return module


def only(maps):
    assert len(maps) == 1
    return maps[0]


def test_cosine_of_the_worked_example():
    table = torch.tensor([[3.0, 4.0], [0.0, 5.0], [1.0, 1.0]])
    expected = torch.tensor([[1, 0.8, 0.9899], [0.8, 1, 0.7071], [0.9899, 0.7071, 1]])
    assert torch.allclose(cosine_similarity(table), expected, atol=1e-4)
    across = cosine_similarity(table.T)
    assert across.shape == (2, 2)
    assert across[0, 1] == pytest.approx((0 + 0 + 12 + 1) / math.sqrt(10 * 42))


def test_cosine_of_a_zero_row_is_undefined():
    similarity = cosine_similarity(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    assert similarity[1, 1] == 1
    assert torch.isnan(similarity[0]).all()
    assert torch.isnan(similarity[:, 0]).all()


def test_one_hot_table_has_its_single_one_in_its_own_cell():
    table = torch.cat([torch.full((PREFIX, DIM), 999.0), torch.eye(24, DIM)])
    found = only(position_maps(Table(GEOMETRY, table)))
    assert (found.kind, found.where) == ("table", "stem")
    assert found.tiles.shape == (4, 6, 4, 6)
    for row in range(4):
        for column in range(6):
            expected = torch.zeros(4, 6)
            expected[row, column] = 1
            assert torch.equal(found.tiles[row, column], expected)


def test_prefix_rows_change_nothing():
    table = torch.randn(26, DIM, generator=torch.Generator().manual_seed(0))
    changed = table.clone()
    changed[:PREFIX] = 999
    plain, other = (only(position_maps(Table(GEOMETRY, values))) for values in (table, changed))
    assert torch.equal(plain.tiles, other.tiles)


def test_sinusoid_has_its_analytic_kernel(position):
    module = position("sincos_1d")(geometry=GEOMETRY)
    found = only(position_maps(module))
    lag = torch.arange(24.0)[:, None] - torch.arange(24.0)
    frequencies = module.theta ** (-2 * torch.arange(DIM // 2) / DIM)
    expected = (lag[..., None] * frequencies).cos().mean(-1)  # cosine of two sinusoids: mean of cos(w lag)
    assert torch.allclose(found.values[0], expected, atol=1e-5)


def test_two_dimensional_table_shows_row_and_column_bands(position):
    tiles = only(position_maps(position("learned_2d")(geometry=GEOMETRY))).tiles[2, 3]
    others = tiles.clone()
    others[2], others[:, 3] = torch.nan, torch.nan
    assert tiles[2].mean() > others.nanmean() + 0.2
    assert tiles[:, 3].mean() > others.nanmean() + 0.2


def test_none_has_nothing_to_draw_and_says_so(position):
    module = position("none")(geometry=GEOMETRY)
    assert position_maps(module) == []
    assert draw_position(module) == {}
    assert "nothing to draw" in nothing_to_draw(module)


def test_separate_layers_come_apart_and_shared_ones_as_one(position):
    separate = position_maps(position("learned_1d_every")(geometry=GEOMETRY))
    assert [entry.where for entry in separate] == ["layer 0", "layer 1", "layer 2"]
    assert only(position_maps(position("learned_1d_shared")(geometry=GEOMETRY))).where == "layers 0-2"
    assert [where for where, _ in added_tables(position("learned_1d_shared")(geometry=GEOMETRY))] == ["layers 0-2"]


def test_axial_rope_kernel_is_analytic_and_depends_on_offsets_only(position):
    module = position("rope_axial")(geometry=GEOMETRY)
    found = only(position_maps(module))
    assert (found.kind, found.where) == ("kernel", "layers 0-2")
    frequencies = module.theta ** (-torch.arange(WIDTH // 4) / (WIDTH // 4))
    index = torch.arange(24)
    rows, columns = (place[:, None] - place for place in (index // 6, index % 6))
    cosines = torch.stack([(lag[..., None] * frequencies).cos().mean(-1) for lag in (rows, columns)]).mean(0)
    assert torch.allclose(found.values[0], math.sqrt(WIDTH) * (cosines - 1), atol=1e-5)
    by_offset = {}
    for i in range(24):
        for j in range(24):
            by_offset.setdefault((int(rows[i, j]), int(columns[i, j])), []).append(float(found.values[0, i, j]))
    assert max(max(values) - min(values) for values in by_offset.values()) < 1e-5


def test_alibi_kernel_is_the_distance_itself(position):
    found = only(position_maps(position("alibi_2d")(geometry=GEOMETRY)))
    distance = torch.tensor([[r, c] for r in range(4) for c in range(6)]).float()
    distance = torch.cdist(distance, distance)
    for head in found.values:
        slope = -head[0, 1]
        assert slope > 0
        assert torch.allclose(head, -slope * distance, atol=1e-5)


def test_contextual_bias_cancels_in_the_mean_and_shows_as_strength():
    directions = torch.randn(26, WIDTH, generator=torch.Generator().manual_seed(0))  # one per key
    module = Bias(GEOMETRY, lambda q: q @ directions.T)
    found = only(position_maps(module))
    assert found.kind == "strength"
    assert torch.allclose(found.values[0, 0], directions[PREFIX:].norm(dim=1), rtol=1e-3)


def test_plain_bias_has_no_strength():
    bias = torch.randn(1, HEADS, 26, 26, generator=torch.Generator().manual_seed(0))
    found = only(position_maps(Bias(GEOMETRY, lambda q: bias)))
    assert found.kind == "kernel"
    assert torch.allclose(found.values, bias[0, :, PREFIX:, PREFIX:], atol=1e-6)


def test_bias_that_is_constant_along_the_keys_is_no_position():
    bias = torch.arange(26.0)[:, None].expand(26, 26)
    assert position_maps(Bias(GEOMETRY, lambda q: bias)) == []


def test_convolution_shows_its_border_not_a_table(position):
    module = build(position, "peg")
    found = only(position_maps(module))
    assert found.kind == "response"
    assert added_tables(module) == []
    inner = found.tiles[1:3, 1:5, 1:3, 1:5]
    assert torch.allclose(inner, torch.ones_like(inner), atol=1e-5)  # uniform content: all inner patches answer alike
    assert found.tiles[0, 0, 2, 2] < 0.99


@pytest.mark.parametrize("name", NAMES)
def test_every_module_is_drawn_or_says_why_not(position, name):
    module = build(position, name)
    module.train()
    state = torch.random.get_rng_state()
    maps = position_maps(module)
    assert torch.equal(state, torch.random.get_rng_state())
    assert module.training
    assert (not maps) == (module.family == "none")
    for entry in maps:
        assert entry.tiles.shape == (*GRID, *GRID)
        assert torch.isfinite(entry.values).all()
        assert not entry.values.requires_grad


def test_follows_the_present_grid(position):
    from vitpos.position import Transfer

    module = build(position, "rope_axial_ape")
    module.resize((2, 5), Transfer())
    assert {entry.tiles.shape for entry in position_maps(module)} == {(2, 5, 2, 5)}
