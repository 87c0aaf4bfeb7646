"""Exhaustive play of a small game: one player's actions against every reply of the opponent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uctree import specs
from uctree.game import Game
from uctree.solver import solve

TOLERANCE = 1e-9  # returns that differ by less are equal


@dataclass(frozen=True)
class Replies:
    """The results of a player against every reply, from both seats."""

    positions: int  # in which the player had to act
    gave_away: int  # in which its action was not optimal
    lost: int  # lines of play that ended with a loss

    @property
    def is_perfect(self) -> bool:
        return self.gave_away == self.lost == 0


def try_all(game: Game | str, act: Callable[[np.record], int]) -> Replies:
    """The results of the player that takes `act(state)`, in a small game of two players.

    >>> from uctree import games
    >>> game = games.tic_tac_toe()
    >>> try_all(game, lambda state: game.legal(state)[0]).is_perfect
    False
    """
    game = specs.as_game(game)
    exact = solve(game)
    positions = gave_away = lost = 0
    for seat in (0, 1):
        seen: set[bytes] = set()
        waiting = [game.start()]
        while waiting:
            state = waiting.pop()
            if state.tobytes() in seen:
                continue
            seen.add(state.tobytes())
            is_mine = game.to_play(state) == seat
            actions = [act(state)] if is_mine else game.legal(state)
            positions += is_mine
            for action in actions:
                after, reward = game.step(state, action)
                if game.is_over(after):
                    lost += bool(reward[seat] < 0)
                else:
                    waiting.append(after)
                value = reward[seat] + game.discount * exact.value_of(after)[seat]
                gave_away += bool(is_mine and value < exact.value_of(state)[seat] - TOLERANCE)
    return Replies(positions, gave_away, lost)
