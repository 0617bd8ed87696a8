"""The LaTeX tables compile as they are."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from vitpos.report import make_report
from vitpos.report.build import files
from vitpos.report.latex import escape_latex

DOCUMENT = r"""\documentclass{article}
\usepackage[a4paper,landscape,margin=5mm]{geometry}
\usepackage{booktabs}
\begin{document}
%s
\end{document}
"""


def test_escaping():
    assert escape_latex(r"a_b & 5 % $x$ {y} #1 ~ ^ \z") == (
        r"a\_b \& 5 \% \$x\$ \{y\} \#1 \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )
    assert escape_latex("−1.2 ± 0.3 — 0–4 Δ †") == r"$-$1.2 $\pm$ 0.3 --- 0--4 $\Delta$ $\dagger$"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_compiles(digits, tmp_path):
    digits.run("none", 9, status="failed")
    for seed in range(3):
        digits.run("peg", seed, 0.93, config={"optim": {"lr": 0.003}}, metrics={"test/top5": 0.99})
        digits.arm("rope_mixed", [0.94], config={"position": {"theta": 10**seed}})
    texts = files(make_report(digits.folder))
    tables = [texts[name] for name in ("table.tex", "table8.tex")]
    assert all(r"\toprule" in text and r"\bottomrule" in text for text in tables)
    (tmp_path / "paper.tex").write_text(DOCUMENT % "\n".join(tables))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000
    assert b"undefined" not in done.stdout
