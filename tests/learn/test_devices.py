"""Devices: arrays cross to a device once per batch and come back once per answer."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from uctree import games  # noqa: E402
from uctree.errors import UctreeError  # noqa: E402
from uctree.learn import (  # noqa: E402
    alphazero,
    devices,
    inference,
    model,
    model_inference,
    network,
    replay,
)
from uctree.learn.options import make_options  # noqa: E402

torch.set_num_threads(1)

GAME = games.tic_tac_toe()


class StandIn(devices.Device):
    """The processor in the place of a GPU, counting what crosses."""

    def __init__(self):
        super().__init__("cpu")
        self.put_in, self.got_out, self.placed = 0, 0, 0

    @property
    def is_cpu(self):
        return False

    def put(self, array):
        self.put_in += 1
        return super().put(array)

    def get(self, tensor):
        self.got_out += 1
        return super().get(tensor)

    def place(self, module):
        self.placed += 1
        return super().place(module)


def test_a_batch_crosses_once_per_array():
    states = np.array([GAME.start()] * 4, GAME.dtype)
    positions = replay.make_positions(GAME, states, np.full((4, 9), 1 / 9), np.zeros((4, 2)))
    batch = replay.make_batch(GAME, positions, np.zeros(4, np.int64))
    device, options = StandIn(), make_options(GAME)

    class Run:
        pass

    run = Run()
    run.options, run.game = options, GAME
    loss = alphazero.AlphaZero(run).loss(network.mlp(GAME, width=8, depth=1), batch, device)
    loss.total.backward()
    assert (device.put_in, device.got_out) == (5, 0)


def test_answers_of_a_model_cross_once_per_array():
    module, device = model.mlp_model(GAME, width=8, latent=8), StandIn()
    initial, recurrent = model_inference.torch_functions(module, device)
    assert device.placed == 1
    hidden = initial(np.zeros((5, *GAME.observation_shape), np.float32))[0]
    assert (device.put_in, device.got_out) == (1, 3)
    recurrent(hidden, np.arange(5))
    assert (device.put_in, device.got_out) == (3, 8)


def test_a_network_on_a_device_is_evaluated_there(monkeypatch):
    module, device = network.mlp(GAME, width=8, depth=1), StandIn()
    monkeypatch.setattr(devices, "of", lambda module: device)
    observations = np.zeros((5, *GAME.observation_shape), np.float32)
    predict = inference.predictor(module, GAME, backend="torch")
    predict(observations)
    assert (device.put_in, device.got_out) == (1, 2)


def test_what_is_exported_or_checked_is_a_copy_on_the_processor(monkeypatch):
    monkeypatch.setattr(devices, "of", lambda module: StandIn())
    module = network.mlp(GAME, width=8, depth=1)
    copy = devices.on_cpu(module)
    assert copy is not module
    assert torch.equal(copy.policy.weight, module.policy.weight)
    network.check_network(module, GAME)
    assert inference.onnx_bytes(module, GAME)


def test_bfloat16_comes_back_as_float32():
    tensor = torch.ones(3, dtype=torch.bfloat16)
    assert devices.Device("cpu").get(tensor).dtype == np.float32


def test_a_device_that_is_not_there_is_refused():
    missing = next(name for name in ("mps", "cuda") if name not in devices.available())
    with pytest.raises(UctreeError, match=f"device='{missing}': torch finds .*cpu"):
        devices.choose(missing)
    assert devices.choose("auto").name == devices.available()[0]
