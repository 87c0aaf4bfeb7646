"""Dots and boxes: boxes, turns and payoffs by hand, exact values, and OpenSpiel in lock step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.games.openspiel import follow, load_game, spiel_perft
from tests.games.variants import compiled
from uctree import Game, IllegalAction
from uctree.game import StateView, make_rng
from uctree.games.dots_and_boxes import box_table, dots_and_boxes


def played(game: Game, lines: str) -> tuple[np.record, list[list[float]]]:
    """The state after these lines and what each of them paid."""
    state = game.start()
    rewards = []
    for line in lines.split():
        state, reward = game.step(state, game.read_action(state, line))
        rewards.append(reward.tolist())
    return state, rewards


# --- the rules -----------------------------------------------------------------------------------


def test_players_take_turns_until_a_box_is_closed() -> None:
    game = dots_and_boxes(1, 2)
    state = game.start()
    players = []
    for line in ("a1-b1", "a2-b2", "a1-a2", "b1-b2", "b1-c1", "b2-c2", "c1-c2"):
        players.append(game.to_play(state))
        state, _ = game.step(state, game.read_action(state, line))
    # Player 1 closes the left box with the fourth line and draws the fifth as well.
    assert players == [0, 1, 0, 1, 1, 0, 1]
    assert game.is_over(state)
    assert state["score"].tolist() == [0, 2]


def test_every_box_pays_the_player_who_closes_it_at_once() -> None:
    game = dots_and_boxes(1, 2, "boxes")
    _, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-b2 b1-c1 b2-c2 c1-c2")
    assert rewards == [[0, 0], [0, 0], [0, 0], [0, 1], [0, 0], [0, 0], [0, 1]]


def test_one_line_may_close_two_boxes() -> None:
    game = dots_and_boxes(1, 2, "boxes")
    state, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-c1 b2-c2 c1-c2 b1-b2")
    assert rewards[-1] == [2, 0]
    assert game.is_over(state)
    assert state["owner"].tolist() == [1, 1, 0]


def test_a_win_pays_at_the_end_alone() -> None:
    game = dots_and_boxes(1, 2, "win")
    _, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-b2 b1-c1 b2-c2 c1-c2")
    assert rewards == 6 * [[0, 0]] + [[-1, 1]]


def test_as_many_boxes_for_both_are_a_draw() -> None:
    game = dots_and_boxes(1, 2, "win")
    state, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-c1 b1-b2 b2-c2 c1-c2")
    assert state["score"].tolist() == [1, 1]
    assert rewards[-1] == [0, 0]


def test_the_boxes_beside_a_line_are_known() -> None:
    # Two boxes in a row: three lines down, the middle one between them, 2 is the outside.
    expected = [[2, 0], [2, 1], [0, 2], [1, 2], [2, 0], [0, 1], [1, 2]]
    assert box_table(1, 2).tolist() == expected
    for rows, cols in ((3, 5), (4, 2)):
        sides = np.bincount(box_table(rows, cols).ravel())
        assert sides.tolist() == rows * cols * [4] + [2 * (rows + cols)]


# --- exact values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "cols", "margin"), [(1, 1, -1), (1, 2, 0), (1, 3, -1), (2, 2, 2)], ids=str
)
def test_the_exact_margin_is_as_known(rows: int, cols: int, margin: int) -> None:
    game = dots_and_boxes(rows, cols, "boxes")
    margins: dict[bytes, float] = {}

    def solve(state: np.record) -> float:
        """How many boxes more player 0 will get from here on, by trying everything."""
        if game.is_over(state):
            return 0.0
        key = game.key(state)
        if key not in margins:
            results = []
            for action in game.legal(state):
                after, reward = game.step(state, action)
                results.append(reward[0] - reward[1] + solve(after))
            margins[key] = max(results) if game.to_play(state) == 0 else min(results)
        return margins[key]

    assert solve(game.start()) == margin
    # Boxes of the past are not in the key: for each set of lines one entry a player.
    assert len(margins) < 2 ** (game.num_actions + 1)


# --- returns and playouts ------------------------------------------------------------------------


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_returns_are_in_the_range_that_is_stated(pays: str) -> None:
    game = dots_and_boxes(2, 2, pays)
    for seed in range(500):
        rewards = compiled(dots_and_boxes, pays=pays).episode(seed).rewards
        returns = rewards.sum(axis=0)
        assert game.payoff_range is not None
        assert (game.payoff_range[:, 0] <= returns).all()
        assert (returns <= game.payoff_range[:, 1]).all()
        assert returns.sum() == (4 if pays == "boxes" else 0)
        assert len(rewards) == game.max_plies == 12


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_a_playout_is_the_steps_that_random_actions_would_take(pays: str) -> None:
    game = dots_and_boxes(3, 2, pays)
    for seed in range(40):
        state = game.play(game.random_episode(seed).actions[: seed % 17])
        reward, at_once = np.zeros(2), np.zeros(2)
        stepwise, copy = StateView(game.copy(state)), StateView(game.copy(state))
        rng, same = make_rng(seed), make_rng(seed)
        with np.errstate(over="ignore"):
            while stepwise.to_play >= 0:
                game.rules.step(stepwise, game.rules.random_action(stepwise, rng), reward)
            game.rules.playout(copy, same, at_once)
        assert (reward == at_once).all()
        assert rng[0] == same[0]


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_compiled_playouts_pay_what_plain_ones_pay(pays: str) -> None:
    game = dots_and_boxes(2, 2, pays)
    for seed in range(50):
        reward = np.zeros(2)
        with np.errstate(over="ignore"):
            game.rules.playout(StateView(game.start()), make_rng(seed), reward)
        assert (compiled(dots_and_boxes, pays=pays).playout(seed) == reward).all()


# --- for people and networks ---------------------------------------------------------------------


def test_lines_are_shown_between_named_dots() -> None:
    game = dots_and_boxes(2, 2)
    state, _ = played(game, "a3-b3 a2-b2 a3-a2 b3-b2 b2-b1")
    assert game.show(state).splitlines() == [
        "3 +---+   +",
        "  | O |",
        "2 +---+   +",
        "      |",
        "1 +   +   +",
        "  a   b   c",
    ]
    assert game.show_action(state, 0) == "a3-b3"
    assert game.show_action(state, 11) == "c2-c1"
    assert game.read_action(state, "C1 - c2") == 11
    for text in ("a3-b3", "a3-c3", "a1-b2", "a1", "a4-a3", "d1-d2", "", "1-2"):
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            game.read_action(state, text)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (3, 2), (25, 25)])
def test_actions_are_read_as_they_are_shown(rows: int, cols: int) -> None:
    game = dots_and_boxes(rows, cols)
    state = game.start()
    shown = [game.show_action(state, action) for action in range(game.num_actions)]
    assert len(set(shown)) == game.num_actions
    for action in range(0, game.num_actions, 1 + game.num_actions // 20):
        assert game.read_action(state, shown[action]) == action


def test_planes_show_lines_turn_and_lead() -> None:
    lines = "a3-b3 a2-b2 a3-a2 b3-b2"
    state, _ = played(dots_and_boxes(2, 2, "win"), lines)
    planes = dots_and_boxes(2, 2, "win").observation(state, 1)
    assert np.argwhere(planes[0]).tolist() == [[0, 0], [1, 0]]
    assert np.argwhere(planes[1]).tolist() == [[0, 0], [0, 1]]
    assert planes[2].all()
    assert (planes[3] == 0.25).all()
    other = dots_and_boxes(2, 2, "win").observation(state, 0)
    assert (other[:2] == planes[:2]).all()
    assert not other[2].any()
    assert (other[3] == -0.25).all()
    state, _ = played(dots_and_boxes(2, 2, "boxes"), lines)
    assert (dots_and_boxes(2, 2, "boxes").observation(state, 1) == planes[:3]).all()


# --- OpenSpiel -----------------------------------------------------------------------------------


def peer(rows: int, cols: int, pays: str) -> Any:
    margin = "true" if pays == "boxes" else "false"
    return load_game(f"dots_and_boxes(num_rows={rows},num_cols={cols},utility_margin={margin})")


@pytest.mark.peer
@pytest.mark.parametrize(
    ("rows", "cols", "pays"),
    [(2, 2, "boxes"), (2, 2, "win"), (3, 4, "win"), (5, 5, "win"), (7, 7, "boxes")],
    ids=str,
)
def test_1000_episodes_are_as_openspiel_plays_them(rows: int, cols: int, pays: str) -> None:
    game, spiel = compiled(dots_and_boxes, rows=rows, cols=cols, pays=pays), peer(rows, cols, pays)
    for seed in range(1000):
        recorded = game.episode(seed)
        rewards = recorded.rewards
        if pays == "boxes":  # OpenSpiel pays the margin at the end
            returns = rewards.sum(axis=0)
            rewards = np.zeros_like(rewards)
            rewards[-1] = returns - returns[::-1]
        follow(recorded, spiel.new_initial_state(), rewards)


def test_any_line_may_follow_any_other() -> None:
    known = (12, 132, 1320, 11880, 95040, 665280, 3991680)
    for depth, sequences in enumerate(known, start=1):
        assert compiled(dots_and_boxes).perft(depth) == sequences


@pytest.mark.peer
def test_sequences_are_as_many_as_in_openspiel() -> None:
    start = peer(2, 2, "win").new_initial_state()
    for depth in range(1, 6):
        assert compiled(dots_and_boxes, pays="win").perft(depth) == spiel_perft(start, depth)
