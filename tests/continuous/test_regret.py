"""What a path leaves on the table: stage regrets, open-loop regrets, gaps."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import UctreeError, games, regret
from uctree.games.loss_game import equilibrium, reply_2, reply_3

LOSS, LOSS_3D = games.loss_game(), games.loss_game(3)
NASH = (19 / 14, -5.0, 2.0)  # nobody gains while the others do not react


def test_the_equilibrium_of_foresight_has_no_stage_regret_but_an_open_loop_one():
    found = regret.measure(LOSS, equilibrium())
    np.testing.assert_allclose(found.stage, 0.0, atol=1e-9)
    np.testing.assert_allclose(found.open_loop, (2.077569, 0.831325, 0.0), atol=1e-6)
    np.testing.assert_allclose(found.equilibrium_gap, 0.0, atol=1e-9)


def test_where_own_gradients_end_nobody_regrets_in_an_open_loop_but_somebody_does_by_stages():
    found = regret.measure(LOSS, NASH)
    np.testing.assert_allclose(found.open_loop, 0.0, atol=1e-9)
    assert found.by_player.max() > 1.0
    assert (found.equilibrium_gap < 0).all()  # it pays everybody more than the equilibrium


def test_stage_regret_is_never_negative_and_zero_for_best_replies():
    rng = np.random.default_rng(0)
    for x1 in rng.uniform(-5, 5, 5):
        x2 = reply_2(x1)
        stage = regret.stage_regret(LOSS, [x1, x2, reply_3(x2)])
        assert stage[0] >= 0
        np.testing.assert_allclose(stage[1:], 0.0, atol=1e-8)
    for path in rng.uniform(-5, 5, (5, 3)):
        assert (regret.stage_regret(LOSS, path.tolist()) >= 0).all()


def test_three_coordinates_are_judged_by_their_sums():
    path = [[-0.1, -0.1, 0.0], [0.5, 1.0, 1.0], [-1.0, -0.2, -0.2]]
    sums = [float(np.sum(action)) for action in path]
    in_3d = regret.measure(LOSS_3D, path)
    np.testing.assert_allclose(in_3d.stage, regret.stage_regret(LOSS, sums), atol=1e-7)


def test_an_incomplete_path_is_refused_and_told_what_to_do():
    with pytest.raises(uctree.IncompletePath, match=r'complete="best_reply"') as caught:
        regret.measure(LOSS, [[0.0], [1.0]])
    assert caught.value.depth == 2
    line = uctree.search(LOSS, LOSS.start(), num_simulations=5).principal_variation()
    with pytest.raises(uctree.IncompletePath):
        regret.sampled_gap(LOSS, line)


def test_a_line_of_a_search_can_be_judged():
    result = uctree.search(LOSS, LOSS.start(), num_simulations=200)
    found = regret.measure(LOSS, result.principal_variation("best_reply"))
    assert found.stage[-1] >= 0
    assert "tolerance" in str(found)


def test_the_regret_of_a_discrete_game_is_told_by_its_exact_values():
    game = games.tic_tac_toe()
    blunder = [0, 1, 4, 2, 8]  # the second player lets the first one win
    found = regret.measure(game, blunder)
    assert found.movers.tolist() == [0, 1, 0, 1, 0]
    assert found.stage.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert found.by_player.tolist() == [0.0, 1.0]
    assert found.equilibrium_gap.tolist() == [-1.0, 1.0]
    assert (found.open_loop >= 0).all()


def test_one_player_regrets_every_push_that_could_be_better():
    game = games.point_mass(stages=3)
    best = uctree.continuous.solve_backward(game)
    np.testing.assert_allclose(regret.stage_regret(game, best.actions), 0.0, atol=1e-8)
    found = regret.measure(game, [[0.0]] * 3)
    assert found.stage[0] > 0
    assert found.stage.sum() == pytest.approx(found.equilibrium_gap[0], abs=1e-8)
    assert found.open_loop[0] == pytest.approx(found.equilibrium_gap[0], abs=1e-8)


def test_sampled_gaps_have_either_sign_and_take_the_path_in_where_told():
    gaps = [regret.sampled_gap(LOSS, equilibrium(), seed=seed) for seed in range(10)]
    assert np.min(gaps) < 0 < np.max(gaps)
    again = regret.sampled_gap(LOSS, equilibrium(), seed=3)
    np.testing.assert_array_equal(again, gaps[3])
    only = regret.sampled_gap(LOSS, [0.0, 1.0, -0.5], candidates=[[]] * 3, include_path=True)
    np.testing.assert_array_equal(only, 0.0)
    with pytest.raises(ValueError, match="2 stages"):
        regret.sampled_gap(LOSS, [0.0, 1.0, -0.5], candidates=[[0.0], [0.0]])


def test_sampled_gaps_of_a_discrete_game_leave_illegal_candidates_out():
    game = games.tic_tac_toe()
    state = game.play([0, 4, 8])  # a corner now lets the first player win
    gap = regret.sampled_gap(game, [2, 6, 3, 7], candidates=[range(9)] * 6, state=state)
    assert gap.tolist() == [-1.0, 1.0]  # all candidates: a draw is what best play pays


def test_sampled_gaps_are_known_where_other_lines_are_longer_than_the_path():
    game = games.tic_tac_toe()  # a path of five plies, and lines of nine
    gap = regret.sampled_gap(game, [0, 3, 1, 4, 2], num_candidates=2, seed=1)
    assert gap[0] == -gap[1]
    assert gap[0] in (-2.0, -1.0, 0.0)


def test_sampled_gaps_average_over_chance():
    stake = np.dtype([("ply", np.int8), ("to_play", np.int8)])

    def legal(state, actions):
        actions[0] = 0
        return 1

    def step(state, action, reward):
        if state.to_play == uctree.CHANCE:
            reward[0] += 4.0 * action
            state.to_play = uctree.OVER
        else:
            state.to_play = uctree.CHANCE
        state.ply += 1

    def chance(state, outcomes, probabilities):
        outcomes[0], outcomes[1] = 0, 1
        probabilities[0], probabilities[1] = 0.75, 0.25
        return 2

    game = uctree.Game(
        stake, legal, step, num_players=1, num_actions=1, chance=chance, max_outcomes=2, max_plies=2
    )
    assert regret.sampled_gap(game, [0, 1]).tolist() == [1.0 - 4.0]
    assert regret.sampled_gap(game, [0, 0]).tolist() == [1.0 - 0.0]


def test_sampled_gaps_that_cannot_be_had_are_refused(monkeypatch):
    monkeypatch.setattr(regret, "MOST_LINES", 1000)
    with pytest.raises(UctreeError, match=r"more than 1,000 states of loss_game; use fewer cand"):
        regret.sampled_gap(LOSS, equilibrium(), num_candidates=10)
    path = games.pig(10).random_episode(3).actions  # a game without a horizon
    with pytest.raises(UctreeError, match=r"6 stages, and pig.* continues .*; give more of them"):
        regret.sampled_gap(games.pig(10), path, num_candidates=2)


TARGET = 0.0


def approach(state, action, reward):
    reward[0] = -((action[0] - TARGET) ** 2)
    state.to_play = uctree.OVER


def test_regret_follows_a_global_that_the_rules_read(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = uctree.Game(
        [("to_play", np.int8)], None, approach, num_players=1, max_plies=1,
        action_space=uctree.Box([-2.0], [2.0]),
    )  # fmt: skip
    np.testing.assert_allclose(regret.stage_regret(game, [0.0]), 0.0, atol=1e-6)
    monkeypatch.setitem(globals(), "TARGET", 1.0)
    np.testing.assert_allclose(regret.stage_regret(game, [0.0]), 1.0, atol=1e-6)
