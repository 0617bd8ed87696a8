import time

import pytest
import torch

from vitpos.evaluation.cost import Meter, is_out_of_memory


def test_the_first_pass_warms_up(monkeypatch):
    clock = iter([0.0, 100.0, 200.0, 201.0, 300.0, 302.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    meter = Meter(torch.device("cpu"))
    assert (meter.images_per_second, meter.peak_memory_mib) == (None, None)
    with meter.measure(50):
        pass
    assert meter.images_per_second == 0.5
    for _ in range(2):
        with meter.measure(30):
            pass
    assert meter.images_per_second == 20.0
    assert meter.peak_memory_mib is None


def test_a_pass_that_fails_does_not_count():
    meter = Meter(torch.device("cpu"))
    with pytest.raises(MemoryError), meter.measure(50):
        raise MemoryError
    assert meter.images_per_second is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_peak_memory_of_a_gpu_is_that_of_the_pass():
    meter = Meter(torch.device("cuda"))
    torch.empty(2**28, device="cuda")  # freed before
    with meter.measure(1):
        torch.empty(2**26, dtype=torch.uint8, device="cuda")
    assert 64 <= meter.peak_memory_mib < 128


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"), True),
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: ..."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("MPS backend out of memory"), True),
        (RuntimeError("shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error, expected):
    assert is_out_of_memory(error) is expected


def test_the_message_of_the_cpu_allocator_is_known():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
