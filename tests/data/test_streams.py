import numpy as np
import pytest
import torch

from vitpos.data import streams


def test_streams_are_repeatable_and_pairwise_different():
    seeds = [streams.stream_seed(s, p, e, k) for s in range(3) for p in range(8) for e in range(3) for k in range(3)]
    assert len(set(seeds)) == len(seeds)
    assert streams.stream_seed(1, 2, 3) == streams.stream_seed(1, 2, 3)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_drawing_leaves_the_global_generators_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    torch.rand(3, generator=streams.torch_stream(0, streams.ORDER, 0))
    streams.numpy_stream(0, streams.SPLIT).random(3)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_a_negative_seed_is_refused_by_name():
    with pytest.raises(ValueError, match="seed=-1"):
        streams.stream_seed(-1, streams.ORDER)
