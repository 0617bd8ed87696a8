"""Records to statistics to tables and figures; imports neither torch nor wandb."""

from vitpos.report.build import build_report, make_report, print_report, write_report

__all__ = ["build_report", "make_report", "print_report", "write_report"]
