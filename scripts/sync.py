"""Upload offline W&B runs: `python scripts/sync.py` or `python scripts/sync.py outputs/digits`."""

import sys

from vitpos.sweep.sync import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
