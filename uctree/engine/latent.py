"""Trees of a learned model: their states are rows of hidden states, which the model holds.

A simulation that takes an edge for the first time asks what is behind it: (hidden state, action).
The model answers all questions of a batch at once: reward, player to move, log-priors and value.
Which actions are legal is known at the root alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from uctree.engine.compose import Composition, compose
from uctree.engine.options import Options
from uctree.engine.queue import EvaluationQueue
from uctree.game import Game
from uctree.kernels.answers import HIDDEN_STATE, list_imagined
from uctree.kernels.batching import ANSWERED
from uctree.kernels.records import NONE


@dataclass
class Answers:
    """What a model says about a batch of edges; vectors are in the order of the players."""

    logits: np.ndarray  # [n, num_actions], log-priors of the actions behind the edge
    values: np.ndarray  # [n, players], of the state behind the edge
    rewards: np.ndarray  # [n, players], of the edge
    to_play: np.ndarray  # [n], behind the edge: a player, or OVER


class Model(Protocol):
    """A learned model. It holds the hidden states of trees, numbered from the root's, 0, on."""

    def reserve(self, num_trees: int, num_states: int) -> None:
        """Have room for as many hidden states."""

    def begin(
        self, trees: np.ndarray, states: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Store the hidden states of roots; returns legal actions, log-priors and values.

        `states` are records of the game, the legal actions bool [n, num_actions].
        """

    def step(
        self, trees: np.ndarray, parents: np.ndarray, actions: np.ndarray, to_play: np.ndarray,
        rows: np.ndarray,
    ) -> Answers:  # fmt: skip
        """Store the states behind actions of `parents` as the hidden states `rows`.

        `to_play` are the players who act.
        """


class LatentTrees:
    """The roots of a batch of trees, and who is to move in their hidden states.

    Args:
        game: the game whose states are the roots.
        options: of the search; its evaluator is that of a learned model.
    """

    def __init__(self, game: Game, num_trees: int, options: Options) -> None:
        self.model: Model = options.evaluator.model
        self.roots = np.zeros(num_trees, game.dtype)
        self.actions = np.zeros((num_trees, game.num_actions), np.int32)  # legal at the roots
        self.leaves = options.leaves
        self.num_states = np.ones(num_trees, np.int64)  # of each tree, the root included
        self.to_play = np.zeros((num_trees, 1), np.int8)  # by tree and row
        self.game = _game(
            game.num_players, game.num_actions, game.discount, game.zero_sum,
            None if game.payoff_range is None else tuple(map(tuple, game.payoff_range.tolist())),
            self.actions,
        )  # fmt: skip

    def compose(self, options: Options) -> Composition:
        """The kernel of such searches, which is the same for all games of the same numbers."""
        template = _template(
            self.game.num_players, self.game.num_actions, self.game.discount, self.game.zero_sum,
            self.game.payoff_range is not None,
        )  # fmt: skip
        # The template has no rules to look at.
        found = compose(template, replace(options, check=False), many=True)
        return Composition(
            self.game, options, found.layout, found.arrays, found.kernel, found.rules
        )

    def set_roots(self, trees: np.ndarray, states: np.ndarray, num_simulations: int) -> np.ndarray:
        """The records of new roots for the kernel; the model has room for as many states."""
        num_states = 1 + num_simulations + self.leaves
        if num_states > self.to_play.shape[1]:
            wider = np.zeros((len(self.roots), num_states), np.int8)
            wider[:, : self.to_play.shape[1]] = self.to_play
            self.to_play = wider
        self.model.reserve(*self.to_play.shape)
        self.roots[trees] = states
        self.to_play[trees, 0] = states["to_play"]
        self.num_states[trees] = 1
        records = np.zeros(len(trees), HIDDEN_STATE)
        records["edge"], records["to_play"], records["tree"] = NONE, states["to_play"], trees
        return records

    def answer(self, queue: EvaluationQueue, roots: np.ndarray) -> None:
        """Answer the questions of a batch.

        Args:
            roots: the records of the trees' roots, which get their numbers of legal actions.
        """
        slots = np.array(queue.take_questions())
        is_root = queue.leaves["edge"][slots] == NONE
        if is_root.any():
            self._answer_roots(queue, slots[is_root], roots)
            slots = slots[~is_root]
        if len(slots):
            self._answer_steps(queue, slots)

    def _answer_roots(self, queue: EvaluationQueue, slots: np.ndarray, roots: np.ndarray) -> None:
        trees = slots // self.leaves
        legal, logits, values = self.model.begin(trees, self.roots[trees])
        counts = np.count_nonzero(legal, axis=1)
        row, actions = np.nonzero(legal)
        place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        self.actions[trees[row], place] = actions
        queue.leaves["count"][slots] = roots["count"][trees] = counts
        self._write(queue, slots, logits, values, 0, self.to_play[trees, 0])

    def _answer_steps(self, queue: EvaluationQueue, slots: np.ndarray) -> None:
        leaves = queue.leaves
        parents, actions = leaves["row"][slots], leaves["edge"][slots]
        if self.leaves == 1:
            trees = slots
            rows = self.num_states[trees]
            self.num_states[trees] += 1
        else:  # the questions of a tree are adjacent
            trees = slots // self.leaves
            rows = self.num_states[trees] + np.arange(len(trees)) - np.searchsorted(trees, trees)
            np.add.at(self.num_states, trees, 1)
        found = self.model.step(trees, parents, actions, self.to_play[trees, parents], rows)
        self.to_play[trees, rows] = found.to_play
        rewards = found.rewards
        if self.game.zero_sum:  # both players' rewards are estimates
            rewards = 0.5 * (rewards[:, :1] - rewards[:, 1:]) * _SIGNS
        queue.answers["reward"][slots] = rewards
        self._write(queue, slots, found.logits, found.values, rows, found.to_play)

    def _write(
        self, queue: EvaluationQueue, slots: np.ndarray, logits: np.ndarray, values: np.ndarray,
        rows: Any, to_play: np.ndarray,
    ) -> None:  # fmt: skip
        part: Any = slots
        if self.leaves == 1 and len(slots) == slots[-1] + 1 - slots[0]:
            part = slice(int(slots[0]), int(slots[-1]) + 1)  # which is written faster
        queue.logits[part] = logits
        queue.values[part] = values
        answers = queue.answers
        answers["row"][part] = rows
        answers["count"][part] = self.game.num_actions
        answers["mover"][part] = to_play
        answers["status"][part] = ANSWERED


_SIGNS = np.array([1.0, -1.0])


def _game(
    num_players: int, num_actions: int, discount: float, zero_sum: bool, payoff_range: Any,
    actions: np.ndarray,
) -> Game:  # fmt: skip
    """The game of hidden states, with the legal actions of the roots as its data."""
    return Game(
        HIDDEN_STATE, _legal, _step, num_players=num_players, num_actions=num_actions,
        discount=discount, zero_sum=zero_sum, payoff_range=payoff_range, data=(actions,),
        key_fields=("row", "tree"), name="learned model",
    )  # fmt: skip


def _legal(state: Any, actions: np.ndarray, data: Any) -> int:
    return list_imagined(state, actions, data)


def _step(state: Any, action: int, reward: np.ndarray, data: Any) -> None:
    raise AssertionError("only the model knows what is behind an edge")


@lru_cache(maxsize=64)
def _template(
    num_players: int, num_actions: int, discount: float, zero_sum: bool, has_range: bool
) -> Game:
    """A game for which kernels are compiled, once for all models of these numbers."""
    payoff_range = (0.0, 1.0) if has_range else None
    actions = np.zeros((1, num_actions), np.int32)
    return _game(num_players, num_actions, discount, zero_sum, payoff_range, actions)
