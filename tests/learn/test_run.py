"""A run's folder: options, metrics, checkpoints; exact resumes, and what is left after a fault."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import shutil
import subprocess
import sys

import msgspec
import numpy as np
import pytest

import uctree
from tests.learn.faults import ROOT, killed_after, killed_at, mutated, plain_weights, small_disk
from tests.learn.test_replay import LEARNABLE, episode
from uctree import games, specs
from uctree.learn import checkpoints, files
from uctree.learn.options import (
    CHANGEABLE,
    Options,
    describe_options,
    make_options,
    read_options,
)
from uctree.learn.run import Run, load, new_network

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"num_simulations": 0}, r"num_simulations=0: expected an integer of at least 1, or None"),
        ({"num_simulations": 2.5}, r"num_simulations=2.5: expected an integer"),
        ({"batch_size": "many"}, r"batch_size='many': expected an integer of at least 1 \(positi"),
        ({"seed": True}, r"seed=True: expected an integer of at least 0"),
        ({"c": float("nan")}, r"c=nan: expected a number of at least 0"),
        ({"max_hours": float("inf")}, r"max_hours=inf: expected a number above 0, or None"),
        ({"value_mix": 1.5}, r"value_mix=1.5: expected a number of at least 0 and at most 1"),
        ({"average_decay": 1.0}, r"average_decay=1.0: .* of at least 0 and below 1"),
        ({"schedule": "step"}, r"schedule='step': expected 'constant' or 'linear' or 'cosine'"),
        ({"symmetries": 1}, r"symmetries=1: expected True or False"),
        ({"num_sims": 3}, r"unknown option 'num_sims'; did you mean num_simulations\?"),
        ({"num_simulations": 5, "fast_simulations": 9}, r"fast_simulations=9 is more than num"),
        ({"replay_start": 9, "replay_window": 5}, r"replay_start=9 is more than replay_window=5"),
    ],
)
def test_a_wrong_option_is_refused_with_what_came_and_what_is_expected(game, given, told):
    with pytest.raises(uctree.UctreeError, match=told):
        make_options(game, **given)


@pytest.mark.parametrize("name", LEARNABLE)
def test_every_game_gets_options_that_are_complete(name):
    game = specs.built_in()[name]()
    options = make_options(game)
    for each in (
        "num_simulations", "fast_simulations", "temperature_cutover", "episodes_per_iteration",
        "replay_window", "replay_start", "schedule_iterations",
        "max_iterations",
    ):  # fmt: skip
        assert isinstance(getattr(options, each), int), each
    assert options.replay_start <= options.replay_window
    assert make_options(game, **msgspec.to_builtins(options)) == options


def test_what_is_given_is_not_decided_by_the_game(game):
    options = make_options(game, num_simulations=np.int64(7), temperature_cutover=0, c=2)
    assert (options.num_simulations, options.temperature_cutover) == (7, 0)
    assert isinstance(options.c, float)
    assert options.max_iterations == 100
    assert make_options(game, max_hours=1).max_iterations is None
    by_games = make_options(game, max_games=1000, episodes_per_iteration=100)
    assert (by_games.max_iterations, by_games.schedule_iterations) == (None, 10)


def test_options_do_not_change(game):
    with pytest.raises(AttributeError):
        make_options(game).c = 3.0


def test_every_option_is_described_in_one_line():
    rows = {row.name: row for row in describe_options()}
    assert list(rows) == [each.name for each in msgspec.structs.fields(Options)]
    assert set(rows) >= CHANGEABLE
    for row in rows.values():
        assert row.description
        assert "\n" not in row.description
    assert rows["batch_size"].type == "an integer of at least 1"
    assert rows["batch_size"].default == 256


def test_a_game_without_observe_cannot_be_learned(tmp_path):
    with pytest.raises(uctree.UctreeError, match="needs numbered actions and a function observe="):
        Run.begin(tmp_path / "run", games.point_mass())
    assert not (tmp_path / "run").exists()


# --- beginning and going on ----------------------------------------------------------------------


def test_a_run_is_opened_with_the_options_it_was_begun_with(tmp_path, game):
    with Run.begin(tmp_path, game, num_simulations=20) as run:
        options = run.options
    assert Run.open(tmp_path).options == options
    assert Run.open(tmp_path).game.name == "tic_tac_toe"
    with Run.begin(tmp_path, game) as run:
        assert run.options == options


def test_none_is_refused_where_it_means_something(tmp_path, game):
    Run.begin(tmp_path, game, gradient_clip=0.5, num_simulations=20, max_iterations=5).close()
    with pytest.raises(
        uctree.UctreeError, match=r"gradient_clip is 0\.5 in the folder and None now"
    ):
        Run.begin(tmp_path, game, gradient_clip=None)
    with Run.begin(tmp_path, game, num_simulations=None, max_iterations=None) as run:
        assert run.options.num_simulations == 20
        assert run.options.max_iterations == 100  # where nothing else limits it


def test_a_network_is_not_written_over_other_files(tmp_path, game):
    with Run.begin(tmp_path / "run", game) as run:
        run.save(1, network=new_network(game, run.options))
        learned = run.learned()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(uctree.UctreeError, match="mine is not empty, and holds no network"):
        learned.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"
    for _ in range(2):  # its own may be replaced
        learned.save(tmp_path / "new")
    assert load(tmp_path / "new", game).checkpoint.iteration == 1


def test_other_options_are_refused_but_for_those_that_may_change(tmp_path, game):
    Run.begin(tmp_path, game, num_simulations=20, max_iterations=5, workers=1).close()
    before = (tmp_path / "options.json").read_bytes()
    told = (
        r"other options: num_simulations is 20 in the folder and 30 now; c is 1.25 in the folder "
        r"and 2.0 now\. Leave them out"
    )
    with pytest.raises(uctree.UctreeError, match=told):
        Run.begin(tmp_path, game, num_simulations=30, c=2, max_iterations=9)
    assert (tmp_path / "options.json").read_bytes() == before
    with Run.begin(tmp_path, game, num_simulations=20, max_iterations=9, workers=2) as run:
        assert (run.options.max_iterations, run.options.workers) == (9, 2)
    with Run.begin(tmp_path, game, max_iterations=None, max_hours=2) as run:
        assert (run.options.max_iterations, run.options.max_hours) == (None, 2.0)
    assert Run.open(tmp_path).options == run.options


def test_another_game_is_refused(tmp_path, game):
    Run.begin(tmp_path, game).close()
    with pytest.raises(uctree.UctreeError, match=r"another game than connect_four: .*num_actions"):
        Run.begin(tmp_path, games.connect_four())
    with pytest.raises(uctree.UctreeError, match=r"another game than connect_four"):
        Run.open(tmp_path, games.connect_four())


def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path, game):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(uctree.UctreeError, match=r"holds no run, and is not empty: thesis.txt"):
        Run.begin(tmp_path, game)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(uctree.UctreeError, match=r"not the folder of a run"):
        Run.open(tmp_path)


def test_only_one_process_trains_in_a_folder(tmp_path, game):
    with Run.begin(tmp_path, game):
        with pytest.raises(uctree.UctreeError, match="in use by another process that trains"):
            Run.begin(tmp_path, game)
        looking = Run.open(tmp_path)
        with pytest.raises(uctree.UctreeError, match=r"opened to look at; Run\.begin opens it"):
            looking.log("iteration")
    Run.begin(tmp_path, game).close()


def test_a_game_of_ones_own_is_passed(tmp_path):
    other = own_game()
    Run.begin(tmp_path, other).close()
    with pytest.raises(uctree.UctreeError, match=r"not one of ours; pass game="):
        Run.open(tmp_path)
    assert Run.open(tmp_path, other).game is other


def own_game():
    dtype = np.dtype([("ply", np.int8), ("to_play", np.int8)])

    def legal(state, actions):
        actions[0] = 0
        actions[1] = 1
        return 2

    def step(state, action, reward):
        state.ply += 1
        reward[0] = action
        state.to_play = uctree.OVER

    def observe(state, player, planes):
        planes[0] = state.ply

    return uctree.Game(
        dtype, legal, step, num_players=1, num_actions=2, observe=observe, observation_shape=(1,),
        payoff_range=(0, 1), max_plies=1, name="choose",
    )  # fmt: skip


# --- metrics -------------------------------------------------------------------------------------


def test_metrics_come_back_without_what_a_resume_made_void(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        for iteration in (1, 2, 3):
            run.log("iteration", iteration=iteration, loss=np.float32(iteration / 2))
        run.log("resumed", iteration=1)
        run.log("iteration", iteration=2, loss=7.0)
    rows = Run.open(tmp_path).metrics("iteration")
    assert [(row["iteration"], row["loss"]) for row in rows] == [(1, 0.5), (2, 7.0)]
    assert len(Run.open(tmp_path).metrics()) == 3


def test_a_torn_line_of_metrics_is_cut_off_and_a_damaged_one_told(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        run.log("one")
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "tw')
    assert [row["kind"] for row in Run.open(tmp_path).metrics()] == ["one"]
    with Run.begin(tmp_path, game) as run:
        assert path.read_bytes() == whole
        run.log("two")
    path.write_bytes(path.read_bytes().replace(b'{"kind": "one"', b'{"kind": "one'))
    looking = Run.open(tmp_path)
    assert [row["kind"] for row in looking.metrics()] == ["two"]
    assert "metrics.jsonl, line 1 is damaged and left out" in looking.warnings[0]


# --- checkpoints ---------------------------------------------------------------------------------


class Learner:
    """A small training on a replay: everything of it that a checkpoint has to keep."""

    def __init__(self, run):
        torch.set_num_threads(1)
        self.run = run
        self.network = new_network(run.game, run.options)
        self.averaged = new_network(run.game, run.options)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=0.01)
        self.rng = np.random.default_rng(5)
        self.noise = torch.Generator().manual_seed(6)
        self.iteration = 0

    @property
    def parts(self):
        return {
            "network": self.network,
            "averaged": self.averaged,
            "optimizer": self.optimizer,
            "generators": {"batches": self.rng, "noise": self.noise},
        }

    def iterate(self):
        replay, self.iteration = self.run.replay, self.iteration + 1
        for number in (2 * self.iteration, 2 * self.iteration + 1):
            if number not in replay:
                replay.append(number, episode(self.run.game, number))
        end = replay.end_of(2 * self.iteration + 1)
        window = replay.window(40, end=end)
        for _ in range(3):
            batch = window.draw(self.rng, 16, value_mix=0.5)
            observations = torch.from_numpy(batch.observations)
            observations = observations + 0.1 * torch.randn(
                observations.shape, generator=self.noise
            )
            logits, values = self.network(observations)
            loss = (values - torch.from_numpy(batch.values)).square().mean()
            loss = loss - (torch.from_numpy(batch.policy) * logits.log_softmax(1)).sum(1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            with torch.no_grad():
                for mean, new in zip(
                    self.averaged.parameters(), self.network.parameters(), strict=True
                ):
                    mean.lerp_(new, 0.1)
        self.run.log("iteration", iteration=self.iteration, loss=loss.item())
        return self.run.save(
            self.iteration, **self.parts, counters={"steps": 3 * self.iteration}, replay_end=end
        )

    def resume(self):
        checkpoint = self.run.resume(**self.parts)
        self.iteration = 0 if checkpoint is None else checkpoint.iteration
        return checkpoint


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


@pytest.mark.parametrize("interrupted_at", [1, 3, 5])
def test_a_run_that_was_interrupted_ends_with_the_same_weights(tmp_path, game, interrupted_at):
    with Run.begin(tmp_path / "whole", game) as run:
        learner = Learner(run)
        expected = [learner.iterate() for _ in range(6)][-1]
    with Run.begin(tmp_path / "parts", game) as run:
        learner = Learner(run)
        for _ in range(interrupted_at):
            learner.iterate()
    with Run.begin(tmp_path / "parts", game) as run:
        learner = Learner(run)
        learner.resume()
        while learner.iteration < 6:
            last = learner.iterate()
    assert last.weights_sha256 == expected.weights_sha256
    for name, average in expected.averaged.items():
        assert np.array_equal(last.averaged[name], average)


def test_a_run_that_falls_back_ends_with_the_same_weights_and_plays_nothing_twice(tmp_path, game):
    with Run.begin(tmp_path / "whole", game) as run:
        learner = Learner(run)
        expected = [learner.iterate() for _ in range(6)][-1]
    with Run.begin(tmp_path / "parts", game) as run:
        learner = Learner(run)
        for _ in range(4):
            learner.iterate()
        end = run.replay.end
    flip(tmp_path / "parts/checkpoints/000004/weights.safetensors")
    flip(tmp_path / "parts/checkpoints/000003/manifest.json")
    with Run.begin(tmp_path / "parts", game) as run:
        learner = Learner(run)
        assert learner.resume().iteration == 2
        learner.iterate()
        learner.iterate()
        assert run.replay.end == end
        while learner.iteration < 6:
            last = learner.iterate()
    assert last.weights_sha256 == expected.weights_sha256
    losses = [row["iteration"] for row in run.metrics("iteration")]
    assert losses == [1, 2, 3, 4, 5, 6]


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


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
        told = r"does not fit: body\.\d\.weight is \(16, .*\) in the checkpoint and \(32, .*\) here"
        with pytest.raises(uctree.UctreeError, match=told):
            run.resume(network=wide)
        with pytest.raises(uctree.UctreeError, match=r"the checkpoint has no bias"):
            run.resume(network={"bias": torch.zeros(3)})


def test_a_generator_that_was_not_stored_is_told(tmp_path, game):
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


def test_the_newest_checkpoints_and_every_so_many_are_kept(tmp_path, game):
    with Run.begin(tmp_path, game, keep_checkpoints=2, keep_every=4) as run:
        for iteration in range(1, 12):
            run.save(iteration, network=plain_weights(iteration))
    assert run.iterations() == [4, 8, 10, 11]
    assert np.array_equal(run.checkpoint(8).weights["bias"], np.arange(3))


def test_episodes_that_no_kept_checkpoint_needs_are_dropped(tmp_path, game):
    with Run.begin(tmp_path, game, keep_checkpoints=2, replay_window=20, replay_start=1) as run:
        run.replay._shard_bytes = 2000
        for number in range(30):
            run.replay.append(number, episode(game, number))
            run.save(number + 1, network=plain_weights(0), replay_end=run.replay.end)
        shards = list((tmp_path / "replay").glob("*.positions"))
        assert len(shards) < 5
        before = run.replay.end_of(28)
        assert run.replay.window(20, end=before).num_positions == 20


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_is_used(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        for iteration in (1, 2, 3):
            run.save(iteration, network=plain_weights(iteration))
    folder = tmp_path / "checkpoints"
    os.truncate(folder / "000003/weights.safetensors", 100)
    (folder / "000002/weights.safetensors").unlink()
    looking = Run.open(tmp_path)
    assert looking.checkpoint().iteration == 1
    assert "checkpoint 3 is damaged and left out" in looking.warnings[0]
    assert "has 100 bytes" in looking.warnings[0]
    assert "checkpoint 2 is damaged" in looking.warnings[1]
    with Run.begin(tmp_path, game) as run:
        weights = {name: torch.from_numpy(each) for name, each in plain_weights(0).items()}
        assert run.resume(network=weights).iteration == 1
        assert np.array_equal(weights["layer.weight"], plain_weights(1)["layer.weight"])
        assert len(run.metrics("damaged")) == 2
        assert run.iterations() == [1]
    assert (folder / "000003.damaged").exists()
    os.truncate(folder / "000001/manifest.json", 10)
    with Run.begin(tmp_path, game) as run:
        with pytest.raises(
            uctree.UctreeError, match=r"no checkpoint of .* is whole: .*Restore one"
        ):
            run.resume(network=weights)
        with pytest.raises(uctree.UctreeError, match="has no checkpoint that is whole"):
            run.learned()


def test_options_that_are_damaged_are_taken_from_a_checkpoint(tmp_path, game):
    with Run.begin(tmp_path, game, num_simulations=33) as run:
        run.save(1, network=plain_weights(1))
    path = tmp_path / "options.json"
    path.write_text(path.read_text().replace('"num_simulations": 33', '"num_simulations": 34'))
    assert Run.open(tmp_path).options.num_simulations == 33
    with Run.begin(tmp_path, game) as run:
        assert run.options.num_simulations == 33
        (told,) = run.warnings
        assert "checksum is wrong; game and options are those of checkpoint 1" in told
    assert Run.open(tmp_path).warnings == []
    shutil.rmtree(tmp_path / "checkpoints")
    path.write_text("{")
    with pytest.raises(uctree.UctreeError, match=r"and no checkpoint tells what it said; restore"):
        Run.open(tmp_path)


# --- faults --------------------------------------------------------------------------------------


def check_after_kill(folder, game, least):
    """Open what a killed process left: the newest checkpoint is whole and as it was written."""
    with Run.begin(folder, game, keep_checkpoints=2) as run:
        assert run.warnings == []
        checkpoint = run.checkpoint()
        found = 0 if checkpoint is None else checkpoint.iteration
        assert found >= least
        for iteration in run.iterations():
            checkpoint = run.checkpoint(iteration)
            assert checkpoint.counters == {"games": 10 * iteration}
            for name, weights in plain_weights(iteration).items():
                assert np.array_equal(checkpoint.weights[name], weights)
        assert not list(folder.rglob(".uctree-*"))
        assert [row["iteration"] for row in run.metrics("iteration")] in (
            list(range(1, found + 1)),
            list(range(1, found + 2)),
        )
        assert run.warnings == []


def kill_at_every_write(tmp_path, game, step):
    """Kill a process that writes checkpoints at its 1st, 2nd, ... change of a file."""
    done = tmp_path / "done"

    def work(folder):
        with Run.begin(folder, game, keep_checkpoints=2) as run:
            for iteration in (1, 2, 3, 4):
                run.log("iteration", iteration=iteration)
                run.save(
                    iteration, network=plain_weights(iteration), averaged=plain_weights(0),
                    counters={"games": 10 * iteration},
                )  # fmt: skip
                os.close(os.open(done / str(iteration), os.O_CREAT))

    for call in itertools.count(1, step):
        done.mkdir()
        folder = tmp_path / f"run-{call}"
        result = killed_at(call, lambda: work(folder))  # noqa: B023 (called at once)
        least = len(list(done.iterdir()))
        shutil.rmtree(done)
        check_after_kill(folder, game, least)
        shutil.rmtree(folder)
        if result < 0:
            assert least == 4
            return -result
    raise AssertionError


def test_a_process_killed_at_some_writes_leaves_whole_checkpoints(tmp_path, game):
    assert kill_at_every_write(tmp_path, game, step=10) > 50


@pytest.mark.slow
def test_a_process_killed_at_any_write_leaves_whole_checkpoints(tmp_path, game):
    assert kill_at_every_write(tmp_path, game, step=1) > 50


SAVING = """
import sys
from uctree import games
from uctree.learn.run import Run
from tests.learn.faults import plain_weights
run = Run.begin(sys.argv[1], games.tic_tac_toe(), keep_checkpoints=2)
print("ready", flush=True)
newest = run.checkpoint()
first = 1 if newest is None else newest.iteration + 1
if newest is not None:
    run.log("resumed", iteration=newest.iteration)
for iteration in range(first, 1_000_000):
    run.log("iteration", iteration=iteration)
    run.save(iteration, network=plain_weights(iteration), counters={"games": 10 * iteration})
    print(iteration, flush=True)
"""


def kill_at_random_moments(tmp_path, game, times, seed):
    """Kill a process that writes checkpoints without end, over and over on the same folder."""
    rng = np.random.default_rng(seed)
    saved = 0
    for _ in range(times):
        printed = killed_after(rng.uniform(0, 0.3), SAVING, tmp_path / "run")
        whole = printed[: printed.rfind("\n") + 1].split()[1:]
        saved = max(saved, *map(int, whole), 0)
        check_after_kill(tmp_path / "run", game, saved)
    assert saved > times


def test_a_process_killed_at_a_random_moment_leaves_whole_checkpoints(tmp_path, game):
    kill_at_random_moments(tmp_path, game, times=5, seed=0)


@pytest.mark.slow
def test_a_process_killed_at_a_hundred_random_moments_leaves_whole_checkpoints(tmp_path, game):
    kill_at_random_moments(tmp_path, game, times=100, seed=1)


def check_mutations(tmp_path, game, times, seed):
    """Damage one file after the other: what was saved comes back, or an error of ours."""
    whole = tmp_path / "whole"
    with Run.begin(whole, game) as run:
        run.log("iteration", iteration=1)
        for iteration in (1, 2):
            run.save(
                iteration, network=plain_weights(iteration), counters={"games": 10 * iteration},
                generators={"rng": np.random.default_rng(iteration)},
            )  # fmt: skip
        options = run.options
    names = [
        "options.json", "metrics.jsonl", "checkpoints/000002/manifest.json",
        "checkpoints/000002/weights.safetensors",
    ]  # fmt: skip
    rng = np.random.default_rng(seed)
    fell_back = 0
    for turn in range(times):
        path = whole / names[turn % len(names)]
        content = path.read_bytes()
        path.write_bytes(mutated(content, rng))
        run = Run.open(whole, game)
        assert run.options == options
        checkpoint = run.checkpoint()
        iteration = checkpoint.iteration
        fell_back += iteration == 1
        assert checkpoint.counters == {"games": 10 * iteration}
        generator = np.random.default_rng(99)
        checkpoint.load_into(generators={"rng": generator})
        assert generator.random() == np.random.default_rng(iteration).random()
        for name, weights in plain_weights(iteration).items():
            assert np.array_equal(checkpoint.weights[name], weights)
        for row in run.metrics():
            assert isinstance(row["kind"], str)
        path.write_bytes(content)
    assert times / 4 < fell_back < 0.6 * times


def test_damaged_files_lead_to_what_was_saved_before(tmp_path, game):
    check_mutations(tmp_path, game, times=400, seed=0)


@pytest.mark.slow
def test_ten_thousand_damaged_files_lead_to_what_was_saved_before(tmp_path, game):
    check_mutations(tmp_path, game, times=10_000, seed=1)


def test_a_file_of_another_version_is_told(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=plain_weights(1))
    for path in (tmp_path / "options.json", tmp_path / "checkpoints/000001/manifest.json"):
        content = files.read_sealed(path)
        files.write_sealed(path, content | {"version": 99})
    with pytest.raises(uctree.UctreeError, match=r"version 99; this uctree reads 'uctree run'"):
        Run.open(tmp_path)
    with pytest.raises(uctree.UctreeError, match=r"version 99; this uctree reads 'uctree check"):
        checkpoints.read(tmp_path / "checkpoints/000001")


def test_a_manifest_that_asks_for_something_else_is_refused(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=plain_weights(1))
    path = tmp_path / "checkpoints/000001/manifest.json"
    content = files.read_sealed(path)
    for change in ({"files": {}}, {"files": 3}, {"counters": {"games": "x"}}, {"surprise": 1}):
        files.write_sealed(path, content | change)
        with pytest.raises(uctree.UctreeError, match=r"not a manifest|names no weights"):
            checkpoints.read(path.parent)


def test_a_full_disk_is_told_and_the_checkpoint_before_stays(tmp_path, game):
    large = {"weights": np.arange(60_000, dtype=np.float32)}
    with small_disk(tmp_path / "disk", 700 * 1024) as disk:
        with Run.begin(disk / "run", game) as run:
            run.save(1, network=large)
            run.save(2, network=large)
            with pytest.raises(
                uctree.UctreeError, match=r"No space left on device while writing checkpoint 3\..*"
            ):
                run.save(3, network=large)
            assert run.iterations() == [1, 2]
            assert not list((disk / "run").rglob(".uctree-*"))
            assert np.array_equal(run.checkpoint(2).weights["weights"], large["weights"])
            shutil.rmtree(disk / "run/checkpoints/000001")
            run.save(3, network=large)
        with Run.begin(disk / "run", game) as run:
            assert run.checkpoint().iteration == 3


def test_a_full_disk_leaves_metrics_and_options_whole(tmp_path, game):
    with small_disk(tmp_path / "disk", 64 * 1024) as disk:
        with Run.begin(disk / "run", game) as run:
            lines = 0
            with contextlib.suppress(uctree.UctreeError):
                for lines in range(10_000):
                    run.log("iteration", iteration=lines)
            with pytest.raises(uctree.UctreeError, match="No space left on device while adding"):
                run.log("iteration", iteration=lines)
            assert 5 < lines == len(run.metrics("iteration"))
            assert run.warnings == []
        with pytest.raises(uctree.UctreeError, match="No space left on device while opening"):
            Run.begin(disk / "run", game, max_iterations=7)
        assert Run.open(disk / "run").options == run.options


# --- what was learned ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory, game):
    folder = tmp_path_factory.mktemp("runs") / "ttt"
    with Run.begin(folder, game) as run:
        learner = Learner(run)
        learner.iterate()
        learner.iterate()
    return folder, learner


def test_the_averaged_network_is_what_was_learned(trained, tmp_path):
    folder, learner = trained
    observations = torch.rand(4, 2, 3, 3)
    with torch.inference_mode():
        expected = learner.averaged.eval()(observations)
        Run.open(folder).learned().save(tmp_path / "small")
        for network in (
            Run.open(folder).network(),
            load(folder).network(),
            load(folder / "checkpoints/000002").network(),
            load(tmp_path / "small").network(),
        ):
            for one, other in zip(network(observations), expected, strict=True):
                assert torch.equal(one, other)
        earlier = Run.open(folder).network(iteration=1)(observations)
    assert not torch.equal(earlier[1], expected[1])
    names = {path.name for path in (tmp_path / "small").iterdir()}
    assert names == {"manifest.json", "weights.safetensors"}


def test_a_search_uses_what_was_learned(trained, game):
    folder, learner = trained
    result = uctree.search(
        game, game.start(), evaluator=Run.open(folder).evaluator(), num_simulations=30
    )
    observation = torch.from_numpy(game.observation(game.start(), 0))[None]
    with torch.inference_mode():
        priors = learner.averaged.eval()(observation)[0].softmax(1)[0].numpy()
    order = result.edges["action"]
    assert np.allclose(result.edges["prior"], priors[order], atol=1e-5)


def test_what_was_learned_can_be_exported(trained, tmp_path, game):
    pytest.importorskip("onnxruntime", reason="the extra learn is not installed")
    Run.open(trained[0]).export_onnx(tmp_path / "network.onnx")
    assert (tmp_path / "network.onnx").stat().st_size > 1000


def test_a_run_without_a_checkpoint_has_learned_nothing(tmp_path, game):
    Run.begin(tmp_path, game).close()
    with pytest.raises(uctree.UctreeError, match=r"has no checkpoint yet; train on"):
        Run.open(tmp_path).evaluator()


class OwnNetwork(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(18, 11)

    def forward(self, observations):
        both = self.layer(observations.flatten(1))
        return both[:, :9], both[:, 9:]


def test_a_network_of_ones_own_is_handed_over(tmp_path, game):
    own = OwnNetwork()
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=own)
    with pytest.raises(
        uctree.UctreeError, match=r"OwnNetwork: make it and hand it over as network"
    ):
        load(tmp_path).network()
    other = load(tmp_path, network=OwnNetwork()).network()
    assert torch.equal(other.layer.weight, own.layer.weight)


def test_metrics_and_options_are_plain_text(trained):
    folder, _ = trained
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        json.loads(line)
    content = json.loads((folder / "options.json").read_text())
    assert read_options(content["options"]) == Run.open(folder).options
