import copy

import torch

from vitpos.position.once import OncePerPass


def test_first_layer_computes_and_last_layer_lets_go():
    once, calls = OncePerPass(3), []

    def compute():
        calls.append(1)
        return torch.zeros(1)

    first, second, third = (once(layer, compute) for layer in range(3))
    assert first is second is third
    assert len(calls) == 1
    assert once.kept is None
    once(1, compute)  # a layer on its own
    assert len(calls) == 2
    assert once.kept is None


def test_first_layer_never_takes_what_an_interrupted_pass_left():
    once = OncePerPass(3)
    once(0, lambda: torch.zeros(1))
    assert once(0, lambda: torch.ones(1)) == 1


def test_one_layer_keeps_nothing():
    once = OncePerPass(1)
    once(0, lambda: torch.zeros(1))
    assert once.kept is None


def test_copies_leave_the_graph_of_an_interrupted_pass_behind():
    once = OncePerPass(3)
    once(0, lambda: torch.ones(1, requires_grad=True) * 2)
    assert copy.deepcopy(once).kept is None
