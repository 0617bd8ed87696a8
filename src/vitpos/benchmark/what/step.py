"""One training step of every position module beside its baseline, and of other libraries' networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from rich.progress import track
from torch import nn

from vitpos.benchmark.clock import Clock
from vitpos.benchmark.flops import count_flops
from vitpos.benchmark.machine_rate import product_rate
from vitpos.benchmark.memory import MIB
from vitpos.benchmark.networks import WITHOUT, network, position_names
from vitpos.benchmark.pairs import compare
from vitpos.benchmark.peers import PLAIN, peers
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.step import TrainingStep
from vitpos.benchmark.table import Row, Table
from vitpos.benchmark.what import utilisation

Build = Callable[[], nn.Module]


def measure(settings: Settings) -> list[Table]:
    """Return the table of ratios, and the utilisation of the model sizes."""
    pairs = plan(settings)
    _, missing = peers()
    clock = Clock(settings.place, settings.threads)
    tokens = 1 + (settings.image_size // settings.patch_size) ** 2
    rate = product_rate(settings.batch * tokens, settings.dim, clock, utilisation.dtype(settings))
    rows = list(_rows(settings, pairs, clock, rate))
    note = (
        f"Training step (forward, backward, AdamW) of {settings.batch} images, {tokens} tokens, width {settings.dim}, "
        f"{settings.depth} layers, {settings.heads} heads, {settings.precision} on {settings.device}, "
        f"{settings.threads} thread(s). ratio: median over {settings.rounds} rounds of its time over that of the "
        f"baseline just before and after. utilisation: FLOP/s of its matrix products over the {rate / 1e9:,.0f} "
        f"GFLOP/s that this machine reaches in products of these shapes. {' '.join(missing)}"
    )
    table = Table("benchmark", "One training step", rows, note.strip(), ("rounds", "images_per_second", "memory_mib"))
    return [table, *utilisation.measure(settings)]


def plan(settings: Settings) -> list[tuple[str, str]]:
    """Return (network, baseline) of every row: ours without positions and all peers first.

    Raises:
        ValueError: a module that is not in `conf/position`.
    """
    others = [name for name in peers()[0] if name != PLAIN and settings.peers]
    modules = [name for name in position_names(settings.modules) if name != WITHOUT]
    return [*((name, PLAIN) for name in [WITHOUT, *others]), *((name, WITHOUT) for name in modules)]


def _rows(settings: Settings, pairs: list[tuple[str, str]], clock: Clock, rate: float) -> Iterator[Row]:
    """Measure one network after the other, so that only it and its baseline are in memory."""
    others, _ = peers()

    def build(name: str) -> Build:
        return lambda: others[name](settings) if name in others else network(name, settings)

    resident: dict[str, tuple[TrainingStep, int, int]] = {}
    for name, baseline in track(pairs, description="training steps", transient=True):
        if baseline not in resident:
            resident = {baseline: _warm(build(baseline), settings)}
        step, flops, memory = _warm(build(name), settings)
        other, _, other_memory = resident[baseline]
        found = compare(step, other, settings.rounds, clock)
        seconds = median(found.seconds)
        yield {
            "name": name,
            "baseline": baseline,
            "ratio": found.ratio,
            "min": min(found.ratios),
            "max": max(found.ratios),
            "rounds": settings.rounds,
            "step_ms": 1000 * seconds,
            "images_per_second": settings.batch / seconds,
            "memory_ratio": memory / other_memory,
            "memory_mib": memory / MIB,
            "utilisation": flops / seconds / rate,
        }


def _warm(build: Build, settings: Settings) -> tuple[TrainingStep, int, int]:
    """Return a step that has run, its FLOPs, and its peak memory in bytes."""
    step = TrainingStep(build(), settings)
    flops = count_flops(step)
    memory = step.peak_bytes()
    if settings.compile:
        step()  # counting looks at every operation, which is not how compiled code runs
    return step, flops, memory
