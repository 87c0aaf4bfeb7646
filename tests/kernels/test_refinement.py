"""Refinement: better vectors become new edges, and old ones keep theirs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import uctree
from uctree import games, refine
from uctree.kernels.refinement import move_path

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def test_a_path_follows_edges_that_were_moved():
    path = np.zeros(2, [("edge", np.int32)]).view(np.recarray)
    path.edge = 3, 7
    move_path(SimpleNamespace(path=path), 1, 5, 20)
    assert path.edge.tolist() == [3, 22]


def test_edges_keep_their_vectors_while_others_are_added():
    game = games.loss_game()
    options = {"seed": 3, "refine": refine.gradient(frequency=1.0)}
    short, long = (uctree.search(game, num_simulations=count, **options).tree for count in (5, 40))
    before, after = (tree.edges["vector"][list(tree.root.edges), 0] for tree in (short, long))
    assert len(after) > len(before)
    assert after[: len(before)].tolist() == before.tolist()
