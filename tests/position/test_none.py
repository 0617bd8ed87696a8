import torch

from vitpos.position.none import NoPosition


def test_every_hook_is_an_identity(geometry, q, k):
    module, x = NoPosition(geometry), torch.randn(2, geometry.tokens, geometry.dim)
    assert module.embed(x) is x
    assert module.before_layer(x, 1) is x
    assert module.rotate(q, k, 0) == (q, k)
    assert module.bias(q, k, 0) is None
    assert not list(module.parameters())
