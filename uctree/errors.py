"""Every exception of uctree that a caller can act on, as a tree."""

from __future__ import annotations


class UctreeError(ValueError):
    """Something handed to uctree cannot be used; the message says what, and what to do."""


class IncompletePath(UctreeError):
    """A line of play that ends before the episode does, where a whole one is needed."""

    def __init__(self, depth: int, game: str) -> None:
        super().__init__(
            f"the path of {depth} actions does not reach the end of {game}; complete it with "
            'result.principal_variation(complete="best_reply"), or search longer'
        )
        self.depth = depth


class IllegalAction(UctreeError):
    """An action that the rules do not allow in this state."""


class BrokenGame(UctreeError):
    """A game or an evaluator that does not keep its contract, or that does not compile."""
