"""W&B failing in the middle of a run: the run goes on, says so once, in bounded time."""

from __future__ import annotations

import gzip
import http.server
import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import wandb

from vitpos.sweep.sync import offline_runs
from vitpos.training import tracking
from vitpos.training.tracking import WandbTracking, close

ANSWERS = {
    "upsertBucket": {
        "bucket": {
            "id": "b",
            "name": "run",
            "displayName": "run",
            "config": "{}",
            "project": {"id": "p", "name": "vitpos", "entity": {"id": "e", "name": "me"}},
            "historyLineCount": 0,
        },
        "inserted": True,
    },
    "viewer": {"id": "v", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}},
}


class Handler(http.server.BaseHTTPRequestHandler):
    """As much of a W&B server as lets a run begin."""

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        text = (gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body).decode()
        if '"query"' not in text:
            self.answer({})
            return
        bucket: dict = ANSWERS["upsertBucket"]["bucket"]
        asked = json.loads(text)["variables"] or {}
        bucket["name"] = asked.get("name") or bucket["name"]
        self.answer({"data": {name: answer for name, answer in ANSWERS.items() if name in text}})

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def own_service(monkeypatch, tmp_path):
    """A home and a W&B service for this test alone."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    wandb.teardown()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR", "WANDB_MODE"):
        monkeypatch.setenv(name, "")
    yield
    wandb.teardown()


def start(folder, mode, monkeypatch):
    folder.mkdir()
    monkeypatch.setenv("WANDB_MODE", mode)
    keeper = WandbTracking("vitpos", "", [])
    run = keeper.open(folder, name="run", group="g", kind="train", tags=[], config={})
    return run, keeper.logger(run, folder)


def complaints(caplog):
    return [entry.message for entry in caplog.records if entry.name.startswith("vitpos")]


OUTLIVED = """
import logging, os, pathlib, signal, subprocess
from vitpos.training.tracking import WandbTracking, close
logging.basicConfig(format="%(name)s %(message)s")
folder = pathlib.Path("run"); folder.mkdir()
keeper = WandbTracking("vitpos", "", [])
logger = keeper.logger(keeper.open(folder, name="run", group="g", kind="train", tags=[], config={}), folder)
logger.log_metrics({"loss": 1.0}, step=1)
children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
(service,) = [line.split()[0] for line in children.splitlines() if "wandb-core" in line]
os.kill(int(service), signal.SIGKILL)
for step in range(50):
    logger.log_metrics({"loss": 1.0}, step=step)
    logger.tracked.attempt(lambda run: run.summary.update({"x": 1}))
close(logger, failed=False)
folder = pathlib.Path("next"); folder.mkdir()
following = keeper.logger(keeper.open(folder, name="next", group="g", kind="train", tags=[], config={}), folder)
following.log_metrics({"loss": 1.0}, step=1)
close(following, failed=False)
children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
for line in children.splitlines():
    if "wandb-core" in line:
        os.kill(int(line.split()[0]), signal.SIGKILL)  # between two runs
folder = pathlib.Path("third"); folder.mkdir()
third = keeper.logger(keeper.open(folder, name="third", group="g", kind="train", tags=[], config={}), folder)
close(third, failed=False)
print("went on", logger.tracked.lost, following.tracked.lost, third.tracked.lost)
"""


def test_a_run_outlives_the_service_of_wandb(tmp_path):
    # In a process of its own, whose W&B is broken afterwards.
    environment = {**os.environ, "WANDB_MODE": "offline"}
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVED],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "went on True False False"
    assert "Traceback" not in done.stderr
    ours = [line for line in done.stderr.splitlines() if line.startswith("vitpos")]
    (line,) = ours
    assert "W&B has failed (" in line
    assert "work goes on without it" in line


def test_a_server_that_dies_costs_bounded_time_and_the_rest_is_sent_later(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.WARNING, "vitpos")
    monkeypatch.setattr(tracking, "FINISH_TIMEOUT", 2.0)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    run, logger = start(tmp_path / "run", "online", monkeypatch)
    assert not run.offline
    logger.log_metrics({"loss": 1.0}, step=1)
    server.shutdown()
    thread.join()
    server.server_close()
    started = time.monotonic()
    logger.log_metrics({"loss": 0.5}, step=2)
    assert time.monotonic() - started < 1  # training does not wait
    close(logger, failed=False)
    assert time.monotonic() - started < 20
    assert complaints(caplog)[-1].endswith("`make sync` sends it again")
    ended, _ = offline_runs(tmp_path)
    assert [path.name for path in ended] == [Path(run.settings.sync_file).parent.name]


def test_a_run_that_was_sent_is_not_sent_again(tmp_path, monkeypatch, caplog):
    _, logger = start(tmp_path / "run", "offline", monkeypatch)
    close(logger, failed=False)
    assert not logger.tracked.lost
    assert not list(tmp_path.rglob("*.unsent"))
    assert complaints(caplog) == []
