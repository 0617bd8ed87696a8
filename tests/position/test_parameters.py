"""Parameters that each method adds to ViT-Ti, S and B at 14 x 14 patches, 12 layers, with a CLS token."""

import pytest

from vitpos.position import Geometry
from vitpos.position.alibi_2d import Alibi2D
from vitpos.position.learned_1d import Learned1D
from vitpos.position.learned_2d import Learned2D
from vitpos.position.learned_2d_add import Learned2DAdd
from vitpos.position.liere import LieRE
from vitpos.position.log_cpb import LogCPB
from vitpos.position.peg import PEG
from vitpos.position.relative_1d import Relative1D
from vitpos.position.relative_2d import Relative2D
from vitpos.position.rope_axial import RopeAxial
from vitpos.position.rope_mixed import RopeMixed
from vitpos.position.sincos_1d import SinCos1D
from vitpos.position.sincos_2d import SinCos2D

PUBLISHED = [
    (Learned1D, {}, (37_824, 75_648, 151_296)),
    (Learned1D, {"inject": "every"}, (453_888, 907_776, 1_815_552)),
    (Learned1D, {"inject": "shared"}, (37_824, 75_648, 151_296)),
    (Learned2D, {}, (2_688, 5_376, 10_752)),
    (Learned2DAdd, {}, (5_376, 10_752, 21_504)),
    (Relative2D, {}, (26_352, 52_704, 105_408)),
    (Relative1D, {}, (12 * 25_024,) * 3),  # published per layer
    (LogCPB, {}, (36_864, 55_296, 92_160)),
    (RopeAxial, {}, (0, 0, 0)),
    (SinCos1D, {}, (0, 0, 0)),
    (SinCos2D, {}, (0, 0, 0)),
    (Alibi2D, {}, (0, 0, 0)),
    (RopeMixed, {}, (2_304, 4_608, 9_216)),
    (LieRE, {}, (145_152, 290_304, 580_608)),
    (PEG, {}, (1_920, 3_840, 7_680)),
]


@pytest.mark.parametrize(("kind", "settings", "counts"), PUBLISHED)
def test_parameter_counts(kind, settings, counts):
    for (dim, heads), count in zip(((192, 3), (384, 6), (768, 12)), counts, strict=True):
        module = kind(Geometry((14, 14), 1, dim, heads, 12), **settings)
        assert sum(p.numel() for p in module.parameters()) == count
