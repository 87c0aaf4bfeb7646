"""A learned model in a search: who moves next, and whose number comes first."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import OVER, games, selection
from uctree.engine.driver import BatchedSearch
from uctree.learn.latent import Functions, Imagination, evaluator, predict_roots

pytestmark = pytest.mark.usefixtures("interpreted")

GAME = games.n_in_a_row(rows=3, cols=3, length=3, num_players=3)


def functions(turn=None, **given):
    """A model whose hidden state counts its steps; its vectors are 1, 2, 3 from its player on."""

    def initial(observations):
        n = len(observations)
        return np.zeros((n, 1), np.float32), np.zeros((n, 9)), np.tile([1.0, 2.0, 3.0], (n, 1))

    def recurrent(hidden, actions):
        n = len(hidden)
        vectors = np.tile([1.0, 2.0, 3.0], (n, 1))
        turns = [] if turn is None else [np.eye(4)[[turn] * n]]
        return hidden + 1, vectors, np.zeros((n, 9)), vectors, *turns

    return Functions(initial, recurrent, **given)


def edge_taken(made, to_play):
    """What the tree says of an edge that was taken once, by the player of a seat."""
    rule = selection.puct(normalise="minmax")
    batch = BatchedSearch(GAME, 1, evaluator=evaluator(GAME, made), selection=rule)
    batch.reset([0], [GAME.play([0, 4][:to_play])], num_simulations=1)
    batch.run()
    edges = batch.tree(0).edges
    return edges[1:][edges["visits"][1:] == 1][0]


@pytest.mark.parametrize("to_play", range(3))
def test_rewards_belong_to_who_acts_and_values_to_who_moves_next(to_play):
    edge = edge_taken(functions(), to_play)
    after = (to_play + 1) % 3
    assert edge["mover"] == after
    value = edge["value_sum"] - edge["reward"]
    for vector, first in ((edge["reward"], to_play), (value, after)):
        assert [vector[(first + j) % 3] for j in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("turn", "expected"), [(0, 1), (1, 2), (2, 0)])
def test_the_model_says_who_moves_next_if_players_do_not_rotate(turn, expected):
    made = functions(turn, rotates=False)
    assert edge_taken(made, 1)["mover"] == expected
    turns = made.recurrent(np.zeros((1, 1)), np.zeros(1, int))[4:]
    assert Imagination(GAME, made).next_players(np.array([1]), turns).tolist() == [expected]


def test_the_model_says_that_an_episode_is_over_only_if_it_may():
    made = functions(3, ends=True)
    edge = edge_taken(made, 1)
    assert edge["mover"] == OVER
    assert edge["value_sum"].tolist() == edge["reward"].tolist()
    assert edge_taken(functions(3), 1)["mover"] == 2
    turns = made.recurrent(np.zeros((1, 1)), np.zeros(1, int))[4:]
    assert Imagination(GAME, made).next_players(np.array([1]), turns).tolist() == [OVER]


def test_vectors_are_turned_into_the_order_of_the_players():
    model, vectors = Imagination(GAME, functions()), np.array([[1.0, 2.0, 3.0]] * 3)
    found = model.by_player(vectors, np.arange(3))
    assert found.tolist() == [[1, 2, 3], [3, 1, 2], [2, 3, 1]]


def test_roots_know_their_legal_actions():
    states = [GAME.start(), GAME.play([4])]
    legal, logits, values = predict_roots(GAME, functions(), states)
    assert legal.sum(axis=1).tolist() == [9, 8]
    assert not legal[1, 4]
    assert values.tolist() == [[1.0, 2.0, 3.0]] * 2  # relative to the player to move
    assert logits.shape == (2, 9)
