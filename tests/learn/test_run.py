"""A run's folder: options, metrics, checkpoints, exact resumes, and recovery after faults."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil

import numpy as np
import pytest

import uctree
from tests.learn.episodes import episode, sequence
from tests.learn.faults import flip, killed_after, killed_at, mutated, plain_weights, small_disk
from uctree import games
from uctree.learn import checkpoints, files
from uctree.learn.options import read_options
from uctree.learn.run import Run, load, new_network
from uctree.learn.sequences import make_reanalysed

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")

from tests.learn.learner import Learner  # noqa: E402
from tests.learn.networks import Own  # noqa: E402


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


def test_a_game_without_observe_cannot_be_learned(tmp_path):
    with pytest.raises(uctree.UctreeError, match="needs numbered actions and a function observe="):
        Run.begin(tmp_path / "run", games.point_mass())
    assert not (tmp_path / "run").exists()


# --- begin, open, resume -------------------------------------------------------------------------


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
    with pytest.raises(uctree.UctreeError, match="mine is not empty and holds no saved network"):
        learned.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"
    for _ in range(2):  # its own may be replaced
        learned.save(tmp_path / "new")
    assert load(tmp_path / "new", game).checkpoint.iteration == 1


def test_other_options_are_refused_but_for_those_that_may_change(tmp_path, game):
    Run.begin(tmp_path, game, num_simulations=20, max_iterations=5, workers=1).close()
    before = (tmp_path / "options.json").read_bytes()
    message = (
        r"other options: num_simulations is 20 in the folder and 30 now; c is 1.25 in the folder "
        r"and 2.0 now\. Omit them"
    )
    with pytest.raises(uctree.UctreeError, match=message):
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
        opened = Run.open(tmp_path)
        with pytest.raises(
            uctree.UctreeError, match=r"opened read only; to train, open it by Run\.begin"
        ):
            opened.log("iteration")
    Run.begin(tmp_path, game).close()


def test_a_game_that_is_not_built_in_is_passed(tmp_path):
    other = own_game()
    Run.begin(tmp_path, other).close()
    with pytest.raises(uctree.UctreeError, match=r"was trained on your game 'choose'; add --game"):
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


def test_metrics_come_back_without_those_that_a_resume_made_invalid(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        for iteration in (1, 2, 3):
            run.log("iteration", iteration=iteration, loss=np.float32(iteration / 2))
        run.log("resumed", iteration=1)
        run.log("iteration", iteration=2, loss=7.0)
    rows = Run.open(tmp_path).metrics("iteration")
    assert [(row["iteration"], row["loss"]) for row in rows] == [(1, 0.5), (2, 7.0)]
    assert len(Run.open(tmp_path).metrics()) == 3


def test_an_incomplete_line_of_metrics_is_cut_off_and_a_damaged_one_is_a_warning(tmp_path, game):
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
    opened = Run.open(tmp_path)
    assert [row["kind"] for row in opened.metrics()] == ["two"]
    assert "metrics.jsonl, line 1 is damaged and left out" in opened.warnings[0]


# --- checkpoints ---------------------------------------------------------------------------------


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


def test_a_run_that_goes_back_ends_with_the_same_weights_and_plays_nothing_twice(tmp_path, game):
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


def test_old_checkpoints_are_deleted_except_every_nth(tmp_path, game):
    with Run.begin(tmp_path, game, keep_checkpoints=2, keep_every=4) as run:
        for iteration in range(1, 12):
            run.save(iteration, network=plain_weights(iteration))
    assert run.iterations() == [4, 8, 10, 11]
    assert np.array_equal(run.checkpoint(8).weights["bias"], np.arange(3))


def test_episodes_that_no_checkpoint_needs_are_dropped(tmp_path, game):
    with Run.begin(tmp_path, game, keep_checkpoints=2, replay_window=20, replay_start=1) as run:
        run.replay._shard_bytes = 2000
        for number in range(30):
            run.replay.append(number, episode(game, number))
            run.save(number + 1, network=plain_weights(0), replay_end=run.replay.end)
        shards = list((tmp_path / "replay").glob("*.positions"))
        assert len(shards) < 5
        before = run.replay.end_of(28)
        assert run.replay.window(20, end=before).num_positions == 20


def test_searches_made_again_of_positions_that_no_checkpoint_needs_are_dropped(tmp_path, game):
    options = {"algorithm": "muzero", "keep_checkpoints": 2, "replay_window": 20, "replay_start": 1}
    with Run.begin(tmp_path, game, **options) as run:
        run.reanalysis._shard_bytes = 2000
        for number in range(40):
            run.replay.append(number, sequence(game, number))
            positions = np.arange(max(0, run.replay.end - 5), run.replay.end)
            states = np.zeros(len(positions), game.dtype)
            policies, values = [([0], [1.0])] * len(positions), np.zeros((len(positions), 2))
            found = make_reanalysed(game, positions, states, policies, values)
            run.reanalysis.append(number, found)
            run.save(number + 1, network=plain_weights(0), replay_end=run.replay.end)
        assert len(list((tmp_path / "reanalysis").glob("*.positions"))) < 4
        oldest = run.replay.end_of(38) - 20  # of the window of the older checkpoint
        ends = [run.replay.end_of(number) for number in range(40)]
        needed = [number for number, end in enumerate(ends) if end > oldest]
        for number in needed:
            assert run.reanalysis.positions(number)["number"][-1] == ends[number] - 1
        with pytest.raises(uctree.UctreeError, match="damaged or were dropped"):
            run.reanalysis.positions(needed[0] - 10)


def test_a_damaged_checkpoint_is_a_warning_and_the_one_before_it_is_used(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        for iteration in (1, 2, 3):
            run.save(iteration, network=plain_weights(iteration))
    folder = tmp_path / "checkpoints"
    os.truncate(folder / "000003/weights.safetensors", 100)
    (folder / "000002/weights.safetensors").unlink()
    opened = Run.open(tmp_path)
    assert opened.checkpoint().iteration == 1
    assert "checkpoint 3 is damaged and left out" in opened.warnings[0]
    assert "has 100 bytes" in opened.warnings[0]
    assert "checkpoint 2 is damaged" in opened.warnings[1]
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
            uctree.UctreeError, match=r"no checkpoint of .* is intact: .*Restore one"
        ):
            run.resume(network=weights)
        with pytest.raises(uctree.UctreeError, match="has no checkpoint that is intact"):
            run.learned()


def test_options_that_are_damaged_are_taken_from_a_checkpoint(tmp_path, game):
    with Run.begin(tmp_path, game, num_simulations=33) as run:
        run.save(1, network=plain_weights(1))
    path = tmp_path / "options.json"
    path.write_text(path.read_text().replace('"num_simulations": 33', '"num_simulations": 34'))
    assert Run.open(tmp_path).options.num_simulations == 33
    with Run.begin(tmp_path, game) as run:
        assert run.options.num_simulations == 33
        (warning,) = run.warnings
        assert "checksum is wrong; game and options are those of checkpoint 1" in warning
    assert Run.open(tmp_path).warnings == []
    shutil.rmtree(tmp_path / "checkpoints")
    path.write_text("{")
    with pytest.raises(uctree.UctreeError, match=r"and no intact checkpoint has a copy; restore"):
        Run.open(tmp_path)


# --- faults --------------------------------------------------------------------------------------


def priorities(iteration):
    """Arrays of a training of a learned model, beside the weights."""
    return {"priority": np.random.default_rng(iteration).random(100)}


def check_after_kill(folder, game, least):
    """Open the folder of a killed process: all checkpoints are as they were written."""
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
                    counters={"games": 10 * iteration}, learning=priorities(iteration),
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
    """Damage one file after the other: the last intact checkpoint comes back."""
    whole = tmp_path / "whole"
    with Run.begin(whole, game) as run:
        run.log("iteration", iteration=1)
        for iteration in (1, 2):
            run.save(
                iteration, network=plain_weights(iteration), counters={"games": 10 * iteration},
                generators={"rng": np.random.default_rng(iteration)},
                learning=priorities(iteration),
            )  # fmt: skip
        options = run.options
    names = [
        "options.json", "metrics.jsonl", "checkpoints/000002/manifest.json",
        "checkpoints/000002/weights.safetensors", "checkpoints/000002/learning.safetensors",
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
        assert np.array_equal(checkpoint.learning["priority"], priorities(iteration)["priority"])
        for row in run.metrics():
            assert isinstance(row["kind"], str)
        path.write_bytes(content)
    assert times / 4 < fell_back < 0.7 * times


def test_damaged_files_lead_to_what_was_saved_before(tmp_path, game):
    check_mutations(tmp_path, game, times=400, seed=0)


@pytest.mark.slow
def test_ten_thousand_damaged_files_lead_to_what_was_saved_before(tmp_path, game):
    check_mutations(tmp_path, game, times=10_000, seed=1)


def test_a_file_of_another_version_is_refused(tmp_path, game):
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=plain_weights(1))
    for path in (tmp_path / "options.json", tmp_path / "checkpoints/000001/manifest.json"):
        content = files.read_json(path)
        files.write_json(path, content | {"version": 99})
    with pytest.raises(uctree.UctreeError, match=r"version 99; this uctree reads 'uctree run'"):
        Run.open(tmp_path)
    with pytest.raises(uctree.UctreeError, match=r"version 99; this uctree reads 'uctree check"):
        checkpoints.read(tmp_path / "checkpoints/000001")


def test_a_full_disk_is_an_error_and_the_checkpoint_before_stays(tmp_path, game):
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


def test_a_full_disk_leaves_metrics_and_options_intact(tmp_path, game):
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


# --- networks ------------------------------------------------------------------------------------


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
    with pytest.raises(uctree.UctreeError, match=r"has no checkpoint yet; train until"):
        Run.open(tmp_path).evaluator()


def test_a_custom_network_is_passed_to_load(tmp_path, game):
    own = Own()
    with Run.begin(tmp_path, game) as run:
        run.save(1, network=own)
    with pytest.raises(
        uctree.UctreeError, match=r"your custom module .*Own: pass one of the same architecture"
    ):
        load(tmp_path).network()
    other = load(tmp_path, network=Own()).network()
    assert torch.equal(other.policy.weight, own.policy.weight)


def test_metrics_and_options_are_plain_text(trained):
    folder, _ = trained
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        json.loads(line)
    content = json.loads((folder / "options.json").read_text())
    assert read_options(content["options"]) == Run.open(folder).options
