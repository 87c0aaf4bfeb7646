"""Games to play, to measure with, and to copy from."""

from __future__ import annotations

from ramify.games.connect_four import connect_four
from ramify.games.n_in_a_row import n_in_a_row
from ramify.games.nim import nim
from ramify.games.pig import pig
from ramify.games.tic_tac_toe import tic_tac_toe
from ramify.games.twenty48 import twenty48

__all__ = ["connect_four", "n_in_a_row", "nim", "pig", "tic_tac_toe", "twenty48"]
