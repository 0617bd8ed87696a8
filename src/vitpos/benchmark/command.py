"""The command `scripts/benchmark.py`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console

import vitpos.benchmark.what
from vitpos.benchmark.settings import parse
from vitpos.training.allocator import keep_freed_memory

WIDTH = 120  # of tables that go to a file or a pipe


def main(arguments: Sequence[str]) -> None:
    """Measure what a command line asks for, print the tables and write them."""
    settings = parse(arguments)
    choices = sorted(module.name for module in pkgutil.iter_modules(vitpos.benchmark.what.__path__))
    if settings.what not in choices:
        sys.exit(f"what={settings.what}: choose one of {', '.join(choices)}")
    torch.set_num_threads(settings.threads)
    keep_freed_memory()  # as in training
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    try:
        tables = importlib.import_module(f"vitpos.benchmark.what.{settings.what}").measure(settings)
    except ValueError as error:
        sys.exit(str(error))
    for table in tables:
        table.show(console)
        console.print(f"written to {table.write(Path(settings.output))}", highlight=False)
