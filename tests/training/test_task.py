"""The training step: what it draws, and how gradients are clipped."""

import pytest
import torch

from vitpos.training.run import run
from vitpos.training.task import ClassificationTask


def test_clipping_works_with_the_fused_optimiser_in_every_precision(compose, monkeypatch):
    norms = []
    clip = ClassificationTask.configure_gradient_clipping

    def measured(self, *arguments, **settings):
        clip(self, *arguments, **settings)
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norms.append(float(torch.nn.utils.get_total_norm(gradients)))
        assert self.trainer.optimizers[0].defaults["fused"]

    monkeypatch.setattr(ClassificationTask, "configure_gradient_clipping", measured)
    for precision in ("32-true", "bf16-mixed"):
        overrides = (f"trainer.precision={precision}", f"experiment_name={precision}", "optim.grad_clip=0.01")
        assert run(compose(*overrides)).status == "finished"
    assert norms == pytest.approx([0.01] * len(norms), rel=1e-3)
    assert len(norms) == 4


def test_seeding_a_step_is_seeding_the_process(compose):
    """What a step draws follows from its number alone."""
    config = compose()
    task = ClassificationTask(
        {key: config[key] for key in ("seed", "model", "position")},
        {"image_size": [8, 8], "channels": 1, "classes": 10},
        {"lr": 1e-3, "weight_decay": 0.0},
    )

    class Loop:
        total_batch_idx = 6

    task.trainer = type("Trainer", (), {"fit_loop": Loop(), "global_rank": 0})()
    drawn = []
    for _ in range(2):
        task.on_train_batch_start(None, 0)
        drawn.append(torch.rand(3))
    assert torch.equal(*drawn)
    torch.manual_seed(hash((config["seed"], 7, 0)) & 0x7FFFFFFF)
    assert torch.equal(drawn[0], torch.rand(3))
