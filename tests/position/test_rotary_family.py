"""What every rotation must do."""

import pytest
import torch

from vitpos.position import Geometry, Transfer
from vitpos.position.liere import LieRE
from vitpos.position.rope_axial import RopeAxial
from vitpos.position.rope_dinov3 import RopeDinoV3
from vitpos.position.rope_golden import RopeGolden
from vitpos.position.rope_mixed import RopeMixed

FIXED_DIRECTION = [RopeAxial, RopeMixed, RopeDinoV3, RopeGolden]


def scores(module, size, transfer):
    """Logits of one query and one key put at every patch, per offset: (K, H, W, H, W)."""
    geometry = module.geometry
    module.eval().resize(size, transfer)
    tokens = geometry.prefix + size[0] * size[1]
    q, k = torch.randn(2, 1, geometry.heads, 1, geometry.head_dim).expand(-1, -1, -1, tokens, -1)
    q, k = module.rotate(q, k, 0)
    logits = (q @ k.mT)[0, :, geometry.prefix :, geometry.prefix :]
    return logits.unflatten(1, size).unflatten(3, size)


@pytest.mark.parametrize("coordinates", ["extrapolate", "rescale", "ntk"])
@pytest.mark.parametrize("size", [(3, 5), (6, 4)], ids=str)
@pytest.mark.parametrize("kind", FIXED_DIRECTION)
def test_scores_depend_on_the_offset_only(kind, size, coordinates):
    logits = scores(kind(Geometry((3, 5), 1, 32, 2, 3)), size, Transfer(coordinates=coordinates))
    shifted = logits[:, 1:, 1:, 1:, 1:]
    torch.testing.assert_close(shifted, logits[:, :-1, :-1, :-1, :-1], atol=1e-4, rtol=1e-4)
    assert (logits[:, 0, 0, 0, 1] - logits[:, 0, 0, 1, 0]).abs().min() > 1e-3


@pytest.mark.parametrize("kind", [*FIXED_DIRECTION, LieRE])
def test_norms_are_kept(kind, geometry, q, k):
    for before, after in zip((q, k), kind(geometry).rotate(q, k, 1), strict=True):
        torch.testing.assert_close(after.norm(dim=-1), before.norm(dim=-1), atol=1e-4, rtol=1e-4)
