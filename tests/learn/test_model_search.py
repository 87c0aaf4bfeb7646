"""A search in a model as a result: what is shown, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.learn.test_latent import GAME, functions
from tests.learn.test_sequences import ACTIONS, REWARDS
from uctree.learn import model_search
from uctree.learn.latent import evaluator
from uctree.learn.model_inference import export_model
from uctree.learn.model_search import search_model
from uctree.learn.options import make_options


@pytest.fixture(scope="module")
def result():
    options = make_options(GAME, algorithm="muzero")
    return search_model(
        GAME, evaluator(GAME, functions()), options, GAME.play([4]), num_simulations=12, seed=1
    )


def test_the_root_has_its_legal_actions_and_all_visits(result):
    assert result.edges["visits"].sum() == 12
    assert set(result.edges["action"]) == set(GAME.legal(GAME.play([4])))


def test_the_root_is_shown_and_other_states_are_hidden(result):
    assert str(result).startswith(GAME.show(GAME.play([4])))
    node = next(each for each in result.tree.root.walk() if each.edge)
    assert "hidden state" in result.game.show(node.state)


def is_known(result, row, action):
    tree = result.tree
    node = int(np.flatnonzero(tree.edges["row"] == row)[0])
    block = tree.edges[tree.edges["first"][node] :][: tree.edges["num_edges"][node]]
    return bool((block["row"][block["action"] == action] >= 0).any())


def test_steps_are_those_that_the_model_answered(result):
    action = int(result.edges["action"][np.argmax(result.edges["visits"])])
    state, reward = result.game.step(result.state, action)
    assert reward[1] == 1.0  # of player 1, who acted
    assert state["to_play"] == 2
    unknown = next(a for a in range(9) if not is_known(result, int(state["row"]), a))
    with pytest.raises(uctree.IllegalAction, match="did not ask the model what is behind"):
        result.game.step(state, unknown)


def test_a_trained_model_says_that_the_episode_is_over(tmp_path):
    """After the last action of the episode that it learned, and not before."""
    pytest.importorskip("torch", reason="the learn extra is not installed")
    from tests.learn.test_unroll import learned_by_heart

    module, _ = learned_by_heart(tmp_path)
    options = make_options(GAME, algorithm="muzero", learned_ends=True)
    made = export_model(module, GAME, backend="torch", rotates=True, ends=True)
    movers = {}
    for count in range(len(ACTIONS)):
        found = search_model(
            GAME, made.evaluator(GAME), options, GAME.play(ACTIONS[:count]), num_simulations=40
        )
        steps = dict(model_search._steps(found.tree))
        row, mover, paid = steps[0, ACTIONS[count]]
        movers[count] = mover
        is_leaf = not any(parent == row for parent, _ in steps)
        assert is_leaf == (mover == uctree.OVER)
    assert movers == {0: 1, 1: 2, 2: 0, 3: uctree.OVER}
    np.testing.assert_allclose(paid, REWARDS[3], atol=0.2)
