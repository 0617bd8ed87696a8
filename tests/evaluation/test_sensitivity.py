"""Silencing the position module at test time."""

import pytest
import torch

from vitpos.evaluation.sensitivity import logit_change, silenced
from vitpos.position import Transfer


def test_change_is_relative_and_blind_to_constants():
    logits = torch.tensor([[3.0, 0.0, -3.0], [1.0, 1.0, -2.0]])
    assert logit_change(logits, logits + torch.tensor([[5.0], [-2.0]])) == pytest.approx(0, abs=1e-12)
    assert logit_change(logits, torch.zeros(2, 3)) == pytest.approx(1)
    assert logit_change(logits, -logits) == pytest.approx(2)
    assert logit_change(torch.zeros(2, 3), logits) == 0


@pytest.mark.parametrize("name", ["none", "learned_1d", "rope_axial", "relative_2d", "peg"])
def test_silenced_network_is_one_without_positions(vit, name):
    model, images = vit(name), torch.randn(4, 1, 8, 8)
    own = model.position
    names = list(model.state_dict())
    with torch.no_grad():
        plain = model(images)
        with silenced(model):
            silent = model(images)
            flipped = model(images.flip(-1).unflatten(-1, (4, 2)).flip(-1).flatten(-2))  # patches in mirrored order
        again = model(images)
    assert model.position is own and list(model.state_dict()) == names
    assert torch.equal(plain, again)
    assert torch.allclose(silent, flipped, atol=1e-4)
    assert (logit_change(plain, silent) == 0) == (name == "none")


def test_own_module_comes_back_after_an_error(vit):
    model = vit()
    own = model.position
    with pytest.raises(RuntimeError), silenced(model):
        raise RuntimeError
    assert model.position is own


def test_works_at_another_size(vit):
    model = vit("learned_1d")
    model.resize((8, 12), Transfer())
    with silenced(model), torch.no_grad():
        assert model(torch.randn(2, 1, 8, 12)).shape == (2, 4)
