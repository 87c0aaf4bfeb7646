"""Studies as text and as pages."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from uctree import games, principle


def test_only_the_most_visited_of_many_edges_are_shown():
    game = games.n_in_a_row(6, 6, 4, 2)
    found = principle.study(game, num_simulations=400, num_nodes=1, keep=None)
    assert len(found.nodes[0].edges) == 36
    assert "edges of root, without the 16 least visited" in str(found)


def test_a_page_needs_nothing_else(tmp_path):
    pruned = principle.study(games.connect_four(), num_simulations=4_000, num_nodes=4, seed=3)
    assert pruned.prunings
    pruned.save(tmp_path / "study.html")
    text = (tmp_path / "study.html").read_text(encoding="utf-8")
    plots = [ElementTree.fromstring(plot) for plot in re.findall(r"<svg.*?</svg>", text, re.S)]
    counts = [sum(each.tag.endswith("circle") for each in plot.iter()) for plot in plots]
    num_edges = sum(len(node.edges) for node in pruned.nodes)
    assert counts == [2 * num_edges + 2, len(pruned.hbars)]
    assert not re.search(r"<script|<link|src=|href=|url\(", text)
