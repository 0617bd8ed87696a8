"""The training step: what it draws, and how gradients are clipped."""

import pytest
import torch

from vitpos.training.build import build_data
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


def test_validation_loss_is_the_mean_over_images(compose):
    """Not over batches: the last one is smaller."""
    losses = []
    for size in (32, 50, 183):
        config = compose(f"data.batch_size={size}", "data.limit_train=200")
        data = build_data(config)
        data.setup()
        network = {key: config[key] for key in ("seed", "model", "position")}
        spec = {"image_size": [8, 8], "channels": 1, "classes": 10}
        task = ClassificationTask(network, spec, {"lr": 1e-3, "weight_decay": 0.0}).eval()
        task.model.load_state_dict({name: value * 3 for name, value in task.model.state_dict().items()})
        with torch.no_grad():
            for number, batch in enumerate(data.val_dataloader()):
                task.validation_step(batch, number)
        losses.append(float(task.val_loss.compute()))
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)


def test_a_compiled_network_is_compiled_once(compose):
    """Static shapes while training; validation, whose last batch is smaller, runs plain code."""
    compiled = []

    def backend(graph, inputs):
        compiled.append([tuple(value.shape) for value in inputs if isinstance(value, torch.Tensor) and value.ndim == 4])
        return graph.forward

    original = torch.nn.Module.compile
    torch.nn.Module.compile = lambda self, **settings: original(self, backend=backend, **settings)
    try:
        record = run(compose("trainer.compile=true", "trainer.max_epochs=2", "position=relative_2d"))
    finally:
        torch.nn.Module.compile = original
        torch.compiler.reset()
    assert record.status == "finished"
    assert len(compiled) == 1
    assert (32, 1, 8, 8) in compiled[0]
