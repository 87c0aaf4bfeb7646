"""What AlphaZero learns from: positions one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from uctree import games  # noqa: E402
from uctree.learn import alphazero, devices, network, replay  # noqa: E402
from uctree.learn.options import make_options  # noqa: E402

torch.set_num_threads(1)

GAME = games.tic_tac_toe()


def loss_of(policy_weights, **options):
    states = np.array([GAME.start(), GAME.play([0])], GAME.dtype)
    positions = replay.make_positions(
        GAME, states, [np.full(9, 1 / 9), [0.0, *[1 / 8] * 8]], [[1.0, -1.0], [0.0, 0.0]],
        policy_weights=policy_weights,
    )  # fmt: skip
    batch = replay.make_batch(GAME, positions, np.zeros(2, np.int64))
    run = SimpleNamespace(game=GAME, options=make_options(GAME, **options))
    algorithm = alphazero.AlphaZero(run)
    return algorithm.loss(network.mlp(GAME, width=8, depth=1), batch, devices.Device("cpu"))


def test_the_loss_is_that_of_policy_and_value():
    found = loss_of([1.0, 1.0], value_weight=0.5)
    # An untrained network has equal priors and values of 0: ln 9 and ln 8, squares of 1 and 0.
    assert found.parts["policy"].item() == pytest.approx((np.log(9) + np.log(8)) / 2, rel=1e-5)
    assert found.parts["value"].item() == pytest.approx(0.5, abs=1e-5)
    expected = found.parts["policy"] + 0.5 * found.parts["value"]
    assert found.total.item() == pytest.approx(expected.item())


def test_policies_without_weight_are_not_taught():
    assert loss_of([0.0, 1.0]).parts["policy"].item() == pytest.approx(np.log(8), rel=1e-5)
