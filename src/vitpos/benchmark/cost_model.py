"""What a study costs: matrix products per image, images per run, runs, and a machine's achieved rate.

Letters: T tokens, N patches, D width, L layers, R hidden width of the MLP over D.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A network and its images, as far as matrix products go.

    Attributes:
        patches: N.
        dim: D.
        depth: L.
        patch_values: numbers in a patch, channels times its pixels.
        classes: outputs.
        prefix: CLS and register tokens.
        mlp_ratio: R.
        reads_one: whether only one token of the last layer is read (a CLS token), so that only it is computed.
    """

    patches: int
    dim: int
    depth: int
    patch_values: int
    classes: int
    prefix: int = 1
    mlp_ratio: float = 4.0
    reads_one: bool = True

    @property
    def tokens(self) -> int:
        """T."""
        return self.prefix + self.patches

    @property
    def linear_flops(self) -> float:
        """FLOPs per image of the linear maps of all layers: (6 + 2 + 4R) T D^2 each, two per multiply-add.

        Of a last layer that is read at one token, k and v (4 T D^2) are computed of all, the rest of that token.
        """
        wide, narrow = 4.0 * self.dim**2, (4 + 4 * self.mlp_ratio) * self.dim**2
        return self.depth * self.tokens * wide + self._rows * narrow

    @property
    def attention_product_flops(self) -> float:
        """FLOPs per image of one of the products of attention, T^2 D multiply-adds in each layer."""
        return 2.0 * self._rows * self.tokens * self.dim

    @property
    def forward_flops(self) -> float:
        """FLOPs of one image: linear maps, two products of attention, patch embedding and head."""
        return self.linear_flops + 2 * self.attention_product_flops + self._embedding + self._head

    @property
    def training_flops(self) -> float:
        """FLOPs of one image forward and backward.

        A linear map costs twice as much backward as forward, the embedding only as much, since images need no gradient.
        A fused attention computes one of its two products again and four more.
        """
        return 3 * (self.linear_flops + self._head) + 2 * self._embedding + 7 * self.attention_product_flops

    @property
    def _rows(self) -> int:
        """Tokens transformed by the layers, all together."""
        return self.depth * self.tokens - (self.tokens - 1 if self.reads_one else 0)

    @property
    def _embedding(self) -> float:
        return 2.0 * self.patches * self.patch_values * self.dim

    @property
    def _head(self) -> float:
        return 2.0 * self.dim * self.classes


@dataclass(frozen=True)
class Study:
    """Runs of one kind.

    Attributes:
        runs: position modules times seeds times whatever else is swept.
        shape: network and images of training.
        train_images: per epoch.
        epochs: of each run.
        val_images: evaluated after each epoch.
        evaluations: (shape, images) of every pass after training, such as one per image size.
    """

    runs: int
    shape: Shape
    train_images: int
    epochs: int
    val_images: int = 0
    evaluations: tuple[tuple[Shape, int], ...] = ()

    @property
    def training_flops(self) -> float:
        """FLOPs of the training steps of one run."""
        return self.epochs * self.train_images * self.shape.training_flops

    @property
    def evaluation_flops(self) -> float:
        """FLOPs of the forward passes of one run, while and after it trains."""
        after = sum(images * shape.forward_flops for shape, images in self.evaluations)
        return self.epochs * self.val_images * self.shape.forward_flops + after

    def seconds(
        self, training_rate: float, forward_rate: float = 0.0, fixed: float = 0.0, per_epoch: float = 0.0
    ) -> float:
        """Return the seconds of all runs, one after the other.

        Args:
            training_rate: FLOP/s that training steps achieve.
            forward_rate: FLOP/s that forward passes achieve; 0: the same.
            fixed: seconds of a run that do not depend on its size, such as figures.
            per_epoch: the same of an epoch, such as checkpoints.

        Raises:
            ValueError: a rate that is not positive.
        """
        if training_rate <= 0:
            raise ValueError(f"training_rate={training_rate}: must be positive")
        spent = self.training_flops / training_rate + self.evaluation_flops / (forward_rate or training_rate)
        return self.runs * (spent + fixed + self.epochs * per_epoch)


def loader_rate(shape: Shape, achieved: float) -> float:
    """Return the images per second that a loader must deliver to keep an accelerator of `achieved` FLOP/s busy."""
    return achieved / shape.training_flops
