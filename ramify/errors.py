"""Every exception of ramify that a caller can act on, as a tree."""

from __future__ import annotations


class RamifyError(ValueError):
    """Something handed to ramify cannot be used; the message says what, and what to do."""


class IllegalAction(RamifyError):
    """An action that the rules do not allow in this state."""


class BrokenGame(RamifyError):
    """A game or an evaluator that does not keep its contract, or that does not compile."""
