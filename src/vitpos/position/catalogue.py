"""The table of all position modules, worked out from their files and their behaviour rather than typed.

Letters: B batch, K heads, T tokens, E head width.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate

from vitpos.position.base import Geometry, Position

COLUMNS = (
    *("`position=`", "name", "family", "acts at", "published by"),
    *("Ti", "S", "B", "CLS, registers", "at another size"),
)
WIDTHS = ((192, 3), (384, 6), (768, 12))  # D and K of ViT-Ti, S and B
GRID, DEPTH = (14, 14), 12
Build = Callable[..., Position]


def catalogue(conf: Path) -> str:
    """Return a Markdown table with one row per file of `conf`/position."""
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        for file in sorted((conf / "position").glob("*.yaml")):
            build: Build = instantiate(compose(f"position/{file.stem}").position)
            rows.append(_row(file.stem, build))
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |\n" for row in rows)


def _row(name: str, build: Build) -> tuple[str, ...]:
    module = build(geometry=Geometry(grid=(3, 4), prefix=1, dim=16, heads=2, depth=2)).eval()
    counts = [_parameters(build, dim, heads) for dim, heads in WIDTHS]
    what = (f"`{name}`", module.label, module.family, module.injection, module.source or "-")
    return (*what, *counts, _prefix_policy(module), _at_another_size(module))


def _parameters(build: Build, dim: int, heads: int) -> str:
    def count(depth: int) -> int:
        with torch.device("meta"):
            module = build(geometry=Geometry(grid=GRID, prefix=1, dim=dim, heads=heads, depth=depth))
        return sum(parameter.numel() for parameter in module.parameters())

    total = count(DEPTH)
    per_layer = total > 0 and count(2 * DEPTH) == 2 * total
    return f"{total:,}" + (f" ({total // DEPTH:,} per layer)" if per_layer else "")


def _prefix_policy(module: Position) -> str:
    """Tell what the hooks do to the first token by running them."""
    geometry = module.geometry
    x = torch.zeros(1, geometry.tokens, geometry.dim)
    q = torch.randn(1, geometry.heads, geometry.tokens, geometry.head_dim)
    with torch.no_grad():
        added = module.before_layer(module.embed(x), 1)[0]
        rotated, _ = module.rotate(q, q, 1)
        bias = module.bias(q, q, 1)
    policies = []
    if added.any():
        policies.append("row of its own" if added[0].any() else "nothing added")
    if not torch.equal(rotated, q):
        policies.append("not rotated")
    if bias is not None:
        pairs = torch.stack((bias[0, 0, 0, 1], bias[0, 0, 1, 0], bias[0, 0, 0, 0]))
        same = f"bias {abs(float(pairs[0])):g}" if (pairs == pairs[0]).all() else ""
        policies.append(same or "three biases of its own")
    return ", ".join(policies) or "nothing"


def _at_another_size(module: Position) -> str:
    ways = []
    if "table" in module.honours:
        ways.append("table resampled")
    if "coordinates" in module.honours:
        ways.append("coordinates extrapolated or rescaled" + (", or NTK" if "ntk" in module.honours else ""))
    return "; ".join(ways) or ("computed anew for the image" if list(module.buffers()) else "as it is")
