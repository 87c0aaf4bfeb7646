"""One game: how it ends, what it pays, and what a failing agent does to it."""

from __future__ import annotations

import functools

import pytest

import uctree
from tests.arena import failing
from tests.arena.failing import FAILING
from tests.arena.timing import without_seconds
from uctree import UctreeError, arena, games
from uctree.arena import play
from uctree.arena.agents import GreedyAgent, RandomAgent
from uctree.arena.episodes import AgentPool, Task, play_in_turns

pytestmark = pytest.mark.quick

THREE = "n_in_a_row(rows=3, cols=3, length=3, num_players=3)"


def test_a_game_is_played_to_its_end_and_pays_what_the_rules_pay():
    record = play("tic_tac_toe", ["search(num_simulations=200)", "random"], seed=1)
    assert record.end == "over"
    assert record.agents == ("search(num_simulations=200)", "random")
    assert record.decisions == ((len(record.actions) + 1) // 2, len(record.actions) // 2)
    assert min(record.seconds) > 0
    record.check()


def test_the_same_seed_gives_the_same_game_and_another_one_another():
    agents = ["random", "search(num_simulations=30)"]
    first = play("tic_tac_toe", agents, seed=4)
    assert without_seconds(play("tic_tac_toe", agents, seed=4)) == without_seconds(first)
    assert play("tic_tac_toe", agents, seed=5).actions != first.actions


def test_a_game_begins_with_its_opening():
    record = play("tic_tac_toe", ["random", "random"], opening=[4, 0, 8])
    assert record.actions[:3] == (4, 0, 8)
    assert record.decisions[0] + record.decisions[1] == len(record.actions) - 3


def test_a_game_that_reaches_max_plies_is_cut():
    plain = games.tic_tac_toe()
    game = uctree.Game(
        plain.dtype, plain.rules.legal, plain.rules.step, num_players=2, num_actions=9, max_plies=3
    )
    record = play(game, ["random", "random"])
    assert (record.end, len(record.actions), record.returns) == ("cut", 3, (0.0, 0.0))


@pytest.mark.parametrize(
    ("agents", "opening", "message"),
    [
        (["random"], [], "tic_tac_toe has 2 players; got 1 agents"),
        (["random", "random"], [0, 0], "action 0 is not legal"),
    ],
)
def test_what_cannot_be_played_is_refused(agents, opening, message):
    with pytest.raises(UctreeError, match=message):
        play("tic_tac_toe", agents, opening=opening)


def test_a_game_in_turns_is_the_game_that_is_played_at_once():
    game = games.tic_tac_toe()
    pool = AgentPool(game, {"greedy": "greedy", "random": "random"})
    turns = play_in_turns(pool, Task(0, 0, (0, 1), (4, 0), seed=3))
    seen = []
    while True:
        try:
            agent, state = next(turns)
        except StopIteration as end:
            record = end.value
            break
        seen.append((type(agent), game.to_play(state)))
    assert record.actions == arena.play(game, ["greedy", "random"], opening=[4, 0], seed=3).actions
    seats = [(GreedyAgent, 0), (RandomAgent, 1)]
    assert seen == [seats[ply % 2] for ply in range(len(record.actions) - 2)]


# --- failing agents ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("Raises(1)", "act at ply 2: ZeroDivisionError: one over zero"),
        ("Leaves(1)", "act at ply 2: SystemExit: 3"),
        ("Cheats(1)", "action 10000 at ply 2 is not legal; legal: "),
        ("Babbles(1)", "'the middle' at ply 2 is not an action"),
        ("NeverBegins()", "begin at ply 0: OSError: no such program"),
        ("LooksAway()", "watch at ply 1: RuntimeError: cannot look"),
    ],
)
def test_an_agent_that_fails_forfeits_the_game(agent, message):
    record = play("tic_tac_toe", [f"{FAILING}:{agent}", "random"])
    assert record.end == "forfeit"
    assert record.forfeiter == 0
    assert message in record.error
    assert record.returns == (-1.0, 1.0)
    record.check()  # the actions before the forfeit are legal


def test_an_agent_that_takes_too_long_forfeits_the_game():
    record = play("tic_tac_toe", ["random", f"{FAILING}:Dawdles(1)"], max_seconds=0.1)
    assert (record.forfeiter, record.returns) == (1, (1.0, -1.0))
    assert record.error.startswith("took 0.3")
    assert record.error.endswith("s at ply 3; the limit is 0.1 s")


def test_without_a_payoff_range_an_agent_that_forfeits_is_last():
    plain = games.tic_tac_toe()
    game = uctree.Game(
        plain.dtype, plain.rules.legal, plain.rules.step, num_players=2, num_actions=9
    )
    assert play(game, [functools.partial(failing.Raises, 1), "random"]).returns == (-1.0, 0.0)


def test_all_others_win_if_one_of_three_forfeits():
    record = play(THREE, ["random", f"{FAILING}:Raises(1)", "random"])
    low, high = games.n_in_a_row(3, 3, 3, 3).payoff_range[0]
    assert record.returns == (high, low, high)


def test_an_agent_cannot_change_the_game_by_writing_into_a_state():
    record = play("tic_tac_toe", [f"{FAILING}:Scribbles(0)", f"{FAILING}:Scribbles(0)"])
    assert record.end == "over"
    record.check()
