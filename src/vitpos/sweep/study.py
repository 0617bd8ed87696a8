"""A sweep as one study: its report on disk, and the same as a run of its own in W&B, beside the runs it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.utils import instantiate

from vitpos.record import RESULT_FILE
from vitpos.sweep.jobs import Job

if TYPE_CHECKING:  # pandas and matplotlib are for the end of a sweep
    from vitpos.training.tracking import Tracking

STUDY_FOLDER = ".report"  # in the experiment's folder; holds nothing but W&B's files
TABLES = {"table": "table.csv", "transfer": "transfer.csv"}


@dataclass(frozen=True)
class Study:
    """The jobs of a sweep and how they are reported.

    Attributes:
        jobs: all jobs.
        report: settings of the report: `reference`, `margin`.
    """

    jobs: Sequence[Job]
    report: Any

    @property
    def folder(self) -> Path:
        """Folder of the experiment."""
        return self.jobs[0].folder.parent


def track(config: dict[str, Any]) -> str:
    """Settle whether the runs of a sweep are tracked online; return what to say of it."""
    said = _tracking(config).announce()
    return f", {said}" if said else ""


def publish_study(study: Study, send: bool) -> None:
    """Build, print and track the report; a report that cannot be built does not hide the runs.

    Args:
        study: the sweep.
        send: whether there is news for W&B.
    """
    if not any(job.folder.joinpath(RESULT_FILE).exists() for job in study.jobs):
        return
    from rich.console import Console

    from vitpos.report import make_report, print_report, write_report

    try:
        report = make_report(study.folder, reference=study.report.reference, margin=study.report.margin)
        folder = write_report(report)
    except (ValueError, OSError) as error:
        print(f"no report: {error}")
        return
    print_report(report, Console())
    print(f"report    {folder}")
    if send:
        send_study(study, folder)


def send_study(study: Study, report: Path) -> None:
    """Put tables and figures of a report into a W&B run of the same group; the next sweep continues the same run."""
    config = study.jobs[0].config
    tracking = _tracking(config)
    name = str(config["experiment_name"])
    folder = study.folder / STUDY_FOLDER
    folder.mkdir(exist_ok=True)
    settings = {"experiment": name, "jobs": [job.name for job in study.jobs], "report": str(report)}
    try:
        run = tracking.open(folder, name=f"{name}-report", group=name, kind="report", tags=["report"], config=settings)
    except Exception as error:
        print(f"no W&B report: {error}")
        return
    if run is None:
        return
    from vitpos.training.tracking import TolerantRun

    tracked = TolerantRun(run)
    tracked.attempt(lambda run: run.log(_content(report)))
    tracked.close(failed=False)


def _content(report: Path) -> dict[str, Any]:
    import pandas
    import wandb

    content: dict[str, Any] = {}
    for key, file in TABLES.items():
        if (report / file).exists():
            frame = pandas.read_csv(report / file)
            content[f"report/{key}"] = wandb.Table(dataframe=frame.astype(object).where(frame.notna(), None))
    for picture in sorted(report.rglob("*.png")):
        content[f"report/{picture.stem}"] = wandb.Image(str(picture))
    return content


def _tracking(config: dict[str, Any]) -> Tracking:
    tracking: Tracking = instantiate(config["logger"], _convert_="all")
    return tracking
