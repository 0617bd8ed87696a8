"""Tables as LaTeX for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vitpos.report.flags import Flag
from vitpos.report.table import Cell, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "–": "--",
    "—": "---",
    "Δ": r"$\Delta$",
    "†": r"$\dagger$",
    "×": r"$\times$",
    "<": r"$<$",
    ">": r"$>$",
    "\n": " ",
}
_SPECIAL = re.compile("|".join(re.escape(character) for character in _LATEX))


def to_latex(table: Table, flags: Sequence[Flag], label: str) -> str:
    r"""Return a table as a LaTeX float for \usepackage{booktabs}; remarks go into the caption.

    Args:
        table: the table.
        flags: remarks on it.
        label: what follows `tab:` in its label.
    """

    def cell_text(cell: Cell) -> str:
        return rf"\textbf{{{escape_latex(cell.text)}}}" if cell.strong else escape_latex(cell.text)

    remarks = "".join(f" {flag.kind[0].upper()}{flag.kind[1:]}: {flag.text}" for flag in flags if flag.serious)
    lines = [
        r"\begin{table}",
        r"  \centering",
        r"  \small",
        rf"  \begin{{tabular}}{{@{{}}{''.join('r' if column.numeric else 'l' for column in table.columns)}@{{}}}}",
        r"    \toprule",
        "    " + " & ".join(escape_latex(column.heading) for column in table.columns) + r" \\",
        r"    \midrule",
        *("    " + " & ".join(map(cell_text, row)) + r" \\" for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        rf"  \caption{{{escape_latex(table.caption + remarks)}}}",
        rf"  \label{{tab:{label}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    """Return text as LaTeX shows it."""
    return _SPECIAL.sub(lambda match: _LATEX[match[0]], text)
