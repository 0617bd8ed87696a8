import pytest
import torch

from vitpos.position import Geometry, Transfer
from vitpos.position.learned_1d import Learned1D
from vitpos.position.rope_axial import RopeAxial


@pytest.mark.parametrize(
    ("setting", "value"), [("grid", (0, 3)), ("grid", (3, 0)), ("prefix", -1), ("dim", 0), ("heads", 0), ("depth", 0)]
)
def test_geometry_refuses_what_no_network_has(setting, value):
    sizes = {"grid": (3, 5), "prefix": 1, "dim": 8, "heads": 2, "depth": 2, setting: value}
    with pytest.raises(ValueError, match=setting):
        Geometry(**sizes)


def test_geometry_refuses_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match="dim=10 is not divisible by heads=3"):
        Geometry((3, 5), 1, 10, 3, 2)


@pytest.mark.parametrize("factor", ["table", "coordinates", "temperature"])
def test_transfer_refuses_unknown_protocols(factor):
    with pytest.raises(ValueError, match=rf"transfer\.{factor}='nope'"):
        Transfer(**{factor: "nope"})


def added(module):
    """What each hook adds to zero tokens, stem first."""
    zeros = torch.zeros(1, module.geometry.tokens, module.geometry.dim)
    return [module.embed(zeros)] + [module.before_layer(zeros, layer) for layer in range(module.geometry.depth)]


def test_stem_adds_once(geometry):
    stem, *layers = added(Learned1D(geometry, inject="stem"))
    assert stem.any()
    assert not any(layer.any() for layer in layers)


def test_every_adds_another_table_at_each_layer(geometry):
    stem, *layers = added(Learned1D(geometry, inject="every"))
    assert not stem.any()
    assert len({float(layer.detach().double().sum()) for layer in layers}) == geometry.depth


def test_shared_adds_one_table_at_each_layer(geometry):
    module = Learned1D(geometry, inject="shared")
    stem, *layers = added(module)
    assert not stem.any()
    assert all(torch.equal(layer[0], module.tables[0]) for layer in layers)


def test_a_repeated_announcement_computes_nothing(geometry, monkeypatch):
    module = RopeAxial(geometry)
    module.resize((6, 2), Transfer())
    monkeypatch.setattr(RopeAxial, "derive", lambda self: pytest.fail("derived again"))
    module.resize((6, 2), Transfer())
    module.resize((6, 2), Transfer(temperature="log_tokens", table="bilinear"))  # neither concerns a rotation
    assert module.transfer.temperature == "log_tokens"


def test_a_size_announced_during_inference_can_be_trained_at(geometry):
    module = Learned1D(geometry)
    with torch.inference_mode():
        module.resize((6, 2), Transfer())
    module.embed(torch.zeros(1, 13, 32)).sum().backward()
    assert module.tables[0].grad is not None


def test_nothing_is_interpolated_in_a_forward_pass(geometry, monkeypatch):
    module = Learned1D(geometry)
    module.resize((6, 2), Transfer())
    monkeypatch.setattr(torch.nn.functional, "interpolate", lambda *_, **__: pytest.fail("interpolated"))
    module.embed(torch.zeros(1, 13, 32))
