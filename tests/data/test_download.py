import socket
import subprocess
import sys
from http.client import IncompleteRead

import pytest

from vitpos.data.download import find_or_fetch

JOB = """
import sys, time
from pathlib import Path
from vitpos.data.download import find_or_fetch

root = Path(sys.argv[1])

def find():
    return (root / "data").read_text() if (root / "data").exists() else None

def fetch():
    with (root / "log").open("a") as log:
        log.write("fetched\\n")
    time.sleep(0.3)
    (root / "data").write_text("images")

print(find_or_fetch("toy", root, find=find, fetch=fetch, advice=""))
"""


def test_processes_that_start_together_fetch_once(tmp_path):
    command = [sys.executable, "-c", JOB, tmp_path / "root"]
    jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [job.communicate(timeout=60)[0] for job in jobs] == ["images\n"] * 3
    assert (tmp_path / "root" / "log").read_text() == "fetched\n"


def test_data_that_is_there_needs_no_lock_and_no_folder(tmp_path):
    found = find_or_fetch("toy", tmp_path / "root", find=lambda: 3, fetch=pytest.fail, advice="")
    assert found == 3
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("error", [OSError("no route\nto host"), RuntimeError("checksum"), IncompleteRead(b"")])
def test_a_failing_download_names_the_setting_the_cause_and_the_way_out(tmp_path, error):
    def fetch():
        raise error

    with pytest.raises(ValueError, match=r"data\.root=.*root holds no complete toy.*Copy it there\.") as caught:
        find_or_fetch("toy", tmp_path / "root", find=lambda: None, fetch=fetch, advice="Copy it there.")
    assert " ".join(str(error).split()) in str(caught.value)


def test_a_download_that_leaves_nothing_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="what came is incomplete"):
        find_or_fetch("toy", tmp_path, find=lambda: None, fetch=lambda: None, advice="")


def test_sockets_have_a_time_limit_while_fetching_only(tmp_path):
    seen = []
    with pytest.raises(ValueError, match="toy"):
        find_or_fetch(
            "toy", tmp_path, find=lambda: None, fetch=lambda: seen.append(socket.getdefaulttimeout()), advice=""
        )
    assert seen == [30.0]
    assert socket.getdefaulttimeout() is None
