"""The best episode of a search for one player: exact, and replayed action by action."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import uctree
from tests.small_games import dice_game, heap_game, tour_game
from uctree import backup, evaluators, games

TOUR = tour_game()


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def returns_of(game, actions, state=None):
    """What the player gets for these actions, which must end the episode."""
    state, total = game.start() if state is None else state, 0.0
    for ply, action in enumerate(actions):
        state, reward = game.step(state, action)
        total += game.discount**ply * reward[0]
    assert game.is_over(state)
    return total


def best_of_all(game):
    return max(returns_of(game, tour) for tour in itertools.permutations(range(1, 6)))


def test_a_long_search_has_seen_the_best_episode():
    best = uctree.search(TOUR, num_simulations=3_000, seed=1).best_episode()
    assert best.returns == pytest.approx(best_of_all(TOUR), abs=1e-12)
    assert best.returns == returns_of(TOUR, best.actions)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("options", [{"backup": backup.maximum()}, {"transpositions": True}])
def test_backups_and_shared_nodes_do_not_change_what_was_seen(options):
    result = uctree.search(TOUR, num_simulations=100, seed=1, **options)
    best = result.best_episode()
    assert best.returns == pytest.approx(result.best_seen[0].total, abs=1e-12)
    assert best.returns == returns_of(TOUR, best.actions)


@pytest.mark.usefixtures("interpreted")
def test_a_playout_is_drawn_again_action_by_action():
    for seed in range(10):
        result = uctree.search(TOUR, num_simulations=5, seed=seed)
        best = result.best_episode()
        (seen,) = result.best_seen
        assert len(seen.path) < len(best.actions) == 5
        assert best.returns == pytest.approx(seen.total, abs=1e-12)
        assert best.returns == pytest.approx(returns_of(TOUR, best.actions), abs=1e-12)


def test_compiled_and_interpreted_searches_see_the_same_episode(monkeypatch):
    compiled = uctree.search(TOUR, num_simulations=40, seed=2).best_episode()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert uctree.search(TOUR, num_simulations=40, seed=2).best_episode() == compiled


@pytest.mark.usefixtures("interpreted")
def test_more_simulations_never_see_less():
    found = [
        uctree.search(TOUR, num_simulations=n, seed=3).best_episode().returns
        for n in (1, 4, 16, 64)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


@pytest.mark.usefixtures("interpreted")
def test_the_root_may_be_any_state():
    state = TOUR.play([3, 1])
    best = uctree.search(TOUR, state, num_simulations=200).best_episode()
    assert best.returns == returns_of(TOUR, best.actions, state)
    assert len(best.actions) == 3


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(5))
def test_each_of_several_playouts_counts(seed):
    several = evaluators.playout(num_playouts=4)
    result = uctree.search(TOUR, num_simulations=3, seed=seed, evaluator=several)
    best = result.best_episode()
    assert best.returns == pytest.approx(result.best_seen[0].total, abs=1e-12)
    assert best.returns >= result.value[0]


@pytest.mark.usefixtures("interpreted")
def test_the_discount_of_the_game_counts():
    game = tour_game(discount=0.5)
    best = uctree.search(game, num_simulations=100).best_episode()
    assert best.returns == returns_of(game, best.actions)


@pytest.mark.usefixtures("interpreted")
def test_vectors_are_replayed_too():
    game = games.point_mass(3)
    result = uctree.search(game, num_simulations=60, seed=1)
    best = result.best_episode()
    assert best.returns == pytest.approx(result.best_seen[0].total, abs=1e-12)
    assert best.returns == pytest.approx(returns_of(game, best.actions), abs=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_estimates_and_playouts_cut_short_are_no_episodes():
    def nothing(state, values):
        values[0] = 100.0

    for evaluator in (nothing, evaluators.playout(max_plies=1)):
        assert uctree.search(TOUR, num_simulations=5, evaluator=evaluator).best_episode() is None
        best = uctree.search(TOUR, num_simulations=400, evaluator=evaluator).best_episode()
        assert best.returns == returns_of(TOUR, best.actions)


@pytest.mark.usefixtures("interpreted")
def test_the_games_own_playout_has_no_actions_to_show():
    def playout(state, rng, reward):
        reward[0] = 100.0
        state.to_play = uctree.OVER

    result = uctree.search(tour_game(playout=playout), num_simulations=5)
    assert result.best_episode() is None
    assert result.value[0] > 90


@pytest.mark.usefixtures("interpreted")
def test_a_search_counts_its_own_simulations_only():
    first = uctree.search(TOUR, num_simulations=300, seed=1)
    again = uctree.search(TOUR, num_simulations=1, seed=9, tree=first.tree)
    assert again.best_seen[0].total <= first.best_seen[0].total
    assert again.best_episode().returns == returns_of(TOUR, again.best_episode().actions)


@pytest.mark.parametrize("parallel", ["root", pytest.param("tree", marks=pytest.mark.slow)])
def test_the_best_of_all_threads_is_reported(parallel):
    result = uctree.search(TOUR, num_simulations=3_000, threads=2, parallel=parallel)
    assert result.best_episode().returns == pytest.approx(best_of_all(TOUR), abs=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_there_is_none_with_other_players_with_chance_or_in_a_batch():
    result = uctree.search(heap_game(), num_simulations=2)
    with pytest.raises(ValueError, match=r"heap has 2 players, .* principal_variation"):
        result.best_episode()
    with pytest.raises(ValueError, match="has chance: the largest return seen was luck"):
        uctree.search(dice_game(), num_simulations=2).best_episode()

    def judge(states):
        return np.zeros((len(states), 1))

    (result,) = uctree.search_many(
        TOUR, [TOUR.start()], num_simulations=4, evaluator=evaluators.python(judge)
    )
    with pytest.raises(ValueError, match=r"keeps no episodes; use search\(\)"):
        result.best_episode()


@pytest.mark.usefixtures("interpreted")
def test_an_episode_that_is_over_has_none():
    assert uctree.search(TOUR, TOUR.play([1, 2, 3, 4, 5]), num_simulations=2).best_episode() is None
