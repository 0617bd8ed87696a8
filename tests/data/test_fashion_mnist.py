import gzip
import hashlib
import http.server
import struct
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch

from vitpos.data import fashion_mnist
from vitpos.data.fashion_mnist import FashionMNIST

NAMES = {"train": "train", "test": "t10k"}


def idx(array):
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def content(part):
    count = 100 if part == "train" else 20
    rng = np.random.default_rng(count)
    return rng.integers(0, 256, (count, 28, 28), dtype=np.uint8), (np.arange(count) % 10).astype(np.uint8)


def files(zipped):
    for part, stem in NAMES.items():
        for name, array in zip(("images-idx3", "labels-idx1"), content(part), strict=True):
            data = idx(array)
            yield (
                (f"{stem}-{name}-ubyte.gz", gzip.compress(data, mtime=0)) if zipped else (f"{stem}-{name}-ubyte", data)
            )


def write(folder, zipped):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files(zipped):
        (folder / name).write_bytes(data)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No Debian package and no network."""
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "absent")
    monkeypatch.setattr("torchvision.datasets.FashionMNIST.mirrors", ["http://127.0.0.1:9/"])


@pytest.fixture
def build(settings):
    return lambda root, **other: FashionMNIST(root=root, **settings(image_size=28, batch_size=16, **other))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("place", [".", "FashionMNIST/raw"])
def test_files_are_found_in_both_layouts(nowhere, build, tmp_path, zipped, place):
    write(tmp_path / place, zipped)
    for part in NAMES:
        pixels, labels = build(tmp_path).read(part, (28, 28))
        images, numbers = content(part)
        assert torch.equal(pixels, torch.from_numpy(images)[:, None])
        assert torch.equal(labels, torch.from_numpy(numbers).long())


def test_the_debian_package_is_used_where_installed(nowhere, build, tmp_path, monkeypatch):
    write(tmp_path / "debian", zipped=True)
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")
    data = build(tmp_path / "empty")
    data.setup()
    assert sum(len(labels) for _, labels, _ in data.eval_dataloader("train")) == 80
    assert not (tmp_path / "empty").exists()
    assert data.reads["test"] == 0


def test_missing_data_without_a_network_names_the_setting_and_the_way_out(nowhere, build, tmp_path):
    with pytest.raises(ValueError, match=r"data\.root=.*holds no complete Fashion-MNIST.*dataset-fashion-mnist"):
        build(tmp_path / "empty").setup()
    assert [path.name for path in (tmp_path / "empty").iterdir()] == [".Fashion-MNIST.lock"]


def test_a_root_that_cannot_be_written_names_the_setting(nowhere, build, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"data\.root="):
        build(tmp_path / "file").setup()


def test_labels_that_do_not_fit_the_images_are_refused(nowhere, build, tmp_path):
    write(tmp_path, zipped=False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(99, np.uint8)))
    with pytest.raises(ValueError, match="are not Fashion-MNIST's"):
        build(tmp_path).setup()


class SilentServer(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Keep the test's output clean."""


def test_two_jobs_with_an_empty_folder_download_once(nowhere, build, tmp_path, monkeypatch):
    write(tmp_path / "server", zipped=True)
    downloads, fetch = [], FashionMNIST._download

    def counted(self):
        downloads.append(self)
        fetch(self)

    monkeypatch.setattr(FashionMNIST, "_download", counted)
    handler = partial(SilentServer, directory=tmp_path / "server")
    archives = sorted((tmp_path / "server").iterdir())
    checksums = [(path.name, hashlib.md5(path.read_bytes()).hexdigest()) for path in archives]
    monkeypatch.setattr("torchvision.datasets.FashionMNIST.resources", checksums)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, ThreadPoolExecutor(3) as pool:
        monkeypatch.setattr("torchvision.datasets.FashionMNIST.mirrors", [f"http://127.0.0.1:{server.server_port}/"])
        serving = pool.submit(server.serve_forever, 0.01)
        jobs = [pool.submit(build(tmp_path / "root").read, "train", (28, 28)) for _ in range(2)]
        results = [job.result() for job in jobs]
        server.shutdown()
        serving.result()
    assert len(downloads) == 1
    assert all(torch.equal(labels, torch.from_numpy(content("train")[1]).long()) for _, labels in results)
    found = sorted(path.name for path in (tmp_path / "root/FashionMNIST/raw").iterdir())
    assert found == sorted(name for name, _ in files(zipped=False))
