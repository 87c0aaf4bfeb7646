"""Searches that are watched, ended from outside and continued."""

from __future__ import annotations

import gc
import weakref

import pytest

from uctree import games
from uctree.errors import UctreeError
from uctree.studio import thinking as module
from uctree.studio.messages import Settings
from uctree.studio.thinking import Thinking, options_of, thinned

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def search(thinking, game, num_simulations=None, seconds=None, **options):
    return thinking.search(
        game, game.start(), options, seed=1, num_simulations=num_simulations, seconds=seconds
    )


def test_a_search_ends_when_nobody_wants_it_any_more():
    seen = []
    thinking = Thinking(lambda: len(seen) < 3, lambda result: seen.append(result.simulations))
    result = search(thinking, games.tic_tac_toe())
    assert result.status == "studio"
    assert len(seen) == 3
    assert seen == sorted(seen)
    assert result.simulations == seen[-1]


def test_the_next_search_continues_the_tree_and_its_history():
    thinking = Thinking(lambda: True, lambda result: None)
    game = games.tic_tac_toe()
    search(thinking, game, num_simulations=30)
    result = search(thinking, game, num_simulations=20)
    assert result.tree.simulations == thinking.simulations == 50
    history = thinking.history([0, 1])
    assert history["simulations"][-1] == 50
    assert history["simulations"] == sorted(history["simulations"])
    assert history["visits"][-1] == result.edges["visits"][:2].tolist()
    thinking.forget()
    assert search(thinking, game, num_simulations=20).tree.simulations == 20


def test_a_tree_has_a_largest_number_of_simulations(monkeypatch):
    monkeypatch.setattr(module, "MOST_SIMULATIONS", 25)
    thinking = Thinking(lambda: True, lambda result: None)
    game = games.tic_tac_toe()
    assert search(thinking, game).simulations == 25
    with pytest.raises(UctreeError, match="25 simulations, which is the most"):
        search(thinking, game)


def test_nothing_keeps_the_tree_of_a_tab_that_is_closed():
    game = games.tic_tac_toe()
    thinking = Thinking(lambda: True, lambda result: None)
    tree = weakref.ref(search(thinking, game, num_simulations=20).tree)
    assert tree() is not None
    del thinking
    gc.collect()
    assert tree() is None


def test_vectors_are_known_by_their_place():
    thinking = Thinking(lambda: True, lambda result: None)
    result = search(thinking, games.leap(), num_simulations=20)
    history = thinking.history([0, 1])
    assert history["actions"] == [0, 1]
    assert history["visits"][-1] == result.edges["visits"][:2].tolist()


def test_options_are_those_of_a_search():
    options = options_of(games.hex(5), Settings(options="selection=puct(c=2), solver=True"))
    assert options["solver"] is True
    assert options["selection"].parameters[0] == 2


def test_a_long_history_keeps_its_end():
    moments = [(i, {}) for i in range(1_000)]
    found = thinned(moments)
    assert len(found) <= module.MOST_MOMENTS
    assert found[0] == moments[0]
    assert found[-1] == moments[-1]
