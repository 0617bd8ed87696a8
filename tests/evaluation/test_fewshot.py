import numpy as np
import pytest
import torch
import yaml
from hydra.utils import instantiate
from torch.multiprocessing.spawn import start_processes

from vitpos.cli import CONFIG_FOLDER
from vitpos.evaluation.classifiers import NearestNeighbours, Ridge
from vitpos.evaluation.features import extract
from vitpos.evaluation.fewshot import draw_support, evaluate_fewshot, support_of

SETTINGS = {"features": "pre_logits", "shots": [1, 5], "draws": 3, "seed": 0, "classifier": Ridge()}


def test_accuracy_by_hand(vit, bars):
    model, data = vit("rope_axial"), bars()
    found = evaluate_fewshot(model, data, SETTINGS, "cpu")
    assert list(found) == ["fewshot/1", "fewshot/1_sd", "fewshot/5", "fewshot/5_sd"]

    support, query = (extract(model, data, split, "pre_logits", "cpu") for split in ("train", "test"))
    accuracies = []
    for draw in support_of(data, SETTINGS)[5]:
        place = [list(support.index).index(image) for image in draw]
        answers = Ridge()(support.features[place], support.label[place], query.features, 4)["fewshot"]
        accuracies.append((answers == query.label).mean())
    assert found["fewshot/5"] == pytest.approx(np.mean(accuracies))
    assert found["fewshot/5_sd"] == pytest.approx(np.std(accuracies, ddof=1))


def test_batches_and_training_seed_do_not_change_the_result(vit, bars):
    found = [
        evaluate_fewshot(vit(), bars(seed=seed, batch_size=size), SETTINGS, "cpu") for seed, size in ((0, 8), (7, 5))
    ]
    assert found[0] == found[1]


def test_another_network_is_judged_on_the_same_images(bars):
    torch.manual_seed(1)
    one = support_of(bars(), SETTINGS)
    torch.manual_seed(2)
    other = support_of(bars(seed=3), SETTINGS)
    assert all((a == b).all() for shots in (1, 5) for a, b in zip(one[shots], other[shots], strict=True))


def test_draws():
    label = np.arange(40) % 4
    index = np.arange(40) * 10
    fives, ones = (draw_support(index, label, shots, 4, draws=3, seed=0) for shots in (5, 1))
    for draw in fives:
        assert np.bincount(label[draw // 10]).tolist() == [5, 5, 5, 5]
        assert len(set(draw)) == 20
    assert len({tuple(draw) for draw in fives}) == 3
    assert all(set(one) <= set(five) for one, five in zip(ones, fives, strict=True))
    assert (draw_support(index, label, 5, 4, draws=1, seed=1)[0] != fives[0]).any()
    (everything,) = draw_support(index, label, "all", 4, draws=3, seed=0)
    assert everything.tolist() == index.tolist()


def test_classes_with_too_few_images_are_named():
    label = np.array([0] * 9 + [1] * 3 + [3] * 9)
    with pytest.raises(ValueError, match=r"fewshot.shots=5: too few .* class 1 has 3, class 2 has 0; lower it"):
        draw_support(np.arange(21), label, 5, 4, draws=1, seed=0)
    with pytest.raises(ValueError, match=r"class 2 has 0, .* and 92 more classes; lower it"):
        draw_support(np.arange(21), label, 1, 100, draws=1, seed=0)


@pytest.mark.parametrize("shots", [0, -1, 2.5, True, "some"])
def test_shots_that_cannot_be_are_refused(shots):
    with pytest.raises(ValueError, match=r"fewshot.shots="):
        draw_support(np.arange(4), np.arange(4), shots, 4, draws=1, seed=0)


def test_too_many_shots_are_found_without_a_network_or_a_test_image(bars):
    data = bars()
    with pytest.raises(ValueError, match=r"fewshot.shots=13: too few training images, class 0 has 12"):
        support_of(data, SETTINGS | {"shots": [13]})
    assert not data.reads["test"]
    with pytest.raises(ValueError, match=r"fewshot.draws=0"):
        support_of(data, SETTINGS | {"draws": 0})


def test_names_say_what_departs_from_the_paper(vit, bars):
    settings = SETTINGS | {"features": "patch_mean", "shots": [5, "all"], "classifier": Ridge([1024, 1])}
    found = evaluate_fewshot(vit(), bars(), settings, "cpu", data_name="toy")
    names = ["fewshot/toy/patch_mean/5", "fewshot/l2_1/toy/patch_mean/5"]
    assert {name for name in found if "all" not in name} == {*names, *(f"{name}_sd" for name in names)}
    assert {name for name in found if "all" in name} == {
        "fewshot/toy/patch_mean/all",
        "fewshot/l2_1/toy/patch_mean/all",
    }
    knn = evaluate_fewshot(vit(), bars(), SETTINGS | {"classifier": NearestNeighbours(3)}, "cpu")
    assert list(knn) == ["knn3/1", "knn3/1_sd", "knn3/5", "knn3/5_sd"]


def test_features_that_separate_the_classes_score_high(vit, bars):
    class Rows(torch.nn.Module):
        """Brightness of each row, which is the class."""

        def forward(self, x):
            return x.mean(dim=(1, 3))

    model = vit()
    model.features = lambda images: torch.nn.functional.pad(Rows()(images), (0, 24))
    found = evaluate_fewshot(model, bars(), SETTINGS | {"classifier": Ridge(1.0)}, "cpu")
    assert found["fewshot/l2_1/5"] > 0.9


@pytest.mark.parametrize("path", sorted((CONFIG_FOLDER / "fewshot").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_settings_file(path, vit, bars):
    settings = yaml.safe_load(path.read_text())
    settings["shots"] = [5] if settings["shots"] == "${data.shots}" else settings["shots"]
    found = evaluate_fewshot(vit(), bars(), settings, "cpu")
    expected = {"ridge": ["fewshot/5", "fewshot/5_sd"], "knn": ["knn20/all"], "none": []}
    assert list(found) == expected[path.stem]
    instantiate(settings["classifier"])


def _rank(rank, world, folder, model, data):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=world)
    torch.save(evaluate_fewshot(model, data, SETTINGS, "cpu"), f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # nothing runs in the threads of the parent
def test_processes_agree_with_one(vit, bars, tmp_path):
    model, data = vit(), bars()
    alone = evaluate_fewshot(model, data, SETTINGS, "cpu")
    start_processes(_rank, (2, str(tmp_path), model, data), nprocs=2, start_method="fork")
    assert [torch.load(tmp_path / str(rank)) for rank in range(2)] == [alone, alone]
