"""Games to play, to measure with, and to copy from.

Imported by `specs` and by users; modules import `game`, `bits`, `views` and each other alone.
Read `tic_tac_toe.py` first.
"""

from __future__ import annotations

from uctree.games.backgammon import backgammon
from uctree.games.breakthrough import breakthrough
from uctree.games.checkers import checkers
from uctree.games.chess import chess
from uctree.games.connect_four import connect_four
from uctree.games.dots_and_boxes import dots_and_boxes
from uctree.games.go import go
from uctree.games.hex import hex
from uctree.games.kalah import kalah
from uctree.games.leap import leap
from uctree.games.loss_game import loss_game
from uctree.games.n_in_a_row import n_in_a_row
from uctree.games.nim import nim
from uctree.games.othello import othello
from uctree.games.pig import pig
from uctree.games.point_mass import point_mass
from uctree.games.tic_tac_toe import tic_tac_toe
from uctree.games.twenty48 import twenty48
from uctree.games.ultimate_tic_tac_toe import ultimate_tic_tac_toe

__all__ = [
    "backgammon",
    "breakthrough",
    "checkers",
    "chess",
    "connect_four",
    "dots_and_boxes",
    "go",
    "hex",
    "kalah",
    "leap",
    "loss_game",
    "n_in_a_row",
    "nim",
    "othello",
    "pig",
    "point_mass",
    "tic_tac_toe",
    "twenty48",
    "ultimate_tic_tac_toe",
]
