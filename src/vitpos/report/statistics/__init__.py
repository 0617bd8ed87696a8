"""Statistics of an ablation, as pure functions: intervals, paired comparisons, power, image-level tests, ranks."""

from vitpos.report.statistics.images import image_bootstrap, mcnemar_p
from vitpos.report.statistics.intervals import Summary, sampling_half_width, summarise
from vitpos.report.statistics.paired import equivalence_p, holm, paired_t, sign_flip_p
from vitpos.report.statistics.power import detection_power, equivalence_power, seeds_needed
from vitpos.report.statistics.ranks import Ranking, rank_arms

__all__ = [
    "Ranking",
    "Summary",
    "detection_power",
    "equivalence_p",
    "equivalence_power",
    "holm",
    "image_bootstrap",
    "mcnemar_p",
    "paired_t",
    "rank_arms",
    "sampling_half_width",
    "seeds_needed",
    "sign_flip_p",
    "summarise",
]
