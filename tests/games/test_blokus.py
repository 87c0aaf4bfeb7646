"""Blokus: shapes, slow rules on sets of cells, points and ends by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.games.variants import compiled
from uctree import IllegalAction
from uctree.games import blokus
from uctree.games.blokus import NUM_PIECES, PIECE_OF, SHAPES


def cells_of(size: int, action_text: str) -> list[tuple[int, int]]:
    return [(size - int(name[1:]), ord(name[0]) - ord("a")) for name in action_text.split(",")]


def beside(cell: tuple[int, int]) -> set[tuple[int, int]]:
    row, col = cell
    return {(row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)}


def diagonal(cell: tuple[int, int]) -> set[tuple[int, int]]:
    row, col = cell
    return {(row + i, col + j) for i in (-1, 1) for j in (-1, 1)}


def placements(
    size: int, own: set[tuple[int, int]], taken: set[tuple[int, int]], used: set[int],
    begins: set[tuple[int, int]],
) -> set[frozenset[tuple[int, int]]]:  # fmt: skip
    """Where the rules let a player put a piece, by trying all shapes everywhere."""
    blocked = taken | {near for cell in own for near in beside(cell)}
    corners = {near for cell in own for near in diagonal(cell)} if own else begins
    found = set()
    for shape, piece in zip(SHAPES, PIECE_OF.tolist(), strict=True):
        if piece in used:
            continue
        for row in range(size):
            for col in range(size):
                cells = frozenset((row + r, col + c) for r, c in shape)
                on_board = all(r < size and c < size for r, c in cells)
                if on_board and cells & corners and not cells & blocked:
                    found.add(cells)
    return found


@pytest.mark.quick
def test_there_are_91_shapes_and_as_many_first_actions_as_known() -> None:
    assert len(SHAPES) == len(set(SHAPES)) == 91
    assert len(set(PIECE_OF.tolist())) == NUM_PIECES == 21
    assert blokus().num_actions == 30_433
    assert blokus(duo=True).num_actions == 13_729
    assert compiled(blokus).perft(1) == 58
    assert compiled(blokus).perft(2) == 58**2
    assert compiled(blokus, duo=True).perft(2) == 2 * 414 * 414


@pytest.mark.parametrize("duo", [True, False])
def test_actions_are_as_sets_of_cells_allow(duo: bool) -> None:
    game = blokus(duo)
    size = 14 if duo else 20
    last = size - 1
    corners = [{(0, 0)}, {(0, last)}, {(last, last)}, {(last, 0)}]
    begins = [{(4, 4), (9, 9)}] * 2 if duo else corners
    recorded = compiled(blokus, duo=duo).episode(1)
    state = game.start()
    squares: list[set[tuple[int, int]]] = [set() for _ in range(game.num_players)]
    used: list[set[int]] = [set() for _ in range(game.num_players)]
    for ply, action in enumerate(recorded.actions):
        player = recorded.players[ply]
        if ply % 9 == 3:
            taken = set().union(*squares)
            expected = placements(size, squares[player], taken, used[player], begins[player])
            found = {
                frozenset(cells_of(size, game.show_action(state, choice)))
                for choice in recorded.choices[ply]
            }
            assert found == expected
            assert len(found) == len(recorded.choices[ply])
        cells = cells_of(size, game.show_action(state, action))
        squares[player] |= set(cells)
        top, left = min(row for row, _ in cells), min(col for _, col in cells)
        shape = SHAPES.index(tuple(sorted((row - top, col - left) for row, col in cells)))
        used[player].add(int(PIECE_OF[shape]))
    # Nobody can place anything at the end, and the most squares win.
    taken = set().union(*squares)
    for player in range(game.num_players):
        assert not placements(size, squares[player], taken, used[player], begins[player])
    counts = [len(cells) for cells in squares]
    winners = [player for player, count in enumerate(counts) if count == max(counts)]
    returns = recorded.rewards.sum(axis=0)
    assert (returns[winners] == 1 / len(winners)).all()
    assert returns.sum() == pytest.approx(0)


@pytest.mark.quick
def test_a_player_who_cannot_place_a_piece_is_out() -> None:
    game = blokus(duo=True)
    recorded = compiled(blokus, duo=True).episode(3)
    players = [player for player in recorded.players if player >= 0]
    turns = [one == other for one, other in itertools.pairwise(players)]
    # Once a player follows itself, the other one never comes back.
    first = turns.index(True) if True in turns else len(turns)
    assert all(turns[first:])
    assert int(recorded.state["out"]) == 0b11
    assert game.is_over(game.copy(recorded.state))


@pytest.mark.quick
def test_points_count_what_is_left_and_pay_extra_for_all_pieces() -> None:
    game = blokus(duo=True)
    state = game.start()
    # Player 1 cannot act any more; player 0 has all pieces but the smallest one.
    state["used"] = [(1 << NUM_PIECES) - 2, (1 << NUM_PIECES) - 2]
    state["out"] = 0b10
    state["taken"][0, 4] = 1 << 4
    state["blocked"], state["corners"] = 0, 0
    state["corners"][5] = 1 << 5
    action = game.read_action(state, "f9")
    over, reward = game.step(state, action)
    assert game.is_over(over)
    assert reward.tolist() == [1, -1]
    assert game.show(over).splitlines()[-2:] == ["B: 20 points, out", "Y: -1 points, out"]


def test_planes_show_squares_pieces_and_where_to_begin() -> None:
    game = blokus()
    state, _ = game.step(game.start(), game.read_action(game.start(), "a20"))
    planes = game.observation(state, 1)
    assert planes.shape == (89, 20, 20)
    assert np.argwhere(planes[:4]).tolist() == [[3, 0, 0]]  # the previous player, three seats on
    assert planes[4 : 4 + 63].all()
    assert not planes[4 + 63].any()  # that player's smallest piece
    assert np.argwhere(planes[88]).tolist() == [[0, 19]]


@pytest.mark.quick
def test_actions_are_written_as_lists_of_cells() -> None:
    game = blokus()
    state = game.start()
    assert game.read_action(state, "B20, a20,a19") == game.read_action(state, "a20,b20,a19")
    for text in ("a20,b19", "t1", "a1", "", "a20,", "a21", "u20", "a20,a18"):
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            game.read_action(state, text)
