"""The games of a studio."""

from __future__ import annotations

import pytest

from uctree import games
from uctree.errors import UctreeError
from uctree.studio.library import VARIANTS, Library

pytestmark = pytest.mark.quick


def test_every_game_that_comes_with_uctree_is_offered():
    library = Library()
    assert set(games.__all__) <= set(library.texts)
    for text in VARIANTS:
        assert library.game(text).num_players >= 1
    assert {each["game"] for each in library.about()} == set(library.texts)


def test_the_game_of_the_command_line_is_the_first():
    library = Library("hex:size=13")
    assert library.first == library.texts[0] == "hex:size=13"
    assert library.game("hex:size=13").num_actions == 169


def test_sessions_share_a_game():
    library = Library()
    assert library.game("hex") is library.game("hex")


@pytest.mark.parametrize("text", ["hex:size=19", "my_game.py:race", "/etc/passwd", ""])
def test_a_tab_cannot_ask_for_other_games_or_files(text):
    with pytest.raises(UctreeError, match="this studio has no game"):
        Library().game(text)
