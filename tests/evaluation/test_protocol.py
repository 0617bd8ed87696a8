import pytest

from vitpos.evaluation.protocol import protocols, sizes
from vitpos.position import Transfer

EVERYTHING = {
    "table": ["bicubic_antialias", "bicubic", "bilinear", "linear_corners"],
    "coordinates": ["extrapolate", "rescale", "ntk"],
    "temperature": ["off", "log_tokens"],
}
DEFAULT = {"table": "bicubic_antialias", "coordinates": "extrapolate", "temperature": "off"}


@pytest.mark.parametrize(
    ("honours", "count"),
    [
        ((), 2),
        (("table",), 8),
        (("coordinates", "ntk"), 6),
        (("coordinates",), 4),  # no frequencies, no ntk
        (("table", "coordinates", "ntk"), 24),
    ],
)
def test_protocols_a_module_cannot_tell_apart_are_one(honours, count):
    found = protocols(EVERYTHING, honours)
    assert len(found) == count
    assert len({tuple(protocol.applied.items()) for protocol in found}) == count
    assert len({protocol.transfer for protocol in found}) == count


def test_what_a_module_ignores_is_not_applicable():
    (found,) = protocols({**DEFAULT, "table": "bilinear", "coordinates": "rescale"}, {"table"})
    assert found.applied == {"table": "bilinear", "coordinates": "not_applicable", "temperature": "off"}
    assert found.transfer == Transfer(table="bilinear")


def test_a_bare_off_of_yaml_is_off():
    (found,) = protocols({**DEFAULT, "temperature": False}, ())
    assert found.applied["temperature"] == "off"


@pytest.mark.parametrize(("factor", "value"), [("table", "nearest"), ("coordinates", "zoom"), ("temperature", True)])
def test_an_unknown_value_is_refused_even_where_it_would_be_ignored(factor, value):
    with pytest.raises(ValueError, match=rf"transfer.{factor}={value!r}"):
        protocols({**DEFAULT, factor: value}, ())


@pytest.mark.parametrize("value", [[], None])
def test_a_factor_without_a_value_is_refused(value):
    with pytest.raises(ValueError, match=r"transfer.table=(\[\]|None): give a value"):
        protocols({**DEFAULT, "table": value}, ())


def test_sizes_are_numbers_or_pairs_each_once():
    assert sizes({"sizes": [28, [28, 28], [28, 42], (42, 28)]}, 14) == [(28, 28), (28, 42), (42, 28)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([28, 30], "30x30 px is not divisible into patches of 4 px"),
        ([[28, 30]], "28x30 px is not divisible"),
        (28, "give a list"),
        ("28", "give a list"),
        (None, "give a list"),
        ([0], "image size 0"),
        ([[1, 2, 3]], "image size"),
    ],
)
def test_sizes_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        sizes({"sizes": given}, 4)
