"""Trees as data for the browser: their arrays, and the texts of what was seen."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.results import numbers, search
from uctree import games
from uctree.pages.outline import outline
from uctree.pages.tree_data import Boards, packed, player_name, tree_data

pytestmark = pytest.mark.quick


def test_arrays_are_packed_in_the_order_of_bytes_that_browsers_have():
    big = np.array([1, -2, 300], ">i8")
    assert numbers(packed(big, np.int32), "<i4").tolist() == [1, -2, 300]


def test_boards_are_kept_once_and_up_to_a_length():
    game = games.tic_tac_toe()
    length = len(game.show(game.start()))
    boards = Boards(game, length)
    states = [game.start(), game.play([4]), game.start(), game.play([3])]
    assert [boards.number(state) for state in states] == [0, 1, -1, -1]
    assert boards.texts == [game.show(game.start()), game.show(game.play([4]))]


def test_states_are_known_of_the_most_visited_nodes_alone(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    result = search("tic_tac_toe", num_simulations=100)
    nodes = outline(result)
    data = tree_data(result, nodes, Boards(result.game, 10_000), most_states=4)
    known = [node for node, _, _ in data["tree"]["known"]]
    order = np.argsort(-nodes.visits, kind="stable")
    assert known == sorted(order[:5].tolist())
    texts = numbers(data["tree"]["text"], "<i4")
    assert data["texts"][texts[1]] == result.game.show_action(result.state, int(nodes.action[1]))


def test_players_have_names():
    assert [player_name(player) for player in (1, -1, -2)] == [
        "player 1", "chance", "the episode is over",
    ]  # fmt: skip
