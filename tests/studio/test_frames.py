"""What a tab is shown, in numbers."""

from __future__ import annotations

import time

import pytest

import uctree
from uctree import games
from uctree.studio import frames

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def searched(game, actions=(), **options):
    state = game.play(actions)
    result = uctree.search(game, state, **{"num_simulations": 60, "seed": 1} | options)
    return result, frames.view_of(game, state)


def test_candidates_are_the_edges_of_the_root_most_visited_first():
    result, view = searched(games.tic_tac_toe(), [4])
    frame = frames.candidates(result, view)
    edges = {int(edge["action"]): edge for edge in result.edges}
    visits = [row["visits"] for row in frame["rows"]]
    assert visits == sorted(result.edges["visits"].tolist(), reverse=True)
    for row in frame["rows"]:
        assert row["q"] == edges[row["action"]]["q"].tolist()
        assert row["text"] == str(row["action"] + 1)
    assert frame["chosen"] == result.action
    shades = {action: percent for action, _, percent in frame["shades"]}
    assert set(shades) == set(edges)


def test_several_actions_of_a_cell_are_one_spot():
    game = games.breakthrough()
    result, view = searched(game)
    frame = frames.candidates(result, view)
    cells = dict(view.content()["cells"])
    assert sorted(a for actions in cells.values() for a in actions) == sorted(
        game.legal(game.start())
    )
    assert max(map(len, cells.values())) > 1
    assert [shade[0] for shade in frame["shades"]] == list(cells)


def test_proofs_are_shown():
    result, view = searched(games.tic_tac_toe(), [0, 3, 1, 4], solver=True)
    proven = {row["action"]: row["proven"] for row in frames.candidates(result, view)["rows"]}
    assert proven[2] == [1.0, -1.0]


def test_a_variation_is_played_out_on_boards():
    game = games.tic_tac_toe()
    result, view = searched(game)
    line = frames.variation(result, view, 4)
    assert line["words"][0] == "P0:5"
    assert line["texts"][0] == game.show(game.play([4]))
    assert line["drawings"][0].count("<circle") == 1
    assert frames.variation(result, view, 99) is None


def test_games_without_boards_and_with_vectors_have_views():
    pig, leap = games.pig(), games.leap()
    assert frames.view_of(pig, pig.start()).drawing is None
    chance = frames.view_of(pig, pig.play([0])).content()
    assert len(chance["chances"]) == len(chance["actions"]) == 6
    assert frames.view_of(leap, leap.start()).content()["box"] == [[-1.0], [1.0]]
    result, view = searched(leap)
    frame = frames.candidates(result, view)
    chosen = next(row for row in frame["rows"] if row["action"] == frame["chosen"])
    assert chosen["text"] == leap.show_action(leap.start(), result.action)
    assert frames.variation(result, view, frame["chosen"])["words"][0].startswith("P0:")


def test_the_tree_says_which_nodes_it_has():
    result, _ = searched(games.tic_tac_toe())
    content = frames.tree_content(result, most_nodes=20, most_states=5)
    assert content["nodes"] == content["tree"]["size"] <= 20
    assert content["leastVisits"] > 1
    assert len(content["tree"]["known"]) <= 6


def test_what_is_expensive_is_done_for_a_share_of_the_time():
    pace = frames.Pace(0.0, share=0.0001)
    assert pace.is_due()
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass
    pace.done()
    assert not pace.is_due()
    pace.hurry()
    assert pace.is_due()
