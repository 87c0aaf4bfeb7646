"""Devices: arrays cross to a device once per batch and come back once per answer."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.episodes import sequence  # noqa: E402
from tests.learn.networks import shaken  # noqa: E402
from uctree import games  # noqa: E402
from uctree.errors import UctreeError  # noqa: E402
from uctree.learn import (  # noqa: E402
    alphazero,
    devices,
    inference,
    model,
    model_inference,
    muzero,
    network,
    replay,
)
from uctree.learn.options import make_options  # noqa: E402
from uctree.learn.sequences import sequence_schema  # noqa: E402

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

    def move(self, staged):
        self.put_in += 1
        return super().move(staged)

    def get(self, tensor):
        self.got_out += 1
        return super().get(tensor)

    def place(self, module):
        self.placed += 1
        return super().place(module)


def test_arrays_cross_together_and_come_back_together():
    rng, device = np.random.default_rng(0), StandIn()
    arrays = [
        rng.random((3, 2), np.float32), np.array([True, False, True]), rng.random(5),
        np.arange(7), np.arange(6, dtype=np.int8).reshape(2, 3)[:, ::2], np.float32(3).reshape(()),
    ]  # fmt: skip
    tensors = device.put_all(arrays)
    for array, tensor in zip(arrays, tensors, strict=True):
        assert tensor.shape == array.shape
        np.testing.assert_array_equal(tensor.numpy(), array)
    kept = tensors[0].clone()
    device.put_all([np.ones((3, 2), np.float32)])  # through the same memory
    assert torch.equal(tensors[0], kept)
    given = [tensors[0], torch.ones(2, dtype=torch.bfloat16), torch.zeros(0, 4)]
    found = device.get_all(given)
    assert (device.put_in, device.got_out) == (2, 1)
    for tensor, array in zip(given, found, strict=True):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, tensor.float().numpy())


def run_of(options):
    """What an algorithm needs of a run."""
    return SimpleNamespace(options=options, game=GAME)


def test_a_batch_crosses_once():
    states = np.array([GAME.start()] * 4, GAME.dtype)
    positions = replay.make_positions(GAME, states, np.full((4, 9), 1 / 9), np.zeros((4, 2)))
    batch = replay.make_batch(GAME, positions, np.zeros(4, np.int64))
    device, options = StandIn(), make_options(GAME)

    module = network.mlp(GAME, width=8, depth=1)
    loss = alphazero.AlphaZero(run_of(options)).loss(module, batch, device)
    loss.total.backward()
    assert (device.put_in, device.got_out) == (1, 0)


@pytest.mark.parametrize(("exponent", "got_out"), [(0.0, 0), (0.5, 1)])
def test_a_step_of_a_model_on_a_device_is_the_step_on_a_processor(tmp_path, exponent, got_out):
    """One transfer there; the errors come back if they are priorities."""
    options = make_options(
        GAME, algorithm="muzero", priority_exponent=exponent, batch_size=8, unroll_steps=2
    )
    with replay.Replay(tmp_path, GAME, schema=sequence_schema(GAME)) as stored:
        stored.append(0, sequence(GAME, 1))
        algorithm = muzero.MuZero(run_of(options))
        algorithm.run.replay = stored
        algorithm.read(stored.end)
        batch = algorithm.draw(stored.window(100), np.random.default_rng(0))
    weights = []
    for device in (devices.Device("cpu"), StandIn()):
        module = model.mlp_model(GAME, width=8, latent=8)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        found = algorithm.loss(module, batch, device)
        found.total.backward()
        optimizer.step()
        algorithm.after_step(batch, found)
        weights.append(torch.cat([each.detach().flatten() for each in module.parameters()]))
    assert torch.equal(*weights)
    assert (device.put_in, device.got_out) == (1, got_out)


def test_answers_of_a_model_cross_once():
    module, device = model.mlp_model(GAME, width=8, latent=8), StandIn()
    initial, recurrent = model_inference.torch_functions(module, device)
    assert device.placed == 1
    hidden = initial(np.zeros((5, *GAME.observation_shape), np.float32))[0]
    assert (device.put_in, device.got_out) == (1, 1)
    found = recurrent(hidden, np.arange(5))
    assert (device.put_in, device.got_out) == (2, 2)
    expected = model_inference.torch_functions(module)[1](hidden, np.arange(5))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_network_on_a_device_is_evaluated_there(monkeypatch):
    module, device = network.mlp(GAME, width=8, depth=1), StandIn()
    monkeypatch.setattr(devices, "of", lambda module: device)
    observations = np.zeros((5, *GAME.observation_shape), np.float32)
    predict = inference.predictor(module, GAME, backend="torch")
    predict(observations)
    assert (device.put_in, device.got_out) == (1, 1)


def test_searches_may_compute_in_16_bits():
    observations = np.random.default_rng(0).random((5, *GAME.observation_shape), np.float32)
    module = shaken(network.mlp(GAME, width=32, depth=1))
    exact, rough = (
        inference.predictor(module, GAME, precision=precision)(observations)
        for precision in ("float32", "bfloat16")
    )
    learned = shaken(model.mlp_model(GAME, width=32, latent=16))
    imagined, roughly = (
        model_inference.torch_functions(learned, precision=precision)[0](observations)
        for precision in ("float32", "bfloat16")
    )
    for one, other in zip([*exact, *imagined], [*rough, *roughly], strict=True):
        assert other.dtype == np.float32
        assert 0 < np.abs(one - other).max() < 0.05


def test_torch_searches_on_a_gpu_and_onnx_elsewhere_unless_it_is_given(monkeypatch):
    options = make_options(GAME)
    assert devices.inference(options) == ("onnx" if devices.choose("auto").is_cpu else "torch")
    monkeypatch.setattr(devices, "choose", lambda name: StandIn())
    assert devices.inference(options) == "torch"
    assert devices.inference(make_options(GAME, inference="onnx")) == "onnx"


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
