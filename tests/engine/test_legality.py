"""Trees from files are replayed by the rules before they are searched."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.engine.tree_files import changed, put, search_on
from tests.forged_trees import rewrite
from uctree import Tree, games
from uctree.errors import UctreeError
from uctree.kernels.records import NONE

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def repeat_action(header, arrays):
    """Let an edge below the first action of the root take that action again."""
    edges = arrays["edges"]
    first = int(edges["first"][edges["first"][0]])
    edges["action"][first] = edges["action"][edges["first"][0]]


@pytest.mark.parametrize("kind", ["plain", "lazy", "priors", "bounds", "amaf", "shared"])
def test_an_action_that_is_not_legal_is_found_before_the_search(kind, files, tmp_path):
    path, game = changed(files, kind, tmp_path, repeat_action)
    tree = Tree.load(path, game)
    with pytest.raises(UctreeError, match=r"a node .* that the rules do not allow"):
        search_on(kind, tree)


def test_an_action_that_is_not_legal_at_the_root_is_found_on_loading(tmp_path, files):
    game = files["plain"][1]
    tree = uctree.search(game, game.play([4]), num_simulations=40).tree
    tree.edges["action"][2] = 4
    tree.save(tmp_path / "a.tree")
    with pytest.raises(UctreeError, match=r"its root has the actions \[4\], which are not legal"):
        Tree.load(tmp_path / "a.tree", game)


def test_a_node_under_the_key_of_another_state_is_found_before_the_search(files, tmp_path):
    def exchange(header, arrays):
        table = arrays["table"]
        rows = np.flatnonzero(table["node"] != NONE)[:2]
        table["node"][rows] = table["node"][rows[::-1]]

    path, game = changed(files, "shared", tmp_path, exchange)
    with pytest.raises(UctreeError, match="a node under the key of another state"):
        search_on("shared", Tree.load(path, game))


def test_an_outcome_that_cannot_happen_is_found_before_the_search(files, tmp_path):
    def impossible(header, arrays):
        edges = arrays["edges"]
        chance_node = next(e for e in range(1, 9) if edges["first"][e] != NONE
                           and edges["num_edges"][e] == 6)  # fmt: skip
        edges["action"][edges["first"][chance_node]] = 2**31 - 1

    path, game = changed(files, "chance", tmp_path, impossible)
    with pytest.raises(UctreeError, match="that the rules do not allow"):
        search_on("chance", Tree.load(path, game))


def test_a_search_uses_its_own_state_not_that_of_the_file(tmp_path, files):
    """Fields that are not part of the key may be forged unnoticed."""
    rules, plain = games.tic_tac_toe().rules, games.tic_tac_toe().dtype
    game = uctree.Game(
        np.dtype([*plain.descr, ("ply", np.int8)]), rules.legal, rules.step, num_players=2,
        num_actions=9, name="keyed", key_fields=plain.names,
    )  # fmt: skip
    uctree.search(game, game.start(), num_simulations=20).tree.save(tmp_path / "a.tree")
    rewrite(tmp_path / "a.tree", put("ply", 0, 5, "state"))
    tree = Tree.load(tmp_path / "a.tree", game)
    result = uctree.search(game, game.start(), num_simulations=5, tree=tree)
    assert result.tree.state["ply"] == 0
