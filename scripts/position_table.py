"""Write the table of position modules into src/vitpos/position/README.md, or print it with --print."""

import sys
from pathlib import Path

from vitpos.position.catalogue import catalogue

ROOT = Path(__file__).parents[1]
README = ROOT / "src/vitpos/position/README.md"
BEGIN, END = "<!-- begin table: scripts/position_table.py -->\n", "<!-- end table -->\n"

if __name__ == "__main__":
    table = catalogue(ROOT / "conf")
    if "--print" in sys.argv:
        print(table, end="")
    else:
        head, rest = README.read_text().split(BEGIN)
        README.write_text(head + BEGIN + table + END + rest.split(END)[1])
