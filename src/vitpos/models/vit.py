"""The Vision Transformer of Dosovitskiy et al. 2020 with a swappable position module.

Parameter names follow timm's outside `position.`, so that weights move between the two without a table of names.

Letters: B batch, C channels, H W grid rows and columns, P prefix tokens, T = P + H*W tokens, D width, L layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Literal, get_args

import torch
from timm.layers import PatchEmbed, trunc_normal_
from torch import Tensor, nn

from vitpos.models.block import Block
from vitpos.position import Geometry, Position, Transfer
from vitpos.spec import ImageSize, ImageSpec, as_size

Pool = Literal["cls", "mean", "mean_beside_cls"]
FinalNorm = Literal["pooled", "tokens", "none"]


def grid_of(image_size: ImageSize, patch_size: int) -> tuple[int, int]:
    """Return (rows, columns) of patches.

    Raises:
        ValueError: the patch size does not divide the image size.
    """
    height, width = image_size
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError(
            f"model.patch_size={patch_size} does not divide the image size {height}x{width}: "
            f"both sides must be multiples of the patch size"
        )
    return height // patch_size, width // patch_size


class ViT(nn.Module):
    """Vision Transformer.

    Args:
        spec: image size, channels and classes of the data it is trained on; with no classes there is no head, and the
            logits are what it would read.
        position: builds the position module from `geometry=`.
        patch_size: side of a square patch in pixels.
        dim: token width D.
        depth: layers L.
        pool: `cls` reads a CLS token; `mean` averages the patches and has no CLS token; `mean_beside_cls` averages the
            patches of a network that has one.
        registers: register tokens (Darcet et al. 2023).
        block: builds a layer from `dim=` and `drop_path=`.
        drop_path: stochastic depth of the last layer; earlier layers less, linearly.
        final_norm: what the norm behind the last layer acts on: `pooled` tokens, all `tokens` before pooling, `none`.

    Raises:
        ValueError: a patch size that does not divide the image, an unknown pool or final norm, sizes below one.
    """

    def __init__(
        self,
        spec: ImageSpec,
        position: Callable[..., Position],
        patch_size: int,
        dim: int,
        depth: int,
        block: Callable[..., Block],
        pool: Pool = "cls",
        registers: int = 0,
        drop_path: float = 0.0,
        final_norm: FinalNorm = "pooled",
    ) -> None:
        super().__init__()
        if pool not in get_args(Pool):
            raise ValueError(f"model.pool={pool!r}: choose one of {', '.join(get_args(Pool))}")
        if final_norm not in get_args(FinalNorm):
            raise ValueError(f"model.final_norm={final_norm!r}: choose one of {', '.join(get_args(FinalNorm))}")
        if registers < 0:
            raise ValueError(f"model.registers={registers}: must be at least 0")
        if depth < 1:
            raise ValueError(f"model.depth={depth}: must be at least 1")
        self.patch_size, self.pool = patch_size, pool
        self.trained_size = self.image_size = spec.image_size
        grid = grid_of(spec.image_size, patch_size)

        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if pool != "mean" else None
        self.reg_token = nn.Parameter(torch.zeros(1, registers, dim)) if registers else None
        self.prefix = int(pool != "mean") + registers
        self.patch_embed = PatchEmbed(
            img_size=None, patch_size=patch_size, in_chans=spec.channels, embed_dim=dim, strict_img_size=False
        )
        rates = [drop_path * layer / max(depth - 1, 1) for layer in range(depth)]
        layers = [block(dim=dim, drop_path=rate) for rate in rates]
        self.blocks = nn.ModuleList(layers)
        norm = nn.Identity() if final_norm == "none" else deepcopy(layers[0].norm1)
        # Names as in timm, where only a network that averages can have a norm after pooling.
        per_token = pool == "cls" or final_norm == "tokens"
        self.norm: nn.Module = norm if per_token else nn.Identity()
        self.fc_norm: nn.Module = nn.Identity() if per_token else norm
        self.head = nn.Linear(dim, spec.classes) if spec.classes else nn.Identity()
        self._initialise()

        heads = layers[0].attn.heads
        self.geometry = Geometry(grid=grid, prefix=self.prefix, dim=dim, heads=heads, depth=depth)
        self.temperature = 1.0
        self.position = position(geometry=self.geometry)  # last: the backbone's weights must not depend on it

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, classes) of the images (B, C, height, width)."""
        logits: Tensor = self.head(self.features(images))
        return logits

    def features(self, images: Tensor) -> Tensor:
        """Return the representation (B, D) that the head reads, `pre_logits`."""
        x = self._stem(images)
        for layer in range(len(self.blocks) - 1):
            x = self._layer(x, layer)
        return self._pool(self._last(x))

    def trace(self, images: Tensor) -> dict[str, Tensor]:
        """Return named intermediates of one pass.

        `stem` and `layer0` .. are the tokens (B, T, D) after the stem and after each layer; `pre_logits` is (B, D),
        `logits` (B, classes).
        """
        tokens = list(self._walk(images))
        out = dict(zip(("stem", *(f"layer{layer}" for layer in range(len(self.blocks)))), tokens, strict=True))
        out["pre_logits"] = self._pool(self._last(tokens[-2]))  # as in `features`, to the last bit
        out["logits"] = self.head(out["pre_logits"])
        return out

    def resize(self, image_size: int | Sequence[int], transfer: Transfer) -> None:
        """Announce the size of the next images and how positions follow.

        Raises:
            ValueError: a size that the patch size does not divide.
        """
        size = as_size(image_size)
        grid = grid_of(size, self.patch_size)
        tokens, trained = self.prefix + grid[0] * grid[1], self.geometry.tokens
        scaled = transfer.temperature == "log_tokens" and tokens != trained
        self.temperature = math.log(tokens) / math.log(trained) if scaled else 1.0
        self.position.resize(grid, transfer)
        self.image_size = size

    def _stem(self, images: Tensor) -> Tensor:
        if tuple(images.shape[-2:]) != self.image_size:
            raise ValueError(
                f"images of {images.shape[-2]}x{images.shape[-1]} px reached a network set to "
                f"{self.image_size[0]}x{self.image_size[1]}: call resize(image_size, transfer) first"
            )
        x = self.patch_embed(images)  # B H*W D
        prefix = [token for token in (self.cls_token, self.reg_token) if token is not None]
        if prefix:
            x = torch.cat([token.expand(x.shape[0], -1, -1).to(x.dtype) for token in prefix] + [x], dim=1)  # B T D
        return self.position.embed(x)

    def _walk(self, images: Tensor) -> Iterator[Tensor]:
        """Yield all tokens (B, T, D), after the stem and after each layer."""
        x = self._stem(images)
        yield x
        for layer in range(len(self.blocks)):
            x = self._layer(x, layer)
            yield x

    def _layer(self, x: Tensor, layer: int, read: int | None = None) -> Tensor:
        x = self.position.before_layer(x, layer)
        out: Tensor = self.blocks[layer](x, self.position, layer, self.temperature, read)
        return out

    def _last(self, x: Tensor) -> Tensor:
        """Compute of the last layer what is pooled: with `cls` one token, which saves nearly the whole layer."""
        return self._layer(x, len(self.blocks) - 1, read=1 if self.pool == "cls" else None)

    def _pool(self, x: Tensor) -> Tensor:
        # A norm acts on each token alone, so only the tokens that are read need be normalised.
        pooled = self.norm(x[:, 0]) if self.pool == "cls" else self.norm(x[:, self.prefix :]).mean(dim=1)
        out: Tensor = self.fc_norm(pooled)
        return out

    def _initialise(self) -> None:
        """Initialise as timm does: linear maps truncated normal of 0.02, biases zero, CLS and registers near zero."""
        if self.patch_embed.proj.weight.is_meta:
            return  # no numbers, and drawing them is what takes time there
        for module in self.modules():
            if isinstance(module, nn.Linear):
                trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for token in (self.cls_token, self.reg_token):
            if token is not None:
                nn.init.normal_(token, std=1e-6)

    def cost(self) -> dict[str, Any]:
        """Return parameters, position parameters and forward FLOPs per image at the present size.

        FLOPs are those of the network as papers count it, all tokens through all layers.
        """
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.utils.flop_counter import FlopCounterMode

        parameter = next(self.parameters())
        image = torch.zeros(1, self.patch_embed.proj.in_channels, *self.image_size, device=parameter.device)
        training = self.training
        self.eval()
        # The counter sees matrix products; a fused attention kernel would hide its two from it.
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            *_, x = self._walk(image.to(parameter.dtype))
            self.head(self._pool(x))
        self.train(training)
        return {
            "parameters": sum(p.numel() for p in self.parameters()),
            "position_parameters": sum(p.numel() for p in self.position.parameters()),
            "flops_per_image": counter.get_total_flops(),
        }
