"""A first look at a game before it is compiled: a few episodes in plain Python.

Mistakes raise there. Compiled code has no bounds checks and wraps numbers around, so that a search
of a broken game would be wrong without a word.
"""

from __future__ import annotations

import warnings

import numpy as np

from uctree.doctor.contract import ERROR, RULES, Finding, shortened
from uctree.doctor.walk import (
    COMPILED_LOOKS,
    Case,
    Limits,
    Position,
    Stop,
    digest_of,
    start_of,
    walk_at_random,
    walk_breadth_first,
)
from uctree.errors import BrokenGame
from uctree.game import Game, State

EPISODES = 20
LIMITS = Limits(steps=80, plies=500, inspected=12, seconds=0.15)
FROM_A_STATE = Limits(steps=40, plies=250, inspected=6, seconds=0.05)
LARGE_DATA = 10**7  # bytes that would take too long to compare

# A search keeps the contract of `max_plies` itself: it cuts playouts there.
NOT_REFUSED = {"max-plies"}
# Breaches by a single call; the others need the whole episode from the start.
LOCAL = {
    "raises", "overflow", "out-of-bounds", "to-play-range", "legal-count", "legal-range",
    "legal-duplicate", "bounds-range", "chance-count", "chance-range", "chance-probabilities",
    "reward-finite", "zero-sum", "random-action-support", "observe-shape", "observe-finite",
    "heuristic-range", "priors-range",
}  # fmt: skip


def refuse_broken(game: Game, state: State | None = None) -> None:
    """Raise BrokenGame if a few episodes, from the start or a state, break the contract."""
    finding = first_breach(game, state)
    if finding is not None:
        actions, where = (
            shortened(finding.actions),
            "" if state is None else " from the given state",
        )
        after = f"\n  after the actions {actions}{where}" if finding.actions or where else ""
        raise BrokenGame(
            f"{game.name}: {finding.rule}: {indented(finding.message)}{after}\n  {finding.cure}\n"
            "  uctree.check(game) says more; check=False searches without this look at the game"
        )


def first_breach(game: Game, state: State | None = None) -> Finding | None:
    """The first error in a few random episodes from the start, or from another state."""
    case = Case(game, seed=0, limits=LIMITS if state is None else FROM_A_STATE)
    case.looks = COMPILED_LOOKS
    is_small = sum(array.nbytes for array in game.data) < LARGE_DATA
    before = digest_of(game.data) if is_small else ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            start = start_of(case) if state is None else _position(game, state)
            walk_at_random(case, start, EPISODES)
            walk_breadth_first(case, start)
        except Stop:
            pass
    if is_small and digest_of(game.data) != before:
        case.found("data-changed", "a rule wrote into data")
    counts = set(RULES) - NOT_REFUSED if state is None else LOCAL
    found = [f for f in case.findings.values() if f.severity == ERROR and f.rule in counts]
    return min(found, key=lambda finding: len(finding.actions), default=None)


def indented(text: str) -> str:
    """A text whose lines after the first are indented by two blanks."""
    return text.replace("\n", "\n  ")


def _position(game: Game, state: State) -> Position:
    return Position(game.copy(state), np.zeros(game.num_players))
