"""The working memory of a thread: limits of a search, and the bytes of a key."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.small_games import heap_game, tour_game
from uctree import backup, evaluators, games, selection
from uctree.engine import workspace
from uctree.engine.options import resolve
from uctree.engine.workspace import Workspace, arrays_of
from uctree.game import ENDLESS

pytestmark = pytest.mark.quick


def made(game, state=None, **options):
    resolved = resolve(game, **options)
    arrays = arrays_of(game, resolved, resolved.layout(game))
    return Workspace(game, resolved, arrays, game.start() if state is None else state)


def test_numbers_of_the_options_are_written_into_it():
    work = made(
        heap_game(), selection=selection.ucb1(c=2.0), backup=backup.maximum(min_visits=3),
        evaluator=evaluators.playout(num_playouts=4, max_plies=9),
    ).work[0]  # fmt: skip
    assert work["parameters"][0] == 2.0
    assert work["backup_parameter"] == 3.0
    assert work[["num_playouts", "longest_playout", "plies_left"]].tolist() == (4, 9, ENDLESS)


def test_a_reset_forgets_an_earlier_search():
    game = tour_game()
    mine = made(game)
    fresh = mine.work.tobytes()
    mine.work["depth"], mine.work["returns"] = 5, 7.0
    mine.reset(game.start())
    assert mine.work.tobytes() == fresh
    later = game.play([1, 2])
    mine.reset(later)
    assert mine.work["plies_left"][0] == game.max_plies - 2
    assert mine.states[0] == later


def test_a_root_beyond_the_last_ply_is_refused():
    game = tour_game()
    state = game.start().copy()
    state.ply = game.max_plies
    with pytest.raises(uctree.BrokenGame, match="the root is at ply 5, but tour has max_plies=5"):
        made(game, state)


def test_paths_are_no_longer_than_an_episode_can_be():
    assert workspace.max_depth(tour_game(), tour_game().start()) == tour_game().max_plies
    assert workspace.max_depth(heap_game(), heap_game().start()) == workspace.MAX_DEPTH


def test_bytes_of_neighbouring_key_fields_are_one_range():
    dtype = np.dtype(
        [("a", np.int32), ("b", np.int16), ("skipped", np.int16), ("c", np.int8),
         ("to_play", np.int8)]
    )  # fmt: skip
    rules = games.nim().rules
    game = uctree.Game(
        dtype, rules.legal, rules.step, num_players=2, num_actions=3,
        key_fields=("a", "b", "c", "to_play"),
    )  # fmt: skip
    assert workspace.key_ranges(game).tolist() == [[0, 6], [8, 10]]


@pytest.mark.parametrize("size", [3, 8, 11])
def test_the_eight_bytes_from_each_byte_on_are_words(size):
    states = np.zeros(2, np.dtype((np.void, size)))
    content = states.view(np.uint8).reshape(2, size)
    content[:] = np.arange(2 * size).reshape(2, size)
    seen, words = workspace.key_views(states)
    assert (seen == content).all()
    if size < 8:
        assert words.shape == (1, 1)
    else:
        assert words.shape == (2, size - 7)
        for at in range(size - 7):
            assert words[1, at].tobytes() == content[1, at : at + 8].tobytes()
