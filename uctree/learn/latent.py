"""A learned model in a search: its two functions, and the hidden states of many trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import evaluators
from uctree.engine.latent import Answers
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
    """Hidden states of trees: what `uctree.engine.latent.Model` asks for, by a model's functions.

    With more than one player, vectors are turned into the order of the players here [Eq. 13].
    """

    def __init__(self, game: Game, functions: Functions) -> None:
        self.game, self.functions = game, functions
        n = game.num_players
        # Row p reorders what player p sees (me, next, ..., previous) by player.
        self._orders = (np.arange(n) - np.arange(n)[:, None]) % n
        self._hidden: np.ndarray | None = None
        self._room = 0, 0

    def reserve(self, num_trees: int, num_states: int) -> None:
        self._room = num_trees, num_states
        if self._hidden is not None and self._hidden.shape[:2] != self._room:
            old = self._hidden
            self._hidden = np.zeros((*self._room, *old.shape[2:]), np.float32)
            rows, columns = min(len(old), num_trees), min(old.shape[1], num_states)
            self._hidden[:rows, :columns] = old[:rows, :columns]

    def begin(self, trees: np.ndarray, states: Any) -> Any:
        batch = observe_states(self.game, states)
        hidden, logits, values = self.functions.initial(batch.observations)
        if self._hidden is None:
            self._hidden = np.zeros((*self._room, *hidden.shape[1:]), np.float32)
        self._hidden[trees, 0] = hidden
        return batch.legal, logits, self.by_player(values, states["to_play"])

    def step(
        self, trees: np.ndarray, parents: np.ndarray, actions: np.ndarray, to_play: np.ndarray,
        rows: np.ndarray,
    ) -> Answers:  # fmt: skip
        assert self._hidden is not None, "a root comes first"
        given = self._hidden[trees, parents]
        hidden, rewards, logits, values, *turns = self.functions.recurrent(
            given, actions.astype(np.int64)
        )
        self._hidden[trees, rows] = hidden
        after = self.next_players(to_play, turns)
        return Answers(
            logits, self.by_player(values, after), self.by_player(rewards, to_play), after
        )

    def next_players(self, to_play: np.ndarray, turns: Sequence[np.ndarray]) -> np.ndarray:
        """Who moves after the players who act, or OVER."""
        n, functions = self.game.num_players, self.functions
        after = (to_play + 1) % n
        if functions.rotates and not functions.ends:
            return after
        turn = turns[0]
        if not functions.rotates:
            after = (to_play + turn[:, :n].argmax(axis=1)) % n
        if functions.ends:
            after = np.where(turn.argmax(axis=1) == n, OVER, after)
        return after

    def by_player(self, relative: np.ndarray, to_play: np.ndarray) -> np.ndarray:
        """Vectors in the order of the players; those behind an end are not used."""
        if self.game.num_players == 1:
            return relative
        # Faster than `take_along_axis`, which a small batch would feel.
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
