"""The exceptions of uctree that a caller can act on; all derive from `UctreeError`."""

from __future__ import annotations


class UctreeError(ValueError):
    """An argument that uctree cannot use; the message says which one, and what to do."""


class IncompletePath(UctreeError):
    """A line of play that ends before the episode does, although a complete one is needed."""

    def __init__(self, depth: int, game: str) -> None:
        super().__init__(
            f"the path of {depth} actions does not reach the end of {game}; complete it with "
            'result.principal_variation(complete="best_reply"), or search longer'
        )
        self.depth, self.game = depth, game

    def __reduce__(self) -> tuple[type[IncompletePath], tuple[int, str]]:
        """By its arguments: as pickled by default it would be made from its message, and fail."""
        return type(self), (self.depth, self.game)


class IllegalAction(UctreeError):
    """An action that the rules do not allow in this state."""


class BrokenGame(UctreeError):
    """A game or an evaluator that breaks its contract, or that does not compile."""
