import pytest
import torch
from timm.layers.pos_embed_sincos import RotaryEmbeddingDinoV3, apply_rot_embed_cat

from vitpos.position import Transfer
from vitpos.position.rope_dinov3 import RopeDinoV3


def patches_by_timm(x, other, size):
    return apply_rot_embed_cat(x[:, :, 1:], other.get_embed(list(size)), half=True)


@pytest.mark.parametrize("normalise", ["separate", "min", "max"])
@pytest.mark.parametrize("periods", ["base", "range"])
def test_rotation_equals_timm(geometry, q, k, normalise, periods):
    ours = {"base": {}, "range": {"min_period": 0.5, "max_period": 20.0, "endpoint": True}}[periods]
    theirs = {"base": {}, "range": {"temperature": None, "min_period": 0.5, "max_period": 20.0}}[periods]
    module = RopeDinoV3(geometry, normalise=normalise, **ours).eval()
    other = RotaryEmbeddingDinoV3(geometry.head_dim, normalize_coords=normalise, **theirs).eval()
    for before, after in zip((q, k), module.rotate(q, k, 0), strict=True):
        torch.testing.assert_close(after[:, :, 1:], patches_by_timm(before, other, geometry.grid), atol=1e-5, rtol=0)
    module.resize((6, 3), Transfer())
    x = torch.randn(1, 2, 19, geometry.head_dim)
    torch.testing.assert_close(
        module.rotate(x, x, 0)[0][:, :, 1:], patches_by_timm(x, other, (6, 3)), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    "augmentation", [{"shift": 0.5}, {"jitter": 1.5}, {"rescale": 2.0}, {"shift": 0.1, "jitter": 1.2, "rescale": 3.0}]
)
def test_augmentation_equals_timm_for_one_seed(geometry, q, k, augmentation):
    module = RopeDinoV3(geometry, **{"rescale": 1.0, **augmentation}).train()
    theirs = {f"{key}_coords": value for key, value in augmentation.items()}
    other = RotaryEmbeddingDinoV3(geometry.head_dim, **theirs).train()
    torch.manual_seed(3)
    module.embed(torch.zeros(1))
    torch.manual_seed(3)
    expected = patches_by_timm(q, other, geometry.grid)
    torch.testing.assert_close(module.rotate(q, k, 0)[0][:, :, 1:], expected, atol=1e-5, rtol=0)


def test_each_training_pass_draws_once_for_all_layers_and_evaluation_never(geometry, q, k):
    module = RopeDinoV3(geometry, shift=0.5).train()

    def one_pass():
        module.embed(q)
        first, second = (module.rotate(q, k, layer)[0] for layer in (0, 1))
        assert torch.equal(first, second)
        assert torch.equal(first[:, :, :1], q[:, :, :1])
        return first

    assert not torch.equal(one_pass(), one_pass())
    module.eval()
    state = torch.get_rng_state()
    assert torch.equal(one_pass(), one_pass())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "settings",
    [{"shift": -1.0}, {"jitter": 0.5}, {"rescale": 0.5}, {"min_period": 0.0}, {"min_period": 200.0}],
    ids=str,
)
def test_impossible_settings_are_refused(geometry, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        RopeDinoV3(geometry, **settings)
