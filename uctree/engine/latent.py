"""Trees of a learned model: their states are rows of hidden states.

A simulation that takes an edge for the first time asks what is behind it: (hidden state, action).
The model answers all questions of a batch at once: the hidden state behind the edge, what the edge
pays, who moves next, log-priors and values. Which actions are legal is known at the root alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from uctree.engine.compose import Composition, compose
from uctree.engine.options import Options
from uctree.engine.queue import EvaluationQueue, aligned_zeros
from uctree.errors import BrokenGame
from uctree.game import Game
from uctree.kernels.answers import HIDDEN_STATE, list_imagined
from uctree.kernels.batching import ACTION, PARENT, PLACE
from uctree.kernels.records import NONE


@dataclass
class Roots:
    """What a model says about states of the game; values begin with the player to move."""

    hidden: np.ndarray  # [n, ...]
    legal: np.ndarray  # [n, num_actions], bool
    logits: np.ndarray  # [n, num_actions], log-priors of the actions
    values: np.ndarray  # [n, players]


@dataclass
class Answers:
    """What a model says about a batch of edges.

    Rewards begin with the player who acts, values with the player to move behind the edge.
    """

    hidden: np.ndarray  # [n, ...], behind the edge, of the type of the roots' hidden states
    rewards: np.ndarray  # [n, players], of the edge
    logits: np.ndarray  # [n, num_actions], log-priors of the actions behind the edge
    values: np.ndarray  # [n, players], of the state behind the edge
    # [n], how many seats on the next player sits; the number of players if the episode is over
    # then. None: players move in turn.
    turns: np.ndarray | None = None


class Model(Protocol):
    """A learned model, as functions of arrays; it keeps nothing from call to call."""

    def begin(self, states: np.ndarray) -> Roots:
        """The hidden states of records of the game, and what is known there."""

    def step(self, hidden: np.ndarray, actions: np.ndarray) -> Answers:
        """What is behind actions in hidden states."""


class LatentTrees:
    """The roots of a batch of trees, and their hidden states.

    Hidden states are in one array. That of row r of tree t has the number r * trees + t, so the
    answers of a batch in which all trees ask once, which is most of them, are written as one block.

    Args:
        game: the game whose states are the roots.
        options: of the search; its evaluator is that of a learned model.
    """

    def __init__(self, game: Game, num_trees: int, options: Options) -> None:
        self.model: Model = options.evaluator.model
        self.roots = np.zeros(num_trees, game.dtype)
        self.actions = np.zeros((num_trees, game.num_actions), np.int32)  # legal at the roots
        self.hidden: np.ndarray | None = None  # [rows * trees, ...]; None before the first answer
        self._parents = np.zeros(0)  # a buffer for the hidden states of a batch
        self._num_rows, self._most_questions = 1, num_trees * options.leaves
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
        """The records of new roots for the kernel; there is room for as many hidden states."""
        if 1 + num_simulations > self._num_rows:
            self._num_rows = 1 + num_simulations
            if self.hidden is not None:
                longer = self._reserved(self.hidden)
                longer[: len(self.hidden)] = self.hidden
                self.hidden = longer
        self.roots[trees] = states
        records = np.zeros(len(trees), HIDDEN_STATE)
        records["edge"], records["to_play"], records["tree"] = NONE, states["to_play"], trees
        return records

    def _reserved(self, like: np.ndarray) -> np.ndarray:
        """An array for all hidden states, of this shape and type; the buffer gets them, too."""
        shape = like.shape[1:]
        self._parents = aligned_zeros((self._most_questions, *shape), like.dtype)
        return np.zeros((self._num_rows * len(self.roots), *shape), like.dtype)

    def answer(self, queue: EvaluationQueue, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-priors and values of a batch, by question; the queue gets rewards and turns.

        Args:
            roots: the records of the trees' roots, which get their numbers of legal actions.
        """
        count, num_roots = queue.num_requests, queue.num_roots
        questions = queue.questions[:, :count]
        if num_roots == 0:
            answers = self._step(queue, questions, slice(count))
            return answers.logits, answers.values
        if num_roots == count:
            return self._begin(questions, roots)
        is_root = questions[PARENT] == NONE
        first, later = np.flatnonzero(is_root), np.flatnonzero(~is_root)
        logits = np.empty((count, self.game.num_actions), queue.logits.dtype)
        values = np.empty((count, self.game.num_players), queue.values.dtype)
        logits[first], values[first] = self._begin(questions.take(first, axis=1), roots)
        answers = self._step(queue, questions.take(later, axis=1), later)
        logits[later], values[later] = answers.logits, answers.values
        return logits, values

    def _begin(self, questions: np.ndarray, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-priors and values for questions about roots."""
        trees = questions[PLACE]  # as roots have row 0
        found = self.model.begin(self.roots[trees])
        if self.hidden is None:
            self.hidden = self._reserved(found.hidden)
        self.hidden[trees] = found.hidden
        counts = np.count_nonzero(found.legal, axis=1)
        row, actions = np.nonzero(found.legal)
        place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        self.actions[trees[row], place] = actions
        roots["count"][trees] = counts
        return found.logits, found.values

    def _step(self, queue: EvaluationQueue, questions: np.ndarray, part: Any) -> Answers:
        """The answers to the questions of a part of the batch, which are about edges."""
        assert self.hidden is not None, "roots come first"
        parents, places = questions[PARENT], questions[PLACE]
        count, given = len(parents), self._parents[: len(parents)]
        # NumPy would take a detour through another array if it had to check the indices.
        np.take(self.hidden, parents, axis=0, out=given, mode="clip")
        found = self.model.step(given, questions[ACTION])
        if found.rewards.shape != (count, self.game.num_players):
            raise BrokenGame(
                f"rewards of {count} edges must be [{count}, {self.game.num_players}], one row per "
                f"edge and num_players of {self.game.name}; got {list(found.rewards.shape)}"
            )
        queue.rewards[part] = found.rewards
        if found.turns is not None:
            queue.turns[part] = found.turns
        if queue.is_scattered:
            self.hidden[places] = found.hidden
        else:  # as one block, which is faster
            first = int(places[0])
            self.hidden[first : first + count] = found.hidden
        return found


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
