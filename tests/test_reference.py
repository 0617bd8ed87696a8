import numpy as np
import pytest

from vitpos import reference

PATCHES = np.array([[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [1.0, 1.1, 1.2], [1.3, 1.4, 1.5]]])
PATCHES = np.concatenate((PATCHES, PATCHES / 10))
TABLE = np.array(
    [[[0.02, -0.01, 0.03], [0.01, 0.02, -0.02], [-0.01, 0.03, 0.01], [0.03, -0.02, 0.02], [-0.02, 0.01, -0.01]]]
)
SUM = np.array(
    [
        [[0.12, 0.19, 0.33], [0.41, 0.52, 0.58], [0.69, 0.83, 0.91], [1.03, 1.08, 1.22], [1.28, 1.41, 1.49]],
        [[0.03, 0.01, 0.06], [0.05, 0.07, 0.04], [0.06, 0.11, 0.10], [0.13, 0.09, 0.14], [0.11, 0.15, 0.14]],
    ]
)


def test_worked_sum():
    out = reference.add_position_embedding(PATCHES, TABLE)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, SUM, atol=1e-12)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((1, 4, 3)), "pos_embed has positions 4, patches have 5"),
        (np.zeros((5, 3)), r"pos_embed has shape \(5, 3\): must be \(1, N, D\)"),
        (np.zeros((2, 5, 3)), r"pos_embed has shape \(2, 5, 3\): its first axis must be 1"),
        (np.zeros((1, 5, 2)), "pos_embed has width 2, patches have 3"),
        (np.zeros((1, 1, 3)), "pos_embed has positions 1"),
        (np.zeros((1, 5, 1)), "pos_embed has width 1"),
    ],
)
def test_nothing_but_the_batch_is_broadcast(table, message):
    with pytest.raises(ValueError, match=message):
        reference.add_position_embedding(PATCHES, table)


def test_tokens_without_a_batch_and_other_types_are_refused():
    with pytest.raises(ValueError, match=r"patches has shape \(5, 3\)"):
        reference.add_position_embedding(PATCHES[0], TABLE)
    with pytest.raises(TypeError, match="pos_embed is float32"):
        reference.add_position_embedding(PATCHES, TABLE.astype(np.float32))


def test_a_table_of_196_rows_is_not_stretched_to_197_tokens():
    with pytest.raises(ValueError, match="196"):
        reference.add_position_embedding(np.zeros((2, 197, 8)), np.zeros((1, 196, 8)))


def test_worked_similarity():
    table = np.array([[3.0, 4.0], [0.0, 5.0], [1.0, 1.0]])
    expected = [[1, 0.8, 0.98994949], [0.8, 1, 0.70710678], [0.98994949, 0.70710678, 1]]
    np.testing.assert_allclose(reference.cosine_similarity(table), expected, atol=1e-8)
    across = reference.cosine_similarity(table, "dimensions")
    assert across.shape == (2, 2)
    assert across[0, 1] == pytest.approx(13 / np.sqrt(10 * 42))
    with pytest.raises(ValueError, match="position 1 of the table is zero"):
        reference.cosine_similarity(np.array([[1.0, 0.0], [0.0, 0.0]]))


def test_sinusoids_pair_a_sine_and_a_cosine_of_one_angle():
    table = reference.sinusoids(50, 8)
    assert table.shape == (50, 8)
    assert table[0].tolist() == [0, 1] * 4
    assert table[7, 4] == pytest.approx(np.sin(7 / 10000 ** (4 / 8)))
    assert table[7, 5] == pytest.approx(np.cos(7 / 10000 ** (4 / 8)))
    with pytest.raises(ValueError, match="dim=7"):
        reference.sinusoids(5, 7)


def test_rotation_by_a_right_angle():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(reference.rotate(x, np.full(2, np.pi / 2)), [-2, 1, -4, 3], atol=1e-12)
    np.testing.assert_allclose(reference.rotate(x, np.full(2, np.pi / 2), "half"), [-3, -4, 1, 2], atol=1e-12)


def test_rotation_of_a_plane():
    turned = reference.rotation_of(reference.skew(np.array([0.3]), 2))
    np.testing.assert_allclose(turned, [[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]], atol=1e-12)


def test_attention_averages_equal_keys():
    v = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(reference.attention(np.ones((3, 2)), np.ones((3, 2)), v), np.tile(v.mean(0), (3, 1)))
    forbid = np.where(np.eye(3) > 0, 0.0, -np.inf)
    np.testing.assert_allclose(reference.attention(np.ones((3, 2)), np.ones((3, 2)), v, forbid), v)
