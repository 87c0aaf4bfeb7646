"""Hex: connections by flooding, playouts against exact values, and how a board is written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.games.variants import compiled
from uctree import OVER
from uctree.game import StateView, make_rng
from uctree.games import hex


def is_connected(stones: set[int], size: int) -> bool:
    """Whether stones connect the first row with the last; a flood cell by cell."""
    found = {cell for cell in stones if cell < size}
    rest = list(found)
    while rest:
        row, col = divmod(rest.pop(), size)
        if row == size - 1:
            return True
        for r, c in ((row, col - 1), (row, col + 1), (row - 1, col), (row - 1, col + 1),
                     (row + 1, col - 1), (row + 1, col)):  # fmt: skip
            cell = r * size + c
            if 0 <= c < size and cell in stones and cell not in found:
                found.add(cell)
                rest.append(cell)
    return False


@pytest.mark.parametrize("size", [3, 4, 11, 19])
def test_the_first_connection_wins(size: int) -> None:
    game = compiled(hex, size=size)
    for seed in range(20):
        recorded = game.episode(seed)
        stones: tuple[set[int], set[int]] = (set(), set())
        for ply, action in enumerate(recorded.actions):
            player = ply % 2
            # Turned about its diagonal, the board of player 1 is one of player 0.
            stones[player].add(action if player == 0 else action % size * size + action // size)
            won = is_connected(stones[player], size)
            assert won == (recorded.rewards[ply, player] == 1)
            assert won == (ply == len(recorded.actions) - 1)


def exact_value(size: int, own: set[int], empty: list[int], num_own: int) -> float:
    """What player 0 gets on average if `num_own` of the empty cells become his."""
    fills = list(itertools.combinations(empty, num_own))
    return sum(2 * is_connected(own | set(fill), size) - 1 for fill in fills) / len(fills)


@pytest.mark.parametrize("size", [3, 4])
def test_playouts_of_hex_pay_what_random_play_pays(size: int) -> None:
    game = compiled(hex, size=size)
    exact = exact_value(size, set(), list(range(size * size)), (size * size + 1) // 2)
    assert exact == pytest.approx({3: 1 / 3, 4: 0}[size])
    at_once = np.array([game.playout(seed) for seed in range(20_000)])
    stepwise = np.array([game.episode(seed).rewards[-1] for seed in range(10_000)])
    assert (abs(at_once) == 1).all()
    assert (at_once.sum(axis=1) == 0).all()
    assert abs(at_once[:, 0].mean() - exact) < 4 / np.sqrt(20_000)
    assert abs(stepwise[:, 0].mean() - exact) < 4 / np.sqrt(10_000)


@pytest.mark.parametrize("size", [11, 19])
def test_playouts_of_hex_are_decided_on_large_boards(size: int) -> None:
    game = compiled(hex, size=size)
    at_once = np.array([game.playout(seed) for seed in range(10_000)])
    stepwise = np.array([game.episode(seed).rewards[-1] for seed in range(2_000)])
    assert (abs(at_once) == 1).all()
    assert (at_once.sum(axis=1) == 0).all()
    difference = at_once[:, 0].mean() - stepwise[:, 0].mean()
    assert abs(difference) < 4 * np.sqrt(1 / 10_000 + 1 / 2_000)


@pytest.mark.parametrize("num_plies", [3, 6, 9, 12])
def test_playouts_continue_from_the_stones_on_the_board(num_plies: int) -> None:
    game = hex(4)
    episodes = (game.random_episode(seed).actions for seed in itertools.count())
    actions = next(actions for actions in episodes if len(actions) > num_plies)[:num_plies]
    state = game.play(actions)
    empty = game.legal(state)
    num_own = (len(empty) + 1 - game.to_play(state)) // 2
    exact = exact_value(4, set(actions[::2]), empty, num_own)
    rng = make_rng(1)
    total = 0.0
    for _ in range(1500):
        reward = np.zeros(2)
        view = StateView(game.copy(state))
        with np.errstate(over="ignore"):
            game.rules.playout(view, rng, reward)
        assert view.to_play == OVER
        assert reward.tolist() in ([1, -1], [-1, 1])
        total += reward[0]
    assert abs(total / 1500 - exact) < 4 * np.sqrt((1 - exact**2) / 1500) + 1e-9


def test_compiled_and_plain_playouts_agree() -> None:
    game = compiled(hex)
    for seed in range(50):
        reward = np.zeros(2)
        with np.errstate(over="ignore"):
            game.game.rules.playout(StateView(game.game.start()), make_rng(seed), reward)
        assert (reward == game.playout(seed)).all()


@pytest.mark.parametrize("size", [2, 3])
def test_the_first_player_wins_hex(size: int) -> None:
    game = hex(size)

    def wins(state: np.record) -> bool:
        """Whether the player to move can win."""
        player = game.to_play(state)
        for action in game.legal(state):
            after, reward = game.step(state, action)
            if reward[player] == 1 if game.is_over(after) else not wins(after):
                return True
        return False

    assert wins(game.start())


def test_equal_stones_have_equal_keys_in_hex() -> None:
    game = hex(5)
    for seed in range(20):
        actions = game.random_episode(seed).actions[:-1]
        actions = actions[: len(actions) // 2 * 2]
        turned = [a for pair in zip(actions[-2::-2], actions[::-2], strict=True) for a in pair]
        assert game.key(game.play(actions)) == game.key(game.play(turned))


def test_hex_is_shown_as_a_rhombus() -> None:
    game = hex(3)
    state = game.play([4, 0])
    assert game.show(state) == "   a b c\n 1 O . .\n  2 . X .\n   3 . . ."
    assert game.show_action(state, 5) == "c2"
    assert game.read_action(state, "B3") == 7
