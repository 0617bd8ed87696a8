"""The process that starts and watches a job's ranks: `torch.distributed.run`, ending with the process that asked."""

from __future__ import annotations

import sys
from pathlib import Path

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main as run_ranks

from vitpos.sweep.process import die_with_parent
from vitpos.sweep.ranks import AGENT_ERROR


def main(arguments: list[str]) -> None:
    """Run the ranks; when the first one to fail could not say why, say what is known of its end."""
    die_with_parent()
    folder = Path(arguments[-1])
    try:
        run_ranks(arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if not (folder / f"rank{rank}.error").exists():
            end = f"was killed by signal {-failure.exitcode}" if failure.exitcode < 0 else f"ended: {failure.exitcode}"
            (folder / AGENT_ERROR).write_text(f"rank {rank} {end} and left no traceback\n", encoding="utf-8")
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
