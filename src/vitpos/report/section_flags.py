"""What a reader must know of one section before believing its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from vitpos.report.flags import Flag, listed
from vitpos.report.grouping import Section
from vitpos.report.rows import Analysis, Row
from vitpos.report.selection import CRITERION, describe
from vitpos.report.settings import NOT


def section_flags(analysis: Analysis) -> list[Flag]:
    """Return the remarks that concern one section."""
    section = analysis.section
    flags = [Flag("confounder", confounder_text(section, key, analysis.reference)) for key in section.confounders]
    if section.tuned:
        flags += _selection_flags(analysis)
    return flags + _seed_flags(analysis) + _mixed_flags(analysis)


def confounder_text(section: Section, key: str, reference: str) -> str:
    """Return which arms have which value of a setting that differs between arms."""
    values: dict[str, list[str]] = {}
    for arm, runs in section.arms.items():
        known = next((run for run in runs if run.settings is not None), runs[0])
        values.setdefault(known.conditions.get(key, NOT), []).append(arm)
    # The reference's value goes last: in most studies it is everybody else's too.
    parts = sorted(values.items(), key=lambda item: (reference in item[1], item[0]))
    text = "; ".join(f"{listed(arms)}: {value}" for value, arms in parts)
    return f"{key} differs between arms, not only the position module ({text})."


def _selection_flags(analysis: Analysis) -> list[Flag]:
    selection = analysis.selection
    keys = ", ".join(analysis.section.tuned)
    if selection.shared is None:
        main = "the main columns are empty"
    else:
        main = f"the main columns use one setting for all arms ({describe(selection.shared)})"
    text = (
        f"{keys} took several values; chosen by mean {CRITERION} over seeds, test results read for the chosen ones "
        f"only: {main}, the tuned columns each arm's own best setting."
    )
    return [Flag("selection", text, serious=False)] + [Flag("selection", f"{note}.") for note in selection.notes]


def _seed_flags(analysis: Analysis) -> list[Flag]:
    """Return remarks on missing, unequal and single seeds."""
    flags = []
    rows = [row for row in analysis.rows if row.runs]
    holes = listed(f"{row.arm} seed {_seeds(row.missing)}" for row in analysis.rows if row.missing)
    counts = Counter(len(row.runs) for row in rows)
    if len(counts) > 1:
        usual = counts.most_common(1)[0][0]
        odd = listed(f"{row.arm} has {len(row.runs)}" for row in rows if len(row.runs) != usual)
        lacking = f"; missing: {holes}" if holes else ""
        text = f"{odd}, the others {usual}{lacking}; differences use the seeds that both arms have."
        flags.append(Flag("unequal seeds", text))
    elif holes and analysis.setting is not None:
        flags.append(Flag("missing seeds", f"others have them: {holes}."))
    single = [row.arm for row in rows if len(row.runs) == 1]
    if single:
        flags.append(Flag("one seed", f"one seed only, so no interval and no verdict: {listed(single)}."))
    if analysis.duplicates:
        names = [run.name for run in analysis.duplicates]
        text = f"left out, because another run has the same arm, settings and seed: {listed(names)}."
        flags.append(Flag("duplicate", text))
    return flags


def _mixed_flags(analysis: Analysis) -> list[Flag]:
    """Return remarks on runs that should be alike and are not."""
    flags = []
    rows = [row for row in analysis.rows if row.runs]
    if len(analysis.test_sizes) > 1:
        sizes = ", ".join(map(str, sorted(analysis.test_sizes)))
        flags.append(Flag("mixed test sets", f"test sets of different sizes within this section ({sizes} images)."))
    epochs = sorted({run.record.epochs for row in rows for run in row.runs if run.record.epochs is not None})
    if len(epochs) > 1:
        text = ", ".join(map(str, epochs))
        flags.append(Flag("mixed epochs", f"runs trained for different numbers of epochs ({text})."))
    unequal = [row.arm for row in rows if _unequal_parameters(row)]
    if unequal:
        text = f"runs of one arm have different numbers of parameters: {listed(unequal)}."
        flags.append(Flag("mixed networks", text))
    return flags


def _unequal_parameters(row: Row) -> bool:
    counts = {(run.record.cost.parameters, run.record.cost.position_parameters) for run in row.runs if run.record.cost}
    return len(counts) > 1


def _seeds(seeds: Iterable[int]) -> str:
    return ", ".join(map(str, seeds))
