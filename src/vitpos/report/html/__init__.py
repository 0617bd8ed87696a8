"""The report as one self-contained HTML file."""

from vitpos.report.html.page import render_comparison, render_page

__all__ = ["render_comparison", "render_page"]
