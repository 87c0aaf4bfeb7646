"""Checkpoints: exact round trips, and what is refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import uctree
from tests.learn.faults import ROOT, plain_weights
from uctree import games
from uctree.learn import checkpoints, files
from uctree.learn.options import make_options
from uctree.learn.run import Run, load, new_network

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")

from tests.learn.learner import Learner  # noqa: E402


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        learner = Learner(run)
        written = [learner.iterate() for _ in range(3)][-1]
        other = Learner(run)
        other.rng.random(7)
        read = other.resume()
    assert read.iteration == written.iteration == 3
    assert read.counters == {"steps": 9}
    assert read.weights_sha256 == written.weights_sha256
    for one, two in ((learner.network, other.network), (learner.averaged, other.averaged)):
        for name, tensor in one.state_dict().items():
            assert torch.equal(tensor, two.state_dict()[name])
    assert_same(learner.optimizer.state_dict(), other.optimizer.state_dict())
    assert learner.rng.bit_generator.state == other.rng.bit_generator.state
    assert torch.equal(learner.noise.get_state(), other.noise.get_state())


def assert_same(one, other):
    """Two state dicts of optimisers with the same content, types included."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for each, same in zip(one, other, strict=True):
            assert_same(each, same)
    elif isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    else:
        assert one == other


def test_the_hash_of_weights_is_the_same_in_every_process(tmp_path, game):
    code = (
        "import sys; from uctree import games; from uctree.learn.run import Run\n"
        "from tests.learn.faults import plain_weights\n"
        "run = Run.begin(sys.argv[1], games.tic_tac_toe())\n"
        "print(run.save(1, network=plain_weights(1)).weights_sha256)"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / str(i))], capture_output=True, text=True,
            check=True, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": str(i)},
        ).stdout
        for i in range(2)
    }  # fmt: skip
    assert len(hashes) == 1


def test_nothing_is_pickled_or_unpickled(tmp_path, game, monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("a pickle")

    for name in ("load", "loads", "dump", "dumps"):
        monkeypatch.setattr(pickle, name, refuse)
    for name in ("Unpickler", "Pickler"):  # others may inherit from them, and torch does
        refused = type(name, (getattr(pickle, name),), {"__init__": refuse})
        monkeypatch.setattr(pickle, name, refused)
    for name in ("load", "save"):
        monkeypatch.setattr(torch, name, refuse)
    with Run.begin(tmp_path, game) as run:
        learner = Learner(run)
        learner.iterate()
        Learner(run).resume()
    load(tmp_path).network()
    kinds = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert kinds == {".json", ".jsonl", ".safetensors", ".positions", ".index", ""}
    assert (tmp_path / "lock").read_bytes() == b""


def test_weights_that_do_not_lie_in_one_piece_come_back_right(tmp_path, game):
    module = torch.nn.Module()
    module.turned = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4).T)
    module.last = torch.nn.Parameter(
        torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    )
    module.tied = module.turned
    module.register_buffer("count", torch.tensor(3))
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=module)
        weights = run.checkpoint().weights
    assert weights["turned"].tolist() == module.turned.tolist()
    assert weights["last"].tolist() == module.last.tolist()
    assert weights["tied"].tolist() == module.turned.tolist()
    assert weights["count"].shape == ()


def test_weights_of_a_type_that_numpy_does_not_know_are_refused(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        with pytest.raises(uctree.UctreeError, match=r"bias cannot be stored: .*BFloat16.*float32"):
            run.save(1, network={"bias": torch.zeros(3, dtype=torch.bfloat16)})
        assert run.iterations() == []


def test_the_state_of_another_optimiser_comes_back(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        network = new_network(game, run.options)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        network(torch.ones(2, 2, 3, 3))[1].sum().backward()
        optimizer.step()
        run.save(1, network=network, optimizer=optimizer)
        again = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        run.resume(network=network, optimizer=again)
        assert_same(optimizer.state_dict(), again.state_dict())
        few = torch.optim.AdamW([next(network.parameters())])
        with pytest.raises(uctree.UctreeError, match="is of another optimiser than AdamW"):
            run.resume(network=network, optimizer=few)


def test_a_network_of_another_shape_is_refused_by_name(tmp_path, game):
    with Run.begin(tmp_path, game, network_width=16) as run:
        run.save(1, network=new_network(game, run.options))
        wide = new_network(game, make_options(game, network_width=32))
        message = (
            r"does not fit: body\.\d\.weight is \(16, .*\) in the checkpoint and \(32, .*\) here"
        )
        with pytest.raises(uctree.UctreeError, match=message):
            run.resume(network=wide)
        with pytest.raises(uctree.UctreeError, match=r"the checkpoint has no bias"):
            run.resume(network={"bias": torch.zeros(3)})


def test_a_generator_that_does_not_fit_is_refused(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        weights = plain_weights(1)
        rng = np.random.Generator(np.random.Philox(3))
        run.save(1, network=weights, generators={"batches": rng})
        state = rng.random(3)
        checkpoint = run.checkpoint()
        again = np.random.Generator(np.random.Philox(8))
        checkpoint.load_into(generators={"batches": again})
        assert np.array_equal(again.random(3), state)
        with pytest.raises(uctree.UctreeError, match=r"has the generators batches; 'noise' is not"):
            checkpoint.load_into(generators={"noise": rng})
        other = np.random.default_rng(0)
        with pytest.raises(uctree.UctreeError, match=r"'batches' .* does not fit a Generator"):
            checkpoint.load_into(generators={"batches": other})
        with pytest.raises(uctree.UctreeError, match=r"'batches' .* it is one of numpy"):
            checkpoint.load_into(generators={"batches": torch.Generator()})


def test_a_manifest_that_asks_for_something_else_is_refused(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=plain_weights(1))
    path = tmp_path / "checkpoints/000001/manifest.json"
    content = files.read_json(path)
    for change in ({"files": {}}, {"files": 3}, {"counters": {"games": "x"}}, {"surprise": 1}):
        files.write_json(path, content | change)
        with pytest.raises(uctree.UctreeError, match=r"not a manifest|names no weights"):
            checkpoints.read(path.parent)
