"""Figures of the report: analysed sections in, matplotlib figures with the numbers behind them out."""

from vitpos.report.figures.cost import draw_cost
from vitpos.report.figures.curves import draw_curves
from vitpos.report.figures.forest import draw_forest
from vitpos.report.figures.matrix import draw_matrix
from vitpos.report.figures.picture import Picture, render
from vitpos.report.figures.ranks import draw_ranks
from vitpos.report.figures.seeds import draw_seeds

__all__ = ["Picture", "draw_cost", "draw_curves", "draw_forest", "draw_matrix", "draw_ranks", "draw_seeds", "render"]
