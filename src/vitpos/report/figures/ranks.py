"""Average ranks over data sets with their critical difference."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from vitpos.report.figures.picture import COLOURS, GRID, INK, Picture, name_rows, new_figure
from vitpos.report.statistics import Ranking


def draw_ranks(arms: Sequence[str], ranking: Ranking, data_sets: int) -> Picture:
    """Return the average rank of every arm, with the critical difference as a bar from the best rank."""
    return Picture(
        name="ranks",
        title="Average rank over data sets",
        caption=(
            f"Rank 1 is the highest accuracy; average over {data_sets} data sets. Arms within the critical difference "
            f"({ranking.critical_difference:.2f}, Nemenyi, 5 %) of each other are not distinguished."
        ),
        draw=lambda: _draw(arms, ranking),
        numbers=[{"position": arm, "rank": rank} for arm, rank in zip(arms, ranking.ranks, strict=True)],
        alternative="; ".join(f"{arm}: {rank:.2f}" for arm, rank in zip(arms, ranking.ranks, strict=True)),
    )


def _draw(arms: Sequence[str], ranking: Ranking) -> Figure:
    order = sorted(range(len(arms)), key=lambda place: (ranking.ranks[place], arms[place]))
    ranks = [ranking.ranks[place] for place in order]
    figure = new_figure(7.2, 1.1 + 0.28 * len(arms))
    axes = figure.subplots()
    axes.grid(axis="x", color=GRID)
    name_rows(axes, [arms[place] for place in order])
    axes.plot(ranks, range(len(ranks)), marker="o", linestyle="", color=COLOURS[0], markersize=6, zorder=3)
    axes.plot([ranks[0], ranks[0] + ranking.critical_difference], [-0.45, -0.45], color=INK, linewidth=2, zorder=2)
    axes.annotate(
        f"critical difference {ranking.critical_difference:.2f}", (ranks[0], -0.55), va="bottom", annotation_clip=False
    )
    axes.set_ylim(len(arms) - 0.4, -1.1)
    axes.set_xlabel("average rank (1 is best)")
    return figure
