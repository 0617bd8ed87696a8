"""One Weights & Biases run per job: its id beside the checkpoints, offline by itself without a login, always closed."""

from __future__ import annotations

import logging
import netrc
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pytorch_lightning.loggers import Logger, WandbLogger

log = logging.getLogger(__name__)

INIT_TIMEOUT = 30.0  # seconds for a server to answer before the run goes on offline


def no_logger(**_: Any) -> None:
    """Track nothing."""


def wandb_logger(
    project: str, entity: str, tags: Sequence[str], *, folder: Path, name: str, group: str, config: Mapping[str, Any]
) -> Logger | None:
    """Open the W&B run of a run folder, the same one again when the folder is resumed.

    Online with a login, offline without one or when the server does not answer; `WANDB_MODE` decides when it is set.

    Args:
        project: W&B project.
        entity: account or team; empty for the default one.
        tags: extra tags.
        folder: the run folder; all W&B files, caches included, stay inside it.
        name: display name.
        group: the experiment, so that its runs stand together.
        config: nested plain settings.
    """
    mode = os.environ.get("WANDB_MODE") or ("online" if has_login() else "offline")
    if mode == "disabled":
        return None
    import wandb

    keep_files_in(folder)
    run_id = _run_id(folder)

    def start(mode: str) -> Any:
        return wandb.init(
            project=project,
            entity=entity or None,
            dir=str(folder),
            id=run_id,
            resume="allow",
            name=name,
            group=group,
            job_type="train",
            tags=[str(config["position_name"]), *tags],
            config=dict(config),
            mode=mode,  # type: ignore[arg-type]
            allow_val_change=True,  # a resumed run may train longer
            # A run left open in this process would otherwise be handed out again.
            reinit="finish_previous",
            settings=wandb.Settings(init_timeout=INIT_TIMEOUT, silent=True, console="off"),
        )

    try:
        run = start(mode)
    except Exception as error:
        if mode != "online":
            raise
        log.warning("W&B does not answer (%s); this run goes on offline, `make sync` uploads it later", error)
        run = start("offline")
    run.define_metric("trainer/global_step")
    run.define_metric("*", step_metric="trainer/global_step")
    return WandbLogger(experiment=run, save_dir=str(folder))


def close(logger: Logger | None, failed: bool) -> None:
    """End the W&B run; a failed job is shown as crashed."""
    if isinstance(logger, WandbLogger):
        logger.experiment.finish(exit_code=int(failed))


def has_login() -> bool:
    """Return whether W&B would find credentials without asking."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def keep_files_in(folder: Path) -> None:
    """Point every W&B cache and staging area into the run folder instead of the home directory."""
    for variable, place in (
        ("WANDB_CACHE_DIR", "cache"),
        ("WANDB_DATA_DIR", "staging"),
        ("WANDB_ARTIFACT_DIR", "artifacts"),
        ("WANDB_CONFIG_DIR", "settings"),
    ):
        os.environ[variable] = str(folder.absolute() / "wandb" / place)


def _run_id(folder: Path) -> str:
    """Return the W&B id of a run folder, made at its first start."""
    path = folder / "checkpoints" / "wandb_id.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(secrets.token_hex(4) + "\n", encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()
