import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.spawn import start_processes
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_calibration_error

from vitpos.evaluation.predictions import Predictions, predict

Batches = list[tuple[Tensor, Tensor, Tensor]]


class Recall(nn.Module):
    """Answers with the logits that the "image" holds; a parameter gives it a dtype."""

    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))
        self.modes = set()

    def forward(self, images):
        self.modes.add((self.training, torch.is_grad_enabled()))
        return images.flatten(1) * self.one


def batches(logits: Tensor, labels: Tensor, size: int) -> Batches:
    index = torch.arange(len(labels))
    return [(logits[i : i + size], labels[i : i + size], index[i : i + size]) for i in range(0, len(labels), size)]


@pytest.fixture
def outcomes():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(103, 7, generator=generator) * 2, torch.randint(0, 7, (103,), generator=generator)


@pytest.mark.parametrize("size", [3, 4, 10])
def test_accuracy_is_correct_over_total_whatever_the_batch(size):
    logits = torch.eye(2)[torch.tensor([1, 1, *[0] * 8])]
    found = predict(Recall(), batches(logits, torch.zeros(10, dtype=torch.int64), size), "cpu")
    assert found.top1 == 0.8
    assert found.n == 10
    assert found.index.tolist() == list(range(10))


def test_metrics_equal_torchmetrics(outcomes):
    logits, labels = outcomes
    found = predict(Recall(), batches(logits, labels, 16), "cpu").metrics()
    probabilities = logits.softmax(-1)
    expected = {
        "top1": multiclass_accuracy(probabilities, labels, 7, average="micro"),
        "top5": multiclass_accuracy(probabilities, labels, 7, average="micro", top_k=5),
        "ece": multiclass_calibration_error(probabilities, labels, 7, n_bins=15),
        "nll": nn.functional.cross_entropy(logits, labels),
    }
    assert found == pytest.approx({name: value.item() for name, value in expected.items()}, abs=1e-6)


def test_a_tie_is_correct_only_if_predicted():
    found = predict(Recall(), batches(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0]), 4), "cpu")
    assert ((found.rank == 0) == (found.prediction == found.label)).all()
    assert found.topk(1) == found.top1


def test_evaluates_without_gradients_and_restores_the_mode(outcomes):
    model = Recall().train()
    predict(model, batches(*outcomes, 50), "cpu")
    assert model.modes == {(False, False)}
    assert model.training


def test_order_of_batches_does_not_matter(outcomes):
    parts = batches(*outcomes, 10)
    one, other = predict(Recall(), parts, "cpu"), predict(Recall(), parts[::-1], "cpu")
    assert all((getattr(one, name) == getattr(other, name)).all() for name in vars(one))


def test_an_image_seen_twice_counts_once(outcomes):
    parts = batches(*outcomes, 10)
    assert predict(Recall(), [*parts, parts[3]], "cpu").n == 103


def test_one_index_with_two_labels_is_refused(outcomes):
    images, labels, index = batches(*outcomes, 103)[0]
    with pytest.raises(ValueError, match="image index 5 comes with two labels"):
        predict(Recall(), [(images, labels, index), (images[:1], (labels[5:6] + 1) % 7, index[5:6])], "cpu")


def test_no_images_are_refused():
    with pytest.raises(ValueError, match="no images"):
        predict(Recall(), [], "cpu")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_logits_that_are_not_finite_are_refused(outcomes, value):
    logits, labels = outcomes
    logits[[2, 50], 0] = value
    with pytest.raises(FloatingPointError, match="2 of 103 images"):
        predict(Recall(), batches(logits, labels, 20), "cpu")


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_precision(outcomes, precision):
    model = nn.Linear(7, 7)
    seen = []
    model.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    if precision == "bf16-true":
        model.bfloat16()
    predict(model, batches(*outcomes, 103), "cpu", precision)
    assert seen == [torch.bfloat16]
    with pytest.raises(ValueError, match="precision='half'"):
        predict(model, batches(*outcomes, 103), "cpu", "half")


def test_compiled_code_is_not_used(outcomes):
    model = Recall()
    model.compile(backend=lambda *_: pytest.fail("compiled"))
    assert predict(model, batches(*outcomes, 50), "cpu").n == 103


def test_saved_file(tmp_path, outcomes):
    found = predict(Recall(), batches(*outcomes, 50), "cpu")
    path = tmp_path / "predictions.npz"
    found.save(path)
    again = Predictions.load(path)
    assert all((getattr(found, name) == getattr(again, name)).all() for name in vars(found))
    assert [file.name for file in tmp_path.iterdir()] == ["predictions.npz"]
    with np.load(path) as file:
        assert {"index", "label", "prediction", "confidence"} <= set(file.files)


def test_a_failed_save_leaves_the_old_file(tmp_path, outcomes, monkeypatch):
    found = predict(Recall(), batches(*outcomes, 50), "cpu")
    found.save(tmp_path / "predictions.npz")
    before = (tmp_path / "predictions.npz").read_bytes()

    def full(*_, **__):
        raise OSError("no space")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        found.save(tmp_path / "predictions.npz")
    assert (tmp_path / "predictions.npz").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_of_something_else_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", index=np.arange(3))
    with pytest.raises(ValueError, match=r"other.npz: lacks label"):
        Predictions.load(tmp_path / "other.npz")


def _rank(rank: int, world: int, folder: str, padded: bool) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=world)
    logits = torch.eye(2)[torch.tensor([1, 1, *[0] * 8])]
    images, labels, index = batches(logits, torch.zeros(10, dtype=torch.int64), 10)[0]
    mine = list(range(rank, 10, world))
    if padded:  # as PyTorch's distributed sampler does
        mine += [rank] * (-(-10 // world) - len(mine))
    found = predict(Recall(), [(images[mine], labels[mine], index[mine])] if mine else [], "cpu")
    assert found.top1 == 0.8
    assert found.index.tolist() == list(range(10))
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # nothing runs in the threads of the parent
@pytest.mark.parametrize(("world", "padded"), [(2, False), (4, True)])
def test_accuracy_does_not_depend_on_the_number_of_processes(tmp_path, world, padded):
    start_processes(_rank, (world, str(tmp_path), padded), nprocs=world, start_method="fork")
