"""Which runs may stand in one table, and which may be averaged.

Runs are averaged over seeds only: same arm, same conditions. A setting that takes several values within an arm is a
factor of the study. Factors of data and network split the study into sections that are never compared; other factors
(learning rate, epochs, ...) are tuned, see `selection`. A setting that differs between arms but not within one is a
confounder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vitpos.report.formats import natural
from vitpos.report.settings import NOT
from vitpos.report.study import Run

_SPLITTING = ("data.", "model.", "resize.")
# Never compared across, even where no arm has two of them.
_ALWAYS_SPLIT = ("data_name", "data._target_", "fine-tuned from")
_NAMES = ("data_name", "model_name")
_FAMILIES = ("none", "additive", "rotary", "bias", "convolutional", "combined")

Setting = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Section:
    """Runs that differ in arm, seed and tuned settings only, confounders apart.

    Attributes:
        title: data set, image size and network, and whatever else tells it from other sections.
        slug: the same as a file name; empty for the only section of a study.
        arms: arm -> its runs, finished and failed, in the order of the table.
        tuned: settings with several values within an arm.
        confounders: settings that differ between arms, and are the same within each.
    """

    title: str
    slug: str
    arms: dict[str, list[Run]]
    tuned: tuple[str, ...]
    confounders: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for runs in self.arms.values() for run in runs]

    def setting(self, run: Run) -> Setting:
        """Return the values of the tuned settings of a run."""
        return tuple((key, run.conditions.get(key, NOT)) for key in self.tuned)


def name_arms(runs: Iterable[Run]) -> dict[str, str]:
    """Return run name -> arm: the position's name, with its own numbers where runs of that name differ in them."""
    by_position: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_position[run.record.position.name].append(run)
    arms = {}
    for position, group in by_position.items():
        keys = sorted({key for run in group for key in run.numbers})
        varying = [key for key in keys if len({run.numbers.get(key) for run in group}) > 1]
        for run in group:
            numbers = ", ".join(f"{key}={run.numbers.get(key, NOT)}" for key in varying)
            arms[run.name] = f"{position}[{numbers}]" if numbers else position
    return arms


def make_sections(runs: Sequence[Run], arms: dict[str, str], split_all: bool = False) -> list[Section]:
    """Split runs into sections.

    Args:
        runs: finished and failed runs.
        arms: run name -> arm.
        split_all: make every factor a section, because nothing was recorded to choose its value by.
    """
    varying = _varying(runs, arms)
    splitting = [
        key
        for key, crossed in varying.items()
        if key in _ALWAYS_SPLIT or (crossed and (split_all or key in _NAMES or key.startswith(_SPLITTING)))
    ]
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        groups[tuple(run.conditions.get(key, NOT) for key in splitting)].append(run)
    # What the title says anyway need not be said twice; that a section is fine-tuned is said even if all runs are.
    extra = [key for key in splitting if key not in (*_NAMES, "data.image_size", "data._target_", "fine-tuned from")]
    extra.append("fine-tuned from")
    sections = []
    ordered = sorted(groups.values(), key=lambda group: natural(_title(group[0], extra)))
    for number, group in enumerate(ordered):
        inside = _varying(group, arms)
        sections.append(
            Section(
                title=_title(group[0], extra),
                slug=f"section{number + 1}" if len(groups) > 1 else "",
                arms=_ordered(group, arms),
                tuned=tuple(key for key, crossed in inside.items() if crossed),
                confounders=tuple(key for key, crossed in inside.items() if not crossed),
            )
        )
    return sections


def base_title(run: Run, size: tuple[int, int]) -> str:
    """Return the title of the section that a run of this data set and network at an image size belongs to."""
    return f"{run.record.data.name}, {size[0]} x {size[1]} px, {run.record.model.name}"


def _varying(runs: Sequence[Run], arms: dict[str, str]) -> dict[str, bool]:
    """Return setting -> whether it varies within an arm, for every setting with several values.

    Runs whose config is lost say nothing of settings they don't know.
    """
    known = [run for run in runs if run.settings is not None] or list(runs)
    said = {key for run in runs[:1] for key in run.conditions}.intersection(*(run.conditions for run in runs))
    found = {}
    for key in sorted({key for run in known for key in run.conditions}):
        source = runs if key in said else known
        if len({run.conditions.get(key) for run in source}) > 1:
            within: dict[str, set[str | None]] = defaultdict(set)
            for run in source:
                within[arms[run.name]].add(run.conditions.get(key))
            found[key] = any(len(values) > 1 for values in within.values())
    return found


def _title(run: Run, extra: Sequence[str]) -> str:
    parts = [base_title(run, run.record.data.image_size)]
    parts += [f"{key} {value}" for key in extra if (value := run.conditions.get(key, NOT)) != NOT]
    return ", ".join(parts)


def _ordered(runs: Iterable[Run], arms: dict[str, str]) -> dict[str, list[Run]]:
    """Order arms by family and name: an order by accuracy would rank what may not be ranked."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[arms[run.name]].append(run)

    def place(arm: str) -> tuple[int, str, list[tuple[float, str]]]:
        # A failed run knows neither family nor injection; ask a finished one.
        family = next((run.record.position.family for run in groups[arm] if run.record.status == "finished"), "")
        return _FAMILIES.index(family) if family in _FAMILIES else len(_FAMILIES), family, natural(arm)

    return {arm: sorted(groups[arm], key=lambda run: (run.seed, run.name)) for arm in sorted(groups, key=place)}
