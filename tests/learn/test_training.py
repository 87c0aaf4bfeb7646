"""train(): the same run after any interruption, any game, every option, metrics and progress."""

from __future__ import annotations

import functools
import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import uctree
from tests.learn.failing_jobs import FailingSetup
from tests.learn.faults import ROOT, killed_at
from tests.pressing import assert_nothing_stays, held, interrupted, two_moments
from uctree import arena, games
from uctree.errors import UctreeError
from uctree.learn.run import Run

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("onnxruntime", reason="the extra learn is not installed")
training = pytest.importorskip("uctree.learn.training")
NetworkAgent = pytest.importorskip("uctree.learn.agents").NetworkAgent

SMALL = {
    "num_simulations": 8, "episodes_per_iteration": 8, "num_trees": 4, "batch_size": 16,
    "draws": 2.0, "network_width": 8, "network_depth": 1, "ladder_games": 0,
    "checkpoint_interval": 1, "warmup_steps": 0,
}  # fmt: skip

# A learned model, with all that its training keeps beside the weights.
MUZERO = {
    "algorithm": "muzero", "network_depth": 8, "playout_iterations": 1, "playout_simulations": 16,
    "reanalyse_share": 0.5, "priority_exponent": 0.6, "value_plies": 3, "unroll_steps": 2,
    "inference": "torch",
}  # fmt: skip
EACH = pytest.mark.parametrize("options", [{}, MUZERO], ids=["alphazero", "muzero"])


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


def train(game, folder, iterations, **options):
    given = SMALL | {"max_iterations": iterations, "schedule_iterations": 4} | options
    return training.train(game, folder, **given)


def hash_of(run):
    """The iteration, the hash of the weights and the replay cursor of the last checkpoint."""
    checkpoint = run.checkpoint()
    assert checkpoint is not None
    return checkpoint.iteration, checkpoint.weights_sha256, checkpoint.replay_end


def positions_of(run):
    return np.concatenate([run.replay.positions(each) for each in range(run.replay.num_episodes)])


# --- the same run after any interruption ---------------------------------------------------------


@pytest.fixture(scope="module")
def whole(game, tmp_path_factory):
    """A run of four iterations that nothing interrupted."""
    return train(game, tmp_path_factory.mktemp("whole") / "run", 4)


@pytest.fixture(scope="module")
def whole_model(game, tmp_path_factory):
    return train(game, tmp_path_factory.mktemp("whole") / "model", 4, **MUZERO)


def test_the_same_call_gives_the_same_weights_and_another_seed_gives_others(game, whole, tmp_path):
    assert hash_of(train(game, tmp_path / "same", 4)) == hash_of(whole)
    assert hash_of(train(game, tmp_path / "other", 4, seed=1))[1] != hash_of(whole)[1]


def test_training_in_two_processes_one_after_the_other_equals_training_in_one(
    game, whole, tmp_path
):
    code = (
        "import sys; from uctree import games; from uctree.learn import train\n"
        "train(games.tic_tac_toe(), sys.argv[1], max_iterations=2, schedule_iterations=4, "
        f"**{SMALL})"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    subprocess.run(command, check=True, cwd=ROOT, timeout=100)
    assert Run.open(tmp_path / "run").iterations()[-1] == 2
    run = train(game, tmp_path / "run", 4)
    assert hash_of(run) == hash_of(whole)
    assert positions_of(run).tobytes() == positions_of(whole).tobytes()


def check_killed(game, whole, folder, seed, kills, interval, **options):
    """Kill a training at random changes of files, resume it each time, and compare the end."""
    rng = random.Random(seed)
    work = functools.partial(train, game, folder, 4, checkpoint_interval=interval, **options)
    for _ in range(kills):
        if killed_at(rng.randrange(1, 120), work) < 0:
            break  # it ended before
    run = work()
    assert hash_of(run) == hash_of(whole)
    assert positions_of(run).tobytes() == positions_of(whole).tobytes()
    assert run.replay.num_episodes == 32
    assert run.warnings == [] or all("left out" in each for each in run.warnings)


@pytest.mark.parametrize("seed", range(2))
def test_a_training_that_is_killed_at_any_write_ends_with_the_same_weights(
    game, whole, tmp_path, seed
):
    check_killed(game, whole, tmp_path / "run", seed, kills=5, interval=1 + seed)


def test_a_training_of_a_model_that_is_killed_at_any_write_ends_with_the_same_weights(
    game, whole_model, tmp_path
):
    check_killed(game, whole_model, tmp_path / "run", 1, kills=4, interval=2, **MUZERO)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights(
    game, whole, tmp_path, seed
):
    check_killed(game, whole, tmp_path / "run", seed, kills=5, interval=1 + seed % 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_training_of_a_model_that_is_killed_again_and_again_ends_with_the_same_weights(
    game, whole_model, tmp_path, seed
):
    interval = 1 + seed % 3
    check_killed(game, whole_model, tmp_path / "run", seed, kills=5, interval=interval, **MUZERO)


@pytest.mark.slow
@EACH
def test_a_training_may_be_killed_at_every_write(game, tmp_path, options):
    expected = hash_of(train(game, tmp_path / "whole", 2, **options))
    for call in itertools.count(1):
        work = functools.partial(train, game, tmp_path / str(call), 2, **options)
        changes = killed_at(call, work)
        assert hash_of(work()) == expected
        if changes < 0:
            break
    assert call > 30


SLOW = pytest.mark.slow


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize(
    ("workers", "num_moments"),
    [(1, 2), (2, 1), pytest.param(1, 200, marks=SLOW), pytest.param(2, 200, marks=SLOW)],
)
def test_ctrl_c_at_any_moment_leaves_nothing_behind_and_the_run_resumes(
    game, whole, tmp_path, workers, num_moments, presses
):
    def work():
        run = train(game, tmp_path / str(num_runs), 4, workers=workers)
        assert run.iterations()[-1] == 4
        assert run.replay.num_episodes == 32
        # With more workers the order of the episodes depends on who is faster.
        return workers > 1 or (hash_of(run), positions_of(run).tobytes()) == expected

    num_runs, num_cut, rng = 0, 0, random.Random(workers)
    expected = hash_of(whole), positions_of(whole).tobytes()
    began = time.monotonic()
    found = work()
    assert found
    seconds, before = time.monotonic() - began, held()
    for _ in range(num_moments):
        num_runs += found is not None  # another folder
        found = interrupted(work, *two_moments(rng, 0.6 * seconds)[:presses])
        assert found in (None, True)
        assert_nothing_stays(before)
        num_cut += found is None
    assert work()
    assert not list(tmp_path.rglob(".uctree-*"))
    assert num_cut > 0


@pytest.mark.parametrize(
    "options", [{"inference": "onnx"}, {"inference": "int8"}, MUZERO],
    ids=["onnx", "int8", "muzero"],
)  # fmt: skip
@pytest.mark.parametrize("damage", ["replay moved away", "index cut off", "shard cut off"])
def test_a_run_learns_on_from_what_is_left_of_its_replay(game, tmp_path, damage, options):
    folder = train(game, tmp_path / "run", 3, **options).folder
    if damage == "replay moved away":
        shutil.move(folder / "replay", tmp_path / "aside")
    else:
        pattern = "*.index" if damage == "index cut off" else "*.positions"
        (path,) = (folder / "replay").glob(pattern)
        os.truncate(path, path.stat().st_size // 4)
    assert train(game, folder, 4, **options).warnings
    run = train(game, folder, 5, **options)  # numbers of positions were given a second time
    steps = [row["steps"] for row in run.metrics("learning")]
    assert steps[2] < steps[3] < steps[4]
    assert run.checkpoint().replay_end == run.replay.end


def test_a_run_that_has_come_to_its_end_stays_as_it_is(game, whole):
    before = hash_of(whole)
    train(game, whole.folder, 4)
    assert hash_of(Run.open(whole.folder)) == before


@pytest.mark.parametrize("limit", [{"max_games": 24}, {"max_iterations": 3}])
def test_a_run_ends_at_its_limit(game, tmp_path, limit):
    run = training.train(game, tmp_path / "run", **SMALL, **limit)
    assert run.iterations()[-1] == 3
    assert run.replay.num_episodes == 24


@pytest.mark.parametrize(
    ("clock", "limit", "taken"),
    [("monotonic", "max_hours", "seconds"), ("process_time", "max_cpu_hours", "cpu_seconds")],
)
def test_a_run_ends_when_its_time_is_over_and_has_slowed_down_by_then(
    game, tmp_path, monkeypatch, clock, limit, taken
):
    seconds = itertools.count()
    clocks = {"monotonic": lambda: 0.0, "process_time": lambda: 0.0}
    clocks[clock] = lambda: float(next(seconds))
    monkeypatch.setattr(training, "time", SimpleNamespace(**clocks))
    run = training.train(game, tmp_path / "run", **SMALL, **{limit: 300 / 3600})
    ends = [row[taken] for row in run.metrics("checkpoint")]
    assert ends[-2] < 300 <= ends[-1]
    rates = [row["learning_rate"] for row in run.metrics("learning")]
    assert np.diff(rates).max() <= 0
    assert rates[-1] == pytest.approx(1e-4, rel=0.1)


# --- failures ------------------------------------------------------------------------------------


class Small(torch.nn.Module):
    """A custom network; its values are NaN after `good_steps` steps."""

    def __init__(self, game, good_steps=10**9, num_actions=None):
        super().__init__()
        size = int(np.prod(game.observation_shape))
        self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size, 8))
        self.policy = torch.nn.Linear(8, num_actions or game.num_actions)
        self.value = torch.nn.Linear(8, game.num_players)
        self.good_steps, self.steps = good_steps, 0

    def forward(self, observations):
        features = torch.relu(self.body(observations))
        values = torch.tanh(self.value(features))
        self.steps += self.training
        if self.steps > self.good_steps:
            values = values * torch.nan
        return self.policy(features), values


def test_a_custom_network_is_trained_and_measured(game, tmp_path):
    network = Small(game)
    before = {name: each.clone() for name, each in network.state_dict().items()}
    given = SMALL | {"max_iterations": 2, "ladder_games": 2}
    run = training.train(games.nim(), tmp_path / "run", network=Small(games.nim()), **given)
    assert [row["past"] for row in run.metrics("ladder")] == [0, 1]
    run = training.train(game, tmp_path / "other", network=network, **SMALL, max_iterations=1)
    assert any((each != before[name]).any() for name, each in network.state_dict().items())
    averaged = run.checkpoint().averaged["policy.weight"]
    opened = Run.open(run.folder)
    for found in (run.network(), opened.network(network=Small(game))):
        assert np.array_equal(found.policy.weight.detach().numpy(), averaged)
    with pytest.raises(UctreeError, match=r"your custom module .*pass one of the same"):
        opened.evaluator()
    result = uctree.search(game, game.start(), evaluator=run.evaluator(), num_simulations=20)
    for evaluator in (opened.evaluator(network=Small(game)), run.evaluator(backend="torch")):
        again = uctree.search(game, game.start(), evaluator=evaluator, num_simulations=20)
        assert again.edges["prior"] == pytest.approx(result.edges["prior"], abs=1e-6)
    # The trained module itself has the last weights, not the averaged ones.
    last = run.checkpoint().weights["policy.weight"]
    assert np.array_equal(network.policy.weight.detach().numpy(), last)


def test_losses_that_are_no_numbers_end_it_with_a_diagnosis_and_the_last_checkpoint(game, tmp_path):
    # 8 episodes of at most 9 positions, each drawn twice: at most 9 steps of 16 in an iteration.
    with pytest.raises(UctreeError) as failure:
        training.train(
            game, tmp_path / "run", network=Small(game, good_steps=12), **SMALL, max_iterations=4
        )
    message = str(failure.value)
    assert "learning failed in iteration 2, step 12: policy loss " in message
    assert "value loss nan" in message
    assert "The last checkpoint, of iteration 1, is intact" in message
    run = Run.open(tmp_path / "run")
    assert run.iterations() == [0, 1]
    sane = training.train(game, run.folder, network=Small(game), max_iterations=2)
    assert sane.iterations()[-1] == 2


class SmallModel(torch.nn.Module):
    """A custom model; its values are NaN after so many steps, or answers for roots."""

    def __init__(self, game, good_steps=10**9, good_answers=10**9):
        super().__init__()
        self.good_steps, self.good_answers = good_steps, good_answers
        self.steps = self.answers = 0
        size = int(np.prod(game.observation_shape))
        self.body, self.after = torch.nn.Linear(size, 8), torch.nn.Linear(8, 8)
        self.policy = torch.nn.Linear(8, game.num_actions)
        self.value = torch.nn.Linear(8, game.num_players)

    def initial(self, observations):
        self.steps += self.training
        self.answers += not self.training
        return self._answers(torch.relu(self.body(observations.flatten(1))))

    def recurrent(self, hidden, actions):
        hidden, logits, values = self._answers(torch.relu(self.after(hidden)))
        return hidden, torch.zeros_like(values), logits, values

    def _answers(self, hidden):
        values = torch.tanh(self.value(hidden))
        if self.steps > self.good_steps or self.answers > self.good_answers:
            values = values * torch.nan
        return hidden, self.policy(hidden), values


def test_a_model_whose_losses_are_no_numbers_ends_a_training_with_a_diagnosis(game, tmp_path):
    given = SMALL | {"algorithm": "muzero", "inference": "torch", "max_iterations": 4}
    with pytest.raises(UctreeError, match=r"learning failed in iteration 2, .*value loss nan"):
        training.train(game, tmp_path / "run", network=SmallModel(game, good_steps=12), **given)
    assert Run.open(tmp_path / "run").iterations() == [0, 1]
    sane = training.train(game, tmp_path / "run", network=SmallModel(game), max_iterations=2)
    assert sane.iterations()[-1] == 2


def test_a_model_whose_answers_are_no_numbers_ends_self_play_with_the_message(game, tmp_path):
    given = SMALL | {"algorithm": "muzero", "inference": "torch", "playout_iterations": 0}
    broken = SmallModel(game, good_answers=3)
    with pytest.raises(UctreeError) as failure:
        training.train(game, tmp_path / "run", network=broken, **given, max_iterations=1)
    assert "self-play of tic_tac_toe fails: 0 episodes were played" in str(failure.value)
    assert "learned model: model gave a value or prior that is not a finite" in str(failure.value)
    assert str(failure.value).endswith("It happened after the actions [] from the root")
    broken = SmallModel(game, good_answers=0)
    with pytest.raises(UctreeError, match=r"SmallModel.initial returned .* not finite"):
        training.train(game, tmp_path / "run", network=broken, max_iterations=1)


def test_a_network_of_the_wrong_shape_is_refused(game, tmp_path):
    with pytest.raises(UctreeError, match=r"logits.*9"):
        train(game, tmp_path / "run", 1, network=Small(game, num_actions=7))
    with pytest.raises(UctreeError, match="observations"):
        train(game, tmp_path / "other", 1, network=Small(games.connect_four()))


def test_an_episode_that_fails_is_left_out_and_logged(game, tmp_path, monkeypatch):
    (tmp_path / "logged").mkdir()
    failing = functools.partial(FailingSetup, folder=str(tmp_path / "logged"), failing=(3, 8))
    monkeypatch.setattr(training, "Setup", failing)
    run = train(game, tmp_path / "run", 2)
    rows = run.metrics("quarantined")
    assert [(row["iteration"], row["episode"]) for row in rows] == [(1, 3), (2, 8)]
    assert {row["error"] for row in rows} == {"ZeroDivisionError: one over zero"}
    assert [number for number in range(16) if number not in run.replay] == [3, 8]
    assert [row["games"] for row in run.metrics("self-play")] == [7, 14]
    checkpoint = run.checkpoint()
    assert checkpoint.replay_end == run.replay.end == run.metrics("self-play")[-1]["positions"]


def test_a_game_that_always_fails_ends_it_with_the_message(game, tmp_path, monkeypatch):
    failing = functools.partial(FailingSetup, folder=str(tmp_path), failing=tuple(range(8)))
    monkeypatch.setattr(training, "Setup", failing)
    with pytest.raises(UctreeError, match="self-play of tic_tac_toe fails: 0 episodes were played"):
        train(game, tmp_path / "run", 2)


# --- any game, any option ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        functools.partial(games.twenty48, max_tile=16),
        functools.partial(games.n_in_a_row, rows=3, cols=3, length=3, num_players=3),
        functools.partial(games.pig, target=10),
        functools.partial(games.dots_and_boxes, rows=1, cols=2),
    ],
    ids=["one player", "three players", "chance", "rewards on the way"],
)
def test_any_game_can_be_trained(made, tmp_path):
    game = made()
    run = train(game, tmp_path / "run", 2)
    assert run.iterations() == [0, 1, 2]
    assert all(np.isfinite(row["value_loss"]) for row in run.metrics("learning"))
    weights = [run.checkpoint(each).weights_sha256 for each in run.iterations()]
    assert len(set(weights)) == 3


def test_playout_cap_randomisation_teaches_policies_of_full_searches_alone(game, tmp_path):
    run = train(game, tmp_path / "run", 2, full_search_share=0.25, fast_simulations=2)
    positions = positions_of(run)
    full = positions["policy_weight"] == 1
    assert set(positions["policy_weight"]) == {0.0, 1.0}
    assert 0.1 < full.mean() < 0.5
    # A full search has visits in eighths, a fast one in halves.
    shares = positions["policy_shares"][~full]
    assert np.isin(shares, [0.0, 0.5, 1.0]).all()
    simulations = run.metrics("self-play")[-1]["simulations"]
    assert simulations == 8 * full.sum() + 2 * (~full).sum()


def test_gumbel_roots_teach_the_improved_policy_over_all_legal_actions(game, tmp_path):
    run = train(game, tmp_path / "run", 2, root_selection="gumbel", policy_target="gumbel")
    positions = positions_of(run)
    for position in positions[::5]:
        taught = set(position["policy_actions"][position["policy_actions"] >= 0].tolist())
        assert taught == set(game.legal(game.copy(position["state"])))


def test_value_mix_changes_what_is_learned_and_not_what_is_stored(game, tmp_path):
    runs = [train(game, tmp_path / str(mix), 1, value_mix=mix) for mix in (0.0, 1.0)]
    first, second = map(positions_of, runs)
    assert first.tobytes() == second.tobytes()
    assert hash_of(runs[0])[1] != hash_of(runs[1])[1]


def test_value_plies_end_returns_with_the_value_of_the_search(game, tmp_path):
    positions = positions_of(train(game, tmp_path / "run", 1, value_plies=1))
    numbers = np.flatnonzero(positions["ply"][1:] == positions["ply"][:-1] + 1)
    before, after = positions[numbers], positions[numbers + 1]
    assert before["returns"] == pytest.approx(after["search_values"][:, ::-1], abs=1e-6)


def test_surprise_decides_how_often_a_position_is_drawn(game, tmp_path):
    plain = positions_of(train(game, tmp_path / "plain", 1))
    weighed = positions_of(train(game, tmp_path / "weighed", 1, surprise_share=0.5))
    assert (plain["weight"] == 1).all()
    assert (weighed["weight"] >= 0.5 - 1e-6).all()
    assert weighed["weight"].std() > 0.05


def test_annealed_noise_ends_at_noise_end(game, tmp_path):
    options = {"noise_fraction": 1.0, "temperature": 0.0, "temperature_floor": 0.0}
    constant = train(game, tmp_path / "constant", 2, **options)
    annealed = train(game, tmp_path / "annealed", 2, **options, noise_end=0.0, noise_iterations=1)

    def different(run, numbers):
        return len({run.replay.positions(number).tobytes() for number in numbers})

    # Without noise and at temperature 0 all episodes of an iteration are the same.
    assert different(constant, range(8, 16)) > 1
    assert different(annealed, range(8)) > 1
    assert different(annealed, range(8, 16)) == 1


@EACH
def test_two_workers_play_every_episode_once(game, tmp_path, options):
    run = train(game, tmp_path / "run", 3, workers=2, **options)
    assert run.replay.num_episodes == 24
    assert run.checkpoint().counters["games"] == 24
    assert not run.warnings
    if options:  # half as many positions as are new, from the second iteration on
        played = [row["positions"] for row in run.metrics("self-play")]
        searched = [row["positions"] for row in run.metrics("reanalysis")]
        most = [round(0.5 * new) for new in np.diff(played)]
        assert all(0 < done <= count for done, count in zip(searched, most, strict=True))


@pytest.mark.parametrize("kind", ["mlp", "tower"])
def test_the_kind_of_network_is_an_option(game, tmp_path, kind):
    run = train(game, tmp_path / "run", 1, network=kind)
    assert run.options.network == kind
    assert run.checkpoint().network["kind"] == kind
    with pytest.raises(UctreeError, match="network='forest': expected 'mlp' or 'tower'"):
        train(game, tmp_path / "other", 1, network="forest")


@pytest.mark.parametrize("inference", ["torch", "onnx", "int8"])
def test_every_way_of_inference_trains(game, tmp_path, inference):
    run = train(game, tmp_path / "run", 2, inference=inference, workers=2)
    assert run.replay.num_episodes == 16


def test_fast_options_resume_exactly_too(game, tmp_path):
    fast = {
        "playout_iterations": 1, "opening_plies": 2, "solver": True, "inference": "int8",
        "precision": "bfloat16",
    }  # fmt: skip
    whole = train(game, tmp_path / "whole", 3, **fast)
    train(game, tmp_path / "parts", 2, **fast)
    assert hash_of(train(game, tmp_path / "parts", 3, **fast)) == hash_of(whole)
    exact = train(game, tmp_path / "exact", 3, **fast | {"precision": "float32"})
    assert hash_of(exact)[1] != hash_of(whole)[1]


GUMBEL = {"root_selection": "gumbel", "policy_target": "gumbel"}


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({}, {"gradient_clip": 1e-3}), ({}, {"average_decay": 0.5}), ({}, {"weight_decay": 1.0}),
        ({}, {"value_weight": 5.0}), ({}, {"evaluation_symmetries": True}), ({}, {"leaves": 4}),
        ({}, {"temperature_decay": 0.1}), ({}, {"noise_alpha": 0.01}), ({}, {"c": 5.0}),
        (GUMBEL, {"num_considered": 2}),
    ],
    ids=lambda given: next(iter(given), None),
)  # fmt: skip
def test_every_option_changes_what_comes_out(game, tmp_path, options, change):
    plain = train(game, tmp_path / "plain", 2, **options).checkpoint()
    other = train(game, tmp_path / "other", 2, **options, **change).checkpoint()
    same = [
        np.array_equal(each, other.best_weights[name]) for name, each in plain.best_weights.items()
    ]
    assert not all(same)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": "tower"}, r'observation_shape=\(.*\): use network="mlp"'),
        ({"evaluation_symmetries": True}, "evaluation_symmetries=True: nim.* has no symmetries"),
        ({"noise_end": 0.1}, "noise_end=0.1 is reached after noise_iterations, which is 0"),
        ({"solver": True, "num_simulations": 0}, "num_simulations=0: expected"),
    ],
)
def test_options_that_cannot_work_are_refused_before_anything_is_written(
    tmp_path, options, message
):
    with pytest.raises(UctreeError, match=message):
        train(games.nim(), tmp_path / "run", 1, **options)
    assert not (tmp_path / "run").exists()


# --- metrics and progress ------------------------------------------------------------------------


def test_metrics_have_every_iteration(whole):
    assert [row["iteration"] for row in whole.metrics("checkpoint")] == [0, 1, 2, 3, 4]
    played, learned = whole.metrics("self-play"), whole.metrics("learning")
    assert [row["games"] for row in played] == [8, 16, 24, 32]
    assert [row["played"] for row in played] == [8] * 4
    assert played[-1]["positions"] == whole.checkpoint().replay_end == whole.replay.end
    assert all(5 <= row["plies_per_game"] <= 9 for row in played)
    assert all(row["games_per_second"] > 0 < row["simulations_per_second"] for row in played)
    new = np.diff([0, *(row["positions"] for row in played)])
    steps = np.cumsum(np.ceil(2 * new / 16))
    assert [row["steps"] for row in learned] == steps.tolist()
    assert all(row["policy_loss"] > 0 < row["value_loss"] for row in learned)
    assert all(row["learning_rate"] > 0 for row in learned)
    assert np.diff([row["learning_rate"] for row in learned]).max() < 0


def test_a_checkpoint_that_was_not_measured_is_measured_later(game, tmp_path):
    train(game, tmp_path / "run", 1)
    run = train(game, tmp_path / "run", 1, ladder_games=2)
    assert [line["iteration"] for line in run.metrics("ladder")] == [1]
    assert len(train(game, tmp_path / "run", 1, ladder_games=2).metrics("ladder")) == 1


def test_a_weaker_checkpoint_than_before_is_logged_as_a_fall(game, tmp_path, monkeypatch):
    strengths = iter([1.0, 5.0, 2.0, 6.0])
    monkeypatch.setattr(training, "strength", lambda found: next(strengths))
    run = train(game, tmp_path / "run", 4, ladder_games=2, keep_checkpoints=1)
    (fallen,) = run.metrics("fall")
    assert (fallen["iteration"], fallen["best"]) == (3, 2)
    assert (
        "its strength is 2, that of iteration 2 was 5 and that of iteration 1 1" in fallen["text"]
    )


def test_processor_time_counts_workers_and_earlier_calls(game, tmp_path):
    once = train(game, tmp_path / "run", 2, workers=2).metrics("checkpoint")[-1]["cpu_seconds"]
    began = time.process_time()
    again = train(game, tmp_path / "run", 3, workers=2).metrics("checkpoint")[-1]["cpu_seconds"]
    here = time.process_time() - began
    # Starting two workers alone takes longer than all that happens in this process.
    assert once + here < again < once + 100


def test_progress_has_what_is_done_and_the_time_left(game, tmp_path):
    reports = []
    run = train(game, tmp_path / "run", 2, progress=reports.append)
    played = [each for each in reports if each.phase == "self-play"]
    learned = [each for each in reports if each.phase == "learning"]
    assert [(each.done, each.total) for each in played] == [(i + 1, 8) for i in range(8)] * 2
    assert learned[-1].done == learned[-1].total
    assert (reports[-1].iteration, reports[-1].max_iterations, reports[-1].games) == (2, 2, 16)
    assert reports[-1].positions == run.replay.end
    assert reports[0].seconds_left is None
    assert reports[-1].seconds_left > 0


@pytest.mark.parametrize(
    "limits", [{"max_games": 16}, {"max_hours": 1.0, "max_iterations": 2}], ids=["games", "first"]
)
def test_the_time_left_is_until_the_first_limit(game, tmp_path, limits):
    reports = []
    training.train(game, tmp_path / "run", progress=reports.append, **SMALL, **limits)
    assert 0 < reports[-1].seconds_left < 600


@pytest.mark.parametrize(
    ("kind", "share", "rate"),
    [
        ("constant", 0.7, 2.0), ("linear", 0.0, 2.0), ("linear", 0.25, 1.6), ("linear", 1.0, 0.4),
        ("cosine", 0.0, 2.0), ("cosine", 0.5, 1.2), ("cosine", 1.0, 0.4), ("cosine", 7.0, 0.4),
        ("linear", -1.0, 2.0),
    ],
)  # fmt: skip
def test_the_learning_rate_falls_as_scheduled(kind, share, rate):
    assert training.scheduled(2.0, 0.2, share, kind) == pytest.approx(rate)


def test_the_environment_lets_threads_wait_without_spinning():
    code = "import os, uctree.learn as l; l.train; print(os.environ['OMP_WAIT_POLICY'])"
    plain = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=plain, capture_output=True, text=True,
        check=True, timeout=100,
    )  # fmt: skip
    assert done.stdout == "PASSIVE\n"


# --- games with a window -------------------------------------------------------------------------

WINDOW = {"num_simulations": 4, "episodes_per_iteration": 3, "num_trees": 3, "batch_size": 8}


@pytest.mark.parametrize("algorithm", ["alphazero", "muzero"])
def test_a_game_with_a_window_is_trained_resumed_and_played(tmp_path, monkeypatch, algorithm):
    """Given in either form; its agent meets opponents that play anywhere on the board."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.n_in_a_row(5, 5, 3, 3, view=3, rewards="placement")
    options = WINDOW | {"algorithm": algorithm, "opening_plies": 2}
    once = train(game, tmp_path / "once", 2, **options)
    train(game, tmp_path / "again", 1, **options)
    again = train(game.view.whole, tmp_path / "again", 2, **options)
    assert hash_of(once) == hash_of(again)
    assert once.game.num_actions == 9
    assert all(row["moved_windows"] >= 0 for row in once.metrics("self-play"))
    positions = positions_of(once)
    assert "state" not in positions.dtype.names
    for number in range(once.replay.num_episodes):
        actions = once.replay.positions(number)["action"]
        assert game.is_over(game.view.whole.play(actions[actions >= 0]))

    def agent():
        return NetworkAgent(str(tmp_path / "once"), num_simulations=4)

    for seed in range(3):
        record = arena.play(game, ["random", agent, "random"], seed=seed)
        assert record.end == "over"
        seen = [
            game.view.to_local(state, action)
            for state, action in zip(record.states, record.actions, strict=False)
        ]
        assert None not in seen[1::3]


def test_an_agent_with_a_tree_goes_on_after_an_action_outside_its_window(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.n_in_a_row(7, 7, 4, 2, view=3)
    train(game, tmp_path, 1, **WINDOW)
    agent, everything = NetworkAgent(str(tmp_path), num_simulations=4, reuse=True), game.view.whole
    state = everything.start()
    agent.begin(everything, 0, 0)
    for reply in (0, 6, 42):  # corners
        for action in (agent.act(state), reply):
            assert action in everything.legal(state)
            agent.watch(state, action)
            state, _ = everything.step(state, action)
