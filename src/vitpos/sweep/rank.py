"""One rank of a multi-process job, started by the agent: `python -m vitpos.sweep.rank RUN_FOLDER`."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import yaml

from vitpos.record import CONFIG_FILE
from vitpos.sweep.process import die_with_parent
from vitpos.training.run import run


def main(folder: Path) -> None:
    """Run this rank; leave a traceback in the run folder when it fails."""
    die_with_parent()
    config = yaml.safe_load((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    try:
        run(config)
    except BaseException:
        (folder / f"rank{os.environ['RANK']}.error").write_text(traceback.format_exc(), encoding="utf-8")
        raise


if __name__ == "__main__":
    main(Path(sys.argv[1]))
