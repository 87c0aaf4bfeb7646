"""Bots of OpenSpiel in matches."""

from __future__ import annotations

import pytest

import uctree
from uctree import adapters, arena

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
pytestmark = pytest.mark.usefixtures("both_ways")


def their_search(game, player, seed):
    evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
    return pyspiel.MCTSBot(game, evaluator, 2.0, 60, 1000, True, seed, False)


def their_random(game, player, seed):
    return pyspiel.make_uniform_random_bot(player, seed)


def test_a_search_of_openspiel_beats_random_play_in_its_world():
    game = arena.world_game(adapters.from_openspiel("tic_tac_toe"))
    agents = {"theirs": lambda: arena.BotAgent(their_search), "random": "random"}
    result = arena.match(game, agents, num_games=12)
    assert not result.forfeits
    assert result.standings[0].agent == "theirs"
    assert result.standings[0].score > 0.7


def test_the_same_bot_plays_a_compiled_game_with_the_same_actions():
    agents = {
        "search": lambda: arena.BotAgent(their_search, game="tic_tac_toe"),
        "random": lambda: arena.BotAgent(their_random, game="tic_tac_toe"),
    }
    result = arena.match("tic_tac_toe", agents, num_games=12)
    assert not result.forfeits
    assert result.standings[0].agent == "search"


def test_dice_and_the_actions_of_others_reach_a_bot():
    heard = []

    class Listener(pyspiel.Bot):
        def __init__(self, rng):
            super().__init__()
            self.rng = rng

        def step(self, state):
            return state.legal_actions()[-1]  # hold

        def inform_action(self, state, player, action):
            heard.append((state.move_number(), player, action))

    game = arena.world_game(adapters.from_openspiel("pig(winscore=10,horizon=30)"))
    agents = [lambda: arena.BotAgent(lambda *given: Listener(given[2])), "random"]
    record = arena.play(game, agents)
    assert record.end in ("over", "cut"), record
    assert {player for _, player, _ in heard} == {uctree.CHANCE, 1}
    assert [number for number, _, _ in heard] == sorted({number for number, _, _ in heard})


def test_a_bot_needs_a_game_of_openspiel_with_the_same_actions():
    with pytest.raises(TypeError, match=r"a function make\(game, player, seed\)"):
        arena.BotAgent(pyspiel.make_uniform_random_bot(0, 1))
    with pytest.raises(uctree.UctreeError, match="is no game of OpenSpiel"):
        arena.match("nim", [lambda: arena.BotAgent(their_random), "random"], num_games=2)
    agents = {
        "other": lambda: arena.BotAgent(their_random, game="connect_four"),
        "random": "random",
    }
    result = arena.match("tic_tac_toe", agents, num_games=2)
    assert all("not the same game" in each.error for each in result.forfeits)
    assert result.forfeits
