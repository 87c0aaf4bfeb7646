"""Matches in worlds that are not compiled, between plans and other agents."""

from __future__ import annotations

import random

import pytest

import uctree
from uctree import adapters, arena

pytestmark = pytest.mark.usefixtures("both_ways")


class Take:
    """Players take one or two, or roll a die for it; who takes the last one wins."""

    def __init__(self, left=7, turn=0, won=(0, 0), rolls=False):
        self.left, self.turn, self.won, self.rolls = left, turn, won, rolls

    def legal(self):
        return ["one", "two", "roll"][: 1 + 2 * (self.left > 1)] if self.left else []

    def step(self, action):
        if action == "roll":
            self.rolls = True
            return
        self.left -= {"one": 1, "two": 2}[action]
        self.rolls = False
        if self.left == 0:
            self.won = (1, -1) if self.turn == 0 else (-1, 1)
        self.turn = 1 - self.turn

    def clone(self):
        return Take(self.left, self.turn, self.won, self.rolls)


def world(left=7):
    return adapters.from_object(
        Take(left), to_play=lambda state: uctree.CHANCE if state.rolls else state.turn,
        chance=lambda state: [("one", 0.5), ("two", 0.5)], returns="won", num_players=2,
        payoff_range=(-1, 1), name="take",
    )  # fmt: skip


class Planned(arena.PlanAgent):
    def __init__(self):
        super().__init__(num_simulations=60)


def test_a_plan_beats_random_play_in_a_world_with_chance(tmp_path):
    game = arena.world_game(world())
    path = tmp_path / "games.jsonl"
    result = arena.match(game, {"plan": Planned, "random": "random"}, num_games=16, path=path)
    assert result.standings[0].agent == "plan"
    assert result.standings[0].score > 0.7
    assert all(record.end == "over" for record in result.records)
    # The file is replayed by the rules of the world.
    records = arena.read_games(path, game)
    assert [record.returns for record in records] == [each.returns for each in result.records]


def test_the_game_follows_the_rules_of_the_world():
    game, rng = arena.world_game(world()), random.Random(1)
    for _ in range(10):
        state, twin = game.start(), Take()
        while not game.is_over(state):
            if game.to_play(state) == uctree.CHANCE:
                index = rng.choice([outcome for outcome, _ in game.outcomes(state)])
                twin.step(("one", "two")[index])
            else:
                assert [game.show_action(state, each) for each in game.legal(state)] == twin.legal()
                index = rng.choice(game.legal(state))
                twin.step(twin.legal()[index])
            state, reward = game.step(state, index)
        assert tuple(reward) == twin.won


def test_games_of_openspiel_are_played():
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    game = arena.world_game(adapters.from_openspiel("tic_tac_toe"))
    record = arena.play(game, [Planned, "random"], seed=3)
    assert record.end == "over"
    assert sum(record.returns) == 0


def test_environments_of_gymnasium_are_played():
    gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
    env = gymnasium.make("CartPole-v1", max_episode_steps=25)
    env.reset(seed=1)
    game = arena.world_game(adapters.from_gymnasium(env, horizon=10, truncation="end"))
    lengths = {}
    for name, agent in (("plan", arena.PlanAgent(num_simulations=8)), ("random", "random")):
        record = arena.play(game, [agent], seed=3)
        assert record.returns == (len(record.actions),)  # one for every step
        lengths[name] = len(record.actions)
    assert lengths["random"] < lengths["plan"] == 25


def test_environments_of_pettingzoo_are_played():
    pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
    env = adapters.to_pettingzoo(uctree.games.tic_tac_toe())
    env.reset(seed=1)
    game = arena.world_game(adapters.from_pettingzoo(env))
    record = arena.play(game, [arena.PlanAgent(num_simulations=6), "random"], seed=3)
    assert record.end == "over"
    assert sum(record.returns) == 0
    assert 5 <= len(record.actions) <= 9


def test_a_planning_agent_needs_a_world():
    with pytest.raises(TypeError, match="a plan needs a limit"):
        arena.PlanAgent()
    with pytest.raises(uctree.UctreeError, match="is compiled: search"):
        arena.match("tic_tac_toe", [Planned, "random"], num_games=2)
