"""Logs, output and environment of the processes of a sweep."""

from __future__ import annotations

import logging
import os
import threading
import warnings

from vitpos.sweep.process import clean_environment, die_with_parent, forget_ranks, log_into, output_into


def test_log_messages_and_warnings_go_to_the_file_meanwhile(tmp_path):
    path = tmp_path / "run.log"
    handlers, show = list(logging.getLogger().handlers), warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with log_into(path):
            logging.getLogger("vitpos.x").info("hello")
            warnings.warn("careful", UserWarning, stacklevel=1)
        logging.getLogger("vitpos.x").error("later")
    text = path.read_text()
    assert "hello" in text
    assert "careful" in text
    assert "later" not in text
    assert logging.getLogger().handlers == handlers
    assert warnings.showwarning is show


def test_a_second_session_is_appended(tmp_path):
    for word in ("first", "second"):
        with log_into(tmp_path / "run.log"):
            logging.getLogger("vitpos").warning(word)
    assert "first" in (tmp_path / "run.log").read_text()


def test_output_of_native_code_and_children_is_caught(tmp_path, capfd):
    path = tmp_path / "run.log"
    with output_into(path):
        os.write(1, b"from below\n")
        os.system("echo from a child >&2")
    os.write(1, b"outside\n")
    assert path.read_text().splitlines() == ["from below", "from a child"]
    assert capfd.readouterr().out == "outside\n"


def test_output_stays_where_it_was_without_a_file(tmp_path, capfd):
    with output_into(tmp_path / "no" / "folder"):
        os.write(1, b"here\n")
    assert capfd.readouterr().out == "here\n"


def test_no_descriptor_is_left_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(20):
        with output_into(tmp_path / "run.log"), log_into(tmp_path / "run.log"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_process_watches_its_parent_once():
    for _ in range(3):
        die_with_parent()
    assert [thread.name for thread in threading.enumerate()].count("die-with-parent") == 1


def test_ranks_of_another_launcher_are_forgotten(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("PLAIN", "kept")
    assert "LOCAL_RANK" not in clean_environment()
    assert clean_environment()["PLAIN"] == "kept"
    forget_ranks()
    assert "LOCAL_RANK" not in os.environ
