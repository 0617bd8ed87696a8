"""What a reader must know of a study before believing its numbers. Nothing is averaged over in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vitpos.report.rows import Analysis
from vitpos.report.study import Run, Study

_LISTED = 12  # longer lists are cut, with their length
_FOLDERS = {
    "unfinished": "unfinished, not averaged",
    "unreadable": "unreadable, not averaged",
    "foreign": "not a run of this experiment, ignored",
}


@dataclass(frozen=True)
class Flag:
    """One remark.

    Attributes:
        kind: short name, the same for all remarks of a kind.
        text: one sentence for the caption.
        serious: whether it bears on the verdicts.
    """

    kind: str
    text: str
    serious: bool = True


def study_flags(study: Study, reference: str, analyses: Sequence[Analysis]) -> list[Flag]:
    """Return the remarks that concern all sections of a study."""
    flags = []
    if study.failed:
        texts = [f"{run.name} ({run.record.error.type})" if run.record.error else run.name for run in study.failed]
        flags.append(Flag("failed", f"{len(texts)} failed, not averaged: {listed(texts)}."))
    for kind, words in _FOLDERS.items():
        names = [problem.folder.name for problem in study.problems if problem.kind == kind]
        if names:
            flags.append(Flag(kind, f"{len(names)} {words}: {listed(names)}.", serious=kind != "foreign"))
    lost = [run.name for run in study.finished if run.accuracy is None]
    if lost:
        flags.append(Flag("not finite", f"{len(lost)} without a finite test accuracy, not averaged: {listed(lost)}."))
    if len(analyses) > 1:
        titles = "; ".join(analysis.section.title for analysis in analyses)
        flags.append(Flag("mixed data", f"{len(analyses)} sections, never averaged or compared: {titles}."))
    if study.runs and not any(analysis.reference for analysis in analyses):
        arms = sorted({arm for analysis in analyses for arm in analysis.section.arms})
        text = f"no finished run of the reference {reference!r}, so no differences; arms: {listed(arms)}."
        flags.append(Flag("no reference", text))
    without = [run.name for run in study.runs if run.settings is None]
    if without:
        text = f"{len(without)} without a stored config, their settings can't be compared: {listed(without)}."
        flags.append(Flag("no config", text))
    return flags + _mixtures(study.finished)


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence, a long list cut with the number of what is left out."""
    every = list(names)
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more


def _mixtures(runs: list[Run]) -> list[Flag]:
    """Return remarks on runs of different code, library versions and devices."""
    flags = []
    commits = Counter(run.record.commit or "unknown" for run in runs)
    if len(commits) > 1:
        text = ", ".join(f"{_short(commit)} ({count} runs)" for commit, count in sorted(commits.items()))
        flags.append(Flag("mixed commits", f"runs of different versions of the code: {text}."))
    changed = sum((run.record.commit or "").endswith("+") for run in runs)
    if changed:
        text = f"{changed} of {len(runs)} runs trained with uncommitted changes to the code."
        flags.append(Flag("uncommitted code", text, serious=False))
    names = sorted({name for run in runs for name in run.record.versions})
    mixed = [name for name in names if len({run.record.versions.get(name) for run in runs}) > 1]
    if mixed:
        flags.append(Flag("mixed versions", f"runs with different versions of {listed(mixed)}."))
    devices = Counter(run.record.device or "unknown" for run in runs)
    if len(devices) > 1:
        text = ", ".join(f"{device} ({count} runs)" for device, count in sorted(devices.items()))
        flags.append(Flag("mixed devices", f"times and memory are from different devices: {text}.", serious=False))
    return flags


def _short(commit: str) -> str:
    """Return a commit as git abbreviates it, its mark of uncommitted changes kept."""
    return commit if len(commit) <= 12 else commit[:10] + ("+" if commit.endswith("+") else "")
