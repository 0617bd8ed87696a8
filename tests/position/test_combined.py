from functools import partial

import pytest
import torch

from vitpos.position import Transfer
from vitpos.position.alibi_2d import Alibi2D
from vitpos.position.combined import Combined
from vitpos.position.learned_1d import Learned1D
from vitpos.position.none import NoPosition
from vitpos.position.peg import PEG
from vitpos.position.relative_2d import Relative2D
from vitpos.position.rope_axial import RopeAxial


def test_both_parts_act_at_their_hooks(geometry, q, k):
    module = Combined(geometry, first=partial(Learned1D, prefix="zero"), second=RopeAxial)
    x = torch.randn(2, geometry.tokens, geometry.dim)
    assert torch.equal(module.embed(x), x + module.first.code(0))
    assert torch.equal(module.rotate(q, k, 0)[0], RopeAxial(geometry).rotate(q, k, 0)[0])
    assert module.bias(q, k, 0) is None
    assert (module.label, module.injection) == ("1-D learned + RoPE axial", "stem + rotate")
    assert module.honours == {"table", "coordinates", "ntk"}


def test_biases_add_and_one_alone_passes(geometry, q, k):
    both = Combined(geometry, first=Alibi2D, second=Relative2D)
    expected = both.first.bias(q, k, 0) + both.second.bias(q, k, 0)
    assert torch.equal(both.bias(q, k, 0), expected)
    for order in ({"first": Alibi2D, "second": NoPosition}, {"first": NoPosition, "second": Alibi2D}):
        assert torch.equal(Combined(geometry, **order).bias(q, k, 0), Alibi2D(geometry).bias(q, k, 0))


def test_size_reaches_both(geometry):
    module = Combined(geometry, first=PEG, second=RopeAxial)
    module.resize((6, 2), Transfer())
    assert module.first.grid == module.second.grid == module.grid == (6, 2)


def test_frequencies_are_stretched_only_if_both_have_some(geometry):
    module = Combined(geometry, first=Alibi2D, second=RopeAxial)
    assert module.honours == {"coordinates"}
    with pytest.raises(ValueError, match=r"ALiBi 2-D \+ RoPE axial has no frequencies"):
        module.resize((6, 2), Transfer(coordinates="ntk"))
