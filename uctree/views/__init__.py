"""Windows on boards that are too large for a policy: where they are, and games seen through them.

`windowed` wraps the rules of a game on a grid, so this room stands just above `game`; built-in
games, training and matches import it. Read `frames.py` first: the arithmetic of a window.
"""

from uctree.views.frames import NOWHERE, Frame, rank
from uctree.views.windows import View, local, whole, windowed

__all__ = ["NOWHERE", "Frame", "View", "local", "rank", "whole", "windowed"]
