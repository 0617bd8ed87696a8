"""Arithmetic of the cost model, against operations counted while a network runs and against the papers' numbers."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from vitpos.benchmark.cost_model import Shape, Study, loader_rate
from vitpos.benchmark.flops import count_flops
from vitpos.models.block import Block
from vitpos.models.vit import ViT
from vitpos.position.none import NoPosition
from vitpos.spec import ImageSpec


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(("pool", "registers"), [("cls", 0), ("cls", 2), ("mean", 0), ("mean_beside_cls", 1)])
def test_it_counts_what_a_network_does(pool, registers, depth):
    spec = ImageSpec((16, 24), 3, 7)
    model = ViT(spec, NoPosition, 4, 16, depth, partial(Block, heads=2, mlp_ratio=2.0), pool=pool, registers=registers)
    prefix = registers + (pool != "mean")
    shape = Shape(24, 16, depth, 3 * 16, 7, prefix, mlp_ratio=2.0, reads_one=pool == "cls")
    images, labels = torch.randn(5, 3, 16, 24), torch.zeros(5, dtype=torch.int64)
    with torch.no_grad():
        assert count_flops(lambda: model(images)) == 5 * shape.forward_flops
    assert count_flops(lambda: F.cross_entropy(model(images), labels).backward()) == 5 * shape.training_flops


@pytest.mark.parametrize(
    ("dim", "depth", "gigaflops"), [(192, 12, 2.5), (384, 12, 9.2), (768, 12, 35.1), (1024, 24, 123.1)]
)
def test_published_networks_at_224_pixels(dim, depth, gigaflops):
    """Twice the multiply-adds that DeiT and timm print for ViT-Ti, S, B and L with 16-pixel patches."""
    shape = Shape(196, dim, depth, 3 * 256, 1000, reads_one=False)
    assert shape.forward_flops / 1e9 == pytest.approx(gigaflops, rel=0.02)


def test_reading_one_token_saves_most_of_a_layer():
    whole, one = (Shape(196, 768, 12, 768, 1000, reads_one=reads) for reads in (False, True))
    saved = 196 * (2 + 2 + 16) * 768**2 + 4 * 196 * 197 * 768
    assert whole.forward_flops - one.forward_flops == saved


def test_a_study_is_the_sum_of_its_passes():
    shape, large = Shape(4, 8, 2, 4, 3), Shape(16, 8, 2, 4, 3)
    study = Study(5, shape, train_images=100, epochs=3, val_images=10, evaluations=((shape, 20), (large, 20)))
    training = 3 * 100 * shape.training_flops
    evaluation = 3 * 10 * shape.forward_flops + 20 * (shape.forward_flops + large.forward_flops)
    assert study.seconds(1e6) == pytest.approx(5 * (training + evaluation) / 1e6)
    assert study.seconds(1e6, 2e6, fixed=7.0) == pytest.approx(5 * (training / 1e6 + evaluation / 2e6 + 7.0))
    assert study.seconds(1e6, per_epoch=2.0) - study.seconds(1e6) == pytest.approx(5 * 3 * 2.0)
    with pytest.raises(ValueError, match=r"training_rate=0: must be positive"):
        study.seconds(0)


def test_what_a_loader_must_deliver():
    shape = Shape(196, 768, 12, 768, 1000)
    assert loader_rate(shape, 400e12) == pytest.approx(400e12 / shape.training_flops)
