"""Choose the value of a tuned setting on validation data; the test result is read for the chosen value only."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean

from vitpos.report.grouping import Section, Setting
from vitpos.report.study import Run

CRITERION = "val/top1"


@dataclass(frozen=True)
class Selection:
    """Which setting each column of the table stands for.

    Attributes:
        shared: one setting for all arms, the best on average over arms; None if no setting was run by every arm.
        tuned: arm -> the best setting of that arm.
        notes: what a reader must know of the choice.
    """

    shared: Setting | None
    tuned: dict[str, Setting]
    notes: tuple[str, ...]


def can_select(runs: list[Run]) -> bool:
    """Return whether every finished run has the metric that settings are chosen by."""
    return all(run.metric(CRITERION) is not None for run in runs if run.record.status == "finished")


def select(section: Section) -> Selection:
    """Choose the shared and the tuned setting of a section by the mean validation top-1 over seeds.

    Only settings with as many finished seeds as the arm has at most take part, because a mean over fewer seeds wins
    more easily by chance. Among equals the first in order is taken.
    """
    if not section.tuned:
        arms = [arm for arm, runs in section.arms.items() if any(run.accuracy is not None for run in runs)]
        return Selection((), dict.fromkeys(arms, ()), ())
    scores: dict[str, dict[Setting, float]] = {}
    notes = []
    for arm, runs in section.arms.items():
        values: dict[Setting, list[float]] = defaultdict(list)
        for run in runs:
            value = run.metric(CRITERION)
            if value is not None and run.accuracy is not None:
                values[section.setting(run)].append(value)
        if not values:
            continue
        most = max(len(found) for found in values.values())
        short = sorted((setting for setting, found in values.items() if len(found) < most), key=repr)
        if short:
            notes.append(f"{arm}: left out of the choice for want of seeds: {'; '.join(map(describe, short))}")
        scores[arm] = {setting: fmean(found) for setting, found in values.items() if len(found) == most}
    tuned = {arm: _best(found) for arm, found in scores.items()}
    common = set.intersection(*(set(found) for found in scores.values())) if scores else set()
    shared = _best({setting: fmean(found[setting] for found in scores.values()) for setting in common})
    if scores and not common:
        notes.append(f"no value of {', '.join(section.tuned)} was run by every arm: there is no shared setting")
    return Selection(shared if common else None, tuned, tuple(notes))


def describe(setting: Setting) -> str:
    """Return a setting as it would be typed."""
    return ", ".join(f"{key}={value}" for key, value in setting)


def _best(scores: dict[Setting, float]) -> Setting:
    return min(scores, key=lambda setting: (-scores[setting], repr(setting)), default=())
