"""Numbers published by others, with their source; the only place where they are written down."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Dosovitskiy et al. 2020, arXiv 2010.11929, Appendix D.4, Table 8"
METRIC = "ImageNet 5-shot linear accuracy of ViT-B/16"


@dataclass(frozen=True)
class PaperCell:
    """A cell of Table 8.

    Attributes:
        row: what is encoded.
        column: where it is injected.
        position: our position module of the same design; empty where the paper has none.
        accuracy: the paper's number, a fraction; None where the paper says N/A.
    """

    row: str
    column: str
    position: str
    accuracy: float | None


COLUMNS = ("Stem", "Every layer", "Every layer, shared")
TABLE8 = (
    PaperCell("No pos. emb.", "Stem", "none", 0.61382),
    PaperCell("No pos. emb.", "Every layer", "", None),
    PaperCell("No pos. emb.", "Every layer, shared", "", None),
    PaperCell("1-D pos. emb.", "Stem", "learned_1d", 0.64206),
    PaperCell("1-D pos. emb.", "Every layer", "learned_1d_every", 0.63964),
    PaperCell("1-D pos. emb.", "Every layer, shared", "learned_1d_shared", 0.64292),
    PaperCell("2-D pos. emb.", "Stem", "learned_2d", 0.64001),
    PaperCell("2-D pos. emb.", "Every layer", "learned_2d_every", 0.64046),
    PaperCell("2-D pos. emb.", "Every layer, shared", "learned_2d_shared", 0.64022),
    PaperCell("Rel. pos. emb.", "Stem", "relative_1d", 0.64032),
    PaperCell("Rel. pos. emb.", "Every layer", "", None),
    PaperCell("Rel. pos. emb.", "Every layer, shared", "", None),
)
# One network, 50,000 validation images: 1.96 * sqrt(0.64 * 0.36 / 50000).
SAMPLING_POINTS = 0.42
SPREAD_POINTS = 0.33
GAP_POINTS = (2.58, 2.91)

READING = (
    f"The paper's numbers ({SOURCE}): {METRIC}, one value per cell, without seeds or intervals. Its pretraining data "
    "are not stated for this table and the paper's larger sets are not public, so the numbers themselves cannot be "
    "reproduced here. On 50,000 images the accuracy of a single network has a 95 % half-width of about "
    f"±{SAMPLING_POINTS} point, wider than the spread of {SPREAD_POINTS} point among the seven cells with an "
    f"embedding: they support that any embedding beats none (by {GAP_POINTS[0]} to {GAP_POINTS[1]} points), and no "
    "order among the embeddings."
)
