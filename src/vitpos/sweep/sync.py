"""Upload the W&B runs that were made offline, and those whose server was lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from vitpos.sweep.jobs import is_locked
from vitpos.training.tracking import UNSENT, answers, has_login, keep_files_in, server

OWN_FOLDER = ".sync"  # in the output folder; W&B's logs and caches of the upload


def offline_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the runs inside a folder that are not uploaded: those that have ended, those still written.

    Offline runs, and online ones whose server was lost.
    """
    ended: list[Path] = []
    running: list[Path] = []
    unsent = [marker.parent for marker in folder.rglob(f"run-*/*.wandb{UNSENT}")]
    for path in sorted([*folder.rglob("offline-run-*"), *unsent]):
        files = list(path.glob("*.wandb"))
        if not files or any(file.with_name(f"{file.name}.synced").exists() for file in files):
            continue
        (running if is_locked(path.parents[1]) else ended).append(path)
    return ended, running


def main(arguments: Sequence[str]) -> int:
    """Upload what is offline under the given folders, or under `outputs`; return the exit code."""
    folders = [Path(argument) for argument in arguments or ["outputs"]]
    unknown = [str(folder) for folder in folders if not folder.is_dir()]
    if unknown:
        print(f"no such folder: {', '.join(unknown)}", file=sys.stderr)
        return 1
    found = [offline_runs(folder) for folder in folders]
    ended, running = ([path for pair in found for path in pair[index]] for index in (0, 1))
    if running:
        print(f"{len(running)} offline run(s) still being written; upload them later")
    if not ended:
        print("nothing to upload")
        return 0
    url = server()
    if not has_login(url):
        print(f"no login at {url} for {len(ended)} offline run(s): `wandb login` first", file=sys.stderr)
        return 1
    if not answers(url):
        print(f"{url} does not answer; {len(ended)} offline run(s) stay here", file=sys.stderr)
        return 1
    own = folders[0] / OWN_FOLDER
    own.mkdir(exist_ok=True)
    keep_files_in(own)
    environment = {name: value for name, value in os.environ.items() if name != "WANDB_MODE"} | {"WANDB_DIR": str(own)}
    # In one command: files of one resumed run are then uploaded one after the other.
    command = [sys.executable, "-m", "wandb", "sync", *map(str, ended)]
    return subprocess.run(command, env=environment, check=False).returncode
