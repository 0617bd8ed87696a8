import numpy as np
import pytest
import torch

from vitpos.evaluation.features import extract
from vitpos.position import Transfer


@pytest.fixture
def images(bars):
    return torch.cat([batch[0] for batch in bars().eval_dataloader("test")])


def test_pre_logits_are_what_the_head_reads(vit, bars, images):
    model = vit("rope_axial")
    found = extract(model, bars(), "test", "pre_logits", "cpu")
    expected = model.features(images).detach().numpy()
    np.testing.assert_allclose(found.features, expected, atol=1e-5)
    assert found.features.dtype == np.float64
    assert found.index.tolist() == list(range(30))
    assert (found.label == np.arange(30) % 4).all()


@pytest.mark.parametrize("pool", ["cls", "mean", "mean_beside_cls"])
def test_patch_mean_and_cls_by_hand(vit, bars, images, pool):
    model = vit(pool=pool, registers=1)
    last = model.norm(model.trace(images)["layer1"]).detach().numpy()
    found = extract(model, bars(), "test", "patch_mean", "cpu").features
    np.testing.assert_allclose(found, last[:, -16:].mean(axis=1), atol=1e-5)
    if pool == "mean":
        with pytest.raises(ValueError, match=r"fewshot.features='cls': a network with model.pool='mean'"):
            extract(model, bars(), "test", "cls", "cpu")
    else:
        np.testing.assert_allclose(extract(model, bars(), "test", "cls", "cpu").features, last[:, 0], atol=1e-5)


def test_present_image_size_is_used(vit, bars):
    model = vit("rope_axial")
    model.resize((12, 8), Transfer())
    images = torch.cat([batch[0] for batch in bars().eval_dataloader("test", image_size=(12, 8))])
    found = extract(model, bars(), "test", "pre_logits", "cpu").features
    np.testing.assert_allclose(found, model.features(images).detach().numpy(), atol=1e-5)


def test_only_the_images_wanted_pass_the_network(vit, bars):
    model, data, seen = vit(), bars(), []
    index, label = data.labels("train")
    model.patch_embed.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    wanted = index[[40, 3, 17]]
    found = extract(model, data, "train", "pre_logits", "cpu", only=wanted)
    assert sum(seen) == 3
    assert found.index.tolist() == sorted(wanted)
    taken = found.take(wanted)
    assert taken.index.tolist() == wanted.tolist()
    assert (taken.label == label[[40, 3, 17]]).all()
    everything = extract(model, data, "train", "pre_logits", "cpu")
    np.testing.assert_allclose(everything.take(wanted).features, taken.features, atol=1e-5)


def test_unusable_requests_are_refused(vit, bars, monkeypatch):
    with pytest.raises(ValueError, match=r"fewshot.features='logits': choose one of pre_logits, patch_mean, cls"):
        extract(vit(), bars(), "test", "logits", "cpu")
    data = bars()
    monkeypatch.setattr(type(data), "channels", 3)
    with pytest.raises(ValueError, match="images of 3 channels for a network trained on 1"):
        extract(vit(), data, "test", "pre_logits", "cpu")


def test_features_that_are_not_finite_are_refused(vit, bars):
    model = vit()
    with torch.no_grad():
        model.patch_embed.proj.bias.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="pre_logits features of the test images"):
        extract(model, bars(), "test", "pre_logits", "cpu")
