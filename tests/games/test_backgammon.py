"""Backgammon: moves, dice and payoffs by hand, and OpenSpiel turn by turn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.games.openspiel import load_game
from tests.games.variants import compiled
from uctree import CHANCE, Game
from uctree.game import OVER
from uctree.games import backgammon
from uctree.games.backgammon import BAR, OFF, ROLLS


def position(own: dict[int, int], other: dict[int, int], dice: tuple[int, int]) -> np.record:
    """A state of player 0 with these checkers; the rest of both players' 15 has left the board."""
    state = backgammon().start()
    state["points"] = 0
    for player, checkers in enumerate((own, other)):
        for point, count in checkers.items():
            state["points"][player, point] = count
        state["points"][player, OFF] = 15 - sum(checkers.values())
    state["turn"], state["to_play"] = 0, CHANCE
    outcome = next(i for i, roll in enumerate(ROLLS.tolist()) if sorted(roll) == sorted(dice))
    return backgammon().step(state, outcome)[0]


def shown(state: np.record) -> set[str]:
    game = backgammon()
    return {game.show_action(state, action) for action in game.legal(state)}


def after(state: np.record, *moves: str) -> np.record:
    game = backgammon()
    for move in moves:
        state, _ = game.step(state, game.read_action(state, move))
    return state


# --- the rules -----------------------------------------------------------------------------------


@pytest.mark.quick
def test_the_first_roll_says_who_begins_and_is_never_a_double() -> None:
    game = backgammon()
    outcomes = game.outcomes(game.start())
    assert len(outcomes) == 30
    assert {probability for _, probability in outcomes} == {1 / 30}
    for outcome, _ in outcomes:
        state, _ = game.step(game.start(), outcome)
        assert state["to_play"] == state["turn"] == outcome % 2
        assert state["dice"][0] != state["dice"][1]
    rolled = game.outcomes(after(game.step(game.start(), 0)[0], "8/7", "6/4"))
    assert sum(probability for _, probability in rolled) == pytest.approx(1)
    assert [round(36 * probability) for _, probability in rolled] == 15 * [2] + 6 * [1]


@pytest.mark.quick
def test_a_checker_hits_what_stands_alone_and_is_stopped_by_two() -> None:
    # Own 20 is the other player's 5, own 21 the other's 4.
    state = position({24: 2}, {5: 1, 4: 2, 6: 1}, (4, 3))
    assert shown(state) == {"24/20*"}  # then 20/17; 24/21 is blocked
    state = after(state, "24/20*")
    assert state["points"][1, BAR] == 1
    assert state["points"][1, 5] == 0
    assert shown(state) == {"20/17"}


@pytest.mark.quick
def test_checkers_on_the_bar_enter_first() -> None:
    state = position({BAR: 1, 6: 5}, {6: 2}, (6, 2))
    assert shown(state) == {"bar/23"}  # own 19 is blocked
    assert shown(after(state, "bar/23")) == {"23/17"}
    # No dice fit: the turn is over at once.
    state = position({BAR: 1, 6: 5}, {6: 2, 2: 2}, (6, 2))
    assert (state["to_play"], state["turn"]) == (CHANCE, 1)


@pytest.mark.quick
def test_both_dice_are_played_if_possible_else_the_larger_one() -> None:
    assert shown(position({12: 1}, {18: 2}, (5, 2))) == {"12/10"}  # own 7 is blocked
    assert shown(position({12: 1}, {15: 2}, (5, 2))) == {"12/7"}  # own 10 is blocked
    # Either die can be played, not both: own 5 is blocked.
    state = position({12: 1}, {20: 2}, (4, 3))
    assert shown(state) == {"12/8"}
    assert after(state, "12/8")["to_play"] == CHANCE


@pytest.mark.quick
def test_doubles_are_played_four_times_as_far_as_possible() -> None:
    state = position({24: 2, 13: 1}, {1: 1}, (2, 2))
    players = []
    for move in ("24/22", "24/22", "22/20", "13/11"):
        players.append(int(state["to_play"]))
        state = after(state, move)
    assert players == [0, 0, 0, 0]
    assert state["to_play"] == CHANCE
    state = position({24: 1}, {21: 2}, (5, 5))
    state = after(state, "24/19", "19/14", "14/9")
    assert state["to_play"] == CHANCE  # own 4 is blocked


@pytest.mark.quick
def test_checkers_leave_the_board_from_home_alone() -> None:
    assert "6/off" not in shown(position({6: 2, 7: 1}, {1: 2}, (6, 1)))
    assert "6/off" in shown(after(position({6: 2, 7: 1}, {1: 2}, (6, 1)), "7/6"))
    # A larger face takes the rearmost checker.
    assert shown(position({4: 1, 2: 1}, {1: 2}, (6, 5))) == {"4/off(6)", "4/off(5)"}
    assert shown(position({4: 2, 5: 1}, {1: 2}, (4, 4))) == {"4/off", "5/1"}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("other", "payoffs"),
    [({6: 14}, (1, 1, 1)), ({6: 15}, (1, 2, 2)), ({6: 14, 19: 1}, (1, 2, 3)),
     ({6: 14, BAR: 1}, (1, 2, 3)), ({6: 14, 18: 1}, (1, 2, 2))],
)  # fmt: skip
def test_gammons_and_backgammons_pay_more(other: dict[int, int], payoffs: tuple[int, ...]) -> None:
    state = position({1: 1}, other, (2, 1))
    for pays, worth in zip(("wins", "gammons", "backgammons"), payoffs, strict=True):
        game = backgammon(pays)
        over, reward = game.step(state, game.read_action(state, "1/off(2)"))
        assert over["to_play"] == OVER
        assert reward.tolist() == [worth, -worth]


@pytest.mark.quick
def test_the_board_is_seen_from_both_sides() -> None:
    game = backgammon()
    state, _ = game.step(game.start(), 1)  # player 1 begins with 2-1
    planes = game.observation(state, 0)
    assert planes[98 + 4 * 23 : 98 + 4 * 24].tolist() == [0, 0, 0, 0]
    assert planes[4 * 23 : 4 * 24].tolist() == [1, 1, 0, 0]  # own 24
    assert planes[98 : 98 + 4].tolist() == [1, 1, 0, 0]  # the other's 24 is own 1
    assert planes[196:].tolist() == [0, 1, 1, 0, 0, 0, 0]
    assert game.observation(state, 1)[:196].tolist() == planes[:196].tolist()
    assert "O to play 1-2" in game.show(state)
    with pytest.raises(ValueError, match='must be "wins", "gammons" or "backgammons"; got \'all\''):
        backgammon("all")
    assert game.show(backgammon(hyper=True).start()).count("X1") == 3


# --- OpenSpiel -----------------------------------------------------------------------------------

PASS = 25


def place_of(player: int, action: int) -> int:
    """Where a checker stands, as OpenSpiel numbers it: 24 is the bar."""
    point = action // 6 + 1
    return 24 if point == BAR else 24 - point if player == 0 else point - 1


def number_of(player: int, dice: np.ndarray, actions: list[int]) -> int:
    """OpenSpiel's number of one or two moves."""
    places = [place_of(player, action) for action in actions] + [PASS, PASS]
    is_high_first = not actions or actions[0] % 6 + 1 == max(dice)
    return 26 * places[1] + places[0] + (0 if is_high_first else 676)


def pairs_of(game: Game, state: np.record) -> dict[tuple[int, ...], np.record]:
    """The next two moves of a turn, or the one that is possible, and the state after them."""
    found = {}
    for first in game.legal(state):
        between, _ = game.step(state, first)
        if between["to_play"] < 0:
            found[first,] = between
            continue
        for second in game.legal(between):
            found[first, second] = game.step(between, second)[0]
    return found


def follow(actions: list[int], spiel: Any) -> int:
    """The number of turns of an episode, played and compared in OpenSpiel."""
    game = backgammon()
    state, turns, rest = game.start(), 0, iter(actions)
    while not game.is_over(state):
        if state["to_play"] == CHANCE:
            # A player who cannot move passes in OpenSpiel; here the dice go on at once.
            while not spiel.is_chance_node():
                assert len(spiel.legal_actions()) == 1
                spiel.apply_action(spiel.legal_actions()[0])
            outcome = next(rest)
            is_first = len(spiel.chance_outcomes()) == 30
            # After the first roll, the two orders of a mixed roll are two outcomes there.
            theirs = 2 * outcome if outcome < 15 else outcome + 15
            spiel.apply_action(outcome if is_first else theirs)
            state, _ = game.step(state, outcome)
            continue
        player, dice = int(state["to_play"]), state["dice"].copy()
        assert spiel.current_player() == player
        pairs = pairs_of(game, state)
        assert {number_of(player, dice, list(pair)) for pair in pairs} == set(spiel.legal_actions())
        length = len(next(iter(pairs)))
        pair = list(itertools.islice(rest, length))
        state = pairs[tuple(pair)]
        spiel.apply_action(number_of(player, dice, pair))
        turns += 1
    assert spiel.is_terminal()
    return turns


@pytest.mark.peer
@pytest.mark.parametrize("num_episodes", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_turns_are_as_openspiel_has_them(num_episodes: int) -> None:
    game = compiled(backgammon)
    for seed in range(num_episodes):
        recorded = game.episode(seed)
        spiel = load_game("backgammon(scoring_type=full_scoring)").new_initial_state()
        assert follow(recorded.actions, spiel) > 10
        assert spiel.returns() == recorded.rewards.sum(axis=0).tolist()
