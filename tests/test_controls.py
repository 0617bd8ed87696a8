"""The calibration of the instrument: tasks whose answer is known, trained for seconds."""

import pytest

from vitpos.training.run import run

SMALL = (
    *("data.image_size=16", "data.train_images=2880", "data.test_images=720"),
    *("model.depth=2", "model.dim=48", "optim.lr=3e-3", "trainer.progress=false"),
    *("callbacks=none", "logger=none", "transfer=none", "fewshot=none"),
    *("diagnostics.images=16", "diagnostics.shuffle_images=16"),
)


def accuracy(compose, *overrides):
    return run(compose(*overrides, base=SMALL)).metrics["test/top1"]


@pytest.mark.parametrize(("task", "classes"), [("absolute", 9), ("relative", 4), ("distance", 3), ("arrow", 8)])
def test_without_positions_a_network_is_exactly_at_chance(compose, task, classes):
    size = "data.image_size=24"
    top1 = accuracy(
        compose, "position=none", f"data=where_{task}", "trainer.max_epochs=1", size, "data.limit_train=576"
    )
    assert top1 == pytest.approx(1 / classes, abs=1e-12)


@pytest.mark.slow
def test_positions_answer_what_needs_them_and_nothing_else(compose):
    arms = {
        (task, name): accuracy(compose, f"position={name}", f"data=where_{task}", "trainer.max_epochs=5")
        for task in ("arrow", "bag")
        for name in ("none", "rope_axial")
    }
    assert arms["arrow", "none"] == pytest.approx(1 / 8, abs=1e-12)
    assert arms["arrow", "rope_axial"] > 0.9
    assert arms["bag", "none"] > 0.95
    assert arms["bag", "rope_axial"] > 0.95
