import numpy as np
import pytest

from vitpos.data.splits import Split, stratified

LABELS = np.repeat([0, 1, 2, 3], [40, 20, 30, 10])


def test_stratified_keeps_the_class_shares_and_the_count():
    chosen = stratified(LABELS, 25, np.random.default_rng(0))
    assert len(chosen) == len(set(chosen)) == 25
    assert list(chosen) == sorted(chosen)
    assert np.abs(np.bincount(LABELS[chosen]) - np.array([10, 5, 7.5, 2.5])).max() <= 0.5


@pytest.mark.parametrize("count", [0, 1, 3, 50, 99, 100])
def test_stratified_gives_exactly_the_count(count):
    assert len(stratified(LABELS, count, np.random.default_rng(1))) == count


def test_train_and_val_are_disjoint_and_complete():
    train, val = Split(0.2, seed=0).carve(LABELS)
    assert len(val) == 20
    assert sorted([*train, *val]) == list(range(100))


def test_the_split_depends_on_its_seed_alone():
    again = Split(0.2, seed=0).carve(LABELS)
    np.random.seed(3)
    for one, other in zip(Split(0.2, seed=0).carve(LABELS), again, strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(Split(0.2, seed=1).carve(LABELS)[1], again[1])


def test_limit_is_stratified_and_inside_the_training_images():
    split = Split(0.2, seed=0)
    train, val = split.carve(LABELS)
    kept = split.limit(train, LABELS, 20)
    assert len(kept) == 20
    assert not set(kept) & set(val)
    assert np.bincount(LABELS[kept]).tolist() == [8, 4, 6, 2]
    assert np.array_equal(split.limit(train, LABELS, 0), train)
    assert np.array_equal(split.limit(train, LABELS, 80), train)


def test_limits_of_balanced_classes_are_nested():
    labels = np.repeat(np.arange(5), 20)
    split = Split(0.2, seed=0)
    train, _ = split.carve(labels)
    assert set(split.limit(train, labels, 20)) <= set(split.limit(train, labels, 40))


@pytest.mark.parametrize("count", [3, 81, 1000])
def test_an_impossible_limit_is_refused_by_name(count):
    split = Split(0.2, seed=0)
    with pytest.raises(ValueError, match=f"data.limit_train={count}.*between 4.*80"):
        split.limit(split.carve(LABELS)[0], LABELS, count)


def test_a_limit_that_drops_a_rare_class_is_refused_by_name():
    labels = np.repeat([0, 1], [97, 3])
    split = Split(0.1, seed=0)
    with pytest.raises(ValueError, match=r"data.limit_train=2: too few.*class 1"):
        split.limit(split.carve(labels)[0], labels, 2)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.5])
def test_a_fraction_without_meaning_is_refused_by_name(fraction):
    with pytest.raises(ValueError, match=r"data.split.val_fraction"):
        Split(fraction, seed=0)


def test_an_empty_validation_split_is_refused_by_name():
    with pytest.raises(ValueError, match=r"val_fraction=0.01 of 10 images leaves none"):
        Split(0.01, seed=0).carve(np.arange(10) % 2)


def test_a_class_without_training_images_is_refused_by_name():
    with pytest.raises(ValueError, match=r"val_fraction=0.9 leaves no training image of class 1"):
        Split(0.9, seed=0).carve(np.array([0] * 20 + [1]))
