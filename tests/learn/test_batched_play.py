"""Searches and games of a network in batches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.learn.fixed_evaluators import constant, perfect
from uctree import evaluators, games
from uctree.arena.matches import schedule
from uctree.errors import UctreeError
from uctree.learn import batched_play
from uctree.learn.options import make_options


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


@pytest.fixture(scope="module")
def options(game):
    return make_options(game, num_simulations=20, ladder_games=6)


def test_games_are_the_same_however_many_are_played_at_once(game, options):
    evaluator = perfect(game)

    def played(max_games):
        network = batched_play.NetworkSearch(game, evaluator, options)
        made = []
        for task in schedule(game, 2, 8, 2, 0):
            each = batched_play.BatchedGame(game, task, {})
            seat = batched_play.network_seat(network, each.searched)
            each.sources.update(network=seat, random="random")
            made.append(each)
        batched_play.play_batched(made, max_games, lambda: None)
        return [(each.record.actions, [ply.ply for ply in each.searched]) for each in made]

    assert played(1) == played(3) == played(64)


def test_a_search_of_many_states_is_each_state_searched(game, options):
    network = batched_play.NetworkSearch(game, perfect(game), options)
    states = [game.play(actions) for actions in itertools.permutations(range(4), 3)] * 4
    roots = network.roots(states, range(len(states)))
    assert len(states) > network.searches.num_trees
    for state, root in zip(states, roots, strict=True):
        assert root.actions.tolist() == game.legal(state)
        assert root.visits.sum() == options.num_simulations
    assert [root.visits.tolist() for root in roots[:24]] == [
        root.visits.tolist() for root in roots[24:48]
    ]


def test_priors_without_search_are_a_softmax_over_legal_actions(game):
    logits = np.log(np.arange(1.0, 10.0))
    priors, values = batched_play.predict(game, constant(game, logits), [game.play([8, 0])])
    assert priors[0] == pytest.approx(np.array([0, 2, 3, 4, 5, 6, 7, 8, 0]) / 35)
    assert values.tolist() == [[0.0, 0.0]]


def test_what_is_not_a_network_is_refused(game, options):
    evaluator = evaluators.python(lambda states: np.zeros((len(states), 2)))
    with pytest.raises(UctreeError, match="is not a network"):
        batched_play.predict(game, evaluator, [game.start()])
