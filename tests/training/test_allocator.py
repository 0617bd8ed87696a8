"""Memory that stays with the process between steps."""

import resource
import sys

import pytest
import torch

from vitpos.training.allocator import keep_freed_memory, release_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted on Linux")
def test_a_step_reuses_the_memory_of_the_step_before():
    keep_freed_memory()
    faults = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(8):
            torch.empty(2**22).fill_(1.0)  # 16 MiB, 4,096 pages
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert min(faults[1:]) < 4096


def test_giving_memory_back_is_always_possible():
    release_freed_memory()
    keep_freed_memory()
    release_freed_memory()
