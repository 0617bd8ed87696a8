"""What is refused, in words, before Hydra sees the command line."""

from __future__ import annotations

import pytest

from vitpos.cli import CONFIG_FOLDER, check_arguments

POSITIONS = sorted(path.stem for path in (CONFIG_FOLDER / "position").glob("*.yaml"))


def refusal(*arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        check_arguments(arguments)
    return str(caught.value)


@pytest.mark.parametrize("value", ["None", "null", "", "Null", "~", "''"])
def test_a_group_switched_to_nothing_lists_the_choices(value):
    message = refusal(f"position={value}")
    assert message.startswith(f"position={value}: choose one of")
    assert all(name in message for name in POSITIONS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["position=none"],
        ["logger=none", "callbacks=none"],
        ["position=none,rope_axial", "seed=0,1"],
        ["from=outputs/digits/rope_axial-s0-1a2b3c4d"],
        ["data.root=/some/where", "data.transfer_sizes=[4,[8,12]]"],
        ["from='a/epoch=1'", 'from="a/epoch=1"', r"from=a/epoch\=1"],
        ["seed=range(start=0,stop=3)"],
        ["experiment=digits", "--multirun", "-m"],
        ["--config-dir=/x", "--cfg", "job"],
        ["+optim.extra=1", "~report", "position=glob(*)"],
    ],
)
def test_what_is_right_passes(arguments):
    check_arguments(arguments)


def test_a_value_with_an_equals_sign_needs_quotes():
    message = refusal("from=outputs/a/epoch=1.ckpt")
    assert "needs quotes" in message
    assert "from=\"'outputs/a/epoch=1.ckpt'\"" in message


def test_one_experiment_at_a_time():
    assert "one experiment at a time" in refusal("experiment=digits,table8")


def test_options_as_an_agent_would_write_them_are_explained():
    assert "position=none" in refusal("--position=none")


def test_a_setting_that_only_some_choices_own_names_the_owners():
    message = refusal("position=none,rope_axial", "position.theta=100")
    assert "position rope_axial has this setting; none has not" in message
