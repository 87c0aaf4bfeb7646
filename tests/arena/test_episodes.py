"""One game in turns: who is to act is told before it does."""

from __future__ import annotations

from uctree import arena, games
from uctree.arena.agents import GreedyAgent, RandomAgent
from uctree.arena.episodes import Squad, Task, play_in_turns


def test_a_game_in_turns_is_the_game_that_is_played_at_once():
    game = games.tic_tac_toe()
    squad = Squad(game, {"greedy": "greedy", "random": "random"})
    turns, told = play_in_turns(squad, Task(0, 0, (0, 1), (4, 0), seed=3)), []
    while True:
        try:
            agent, state = next(turns)
        except StopIteration as end:
            record = end.value
            break
        told.append((type(agent), game.to_play(state)))
    assert record.actions == arena.play(game, ["greedy", "random"], opening=[4, 0], seed=3).actions
    seats = [(GreedyAgent, 0), (RandomAgent, 1)]
    assert told == [seats[ply % 2] for ply in range(len(record.actions) - 2)]
