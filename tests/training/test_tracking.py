"""Where runs are tracked: modes, logins, servers, ids."""

import http.server
import os
import socket
import threading
import time

import pytest

from vitpos.training import tracking
from vitpos.training.tracking import (
    ID_FILE,
    NoTracking,
    WandbTracking,
    _run_id,
    answers,
    has_login,
    keep_files_in,
    pick_mode,
    server,
)


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No login, no settings, no W&B variables."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NETRC", raising=False)


@pytest.fixture
def refusing_server():
    """A server that answers everything with 404."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404)
            self.end_headers()

        def log_message(self, *args):
            pass

    running = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


def test_without_a_login_runs_are_offline():
    mode, reason = pick_mode()
    assert mode == "offline"
    assert "make sync" in reason


@pytest.mark.parametrize("mode", ["online", "offline", "disabled"])
def test_the_environment_decides(monkeypatch, mode):
    monkeypatch.setenv("WANDB_MODE", mode)
    assert pick_mode() == (mode, "")


def test_with_a_login_and_a_server_runs_are_online(monkeypatch, refusing_server):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", refusing_server)
    assert pick_mode() == ("online", "")


def test_a_dead_server_is_offline_at_once(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    mode, reason = pick_mode()
    assert mode == "offline"
    assert "http://127.0.0.1:9 does not answer" in reason


def test_a_silent_server_is_dead_after_a_while(monkeypatch):
    monkeypatch.setattr(tracking, "ANSWER_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.perf_counter()
        assert not answers(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert time.perf_counter() - started < 5


@pytest.mark.parametrize("url", ["", "nonsense", "http://"])
def test_an_address_that_is_none_does_not_answer(url):
    assert not answers(url)


def test_logins_are_found(monkeypatch, tmp_path):
    assert not has_login("https://api.wandb.ai")
    path = tmp_path / "netrc"
    path.write_text("machine api.wandb.ai\n  login user\n  password secret\n")
    path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))
    assert has_login("https://api.wandb.ai")
    assert not has_login("https://wandb.example.org")
    path.write_text("not a netrc")
    assert not has_login("https://api.wandb.ai")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    assert has_login("https://wandb.example.org")


def test_the_server_of_a_login_is_used(monkeypatch, tmp_path):
    assert server() == "https://api.wandb.ai"
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / "settings").write_text("[default]\nentity = me\nbase_url = https://wandb.example.org/\n")
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(folder))
    assert server() == "https://wandb.example.org"
    monkeypatch.setenv("WANDB_BASE_URL", "https://other.example.org")
    assert server() == "https://other.example.org"


def test_a_sweep_settles_the_mode_for_all_its_processes(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "")
    said = WandbTracking("vitpos", "", []).announce()
    assert said.startswith("W&B offline (no login")
    assert os.environ["WANDB_MODE"] == "offline"
    assert WandbTracking("vitpos", "", []).announce() == "W&B offline"
    assert NoTracking().announce() == ""


def test_no_tracking_opens_nothing(tmp_path):
    none = NoTracking()
    assert none.logger(none.open(tmp_path, name="x", group="g", kind="train", tags=[], config={}), tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_folder_keeps_its_id(tmp_path):
    first = _run_id(tmp_path)
    assert len(first) == 8
    assert _run_id(tmp_path) == first == (tmp_path / ID_FILE).read_text().strip()


def test_an_agent_of_a_sweep_brings_its_own_id(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_RUN_ID", "abc")
    assert _run_id(tmp_path) != "abc"
    monkeypatch.setenv("WANDB_SWEEP_ID", "s")
    assert _run_id(tmp_path) == "abc"
    monkeypatch.delenv("WANDB_SWEEP_ID")
    assert _run_id(tmp_path) == "abc"


def test_caches_stay_in_the_folder(tmp_path, monkeypatch):
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, "elsewhere")
    keep_files_in(tmp_path)
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        assert os.environ[name].startswith(str(tmp_path))
