"""Analyse a section of a study: average over seeds, compare with the reference arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vitpos.report.grouping import Section, Setting
from vitpos.report.measures import cost_of, metrics_of
from vitpos.report.predictions import Answers, ImageComparison, compare_images, read_all_answers
from vitpos.report.rows import Analysis, Row
from vitpos.report.selection import select
from vitpos.report.statistics import Summary, summarise
from vitpos.report.study import Run
from vitpos.report.verdict import Comparison, best_arms, compare_family


def analyse(section: Section, reference: str, margin: float) -> Analysis:
    """Analyse a section.

    Args:
        section: the runs.
        reference: arm that the others are compared with.
        margin: half-width of the tie band, a fraction.
    """
    selection = select(section)
    duplicates: list[Run] = []
    shared, tuned = {}, {}
    for arm in section.arms:
        shared[arm] = _by_seed(section, arm, selection.shared, duplicates)
        tuned[arm] = _by_seed(section, arm, selection.tuned.get(arm), []) if section.tuned else {}
    answers = read_all_answers(run for runs in shared.values() for run in runs.values())
    sizes = _test_sizes(shared, answers)
    test_images = next(iter(sizes)) if len(sizes) == 1 else None
    present = reference if shared.get(reference) or tuned.get(reference) else ""
    comparisons = _compare(shared, present, margin, test_images)
    tuned_comparisons = _compare(tuned, present, margin, test_images)
    images = _compare_images(shared, answers, present)
    best = best_arms({arm: _scores(runs) for arm, runs in shared.items() if runs}, test_images)
    seeds = sorted({run.seed for run in section.runs})
    rows = []
    for arm in section.arms:
        runs = list(shared[arm].values())
        failed = sorted(
            run.seed
            for run in section.arms[arm]
            if run.record.status == "failed" and section.setting(run) == (selection.shared or section.setting(run))
        )
        rows.append(
            Row(
                arm=arm,
                runs=runs,
                accuracy=_summary(runs),
                comparison=comparisons.get(arm),
                images=images.get(arm),
                tuned_runs=list(tuned[arm].values()),
                tuned=_summary(tuned[arm].values()),
                tuned_comparison=tuned_comparisons.get(arm),
                metrics=metrics_of(runs),
                cost=cost_of(runs or list(tuned[arm].values())),
                failed=tuple(failed),
                missing=tuple(seed for seed in seeds if seed not in shared[arm] and seed not in failed),
                best=arm in best,
                confounded_by=_confounders(section, arm, present),
            )
        )
    return Analysis(
        section, present, margin, selection, rows, tuple(seeds), test_images, frozenset(sizes), tuple(duplicates)
    )


def _by_seed(section: Section, arm: str, setting: Setting | None, duplicates: list[Run]) -> dict[int, Run]:
    """Return seed -> run with a finite test accuracy under a setting; of several the first by name."""
    chosen: dict[int, Run] = {}
    if setting is None:
        return chosen
    for run in section.arms[arm]:
        if run.accuracy is None or section.setting(run) != setting:
            continue
        if run.seed in chosen:
            duplicates.append(run)
        else:
            chosen[run.seed] = run
    return chosen


def _scores(runs: Mapping[int, Run]) -> dict[int, float]:
    return {seed: run.accuracy for seed, run in runs.items() if run.accuracy is not None}


def _summary(runs: Iterable[Run]) -> Summary | None:
    return summarise([run.accuracy for run in runs if run.accuracy is not None])


def _compare(
    arms: Mapping[str, Mapping[int, Run]], reference: str, margin: float, test_images: int | None
) -> dict[str, Comparison]:
    base = _scores(arms.get(reference, {}))
    family = {
        arm: {seed: score - base[seed] for seed, score in _scores(runs).items() if seed in base}
        for arm, runs in arms.items()
        if arm != reference
    }
    return compare_family(family, margin, test_images)


def _compare_images(
    arms: Mapping[str, Mapping[int, Run]], answers: Mapping[str, Answers], reference: str
) -> dict[str, ImageComparison]:
    base = {seed: answers[run.name] for seed, run in arms.get(reference, {}).items() if run.name in answers}
    return compare_images(
        {
            arm: [
                (seed, answers[run.name], base[seed])
                for seed, run in sorted(runs.items())
                if seed in base and run.name in answers
            ]
            for arm, runs in arms.items()
            if arm != reference
        }
    )


def _test_sizes(arms: Mapping[str, Mapping[int, Run]], answers: Mapping[str, Answers]) -> set[int]:
    """Return the sizes of the test set: of the stored predictions, else of the evaluation at the trained size."""
    sizes = set()
    for runs in arms.values():
        for run in runs.values():
            if run.name in answers:
                sizes.add(len(answers[run.name].index))
                continue
            for row in run.record.transfer:
                if (row.height, row.width) == run.record.data.image_size and row.n:
                    sizes.add(row.n)
    return sizes


def _confounders(section: Section, arm: str, reference: str) -> tuple[str, ...]:
    """Return the settings of an arm that differ from the reference's, as `key: reference -> arm`."""
    if not reference or arm == reference:
        return ()
    base, own = section.arms[reference][0], section.arms[arm][0]
    return tuple(key for key in section.confounders if base.conditions.get(key) != own.conditions.get(key))
