"""Agents with the network of a run."""

from __future__ import annotations

import pytest

from uctree import games
from uctree.errors import UctreeError
from uctree.learn.agents import NetworkAgent, network_agent, newest_iteration
from uctree.learn.run import Run

pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("onnxruntime", reason="the extra learn is not installed")

from tests.learn.networks import Own


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


@pytest.fixture(scope="module")
def folder(game, tmp_path_factory):
    """A run with two checkpoints of a custom network."""
    with Run.begin(tmp_path_factory.mktemp("runs") / "ttt", game) as run:
        for iteration in (1, 2):
            run.save(iteration, network=Own())
    return str(run.folder)


def test_an_agent_plays_with_a_custom_network(game, folder):
    agent = NetworkAgent(folder, num_simulations=5, network=Own())
    agent.begin(game, 0, seed=0)
    assert agent.act(game.start()) in game.legal(game.start())


def test_an_agent_that_acts_before_it_begins_is_refused(game, folder):
    with pytest.raises(UctreeError, match=r"call begin\(game, player, seed\) before act"):
        NetworkAgent(folder).act(game.start())


def test_the_evaluator_of_an_agent_cannot_be_given(folder):
    with pytest.raises(TypeError, match="omit evaluator="):
        NetworkAgent(folder, evaluator=None)


def test_a_text_describes_an_agent_and_its_checkpoint(game, folder):
    text = f"network(run={folder!r}, num_simulations=7)"
    assert network_agent(text, iteration=1).iteration == 1
    assert network_agent(text).settings["num_simulations"] == 7
    assert newest_iteration(folder, game) == 2
    assert newest_iteration(f"{folder}/checkpoints/000001", game) is None
