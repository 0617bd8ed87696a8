"""Shapes that the tests of single modules share."""

import pytest
import torch

from vitpos.position import Geometry


@pytest.fixture(params=[(4, 4), (3, 5)], ids=["square", "rectangle"])
def grid(request):
    return request.param


@pytest.fixture
def geometry(grid):
    return Geometry(grid=grid, prefix=1, dim=32, heads=2, depth=3)


@pytest.fixture
def q(geometry):
    return torch.randn(2, 2, geometry.heads, geometry.tokens, geometry.head_dim).unbind(0)[0]


@pytest.fixture
def k(geometry):
    return torch.randn(2, geometry.heads, geometry.tokens, geometry.head_dim)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
