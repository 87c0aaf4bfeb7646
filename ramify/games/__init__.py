"""Games to play, to measure with, and to copy from."""

from __future__ import annotations

from ramify.games.connect_four import connect_four

__all__ = ["connect_four"]
