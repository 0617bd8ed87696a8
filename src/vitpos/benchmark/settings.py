"""What `scripts/benchmark.py` measures, from `key=value` arguments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

import torch
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from vitpos.spec import ImageSpec

ROUNDS = {"step": 11, "fit": 3}  # readings of a step scatter, a fit takes minutes
OTHERWISE = 5


@dataclass
class Settings:
    """Sizes and conditions of a measurement; the defaults are the study that `docs/performance.md` reports.

    Attributes:
        what: file of `vitpos/benchmark/what`, such as step, fit, scaling or cost.
        device: cpu or cuda.
        precision: 32-true or bf16-mixed.
        threads: of a CPU. With one, time is CPU time of this process, so that other processes count little.
        compile: compile the networks, ours and the peers'.
        dim: token width.
        depth: layers.
        heads: attention heads.
        image_size: pixels of a square image of three channels.
        patch_size: pixels.
        classes: outputs.
        batch: images per step.
        rounds: pairs of the thing measured and its baseline, in turn; 0: as many as the measurement needs.
        modules: files of `conf/position`; empty: all of them.
        peers: whether other libraries' networks are measured too.
        data: data sets of fit, transfer and sweep; those that are not on this machine are skipped.
        model: file of `conf/model` of fit, transfer and sweep.
        images: training images of fit and prediction; 0: all.
        epochs: of fit, sweep and prediction; 0: as many as the measurement needs.
        runs: jobs of sweep.
        jobs: of them at once.
        flops: of one accelerator, per second, for cost; 0: what this machine achieves.
        output: folder of the tables.
    """

    what: str = "step"
    device: str = "cpu"
    precision: str = "32-true"
    threads: int = 1
    compile: bool = False
    dim: int = 192
    depth: int = 4
    heads: int = 3
    image_size: int = 32
    patch_size: int = 4
    classes: int = 10
    batch: int = 64
    rounds: int = 0
    modules: list[str] = field(default_factory=list)
    peers: bool = True
    data: list[str] = field(default_factory=lambda: ["fashion_mnist", "digits"])
    model: str = "vit_nano"
    images: int = 20_000
    epochs: int = 0
    runs: int = 40
    jobs: int = 2
    flops: float = 0.0
    output: str = "outputs/benchmark"

    @property
    def spec(self) -> ImageSpec:
        """The images of a step."""
        return ImageSpec((self.image_size, self.image_size), 3, self.classes)

    @property
    def place(self) -> torch.device:
        """Where networks are measured."""
        return torch.device(self.device)


def parse(arguments: Sequence[str]) -> Settings:
    """Return the settings of a command line.

    Raises:
        SystemExit: with the list of settings when asked for help; with one line for what cannot be measured.
    """
    if {"-h", "--help"} & set(arguments):
        print(__doc__, *_described(), sep="\n")
        sys.exit(0)
    try:
        given = OmegaConf.from_dotlist([_bracketed(argument) for argument in arguments])
        config = OmegaConf.merge(OmegaConf.structured(Settings), given)
    except (OmegaConfBaseException, ValueError) as error:
        sys.exit(f"{' '.join(str(error).split())}; --help lists the settings")
    settings = cast(Settings, OmegaConf.to_object(config))
    settings.rounds = settings.rounds or ROUNDS.get(settings.what, OTHERWISE)
    for name in ("threads", "dim", "depth", "heads", "image_size", "patch_size", "classes", "batch", "rounds"):
        if getattr(settings, name) < 1:
            sys.exit(f"{name}={getattr(settings, name)}: must be at least 1")
    if settings.device not in ("cpu", "cuda"):
        sys.exit(f"device={settings.device}: choose cpu or cuda")
    if settings.device == "cuda" and not torch.cuda.is_available():
        sys.exit("device=cuda: PyTorch finds no GPU on this machine")
    return settings


def _bracketed(argument: str) -> str:
    """Let lists do without brackets, `modules=none,peg` as `modules=[none,peg]`."""
    name, equals, value = argument.partition("=")
    many = isinstance(getattr(Settings(), name, None), list)
    return f"{name}=[{value}]" if many and equals and not value.startswith("[") else argument


def _described() -> list[str]:
    """Return one line per setting: name, default and meaning."""
    lines = (Settings.__doc__ or "").partition("Attributes:")[2].strip().splitlines()
    meaning = dict(line.strip().split(": ", 1) for line in lines)
    defaults: dict[str, Any] = {item.name: getattr(Settings(), item.name) for item in fields(Settings)}
    return [f"  {name}={_shown(value)}: {meaning[name]}" for name, value in defaults.items()]


def _shown(value: Any) -> str:
    return (
        f"[{','.join(value)}]"
        if isinstance(value, list)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
