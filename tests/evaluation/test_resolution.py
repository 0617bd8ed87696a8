import math

import numpy as np
import pytest
import torch
from scipy.ndimage import zoom
from timm.layers import resample_abs_pos_embed
from torch.multiprocessing.spawn import start_processes

from vitpos.cli import CONFIG_FOLDER
from vitpos.evaluation.predictions import predict
from vitpos.evaluation.resolution import evaluate_transfer
from vitpos.position import Position, Transfer
from vitpos.record import TransferRow

POSITIONS = sorted(path.stem for path in (CONFIG_FOLDER / "position").glob("*.yaml"))
ONE = {"table": "bicubic_antialias", "coordinates": "extrapolate", "temperature": "off"}
ALL = {
    "table": ["bicubic_antialias", "bicubic", "bilinear", "linear_corners"],
    "coordinates": ["extrapolate", "rescale", "ntk"],
    "temperature": ["off", "log_tokens"],
}
SIZES = [4, 8, 14, [8, 12], [12, 8]]


class Stubborn(Position):
    """Does nothing, except that `event` happens at the grid `at`."""

    label, family, injection = "stubborn", "none", "none"

    def __init__(self, geometry, event=None, at=(4, 4)):
        super().__init__(geometry)
        self.event, self.at = event, at

    def embed(self, x):
        return self.event(self, x) if self.event and self.grid == self.at else x


def failing(error):
    def event(module, x):
        raise error

    return event


@pytest.mark.parametrize("name", POSITIONS)
def test_every_module_at_every_size_under_every_protocol(name, vit, bars):
    model, data = vit(name), bars()
    images = next(iter(data.eval_dataloader("test")))[0]
    before, weights = model(images), {key: value.clone() for key, value in model.state_dict().items()}
    rows = [TransferRow.model_validate(row) for row in evaluate_transfer(model, data, {"sizes": SIZES, **ALL}, "cpu")]

    assert len({row.key for row in rows}) == len(rows)
    assert {(row.height, row.width) for row in rows} == {(4, 4), (8, 8), (14, 14), (8, 12), (12, 8)}
    assert all(row.status == "ok" and row.n == 30 and row.images_per_second > 0 for row in rows)
    assert all(row.tokens == 1 + row.height * row.width // 4 for row in rows)
    # At the size of training all protocols are the identity.
    assert len({row.nll for row in rows if (row.height, row.width) == (8, 8)}) == 1
    # What is said to differ does differ.
    assert len({row.nll for row in rows if (row.height, row.width) == (14, 14)}) > 1

    assert (model.image_size, model.position.grid) == ((8, 8), (4, 4))
    assert torch.equal(model(images), before)
    assert all(torch.equal(weights[key], value) for key, value in model.state_dict().items())


def test_rows_equal_separate_evaluations(vit, bars):
    model, data = vit("learned_1d"), bars()
    rows = evaluate_transfer(model, data, {"sizes": [[12, 8]], **ALL}, "cpu")
    assert len(rows) == 8
    for row in rows:
        model.resize((12, 8), Transfer(table=row["table"], temperature=row["temperature"]))
        found = predict(model, data.eval_dataloader("test", image_size=(12, 8)), "cpu")
        assert (row["top1"], row["nll"]) == (found.top1, found.nll.mean())


def test_several_protocols_read_the_images_once(vit, bars, monkeypatch):
    data, asked = bars(), []
    original = data.eval_dataloader
    monkeypatch.setattr(
        data,
        "eval_dataloader",
        lambda split, image_size=None: asked.append((split, image_size)) or original(split, image_size),
    )
    evaluate_transfer(vit(), data, {"sizes": [4, [8, 12]], **ALL}, "cpu", trained_top1=None)
    assert asked == [("test", None), ("test", (4, 4)), ("test", (8, 12)), ("test", None)]


def test_one_protocol_resizes_once_per_size(vit, bars, monkeypatch):
    model, seen = vit(), []
    original = model.resize
    monkeypatch.setattr(model, "resize", lambda size, transfer: seen.append(size) or original(size, transfer))
    evaluate_transfer(model, bars(), {"sizes": [8, 4, 12], **ONE}, "cpu")
    assert seen == [(4, 4), (12, 12), (8, 8)]


def test_batch_size_does_not_matter(vit, bars):
    found = [
        evaluate_transfer(vit("rope_axial"), bars(batch_size=size), {"sizes": [12], **ONE}, "cpu")[0]["top1"]
        for size in (1, 7, 30)
    ]
    assert len(set(found)) == 1


def test_temperature_is_the_ratio_of_logarithms_of_tokens(vit):
    model = vit("none")
    model.resize((12, 8), Transfer(temperature="log_tokens"))
    assert model.temperature == pytest.approx(math.log(1 + 6 * 4) / math.log(1 + 4 * 4))
    assert model.image_size == (12, 8)


def test_a_module_that_does_not_come_back_is_found(vit, bars):
    class Drifting(Stubborn):
        shift = 0

        def resize(self, grid, transfer):
            super().resize(grid, transfer)
            self.shift = 1

        def embed(self, x):
            return x.roll(self.shift, dims=0)  # every image answers for its neighbour

    model, data = vit(Drifting), bars()
    honest = predict(model, data.eval_dataloader("test"), "cpu")
    # The network is right about every image, as long as each answers for itself.
    data.load("test", (8, 8))[1].copy_(torch.from_numpy(honest.prediction))
    assert len(set(honest.prediction)) > 1
    with pytest.raises(RuntimeError, match=r"back at 8x8 px the accuracy is 0\.\d+, it was 1\.0: Drifting\.resize"):
        evaluate_transfer(model, data, {"sizes": [4, 12], **ONE}, "cpu", trained_top1=1.0)


def test_accuracy_given_by_the_caller_is_checked(vit, bars):
    with pytest.raises(RuntimeError, match=r"it was 0\.123"):
        evaluate_transfer(vit(), bars(), {"sizes": [4], **ONE}, "cpu", trained_top1=0.123)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried ..."),
        MemoryError(),
    ],
)
def test_a_size_too_large_is_recorded_and_the_others_go_on(vit, bars, error):
    model = vit(lambda geometry: Stubborn(geometry, failing(error), at=(6, 6)))
    rows = evaluate_transfer(model, bars(), {"sizes": [4, 12, 8], **ONE}, "cpu")
    assert [row["status"] for row in rows] == ["ok", "out_of_memory", "ok"]
    assert rows[1] | {"tokens": 37, "top1": None, "nll": None, "n": 0, "images_per_second": None} == rows[1]
    assert all(TransferRow.model_validate(row) for row in rows)
    assert model.image_size == (8, 8)


def test_images_that_do_not_fit_are_recorded(vit, bars, monkeypatch):
    data = bars()
    original = data.eval_dataloader

    def loader(split, image_size=None):
        if image_size == (12, 12):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return original(split, image_size)

    monkeypatch.setattr(data, "eval_dataloader", loader)
    rows = evaluate_transfer(vit(), data, {"sizes": [12, 4], **ALL}, "cpu")
    assert [row["status"] for row in rows] == ["out_of_memory"] * 8 + ["ok"] * 8


def test_one_protocol_that_fails_leaves_the_others(vit, bars):
    def event(module, x):
        if module.transfer.temperature == "log_tokens":
            raise MemoryError
        return x

    model = vit(lambda geometry: Stubborn(geometry, event, at=(6, 6)))
    rows = evaluate_transfer(model, bars(), {"sizes": [12], **ALL}, "cpu")
    assert [(row["temperature"], row["status"]) for row in rows] == [("off", "ok"), ("log_tokens", "out_of_memory")]


def test_logits_that_are_not_finite_are_recorded(vit, bars):
    model = vit(lambda geometry: Stubborn(geometry, lambda module, x: x * torch.nan, at=(6, 6)))
    rows = evaluate_transfer(model, bars(), {"sizes": [12, 4], **ONE}, "cpu")
    assert [(row["status"], row["n"]) for row in rows] == [("not_finite", 0), ("ok", 30)]


def test_other_errors_are_not_swallowed_and_the_network_returns(vit, bars):
    model = vit(lambda geometry: Stubborn(geometry, failing(RuntimeError("shape mismatch")), at=(6, 6)))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        evaluate_transfer(model, bars(), {"sizes": [12], **ONE}, "cpu")
    assert model.image_size == (8, 8)


def test_sizes_are_checked_before_any_test_image_is_read(vit, bars):
    data = bars()
    with pytest.raises(ValueError, match="9x9 px is not divisible into patches of 2 px"):
        evaluate_transfer(vit(), data, {"sizes": [4, 9], **ONE}, "cpu")
    assert not data.reads


def test_no_sizes_read_nothing(vit, bars):
    data = bars()
    assert evaluate_transfer(vit(), data, {"sizes": [], **ONE}, "cpu") == []
    assert not data.reads


def test_training_mode_and_gradients_survive(vit, bars):
    model = vit().train()
    evaluate_transfer(model, bars(), {"sizes": [12], **ONE}, "cpu")
    assert model.training
    model(torch.randn(2, 1, 8, 8)).sum().backward()
    assert model.position.get_parameter(next(name for name, _ in model.position.named_parameters())).grad is not None


def table(model):
    """The patch rows of the additive code at the present grid (H, W, D)."""
    return model.position.code(0)[model.prefix :].detach().unflatten(0, model.position.grid)


@pytest.mark.parametrize("grid", [(2, 2), (7, 7), (8, 8), (14, 14), (3, 9), (24, 5)])
def test_tables_equal_scipy_and_timm(vit, grid):
    model = vit("learned_1d", image_size=[12, 16], registers=1)
    trained, prefix = table(model).clone(), model.position.code(0)[:2].detach().clone()
    size = (2 * grid[0], 2 * grid[1])
    model.resize(size, Transfer(table="linear_corners"))
    ours = zoom(trained.double().numpy(), (grid[0] / 6, grid[1] / 8, 1), order=1)
    np.testing.assert_allclose(table(model), ours, atol=1e-6)
    model.resize(size, Transfer(table="bicubic_antialias"))
    theirs = resample_abs_pos_embed(trained.flatten(0, 1)[None], list(grid), [6, 8], num_prefix_tokens=0)
    np.testing.assert_allclose(table(model), theirs[0].unflatten(0, grid), atol=1e-5)
    assert torch.equal(model.position.code(0)[:2], prefix)


@pytest.mark.parametrize("resampling", ALL["table"])
def test_grids_are_exact_for_every_target(vit, resampling):
    model = vit("learned_1d", image_size=14, patch_size=1)
    for side in range(1, 65):
        for size in ((side, side), (side, 65 - side)):
            model.resize(size, Transfer(table=resampling))
            assert table(model).shape == (*size, 32)


@pytest.mark.parametrize("name", POSITIONS)
def test_narrow_and_long_images(name, vit):
    model = vit(name)
    for size in ((2, 2), (2, 64), (38, 2), (6, 10)):
        model.resize(size, Transfer())
        with torch.no_grad():
            assert torch.isfinite(model(torch.randn(2, 1, *size))).all()


@pytest.mark.parametrize("resampling", ALL["table"])
def test_a_transposed_table_is_resampled_to_the_transposed_one(vit, resampling):
    wide, tall = vit("learned_1d", image_size=[8, 12]), vit("learned_1d", image_size=[12, 8])
    with torch.no_grad():
        name, values = next(iter(wide.position.named_parameters()))
        patches = values[..., wide.prefix :, :].unflatten(-2, (4, 6)).transpose(-3, -2).flatten(-3, -2)
        tall.position.get_parameter(name).copy_(torch.cat((values[..., : wide.prefix, :], patches), dim=-2))
    wide.resize((14, 6), Transfer(table=resampling))
    tall.resize((6, 14), Transfer(table=resampling))
    torch.testing.assert_close(table(tall), table(wide).transpose(0, 1))


def _rank(rank, world, folder, model, data):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=world)
    model.position.event = failing(MemoryError()) if rank == 1 else None
    rows = evaluate_transfer(model, data, {"sizes": [12, 4], **ONE}, "cpu")
    torch.save([(row["status"], row["top1"], row["n"]) for row in rows], f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # nothing runs in the threads of the parent
def test_processes_agree_even_if_one_runs_out_of_memory(vit, bars, tmp_path):
    model, data = vit(lambda geometry: Stubborn(geometry, at=(6, 6))), bars()
    alone = evaluate_transfer(model, data, {"sizes": [4], **ONE}, "cpu")[0]
    start_processes(_rank, (2, str(tmp_path), model, data), nprocs=2, start_method="fork")
    expected = [("out_of_memory", None, 0), ("ok", alone["top1"], 30)]
    assert [torch.load(tmp_path / str(rank)) for rank in range(2)] == [expected, expected]
