"""One Weights & Biases run per job: its id kept with the run, offline by itself without a login, always closed."""

from __future__ import annotations

import contextlib
import logging
import netrc
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final
from urllib.parse import urlparse

from vitpos.record import write_text_atomic

if TYPE_CHECKING:  # so that a sweep can ask about tracking without waiting for PyTorch
    from pytorch_lightning.loggers import Logger

log = logging.getLogger(__name__)

ANSWER_TIMEOUT = 5.0  # seconds for a server to answer at all
INIT_TIMEOUT = 30.0  # seconds for it to open a run
FINISH_TIMEOUT = 120.0  # seconds for the last uploads; what is missing then stays on disk for `make sync`
ID_FILE = "wandb_id.txt"
UNSENT = ".unsent"  # behind the name of a W&B file


class Tracking(Protocol):
    """Where runs are tracked; built from a file in `conf/logger`."""

    def announce(self) -> str:
        """Return what a user should know of it before jobs start; settles for all of them whether it is online."""

    def open(self, folder: Path, *, name: str, group: str, kind: str, tags: Sequence[str], config: Any) -> Any:
        """Return a W&B run, or None if there is none."""

    def logger(self, run: Any, folder: Path) -> Logger | None:
        """Return Lightning's logger for an opened run."""


@final
class NoTracking:
    """Tracks nothing."""

    def announce(self) -> str:
        """Return nothing to say."""
        return ""

    def open(self, folder: Path, **_: Any) -> None:
        """Open nothing."""

    def logger(self, run: None, folder: Path) -> None:
        """Log nothing."""


@final
class WandbTracking:
    """Weights & Biases: online with a login, offline without one or when the server does not answer.

    `WANDB_MODE` decides where it is set.

    Args:
        project: W&B project.
        entity: account or team; empty for the default one.
        tags: extra tags.
    """

    def __init__(self, project: str, entity: str, tags: Sequence[str]) -> None:
        self.project, self.entity, self.tags = project, entity, tuple(tags)

    def announce(self) -> str:
        """Return whether runs go online, and keep it so for this process and those it starts."""
        mode, reason = pick_mode()
        os.environ["WANDB_MODE"] = mode
        return f"W&B {mode}" + (f" ({reason})" if reason else "")

    def open(
        self, folder: Path, *, name: str, group: str, kind: str, tags: Sequence[str], config: Mapping[str, Any]
    ) -> Any:
        """Open the W&B run that belongs to a folder, the same one again when the folder is resumed.

        Args:
            folder: all W&B files, caches included, stay inside it.
            name: display name.
            group: the experiment, so that its runs stand together.
            kind: W&B's job type.
            tags: tags beside the configured ones.
            config: nested plain settings.

        Returns:
            The run, or None with `WANDB_MODE=disabled`.
        """
        mode, reason = pick_mode()
        if mode == "disabled":
            return None
        if reason:
            log.warning("W&B is offline: %s", reason)
        keep_files_in(folder)
        import wandb

        def start(mode: str) -> Any:
            return wandb.init(
                project=self.project,
                entity=self.entity or None,
                dir=str(folder),
                id=_run_id(folder),
                resume="allow",
                name=name,
                group=group,
                job_type=kind,
                tags=list(dict.fromkeys([*tags, *self.tags])),
                config=dict(config),
                mode=mode,  # type: ignore[arg-type]
                allow_val_change=True,  # a resumed run may train longer
                # A run left open in this process would otherwise be handed out again.
                reinit="finish_previous",
                settings=wandb.Settings(
                    init_timeout=INIT_TIMEOUT, finish_timeout=FINISH_TIMEOUT, silent=True, console="off"
                ),
            )

        try:
            run = start(mode)
        except Exception as error:
            if mode == "online":
                reason = " ".join(str(error).split())
                log.warning("W&B does not open a run (%s); it goes on offline, `make sync` uploads it later", reason)
                os.environ["WANDB_MODE"] = mode = "offline"  # further jobs of this process need not wait for it again
            # The half-opened run would otherwise keep its id in use, and a service that has died is started anew.
            _forget_service()
            run = start(mode)
        if mode == "online":
            log.info("W&B run %s", run.url)
        run.define_metric("trainer/global_step")
        run.define_metric("*", step_metric="trainer/global_step")
        return run

    def logger(self, run: Any, folder: Path) -> Logger | None:
        """Return Lightning's logger for an opened run."""
        from vitpos.training.wandb_logger import TolerantWandbLogger

        return TolerantWandbLogger(run, folder) if run is not None else None


def close(logger: Logger | None, failed: bool) -> None:
    """End the W&B run; a failed job is shown as failed."""
    from vitpos.training.wandb_logger import TolerantWandbLogger

    if isinstance(logger, TolerantWandbLogger):
        logger.tracked.close(failed)


class TolerantRun:
    """A W&B run that may fail without taking along what it tells of: records, reports and figures lie on disk anyway.

    Attributes:
        lost: whether W&B has failed; nothing is sent to it any more.
    """

    def __init__(self, run: Any) -> None:
        self.run, self.lost = run, False

    def attempt(self, action: Callable[[Any], object]) -> None:
        """Do something with the run, unless W&B has failed before or does so now, which is said once."""
        if self.lost:
            return
        try:
            action(self.run)
        except Exception as error:  # whatever its service, its server or its disk may do
            self._lose(error)

    def close(self, failed: bool) -> None:
        """End the run; what could not be sent in time is left to `make sync`."""
        started = time.monotonic()
        try:
            self.run.finish(exit_code=int(failed))
        except Exception as error:
            self._lose(error)
            _forget_service()  # it is gone, and the next run of this process needs one
        if not self.run.offline and (self.lost or time.monotonic() - started >= FINISH_TIMEOUT):
            file = Path(self.run.settings.sync_file)
            if file.exists():
                file.with_name(file.name + UNSENT).touch()
            log.warning("W&B has not received everything; `make sync` sends it again")

    def _lose(self, error: Exception) -> None:
        if not self.lost:
            reason = " ".join(str(error).split()) or type(error).__name__
            log.warning("W&B has failed (%s); work goes on without it, results are on disk", reason)
        self.lost = True


def _forget_service() -> None:
    """Let W&B start a new service next time, whatever has become of the present one."""
    import wandb

    with contextlib.suppress(Exception, SystemExit):
        wandb.teardown()


def pick_mode() -> tuple[str, str]:
    """Return W&B's mode, and why it is offline if nobody asked for that."""
    given = os.environ.get("WANDB_MODE")
    if given:
        return given, ""
    url = server()
    if not has_login(url):
        return "offline", "no login; `wandb login`, then `make sync`, uploads the runs"
    if not answers(url):
        return "offline", f"{url} does not answer; `make sync` uploads the runs later"
    return "online", ""


def server() -> str:
    """Return the address of the W&B server: `WANDB_BASE_URL`, else the one of `wandb login --host`, else W&B's own."""
    given = os.environ.get("WANDB_BASE_URL")
    if given:
        return given.rstrip("/")
    path = Path(os.environ.get("WANDB_CONFIG_DIR", "~/.config/wandb")).expanduser() / "settings"
    with_url: list[str] = []
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        with_url = [line.partition("=")[2].strip() for line in lines if line.split("=")[0].strip() == "base_url"]
    return (with_url or ["https://api.wandb.ai"])[-1].rstrip("/")


def has_login(url: str) -> bool:
    """Return whether W&B would find credentials for a server without asking."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(urlparse(url).netloc) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def answers(url: str) -> bool:
    """Return whether a server answers anything at all, through a proxy if one is configured."""
    try:
        urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT).close()
    except urllib.error.HTTPError:  # an answer, too
        return True
    except (OSError, ValueError):
        return False
    return True


def keep_files_in(folder: Path) -> None:
    """Point every W&B cache and staging area into a folder instead of the home directory."""
    for variable, place in (
        ("WANDB_CACHE_DIR", "cache"),
        ("WANDB_DATA_DIR", "staging"),
        ("WANDB_ARTIFACT_DIR", "artifacts"),
    ):
        os.environ[variable] = str(folder.absolute() / "wandb" / place)


def _run_id(folder: Path) -> str:
    """Return the W&B id that belongs to a folder, made at its first start; an agent of a W&B sweep brings its own."""
    path = folder / ID_FILE
    given = os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None
    if given or not path.exists():
        write_text_atomic(path, (given or secrets.token_hex(4)) + "\n")
    return path.read_text(encoding="utf-8").strip()
