"""Every exception of ramify that a caller can act on, as a tree."""

from __future__ import annotations


class RamifyError(ValueError):
    """Something handed to ramify cannot be used; the message says what, and what to do."""


class IncompletePath(RamifyError):
    """A line of play that ends before the episode does, where a whole one is needed."""

    def __init__(self, depth: int, game: str) -> None:
        super().__init__(
            f"the path of {depth} actions does not reach the end of {game}; complete it with "
            'result.principal_variation(complete="best_reply"), or search longer'
        )
        self.depth = depth


class IllegalAction(RamifyError):
    """An action that the rules do not allow in this state."""


class BrokenGame(RamifyError):
    """A game or an evaluator that does not keep its contract, or that does not compile."""
