"""Games to play, to measure with, and to copy from."""

from __future__ import annotations

from ramify.games.breakthrough import breakthrough
from ramify.games.connect_four import connect_four
from ramify.games.dots_and_boxes import dots_and_boxes
from ramify.games.go import go
from ramify.games.hex import hex
from ramify.games.leap import leap
from ramify.games.loss_game import loss_game
from ramify.games.n_in_a_row import n_in_a_row
from ramify.games.nim import nim
from ramify.games.othello import othello
from ramify.games.pig import pig
from ramify.games.point_mass import point_mass
from ramify.games.tic_tac_toe import tic_tac_toe
from ramify.games.twenty48 import twenty48

__all__ = [
    "breakthrough",
    "connect_four",
    "dots_and_boxes",
    "go",
    "hex",
    "leap",
    "loss_game",
    "n_in_a_row",
    "nim",
    "othello",
    "pig",
    "point_mass",
    "tic_tac_toe",
    "twenty48",
]
