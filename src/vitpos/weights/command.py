"""Import a ViT of timm's: `python scripts/import_weights.py timm=vit_small_patch16_dinov3 timm.global_pool=token`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from vitpos.weights.origin import open_network
from vitpos.weights.run_folder import import_network

USAGE = (
    "timm=NAME|FILE [model=ARCHITECTURE of a FILE] [timm.ARGUMENT=VALUE ...] [data=NAME data.SETTING=VALUE ...] "
    "[output_dir=outputs] [experiment_name=imported]"
)

log = logging.getLogger(__name__)


@dataclass
class Settings:
    """What a command line asks for.

    Attributes:
        timm: a timm name or a weights file.
        model: timm's architecture of a file.
        output_dir: folder of all experiments.
        experiment_name: folder of this one.
        arguments: of timm's architecture.
        data: overrides of the data set.
    """

    timm: str = ""
    model: str = ""
    output_dir: str = "outputs"
    experiment_name: str = "imported"
    arguments: dict[str, Any] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)


def main(arguments: Sequence[str]) -> None:
    """Import the network that a command line names; problems end the program with their message."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("vitpos").setLevel(logging.INFO)
    try:
        run(arguments)
    except ValueError as error:
        sys.exit(str(error))


def run(arguments: Sequence[str]) -> None:
    """Import the network and say what was found.

    Raises:
        ValueError: see `origin.open_network` and `run_folder.import_network`.
    """
    settings = parse(arguments)
    origin = open_network(settings.timm, settings.model, settings.arguments)
    folder, record = import_network(
        origin,
        output_dir=settings.output_dir,
        experiment_name=settings.experiment_name,
        data=settings.data,
        overrides=arguments,
    )
    log.info("%s: %s", record.model.name, record.position.label)
    if record.cost:
        log.info("%s parameters", f"{record.cost.parameters:,}")
    log.info("logits differ from timm's by %.1g at most", record.diagnostics["timm_difference"])
    top1 = record.metrics.get("test/top1")
    if top1 is None:
        log.info("no test accuracy: the classes are not those of data=%s; few-shot needs no head", record.data.name)
    else:
        log.info("top-1 %.2f%% on the test images of data=%s", 100 * top1, record.data.name)
    log.info("%s", folder)


def parse(arguments: Sequence[str]) -> Settings:
    """Read `key=value` arguments.

    Raises:
        ValueError: an unknown key, `timm=` missing, or a value that YAML can't read.
    """
    settings = Settings()
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            raise ValueError(f"{argument!r}: not understood. Usage: {USAGE}")
        if key == "data" or key.lstrip("+").startswith("data."):
            settings.data.append(argument)
        elif key.startswith("timm."):
            try:
                settings.arguments[key.removeprefix("timm.")] = yaml.safe_load(value)
            except yaml.YAMLError as error:
                raise ValueError(f"{argument!r}: the value can't be read ({error})") from error
        elif key in ("timm", "model", "output_dir", "experiment_name"):
            setattr(settings, key, value)
        else:
            raise ValueError(f"{argument!r}: not understood. Usage: {USAGE}")
    if not settings.timm:
        raise ValueError(f"timm= is missing. Usage: {USAGE}")
    return settings
