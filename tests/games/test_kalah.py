"""Kalah: sowing, captures, turns and ends by hand, and solved sizes."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import Game
from uctree.games import kalah

pytestmark = pytest.mark.quick


def position(game: Game, seeds: list[int], to_play: int = 0) -> np.record:
    """A state with these seeds in the order of the places."""
    state = game.start()
    state["seeds"] = seeds
    state["to_play"] = to_play
    return state


def test_seeds_are_sown_around_the_board_but_not_into_the_store_of_the_other() -> None:
    game = kalah()
    state, _ = game.step(game.start(), 5)
    assert state["seeds"].tolist() == [4, 4, 4, 4, 4, 0, 1, 5, 5, 5, 4, 4, 4, 0]
    assert game.to_play(state) == 1
    state = position(game, [0, 0, 0, 0, 0, 9, 0, 1, 1, 1, 1, 1, 1, 0])
    state, _ = game.step(state, 5)
    assert state["seeds"].tolist() == [1, 0, 0, 0, 0, 0, 4, 2, 2, 2, 2, 0, 2, 0]


def test_a_last_seed_in_the_own_store_earns_another_turn() -> None:
    game = kalah()
    state, _ = game.step(game.start(), 2)
    assert game.to_play(state) == 0
    state, _ = game.step(state, 5)
    assert game.to_play(state) == 1


def test_a_last_seed_in_an_own_empty_pit_captures_what_is_opposite() -> None:
    game = kalah(pits=3, seeds=2)
    state = position(game, [1, 0, 2, 0, 2, 5, 2, 0])
    after, _ = game.step(state, 0)
    assert after["seeds"].tolist() == [0, 0, 2, 6, 2, 0, 2, 0]
    # Nothing is opposite: the seed stays.
    after, _ = game.step(position(game, [1, 0, 2, 0, 2, 0, 2, 0]), 0)
    assert after["seeds"].tolist() == [0, 1, 2, 0, 2, 0, 2, 0]


def test_a_pit_that_is_sown_once_around_captures_with_its_last_seed() -> None:
    game = kalah(pits=3, seeds=3)
    state = position(game, [7, 1, 1, 0, 3, 3, 3, 0])
    after, _ = game.step(state, 0)
    assert after["seeds"].tolist() == [0, 2, 2, 1 + 1 + 4, 4, 4, 0, 0]


def test_the_rest_belongs_to_the_owner_of_its_side_when_a_side_is_empty() -> None:
    game = kalah(pits=3, seeds=2)
    state, reward = game.step(position(game, [0, 0, 1, 4, 2, 2, 2, 1]), 2)
    assert state["seeds"].tolist() == [0, 0, 0, 5, 0, 0, 0, 7]
    assert reward.tolist() == [-1, 1]
    _, reward = game.step(position(game, [0, 0, 1, 5, 2, 2, 2, 0]), 2)
    assert reward.tolist() == [0, 0]


# What the first player reaches with best play: Irving, Donkers and Uiterwijk (2000).
SOLVED = {
    (1, 1): 0, (1, 2): -1, (1, 3): 1, (1, 4): -1, (1, 5): 1, (1, 6): 0,
    (2, 1): 1, (2, 2): -1, (2, 3): -1, (2, 4): -1, (2, 5): 1, (2, 6): 1,
    (3, 1): 0, (3, 2): 1, (3, 3): 1,
}  # fmt: skip


def test_small_sizes_have_their_published_values() -> None:
    values: dict[bytes, float] = {}

    def value(game: Game, state: np.record) -> float:
        """What player 0 is paid under best play."""
        key = game.key(state)
        if key not in values:
            player = game.to_play(state)
            results = []
            for action in game.legal(state):
                after, reward = game.step(state, action)
                results.append(reward[0] if game.is_over(after) else value(game, after))
            values[key] = max(results) if player == 0 else min(results)
        return values[key]

    for (pits, seeds), expected in SOLVED.items():
        values.clear()
        game = kalah(pits, seeds)
        assert value(game, game.start()) == expected, (pits, seeds)


def test_kalah_is_seen_from_the_seat_of_the_player_and_shown_with_its_pits() -> None:
    game = kalah(pits=2, seeds=2)
    state, _ = game.step(game.start(), 1)
    assert game.observation(state, 0).tolist() == [1, 0, 0.5, 1.5, 1, 0, 0]
    assert game.observation(state, 1).tolist() == [1.5, 1, 0, 1, 0, 0.5, 1]
    assert game.show(state).splitlines() == ["  b a", "  2 3", "0     1", "  2 0", "  a b"]
    with pytest.raises(uctree.IllegalAction, match="'c' is not a legal action here; legal: a, b"):
        game.read_action(state, "c")
