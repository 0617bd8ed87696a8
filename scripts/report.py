"""Rebuild tables and figures of finished runs: `python scripts/report.py experiment=digits`."""

from vitpos.report.command import main

if __name__ == "__main__":
    raise SystemExit(main())
