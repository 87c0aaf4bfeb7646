"""Evaluators: playouts, plain functions, batches in Python, networks."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.judges import GAME, in_python, judge, judge_batch, visits
from uctree import evaluators, games, selection
from uctree.engine.driver import BatchedSearch

pytestmark = pytest.mark.usefixtures("both_ways")
CONNECT = games.connect_four()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"root_selection": selection.gumbel()},
        {"solver": True},
        {"transpositions": True},
        {"root_noise": selection.dirichlet()},
        {"backup": uctree.backup.maximum()},
    ],
    ids=["puct", "gumbel", "solver", "transpositions", "noise", "max"],
)
@pytest.mark.parametrize("cache", [0, "1MB"])
def test_asked_in_python_or_compiled_in_the_tree_is_the_same(options, cache):
    assert visits(in_python(cache=cache), **options) == visits(judge, **options)


def test_values_without_priors_are_enough():
    def values_alone(states):
        return judge_batch(states)[1]

    def compiled(state, values):
        x = float(state.own) * 0.37 + float(state.taken) * 0.11
        value = float(np.float32(np.sin(x)))
        values[state.to_play], values[1 - state.to_play] = value, -value

    found = visits(evaluators.python(values_alone))
    assert found == visits(compiled)
    assert sum(found) == 300


def test_zero_sum_values_are_made_to_add_up():
    def network(observations):
        return np.zeros((len(observations), 7)), np.tile([0.5, 0.1], (len(observations), 1))

    batch = BatchedSearch(
        CONNECT, 1, evaluator=evaluators.network(network), root_selection=selection.gumbel()
    )
    batch.reset([0], [CONNECT.start()], num_simulations=20)
    batch.run()
    assert batch.root(0).raw == pytest.approx([0.2, -0.2])


def test_a_network_needs_a_game_with_observations():
    game = uctree.Game(
        GAME.dtype, GAME.rules.legal, GAME.rules.step, num_players=2, num_actions=9, name="blind"
    )
    with pytest.raises(ValueError, match="needs observations, and blind has none"):
        uctree.search(game, game.start(), num_simulations=1, evaluator=evaluators.network(judge))
