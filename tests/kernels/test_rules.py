"""The names of the game's rules in kernels."""

from __future__ import annotations

import pytest

from uctree import evaluators, games
from uctree.engine.bindings import game_bindings
from uctree.kernels import rules
from uctree.kernels.binding import UNBOUND

pytestmark = pytest.mark.quick

NAMES = {name for name, value in vars(rules).items() if value is UNBOUND} - {"UNBOUND"}


@pytest.mark.parametrize("game", [games.pig(), games.leap()], ids=lambda game: game.name)
def test_every_name_is_bound_for_every_game(game):
    bound = game_bindings(game, evaluators.playout())
    of_vectors = set() if game.is_continuous else {"find_bounds", "project"}
    assert NAMES - of_vectors <= bound.keys()
    assert bound["IS_CONTINUOUS"] == game.is_continuous
    assert bound["HAS_CHANCE"] == (not game.is_continuous)
