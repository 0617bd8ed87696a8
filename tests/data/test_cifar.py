import hashlib
import pickle

import numpy as np
import pytest
import torch

from vitpos.data.cifar10 import Cifar10
from vitpos.data.cifar100 import Cifar100


def write(folder, kind, monkeypatch):
    """Write a small data set in the real layout and tell torchvision its checksums."""
    source = kind.source
    target = folder / source.base_folder
    target.mkdir(parents=True)
    rng = np.random.default_rng(0)
    content = {}

    def put(name, value):
        data = pickle.dumps(value)
        (target / name).write_bytes(data)
        return hashlib.md5(data).hexdigest()

    for attribute, part in (("train_list", "train"), ("test_list", "test")):
        batches = []
        for name, _ in getattr(source, attribute):
            count = 200 if kind is Cifar100 else 20
            pixels = rng.integers(0, 256, (count, 3 * 32 * 32), dtype=np.uint8)
            labels = (np.arange(count) % kind.classes).tolist()
            key = "fine_labels" if kind is Cifar100 else "labels"
            batches.append((pixels, labels))
            checksum = put(name, {"data": pixels, key: labels})
            content.setdefault(attribute, []).append([name, checksum])
        monkeypatch.setattr(source, attribute, content[attribute])
        content[part] = (
            np.concatenate([pixels for pixels, _ in batches]).reshape(-1, 3, 32, 32),
            np.concatenate([labels for _, labels in batches]),
        )
    names = {source.meta["key"]: [str(number) for number in range(kind.classes)]}
    monkeypatch.setattr(source, "meta", source.meta | {"md5": put(source.meta["filename"], names)})
    return content


@pytest.fixture(params=[Cifar10, Cifar100])
def kind(request, monkeypatch):
    monkeypatch.setattr(request.param.source, "url", "http://127.0.0.1:9/archive.tar.gz")
    return request.param


def build(kind, root, settings):
    return kind(root=root, **settings(image_size=32, batch_size=16))


def test_both_parts_are_read_as_they_were_written(kind, tmp_path, monkeypatch, settings):
    content = write(tmp_path, kind, monkeypatch)
    for part in ("train", "test"):
        pixels, labels = build(kind, tmp_path, settings).read(part, (32, 32))
        assert pixels.is_contiguous()
        assert torch.equal(pixels, torch.from_numpy(content[part][0]))
        assert torch.equal(labels, torch.from_numpy(content[part][1]))


def test_channels_are_normalised_in_their_order(kind, tmp_path, monkeypatch, settings):
    content = write(tmp_path, kind, monkeypatch)
    data = build(kind, tmp_path, settings)
    assert (data.spec.channels, data.spec.classes) == (3, kind.classes)
    images, _, index = next(iter(data.eval_dataloader("test")))
    expected = (torch.from_numpy(content["test"][0][index]) / 255 - torch.tensor(kind.mean)[:, None, None]).div(
        torch.tensor(kind.std)[:, None, None]
    )
    torch.testing.assert_close(images, expected)


def test_missing_data_without_a_network_names_the_setting_and_the_way_out(kind, tmp_path, settings):
    with pytest.raises(ValueError, match=rf"data\.root=.*holds no complete {kind.source.__name__}.*unpack"):
        build(kind, tmp_path, settings).setup()


def test_a_damaged_file_is_refused(kind, tmp_path, monkeypatch, settings):
    write(tmp_path, kind, monkeypatch)
    name = kind.source.train_list[0][0]
    (tmp_path / kind.source.base_folder / name).write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"data\.root="):
        build(kind, tmp_path, settings).setup()
