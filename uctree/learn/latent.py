"""A learned model in a search: its two functions, and how their answers are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from uctree import evaluators
from uctree.engine.latent import Answers, Roots
from uctree.evaluators import Evaluator
from uctree.game import OVER, Game, State
from uctree.learn.replay import observe_states

# Observations to hidden states, logits and values.
Initial = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
# Hidden states and actions to hidden states, rewards, logits, values, and who moves next.
Recurrent = Callable[[np.ndarray, np.ndarray], Sequence[np.ndarray]]


@dataclass(frozen=True)
class Functions:
    """A model as two functions of arrays, and how its answers are read.

    Vectors are relative: rewards begin with the player who acts, values with the player to move.
    """

    initial: Initial
    recurrent: Recurrent
    rotates: bool = True  # players move in turn; else the model says who is next
    ends: bool = False  # the model may say that the episode is over


class Imagination:
    """What `uctree.engine.latent.Model` asks for, by a model's functions."""

    def __init__(self, game: Game, functions: Functions) -> None:
        self.game, self.functions = game, functions
        n = game.num_players
        # Row p reorders what player p sees (me, next, ..., previous) by player.
        self._orders = (np.arange(n) - np.arange(n)[:, None]) % n

    def begin(self, states: np.ndarray) -> Roots:
        """The hidden states of records of the game, and what is known there."""
        batch = observe_states(self.game, states)
        hidden, logits, values = self.functions.initial(batch.observations)
        return Roots(hidden, batch.legal, logits, values)

    def step(self, hidden: np.ndarray, actions: np.ndarray) -> Answers:
        """What is behind actions in hidden states."""
        after, rewards, logits, values, *turns = self.functions.recurrent(hidden, actions)
        return Answers(after, rewards, logits, values, self._seats(turns))

    def _seats(self, turns: Sequence[np.ndarray]) -> np.ndarray | None:
        """How many seats on the next player sits, or the number of players: OVER.

        None if players move in turn and the model does not say that episodes end.
        """
        n, functions = self.game.num_players, self.functions
        if functions.rotates and not functions.ends:
            return None
        turn = turns[0]
        seats = np.full(len(turn), 1 % n) if functions.rotates else turn[:, :n].argmax(axis=1)
        return np.where(turn.argmax(axis=1) == n, n, seats) if functions.ends else seats

    def next_players(self, to_play: np.ndarray, turns: Sequence[np.ndarray]) -> np.ndarray:
        """Who moves after the players who act, or OVER."""
        n, seats = self.game.num_players, self._seats(turns)
        if seats is None:
            return (to_play + 1) % n
        return np.where(seats == n, OVER, (to_play + seats) % n)

    def by_player(self, relative: np.ndarray, to_play: np.ndarray) -> np.ndarray:
        """Vectors in the order of the players; those behind an end are not used [Eq. 13]."""
        found: np.ndarray = relative[np.arange(len(relative))[:, None], self._orders[to_play]]
        return found


def evaluator(
    game: Game, functions: Functions, *, name: str = "model", leaves: int = 1
) -> Evaluator:
    """A model as an evaluator, for `BatchedSearch` alone: its trees are of hidden states."""
    return evaluators.model(Imagination(game, functions), name=name, leaves=leaves)


def network_with_rules(functions: Functions) -> Evaluator:
    """The representation and the prediction of a model as a network, searched by the rules."""
    return evaluators.network(lambda rows: functions.initial(rows)[1:], name="network")


def predict_roots(
    game: Game, functions: Functions, states: Sequence[State]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Legal actions, logits and relative values of states, without a step of the model."""
    batch = observe_states(game, states)
    _, logits, values = functions.initial(batch.observations)
    return batch.legal, logits, values
