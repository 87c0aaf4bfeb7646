"""Searches in a model: the same trees as in the world that the model knows exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.table_worlds import TableWorld
from uctree import evaluators, selection
from uctree.engine.driver import BatchedSearch

pytestmark = pytest.mark.usefixtures("both_ways")

RULES = {
    "gumbel": {"root_selection": selection.gumbel(num_considered=4)},
    "puct": {"selection": selection.puct(normalise="minmax")},
    "noise": {"selection": selection.puct(normalise="minmax"),
              "root_noise": selection.dirichlet(1.0)},
}  # fmt: skip


def roots_of(world, evaluator, *, num_simulations=60, num_trees=3, **options):
    batch = BatchedSearch(world.game, num_trees, evaluator=evaluator, check=False, **options)
    states = [world.game.start() for _ in range(num_trees)]
    for number, state in enumerate(states):
        state["place"] = number
        state["to_play"] = world.to_play[number]
    world.over[:num_trees] = False
    batch.reset(range(num_trees), states, num_simulations=num_simulations, seed=5)
    batch.run()
    return [batch.root(number) for number in range(num_trees)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("leaves", [1, 3])
@pytest.mark.parametrize("num_players", [1, 2, 3])
def test_an_exact_model_gives_the_search_of_the_world(num_players, leaves, rule):
    # Only a model is asked whether an edge ends the episode, which takes a place in the batch.
    world = TableWorld(seed=num_players, num_players=num_players, ends=0.2 if leaves == 1 else 0.0)
    judge = evaluators.python(world.judge, priors=True, leaves=leaves, cache=0)
    model = evaluators.model(world, leaves=leaves, number=np.float64)
    exact = roots_of(world, judge, **RULES[rule])
    imagined = roots_of(world, model, **RULES[rule])
    for one, other in zip(exact, imagined, strict=True):
        assert one.visits.sum() == 60
        assert one.visits.tolist() == other.visits.tolist()
        np.testing.assert_allclose(one.q, other.q, atol=1e-6)
