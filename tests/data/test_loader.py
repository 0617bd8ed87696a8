"""What a step costs, in operations rather than in seconds."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from vitpos.data.augment import Augment
from vitpos.data.loader import Preprocess


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.seen[function.overloadpacket.__name__] += 1
        return function(*arguments, **keywords or {})


@pytest.mark.parametrize(
    "augment", [Augment(), Augment(padding=1, flip=True), Augment(padding=1, flip=True, mixup=1.0, cutmix=1.0)]
)
def test_a_training_step_draws_nothing_and_waits_for_nothing(toy, augment):
    batches = iter(toy(augment=augment).train_dataloader())
    next(batches)  # the epoch's numbers are drawn here
    with Operations() as operations:
        steps = sum(1 for _ in batches)
    assert sum(operations.seen.values()) / steps < 60
    # Reading a value back, counting, drawing or copying between devices would stall a GPU.
    stalls = {"_local_scalar_dense", "nonzero", "randint", "randperm", "uniform_", "bernoulli_", "item"}
    assert not stalls & set(operations.seen)


def test_an_evaluation_step_takes_a_few_operations(toy):
    data = toy()
    data.val_dataloader()
    with Operations() as operations:
        steps = sum(1 for _ in data.val_dataloader())
    assert sum(operations.seen.values()) / steps < 20


def test_preprocessing_follows_its_formula_in_single_precision():
    images = torch.randint(0, 256, (3, 2, 5, 4), dtype=torch.uint8)
    mean, std = torch.tensor([0.1, 0.7], dtype=torch.float64), torch.tensor([0.3, 0.2], dtype=torch.float64)
    found = Preprocess(255, mean.tolist(), std.tolist(), (5, 4), torch.device("cpu"))(images)
    expected = (images.double() / 255 - mean[:, None, None]) / std[:, None, None]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [(10, 8), (3, 4), (5, 9)])
def test_resampling_is_the_antialiased_bicubic_of_the_whole_image(size):
    images = torch.randint(0, 256, (3, 1, 5, 4), dtype=torch.uint8)
    plain, resized = (Preprocess(255, [0.0], [1.0], each, torch.device("cpu"))(images) for each in ((5, 4), size))
    expected = torch.nn.functional.interpolate(plain.double(), size, mode="bicubic", antialias=True)
    torch.testing.assert_close(resized.double(), expected, rtol=0, atol=1e-5)
