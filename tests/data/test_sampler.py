import pytest
import torch

from vitpos.data.sampler import EpochSampler, Shard, current_shard


@pytest.mark.parametrize("batch_size", [4, 8, 12, 24, 20])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_share_every_batch_equally(batch_size, world):
    parts = [Shard(rank, world).columns(batch_size) for rank in range(world)]
    assert {len(part) for part in parts} == {batch_size // world}
    assert sorted(torch.cat(parts).tolist()) == list(range(batch_size))


@pytest.mark.parametrize(("batch_size", "world"), [(8, 1), (8, 2), (8, 4), (24, 4)])
def test_mirrored_places_hold_mirrored_images(batch_size, world):
    for rank in range(world):
        columns = Shard(rank, world).columns(batch_size)
        assert torch.equal(columns.flip(0), batch_size - 1 - columns)


def test_a_batch_that_ranks_cannot_share_is_refused_by_name():
    with pytest.raises(ValueError, match=r"data.batch_size=10 .*4"):
        EpochSampler(100, 10, 0, Shard(0, 4))


def test_a_batch_larger_than_the_data_is_refused_by_name():
    with pytest.raises(ValueError, match=r"data.batch_size=11 is larger than the 10 training images"):
        EpochSampler(10, 11, 0, Shard())


def test_the_order_is_a_function_of_seed_and_epoch():
    sampler = EpochSampler(100, 8, 0, Shard())
    first = sampler.positions()
    assert first.shape == (12, 8)
    assert first.unique().numel() == 96
    sampler.set_epoch(1)
    second = sampler.positions()
    assert not torch.equal(first, second)
    sampler.set_epoch(0)
    torch.manual_seed(5)
    assert torch.equal(sampler.positions(), first)
    assert not torch.equal(EpochSampler(100, 8, 1, Shard()).positions(), first)


def test_every_image_is_left_out_in_some_epoch_only():
    sampler = EpochSampler(10, 8, 0, Shard())
    seen = set()
    for epoch in range(10):
        sampler.set_epoch(epoch)
        seen |= set(sampler.positions().flatten().tolist())
    assert seen == set(range(10))


def test_a_process_without_a_group_is_the_only_rank():
    assert current_shard() == Shard(0, 1)
