"""What the report says in sentences: the caption of a table and the summary of a section."""

from __future__ import annotations

from collections.abc import Sequence

from vitpos.report.formats import count, percent, plural, points, significant, span, with_interval
from vitpos.report.rows import Analysis, Row
from vitpos.report.selection import describe
from vitpos.report.verdict import BETTER, NOT_RESOLVED, TIED, WORSE

CHECKPOINT = "each network is the checkpoint with the best validation top-1, and reads the test data once"
CONFOUNDED = "†"


def caption(analysis: Analysis) -> str:
    """Return what a table is made of (data, network, epochs, seeds, checkpoint rule) and what ± and verdicts mean."""
    runs = [run for row in analysis.rows for run in row.runs]
    epochs = span(run.record.epochs for run in runs if run.record.epochs is not None)
    images = f", {count(analysis.test_images)} test images" if analysis.test_images else ""
    parts = [
        f"{analysis.section.title}{images}; {epochs or 'unknown'} epochs; seeds {span(analysis.seeds)}; {CHECKPOINT}.",
        "Test top-1 in percent, ± the half-width of the 95 % t-interval of the mean over training seeds (initial "
        "weights, data order, augmentation); no ± for a single seed, — where no run finished.",
    ]
    if analysis.test_images:
        parts.append(
            "Sampling ±: how far the accuracy of one network would move on another test set of this size (95 %), apart "
            "from the interval over seeds."
        )
    if any(row.comparison for row in analysis.rows):
        family = max((row.comparison.family for row in analysis.rows if row.comparison), default=0)
        parts.append(
            f"Δ: mean difference to {analysis.reference} in points, paired by seed, ± the 95 % t-interval. Verdict: "
            f"better or worse by the paired t-test, Holm-adjusted over {plural(family, 'comparison')}, at 5 %; "
            f"{_tie(analysis)}; else not resolved, with the seeds that would settle it at 80 % power if the observed "
            "mean and spread were the true ones."
        )
    if analysis.section.tuned and analysis.setting:
        parts.append(f"Shared setting: {describe(analysis.setting)}.")
    parts.append(
        "Bold: no other arm is shown to be better (paired t-tests of all pairs, Holm, 5 %); ties are all bold."
    )
    if any(row.confounded_by for row in analysis.rows):
        parts.append(f"{CONFOUNDED} differs from the reference in other settings too, see the remarks.")
    return " ".join(parts)


def summary(analysis: Analysis) -> str:
    """Return two sentences: what was compared, and what can be said."""
    rows = [row for row in analysis.rows if row.accuracy]
    if not rows:
        return f"{analysis.section.title}: no run has finished. Nothing can be said yet."
    reference = analysis.row(analysis.reference)
    counts = {row.comparison.n for row in rows if row.comparison} or {len(row.runs) for row in rows}
    seeds = plural(max(counts), "training seed")
    if min(counts) < max(counts):
        seeds = f"{min(counts)} to {seeds}"
    if reference is None or reference.accuracy is None:
        first = f"On {analysis.section.title}, {plural(len(rows), 'position module')} were trained with {seeds}."
        return f"{first} There is no finished reference run, so no module is compared with another."
    others = [row for row in rows if row is not reference]
    if not others:
        return f"On {analysis.section.title}, only {reference.arm} has finished runs. Nothing is compared yet."
    base = with_interval(percent(reference.accuracy.mean), reference.accuracy.ci95)
    first = (
        f"On {analysis.section.title}, {plural(len(others), 'position module')} "
        f"{'was' if len(others) == 1 else 'were'} compared with {reference.arm} ({base} % test top-1) over {seeds}, "
        "paired by seed."
    )
    return f"{first} {_findings(others, analysis)}"


def verdict_text(row: Row) -> str:
    """Return the verdict of a row with what belongs to it."""
    comparison = row.comparison
    if comparison is None:
        return ""
    text = comparison.verdict
    if text == NOT_RESOLVED and comparison.n > 1:
        needed = comparison.seeds_needed
        text += f" (needs {count(needed)} seeds)" if needed else " (needs over 10,000 seeds)"
    if text == TIED and comparison.detected:
        text += " (though not zero)"
    return text + (f" {CONFOUNDED}" if row.confounded_by else "")


def _findings(rows: Sequence[Row], analysis: Analysis) -> str:
    compared = [row for row in rows if row.comparison and row.comparison.n > 1]
    clean = [row for row in compared if not row.confounded_by]
    parts = []
    for verdict, words in ((BETTER, "better"), (WORSE, "worse")):
        found = [f"{row.arm} ({_delta(row)})" for row in clean if _verdict(row) == verdict]
        if found:
            parts.append(f"{words}: {', '.join(found)}")
    tied = [row.arm for row in clean if _verdict(row) == TIED]
    if tied:
        parts.append(f"tied within ±{significant(100 * analysis.margin)} point: {', '.join(tied)}")
    parts += _open([row for row in clean if _verdict(row) == NOT_RESOLVED])
    confounded = [row.arm for row in compared if row.confounded_by]
    if confounded:
        parts.append(
            f"not attributable to the position module alone, because other settings differ: {', '.join(confounded)}"
        )
    single = [row.arm for row in rows if row not in compared]
    if single:
        parts.append(f"too few seeds for any statement: {', '.join(single)}")
    text = "; ".join(parts) or "there is nothing to compare it with"
    return text[0].upper() + text[1:] + "."


def _open(rows: Sequence[Row]) -> list[str]:
    """Say which comparisons are open, and what it would take."""
    if not rows:
        return []
    needed = [row.comparison.seeds_needed for row in rows if row.comparison]
    known = [seeds for seeds in needed if seeds is not None]
    if len(known) < len(needed):
        cost = "more than 10,000 seeds for some"
    elif min(known) == max(known):
        cost = f"about {known[0]} seeds"
    else:
        cost = f"about {min(known)} to {max(known)} seeds"
    return [f"not resolved, neither different nor tied: {', '.join(row.arm for row in rows)} ({cost} needed)"]


def _tie(analysis: Analysis) -> str:
    if analysis.margin <= 0:
        return "ties are switched off (margin 0)"
    margin = significant(100 * analysis.margin)
    return (
        f"tied if two one-sided tests at 5 % each put the difference within ±{margin} point, "
        "whether or not it is also shown to differ from zero"
    )


def _verdict(row: Row) -> str:
    return row.comparison.verdict if row.comparison else ""


def _delta(row: Row) -> str:
    return with_interval(points(row.comparison.mean), row.comparison.ci95) + " points" if row.comparison else ""
