"""Image classification as a LightningModule: loss, metrics, optimiser, and nothing else."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.optim import Optimizer
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassCalibrationError

from vitpos.spec import ImageSpec
from vitpos.training.build import build_model
from vitpos.training.optim import OptimSettings, build_optimizer, rate_at

TOP5_FROM = 10  # with fewer classes, five guesses are most of them


class NonFiniteLossError(RuntimeError):
    """The loss is NaN or infinite: the run has failed."""


def classification_metrics(classes: int) -> MetricCollection:
    """Return top-1, top-5 (from 10 classes on) and calibration error (15 bins), over all images of all batches."""
    # validate_args: looking at the values of every batch makes a GPU wait; ours are probabilities and classes.
    settings: dict[str, Any] = {"num_classes": classes, "validate_args": False}
    metrics: dict[str, Any] = {"top1": MulticlassAccuracy(**settings, average="micro")}
    if classes >= TOP5_FROM:
        metrics["top5"] = MulticlassAccuracy(**settings, average="micro", top_k=5)
    metrics["ece"] = MulticlassCalibrationError(**settings, n_bins=15)
    return MetricCollection(metrics, compute_groups=False)


class ClassificationTask(pl.LightningModule):
    """Cross-entropy training of a ViT built from plain settings, so that a checkpoint alone rebuilds it.

    Args:
        network: the `seed`, `model` and `position` parts of a resolved config, as plain containers.
        spec: fields of the `ImageSpec` of the images it is trained on.
        optim: fields of `OptimSettings`.
    """

    def __init__(self, network: dict[str, Any], spec: dict[str, Any], optim: dict[str, Any]) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)  # W&B has the whole config already
        self.seed = int(network["seed"])
        self.settings = OptimSettings(**optim)
        image_size = tuple(spec["image_size"])
        self.model = build_model(network, ImageSpec(image_size, spec["channels"], spec["classes"]))
        # nan_strategy: a NaN must show, and looking for one at every step would make a GPU wait. It also drops weights,
        # so that a mean over images needs the losses of all images.
        self.train_loss = MeanMetric(nan_strategy="disable")
        self.val_loss = MeanMetric(nan_strategy="disable")
        self.val_metrics = classification_metrics(spec["classes"])

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, classes)."""
        logits: Tensor = self.model(images)
        return logits

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Make stochastic depth a function of (seed, step): a resumed run draws what an unbroken one would have."""
        seed = hash((self.seed, self.trainer.fit_loop.total_batch_idx + 1, self.global_rank)) & 0x7FFFFFFF
        # Not `torch.manual_seed`: it also queues a seed and a stack trace for every kind of device that is not there.
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> Tensor:
        """Return the mean loss of one batch; labels are classes (B,) or, after mixup, shares (B, classes)."""
        images, labels, _ = batch
        loss = F.cross_entropy(self.model(images), labels, label_smoothing=self.settings.label_smoothing)
        self.train_loss.update(loss.detach())
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the global norm of the gradients; Lightning's own way refuses fused optimisers under autocast."""
        if gradient_clip_val:
            # From the optimiser's lists: walking through the modules takes longer than the norms.
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, gradient_clip_val)

    def on_train_epoch_end(self) -> None:
        """Log the mean training loss.

        Raises:
            NonFiniteLossError: it is not finite. Checked once an epoch, since looking at it makes a GPU wait.
        """
        loss = self.train_loss.compute()
        self.train_loss.reset()
        if not torch.isfinite(loss):
            raise NonFiniteLossError(f"training loss is {loss.item()} in epoch {self.current_epoch}")
        self.log("train/loss", loss, rank_zero_only=True)
        self.log("train/lr", self.trainer.optimizers[0].param_groups[0]["lr"], rank_zero_only=True)

    def validation_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Collect the metrics of one batch."""
        images, labels, _ = batch
        # Plain code even of a compiled network, as in every evaluation: the last batch's own size would compile anew.
        with torch.compiler.set_stance("force_eager"):
            logits = self.model(images).float()
        self.val_loss.update(F.cross_entropy(logits, labels, reduction="none"))
        self.val_metrics.update(logits.softmax(-1), labels)

    def on_validation_epoch_end(self) -> None:
        """Log metrics over all validation images; equal on 1, 2 and more processes."""
        metrics = {f"val/{name}": value for name, value in self.val_metrics.compute().items()}
        metrics["val/nll"] = self.val_loss.compute()
        self.val_metrics.reset()
        self.val_loss.reset()
        # Metrics have gathered all ranks themselves; every rank logs the same value.
        self.log_dict(metrics, rank_zero_only=False, sync_dist=False)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Return AdamW and a rate that depends on the optimiser step alone."""
        optimizer = build_optimizer(self.model, self.settings, fused=self.trainer.precision != "16-mixed")
        steps, settings = int(self.trainer.estimated_stepping_batches), self.settings
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: rate_at(step, steps, settings.warmup, settings.final_lr)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
