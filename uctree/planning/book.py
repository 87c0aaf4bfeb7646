"""The book of a planner: all states that are known, by number, and what is behind their actions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.errors import BrokenGame, IllegalAction
from uctree.game import CHANCE, OVER, Game
from uctree.kernels.answers import STATE
from uctree.kernels.records import NONE
from uctree.planning.problem import Answer, Problem, Question, as_value, as_vector


class Book:
    """States by number (row), with their actions, priors and values; edges by (row, index)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.states: list[Any] = []
        self.to_play: list[int] = []
        # Tuples, which the garbage collector does not visit again and again as it does lists.
        self.actions: list[tuple[Any, ...]] = []  # or outcomes
        self.weights: list[tuple[float, ...] | None] = []  # log-priors, or probabilities
        self.values: list[tuple[float, ...]] = []
        # By row and number of the action: the row behind it, and the reward.
        self.behind: dict[tuple[int, int], tuple[int, tuple[float, ...]]] = {}
        self.failed: dict[tuple[int, int], str] = {}  # why
        self.num_actions: dict[int, int] = {}  # of rows whose proposals are used up
        self.most_actions = 0  # of a state
        self._rows: dict[Any, int] = {}  # by key

    def __len__(self) -> int:
        return len(self.states)

    def count(self, row: int) -> int:
        """How many edges a state has: its actions, or as many as may be proposed."""
        if self.to_play[row] == OVER:
            return 0
        if self.problem.propose is None or self.to_play[row] == CHANCE:
            return len(self.actions[row])
        return self.num_actions.get(row, self.problem.max_actions)

    def record(self, row: int) -> np.record:
        """The state of a search that stands for a row."""
        records = np.zeros(1, STATE).view(np.recarray)
        records[0] = (row, NONE, self.count(row), self.to_play[row])
        return records[0]

    def note(self, question: Question, answer: Answer) -> None:
        """Write down what is behind an edge, or all about a state that was asked for."""
        place = question.row, question.edge
        if answer.proposed is not None:
            known = self.actions[question.row]
            known += tuple(action for action in answer.proposed if action not in known)
            self.actions[question.row] = known
            if len(known) <= question.edge:
                self.num_actions[question.row] = len(known)
                return
        row = self._row_of(answer)
        if question.edge != NONE:
            reward = as_vector(answer.reward, self.problem.num_players, question.to_play)
            self.behind[place] = row, tuple(reward)

    def note_failure(self, question: Question, why: str) -> None:
        """Write down that nothing is known behind an edge."""
        self.failed[question.row, question.edge] = why

    def _row_of(self, answer: Answer) -> int:
        """The row of a state, a new one unless its key is known."""
        problem, key = self.problem, None
        if problem.key is not None:
            key = problem.key(answer.state), answer.over
            if key in self._rows:
                return self._rows[key]
        row = len(self.states)
        to_play = OVER if answer.over else answer.to_play
        if to_play != OVER and not CHANCE <= to_play < problem.num_players:
            raise BrokenGame(
                f"to_play is {to_play}; expected 0 to {problem.num_players - 1} or uctree.CHANCE"
            )
        self.states.append(answer.state)
        self.to_play.append(to_play)
        self.actions.append(tuple(answer.actions))
        self.weights.append(_log_priors(answer.weights, to_play))
        if to_play >= 0:
            self.values.append(tuple(as_value(answer.value, problem.num_players)))
        else:
            self.values.append((0.0,) * problem.num_players)
        self.most_actions = max(self.most_actions, self.count(row))
        if key is not None:
            self._rows[key] = row
        return row

    # The book as a game, for results, pages and lines of play.

    def game(self, num_actions: int) -> Game:
        """A game of the states that are known; its steps are looked up here."""
        problem = self.problem

        def legal(state: Any, actions: Any) -> int:
            for index in range(state.count):
                actions[index] = index
            return int(state.count)

        def step(state: Any, action: Any, reward: Any) -> None:
            place = int(state.row), int(action)
            if place not in self.behind:
                raise IllegalAction(f"what is behind {self.label(*place)} is not known yet")
            row, paid = self.behind[place]
            state.row, state.count, state.to_play = row, self.count(row), self.to_play[row]
            for player, part in enumerate(paid):
                reward[player] += part

        def chance(state: Any, outcomes: Any, probabilities: Any) -> int:
            weights = self.weights[int(state.row)] or ()
            for index, probability in enumerate(weights):
                outcomes[index], probabilities[index] = index, probability
            return len(weights)

        def show(state: Any) -> str:
            return str(problem.show(self.states[int(state.row)]))

        def show_action(state: Any, action: Any) -> str:
            return self.label(int(state.row), int(action))

        game = Game(
            STATE, legal, step, num_players=problem.num_players, num_actions=num_actions,
            name=problem.name, payoff_range=problem.payoff_range, discount=problem.discount,
            chance=None if problem.chance is None else chance,
            max_outcomes=0 if problem.chance is None else num_actions,
            key_fields=("row", "edge"), show=show, show_action=show_action,
        )  # fmt: skip
        game.labels = lambda state, action: self.actions[int(state["row"])][int(action)]
        return game

    def label(self, row: int, index: int) -> str:
        """The text of an action or outcome."""
        known = self.actions[row]
        if index >= len(known):
            return f"proposal {index}"
        show_action = self.problem.show_action
        action = known[index]
        return str(action) if show_action is None else show_action(self.states[row], action)


def _log_priors(weights: Any, to_play: int) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if to_play == CHANCE:
        return tuple(weights)
    return tuple(math.log(weight) if weight > 0 else -math.inf for weight in weights)
