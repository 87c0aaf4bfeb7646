"""Training of learned models: whole runs, resumed exactly, for one to three players."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

import uctree  # noqa: E402
from uctree import games, learn  # noqa: E402
from uctree.errors import UctreeError  # noqa: E402
from uctree.learn.batched_play import NetworkSearch  # noqa: E402

torch.set_num_threads(1)

SMALL = {
    "algorithm": "muzero", "episodes_per_iteration": 8, "num_simulations": 8, "num_trees": 8,
    "playout_iterations": 1, "playout_simulations": 16, "draws": 2, "batch_size": 16,
    "network_width": 16, "network_depth": 8, "network": "mlp", "checkpoint_interval": 1,
    "inference": "torch",
}  # fmt: skip


def weights_hash(run):
    content = run.learned().network().state_dict()
    joined = b"".join(content[name].numpy().tobytes() for name in sorted(content))
    return hashlib.sha256(joined).hexdigest()


class Stopped(Exception):
    pass


def stop_at(phase, done):
    def progress(now):
        if (now.phase, now.iteration, now.done) == (phase, 2, done):
            raise Stopped

    return progress


@pytest.fixture(scope="module")
def game():
    return games.n_in_a_row(rows=3, cols=3, length=3, num_players=3)


@pytest.mark.parametrize("phase", ["self-play", "reanalysis", "learning"])
def test_a_run_that_was_stopped_ends_with_the_same_weights(tmp_path, game, phase):
    options = SMALL | {
        "max_iterations": 3, "ladder_games": 0, "reanalyse_share": 0.5, "priority_exponent": 0.6,
        "value_plies": 3,
    }  # fmt: skip
    whole = learn.train(game, tmp_path / "whole", **options)
    done = 3 if phase != "reanalysis" else len(whole.reanalysis.positions(2 << 20))
    with pytest.raises(Stopped):
        learn.train(game, tmp_path / "stopped", progress=stop_at(phase, done), **options)
    resumed = learn.train(game, tmp_path / "stopped", **options)
    assert resumed.metrics("resumed")
    assert weights_hash(resumed) == weights_hash(whole)


def test_options_of_models_change_the_weights(tmp_path, game):
    options = SMALL | {"max_iterations": 2, "ladder_games": 0}
    hashes = {}
    for name, change in {
        "default": {},
        "unroll": {"unroll_steps": 2},
        "no consistency": {"consistency_weight": 0.0},
        "rewards": {"reward_weight": 0.1},
        "ends": {"learned_ends": True},
        "priorities": {"priority_exponent": 1.0},
        "puct": {"root_selection": "puct"},
        "again": {"reanalyse_share": 1.0, "max_iterations": 3},
    }.items():
        run = learn.train(game, tmp_path / name, **options | change)
        hashes[name] = weights_hash(run)
    assert len(set(hashes.values())) == len(hashes)


def test_a_checkpoint_says_how_wrong_the_model_is(tmp_path, game):
    run = learn.train(game, tmp_path, **SMALL | {"max_iterations": 2, "ladder_games": 2})
    row = run.metrics("ladder")[-1]
    assert {"rules", "policy", "random"} <= row["games"].keys()
    errors = row["model"]
    assert [each["k"] for each in errors] == list(range(len(errors)))
    assert errors[0]["value"] == errors[0]["policy"] == errors[0]["turn"] == 0
    assert errors[1]["reward"] > 0
    assert all(0 <= each["illegal"] <= 1 for each in errors if each["positions"])
    assert run.best_iteration() in run.iterations()


def test_a_model_searches_prints_and_plays(tmp_path, game):
    run = learn.train(game, tmp_path, **SMALL | {"max_iterations": 1, "ladder_games": 0})
    state = game.play([0, 4])
    result = run.search(state, num_simulations=20, seed=1)
    assert result.edges["visits"].sum() == 20
    assert set(result.edges["action"]) == set(game.legal(state))
    assert "P2" in str(result)
    page = tmp_path / "search.html"
    result.save(page)
    assert page.stat().st_size > 1000
    agent = learn.NetworkAgent(str(tmp_path), num_simulations=8)
    agent.begin(game, 2, seed=0)
    assert agent.act(state) in game.legal(state)
    with pytest.raises(UctreeError, match="a search in a learned model has no seconds"):
        learn.NetworkAgent(str(tmp_path), seconds=1.0).prepare(game)


def test_search_refuses_a_model(tmp_path, game):
    run = learn.train(game, tmp_path, **SMALL | {"max_iterations": 1, "ladder_games": 0})
    for search in (
        lambda: uctree.search(game, evaluator=run.evaluator()),
        lambda: uctree.search_many(
            game, [game.start()], evaluator=run.evaluator(), num_simulations=9
        ),
    ):
        with pytest.raises(ValueError, match=r"below it, lines .* may be illegal"):
            search()
    with pytest.raises(ValueError, match="solver= needs the rules"):
        uctree.engine.driver.BatchedSearch(game, 1, evaluator=run.evaluator(), solver=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "alphazero", "unroll_steps": 3}, "unroll_steps: only for models"),
        ({"solver": True}, "solver=True proves results by the game's rules"),
        ({"inference": "int8"}, "is for networks of alphazero"),
        ({"evaluation_symmetries": True}, "averages a network over symmetries"),
        ({"device": "cuda"}, "torch finds"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, game, options, message):
    given = {"algorithm": "muzero"} | options
    if options.get("device") and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(UctreeError, match=message):
        learn.train(game, tmp_path / "run", max_iterations=1, **given)


def test_a_game_whose_players_do_not_alternate_learns_who_moves(tmp_path):
    boxes = games.dots_and_boxes(1, 2)
    run = learn.train(boxes, tmp_path, **SMALL | {"max_iterations": 2, "ladder_games": 2})
    assert run.metrics("learning")[-1]["turn_loss"] > 0
    assert not run.evaluator().model.functions.rotates
    search = NetworkSearch(boxes, run.evaluator(), run.options)
    root = search.roots([boxes.start()], [0])[0]
    assert root.visits.sum() == 8


def test_one_player_and_chance_are_learned(tmp_path):
    options = SMALL | {"max_iterations": 2, "ladder_games": 0, "episodes_per_iteration": 2}
    run = learn.train(games.twenty48(max_tile=16), tmp_path, **options)
    assert np.isfinite(run.metrics("learning")[-1]["value_loss"])


def test_the_averaged_and_the_exported_model_agree(tmp_path, game):
    options = SMALL | {"max_iterations": 1, "ladder_games": 0, "inference": "onnx"}
    run = learn.train(game, tmp_path / "run", **options)
    run.export_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.recurrent.onnx").exists()
    learned = learn.load(tmp_path / "run")
    one = learned.evaluator(backend="torch").model.functions
    other = learned.evaluator(backend="onnx").model.functions
    given = np.random.default_rng(0).random((2, *game.observation_shape), np.float32)
    for first, second in zip(one.initial(given), other.initial(given), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-5)
    learned.save(tmp_path / "small")
    assert learn.load(tmp_path / "small").search(num_simulations=4).action is not None
