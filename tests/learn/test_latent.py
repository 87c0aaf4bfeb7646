"""A learned model in a search: who moves next, and whose number comes first."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import OVER, games
from uctree.learn.latent import Functions, Imagination, predict_roots

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


def stepped(made, to_play):
    model = Imagination(GAME, made)
    model.reserve(2, 4)
    state = GAME.start()
    model.begin(np.array([0]), np.array([state], GAME.dtype))
    return model, model.step(
        np.array([0]), np.array([0]), np.array([5]), np.array([to_play]), np.array([1])
    )


@pytest.mark.parametrize("to_play", range(3))
def test_rewards_belong_to_who_acts_and_values_to_who_moves_next(to_play):
    _, found = stepped(functions(), to_play)
    after = (to_play + 1) % 3
    assert found.to_play.tolist() == [after]
    for vector, first in ((found.rewards[0], to_play), (found.values[0], after)):
        assert [vector[(first + j) % 3] for j in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("turn", "expected"), [(0, 1), (1, 2), (2, 0)])
def test_the_model_says_who_moves_next_if_players_do_not_rotate(turn, expected):
    _, found = stepped(functions(turn, rotates=False), 1)
    assert found.to_play.tolist() == [expected]


def test_the_model_says_that_an_episode_is_over_only_if_it_may():
    assert stepped(functions(3, ends=True), 1)[1].to_play.tolist() == [OVER]
    assert stepped(functions(3), 1)[1].to_play.tolist() == [2]


def test_hidden_states_stay_when_there_is_room_for_more():
    model, _ = stepped(functions(), 0)
    model.reserve(2, 9)
    found = model.step(np.array([0]), np.array([1]), np.array([0]), np.array([1]), np.array([2]))
    assert found.to_play.tolist() == [2]
    assert model._hidden[0, :3, 0].tolist() == [0.0, 1.0, 2.0]


def test_roots_know_their_legal_actions():
    states = [GAME.start(), GAME.play([4])]
    legal, logits, values = predict_roots(GAME, functions(), states)
    assert legal.sum(axis=1).tolist() == [9, 8]
    assert not legal[1, 4]
    assert values.tolist() == [[1.0, 2.0, 3.0]] * 2  # relative to the player to move
    assert logits.shape == (2, 9)
