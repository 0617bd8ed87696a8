import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.neighbors import KNeighborsClassifier

from vitpos.evaluation.classifiers import BIAS, STD_FLOOR, NearestNeighbours, Ridge, solve_ridge, unit_rows, with_bias


@pytest.fixture
def problem():
    """Support and query features of four classes: 40 and 60 images, 12 features of very different scales."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(4, 12)) * np.logspace(-2, 3, 12)
    labels = np.repeat(np.arange(4), 10)
    support = centres[labels] + random.normal(size=(40, 12)) * np.logspace(-2, 3, 12)
    query = centres[random.integers(0, 4, 60)] + random.normal(size=(60, 12)) * np.logspace(-2, 3, 12)
    return support, labels, query


@pytest.mark.parametrize("l2", [1e-3, 1.0, 2.0**10, 2.0**20])
@pytest.mark.parametrize("rows", [40, 13, 12, 4])  # more and fewer rows than the 13 columns
def test_solution_equals_sklearn(problem, l2, rows):
    support, labels, _ = problem
    x = with_bias((support - support.mean(0)) / support.std(0))[:rows]
    targets = 2.0 * np.eye(4)[labels][:rows] - 1.0
    (ours,) = solve_ridge(x, targets, [l2])
    theirs = SklearnRidge(alpha=l2, fit_intercept=False, solver="cholesky").fit(x, targets).coef_.T
    np.testing.assert_allclose(ours, theirs, atol=1e-8 * max(1, abs(theirs).max()))


def test_predictions_equal_sklearn_on_the_same_matrices(problem):
    support, labels, query = problem
    mean, std = support.mean(0), support.std(0) + STD_FLOOR
    x, z = ((part - mean) / std for part in problem[::2])
    model = SklearnRidge(alpha=1024.0, fit_intercept=False)
    model.fit(np.c_[x, np.full(40, 100.0)], 2.0 * np.eye(4)[labels] - 1.0)
    expected = model.predict(np.c_[z, np.full(60, 100.0)]).argmax(1)
    found = Ridge()(support, labels, query, 4)
    assert list(found) == ["fewshot"]
    assert (found["fewshot"] == expected).all()
    assert BIAS == 100.0


def test_many_penalties_cost_one_decomposition(problem, monkeypatch):
    calls = []
    original = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: calls.append(matrix.shape) or original(matrix))
    found = Ridge([1.0, 1024, 4096.5])(*problem, 4)
    assert list(found) == ["fewshot/l2_1", "fewshot", "fewshot/l2_4096.5"]
    assert len(calls) == 1
    assert (found["fewshot/l2_1"] == Ridge(1)(*problem, 4)["fewshot/l2_1"]).all()


def test_scale_and_shift_of_features_do_not_matter(problem):
    support, labels, query = problem
    scale, shift = np.logspace(0, 3, 12), np.arange(12) * 7.0
    moved = Ridge()(support * scale + shift, labels, query * scale + shift, 4)["fewshot"]
    assert (moved == Ridge()(support, labels, query, 4)["fewshot"]).all()


def test_a_feature_that_never_changes_is_harmless():
    support, query = np.ones((8, 3)), np.ones((4, 3))
    support[:4, 0], query[:2, 0] = -1.0, -1.0
    assert Ridge()(support, np.repeat([0, 1], 4), query, 2)["fewshot"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("l2", [0.0, -1.0, [1.0, 0.0], []])
def test_a_penalty_that_is_not_positive_is_refused(l2):
    with pytest.raises(ValueError, match=r"fewshot.classifier.l2="):
        Ridge(l2)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_neighbours_equal_sklearn(problem, k):
    support, labels, query = problem

    def votes(distance):
        return np.exp(-distance / 0.07)

    oracle = KNeighborsClassifier(k, metric="cosine", weights=votes, algorithm="brute").fit(support, labels)
    assert (NearestNeighbours(k)(support, labels, query, 4)[f"knn{k}"] == oracle.predict(query)).all()


def test_many_queries_are_answered_in_pieces(problem):
    support, labels, query = problem
    many = np.tile(query, (40, 1))
    found = NearestNeighbours(5)(support, labels, many, 4)["knn5"]
    assert (found.reshape(40, 60) == NearestNeighbours(5)(support, labels, query, 4)["knn5"]).all()


def test_more_neighbours_than_images_are_refused(problem):
    with pytest.raises(ValueError, match=r"fewshot.classifier.k=41: there are 40 support images only"):
        NearestNeighbours(41)(*problem, 4)


@pytest.mark.parametrize("settings", [{"k": 0}, {"temperature": 0.0}])
def test_neighbour_settings_must_be_positive(settings):
    with pytest.raises(ValueError, match="must be positive"):
        NearestNeighbours(**settings)


def test_a_row_of_zeros_has_no_direction():
    assert unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]
