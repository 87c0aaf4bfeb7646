"""2048: merged tiles, the beginning and the end by hand."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import CHANCE, Game
from uctree.games import twenty48

pytestmark = pytest.mark.quick


def twenty48_state(game: Game, board: list[list[int]]) -> np.record:
    """A state of 2048 with these tiles: all but one set, the last one added by chance."""
    state = game.start()
    tiles = [(4 * r + c, n) for r, row in enumerate(board) for c, n in enumerate(row) if n]
    last = next(cell for cell, number in tiles if number in (2, 4))
    for cell, number in tiles:
        if cell != last:
            exponent = number.bit_length() - 1
            state["lines"][0, cell // 4] |= exponent << (4 * (cell % 4))
            state["lines"][1, cell % 4] |= exponent << (4 * (cell // 4))
    return game.play([2 * last + (dict(tiles)[last] == 4)], state)


def tiles_of(game: Game, state: np.record) -> list[list[int]]:
    return [
        [0 if word == "." else int(word) for word in line.split()]
        for line in game.show(state).splitlines()
    ]


@pytest.mark.parametrize(
    ("action", "row", "after", "reward"),
    [
        ("left", [2, 2, 2, 2], [4, 4, 0, 0], 8),
        ("right", [2, 2, 2, 2], [0, 0, 4, 4], 8),
        ("left", [4, 2, 2, 0], [4, 4, 0, 0], 4),
        ("left", [2, 2, 4, 0], [4, 4, 0, 0], 4),
        ("right", [2, 2, 2, 0], [0, 0, 2, 4], 4),
        ("left", [2, 0, 0, 2], [4, 0, 0, 0], 4),
        ("right", [2, 0, 4, 0], [0, 0, 2, 4], 0),
        ("left", [0, 512, 512, 4], [1024, 4, 0, 0], 1024),
    ],
)
def test_equal_tiles_merge_once(action: str, row: list[int], after: list[int], reward: int) -> None:
    game = twenty48()
    empty = [0, 0, 0, 0]
    state = twenty48_state(game, [empty, row, empty, empty])
    state, paid = game.step(state, game.read_action(state, action))
    assert tiles_of(game, state) == [empty, after, empty, empty]
    assert paid.tolist() == [reward]
    turned = {"left": "up", "right": "down"}[action]
    state = twenty48_state(game, [[0, 0, tile, 0] for tile in row])
    state, paid = game.step(state, game.read_action(state, turned))
    assert tiles_of(game, state) == [[0, 0, tile, 0] for tile in after]
    assert paid.tolist() == [reward]


def test_2048_ends_with_its_largest_tile_or_without_a_move() -> None:
    game = twenty48(max_tile=32)
    state = twenty48_state(game, [[16, 16, 2, 0]] + 3 * [[0, 0, 0, 0]])
    state, reward = game.step(state, game.read_action(state, "l"))
    assert game.is_over(state)
    assert reward.tolist() == [32]
    stuck = [[2, 4, 2, 4], [4, 2, 4, 2], [2, 4, 2, 4], [4, 2, 4, 2]]
    assert game.is_over(twenty48_state(game, stuck))
    stuck[3][3] = 4
    assert game.legal(twenty48_state(game, stuck)) == [0, 1, 2, 3]


def test_2048_begins_with_two_tiles() -> None:
    game = twenty48()
    state = game.start()
    assert len(game.outcomes(state)) == 32
    state, _ = game.step(state, 1)
    assert game.to_play(state) == CHANCE
    state, _ = game.step(state, 8)
    assert game.to_play(state) == 0
    assert tiles_of(game, state)[:2] == [[4, 0, 0, 0], [2, 0, 0, 0]]
