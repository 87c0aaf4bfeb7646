"""The book of a planner: all states that are known, by number, and what is behind their actions."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from uctree.errors import IllegalAction
from uctree.game import OVER, Game
from uctree.kernels.answers import STATE
from uctree.kernels.records import NONE
from uctree.planning.footprint import Footprint
from uctree.planning.problem import Answer, Checked, Problem, Question, as_vector

LONGEST_REASON = 80  # characters of a failure, in tables


class _NoAction:
    """Stands for an action that was to be proposed, and for a state that no step returned."""

    def __repr__(self) -> str:
        return "(failed)"


NO_ACTION: Any = _NoAction()


# A row, the player to move there, the number of its edges, log-priors or probabilities, its value.
Known = tuple[int, int, int, tuple[float, ...] | None, tuple[float, ...]]


class Book:
    """States by number (row), with their actions, priors and values; edges by (row, index)."""

    def __init__(self, problem: Problem, footprint: Footprint | None = None) -> None:
        """
        Args:
            footprint: counts the bytes of all that is written down.
        """
        self.problem, self.footprint = problem, footprint
        self.states: list[Any] = []
        self.to_play: list[int] = []
        # Tuples, which the garbage collector does not visit again and again as it does lists.
        self.actions: list[tuple[Any, ...]] = []  # or outcomes
        self.weights: list[tuple[float, ...] | None] = []  # log-priors, or probabilities
        self.values: list[tuple[float, ...]] = []
        self.seeds: list[int] = []  # of the random numbers below a state
        # By row and number of the action: the row behind it, and the reward.
        self.behind: dict[tuple[int, int], tuple[int, tuple[float, ...]]] = {}
        self.failed: dict[tuple[int, int], str] = {}  # why
        self.num_actions: dict[int, int] = {}  # of rows whose proposals are used up
        self.most_actions = 0  # of a state
        self.has_priors = False  # whether a state has
        self._rows: dict[Any, int] = {}  # by key
        self._no_value = (0.0,) * problem.num_players
        self._proposes, self._has_keys = problem.propose is not None, problem.key is not None

    def __len__(self) -> int:
        return len(self.states)

    def count(self, row: int) -> int:
        """How many edges a state has: its actions, or as many as may be proposed."""
        if not self._proposes or self.to_play[row] < 0:
            return len(self.actions[row])
        return self.problem.max_actions

    def num_listed(self, row: int) -> int:
        """How many edges of a state have an action that is known."""
        return min(len(self.actions[row]), self.count(row))

    def record(self, row: int) -> np.record:
        """The state of a search that stands for a row."""
        records = np.zeros(1, STATE).view(np.recarray)
        records[0] = (row, NONE, self.count(row), self.to_play[row])
        return records[0]

    def question(self, number: int, row: int, index: int) -> Question:
        """The question about an edge: what is behind its action, or which one that is."""
        known, mover = self.actions[row], self.to_play[row]
        if index < len(known):
            seed = self.seed(row, index)
            parts = (number, row, index, self.states[row], known[index], (), mover, 0, seed)
            return tuple.__new__(Question, parts)  # faster than calling the class
        tried = tuple(action for action in known if action is not NO_ACTION)
        return Question(number, row, index, self.states[row], None, tried, mover, 1)

    def knows(self, key: Hashable) -> bool:
        """Whether all is known about the states of a key."""
        return key in self._rows

    def checked(self, question: Question, answer: Answer) -> Checked:
        """An answer whose parts were checked; an error says what is wrong with it."""
        if type(answer) is Checked:
            return answer
        return self.problem.checked(question, answer, self.knows)

    def note(self, question: Question, answer: Checked) -> None:
        """Write down what is behind an edge, or all about the start, or more actions of a state."""
        row = question.row
        if answer.proposed is not None:
            known = self.actions[row]
            self.actions[row] = known + tuple(a for a in answer.proposed if a not in known)
            if len(self.actions[row]) <= question.edge:
                self.num_actions[row] = len(known)
            return
        if question.edge == NONE:
            self._row_of(answer, 0)
        else:
            place = row, question.edge
            self.note_behind(place, answer, self.seed(*place))

    def note_behind(
        self, place: tuple[int, int], answer: Checked | tuple[Any, ...], seed: int
    ) -> Known:
        """Write down what is behind an edge; what a simulation needs of it.

        Args:
            place: the row and the number of the action.
            answer: checked, with the fields of a `Checked`.
            seed: of the edge.
        """
        known = self._row_of(answer, seed)
        self.behind[place] = known[0], answer[1]
        if self.footprint is not None and known[0] == len(self.states) - 1:
            self.footprint.add(len(self.states), self._parts(known[0]), self._parts(place[0]))
        return known

    def _parts(self, row: int) -> tuple[Any, ...]:
        """The objects that are kept for a state."""
        return self.states[row], self.actions[row], self.weights[row], self.values[row]

    def seed(self, row: int, index: int) -> int:
        """The seed of random numbers behind an edge."""
        return hash((self.seeds[row], index))

    def note_failure(self, question: Question, why: str, paid: Any = None) -> None:
        """Write down that nothing is known behind an edge.

        Args:
            paid: what the edge pays, at the end of the episode; None if it is not to be taken.
        """
        row, index = question.row, question.edge
        self.failed[row, index] = why
        if index >= len(self.actions[row]):
            self.actions[row] += (NO_ACTION,)
        elif paid is not None:
            reward = as_vector(paid, self.problem.num_players, self.to_play[row])
            end, *_ = self._new_row(Checked(NO_ACTION, reward, OVER, True), 0)
            self.behind[row, index] = end, reward

    def known(self, row: int) -> Known:
        """What a simulation needs of a state."""
        return row, self.to_play[row], self.count(row), self.weights[row], self.values[row]

    def _row_of(self, answer: Checked | tuple[Any, ...], seed: int) -> Known:
        """A state as a new row, unless its key is known."""
        if not self._has_keys or answer[3]:  # over
            return self._new_row(answer, seed)
        key = self.problem.key_of(answer[0])
        row = self._rows.get(key)
        if row is not None:
            return self.known(row)
        known = self._new_row(answer, seed)
        self._rows[key] = known[0]
        return known

    def _new_row(self, answer: Checked | tuple[Any, ...], seed: int) -> Known:
        parts: tuple[Any, ...] = answer
        state, _, to_play, _, actions, weights, value, _, _ = parts
        row, count = len(self.states), len(actions)
        self.states.append(state)
        self.to_play.append(to_play)
        self.actions.append(actions if actions.__class__ is tuple else tuple(actions))
        self.seeds.append(seed)
        if to_play < 0:
            value = self._no_value
        else:
            if weights is not None:
                weights = _log_priors(weights)
                self.has_priors = not self._proposes
            if self._proposes:
                count = self.problem.max_actions
        self.weights.append(weights)
        self.values.append(value)
        if count > self.most_actions:
            self.most_actions = count
        return row, to_play, count, weights, value

    def drop_torn(self) -> None:
        """Remove a state that was not written down to the end."""
        lists = (self.states, self.to_play, self.actions, self.seeds, self.weights, self.values)
        for each in lists:
            del each[len(self.values) :]
        rows = range(len(self))
        self.most_actions = max(map(self.count, rows), default=0)
        has_priors = any(self.weights[row] is not None and self.to_play[row] >= 0 for row in rows)
        self.has_priors = has_priors and not self._proposes

    # The book as a game, for results, pages and lines of play.

    def game(self, num_actions: int) -> Game:
        """A game of the states that are known; its steps are looked up here."""
        problem = self.problem

        def legal(state: Any, actions: Any) -> int:
            count = self.num_listed(int(state.row))
            for index in range(count):
                actions[index] = index
            return count

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
            known = self.states[int(state.row)]
            return str(known) if known is NO_ACTION else str(problem.show(known))

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
        game.num_listed = lambda state: self.num_listed(int(state["row"]))
        return game

    def label(self, row: int, index: int) -> str:
        """The text of an action or outcome, and why it failed if it did."""
        known = self.actions[row]
        if index >= len(known):
            return f"proposal {index}"
        show_action, action = self.problem.show_action, known[index]
        if action is NO_ACTION or show_action is None:
            text = str(action)
        else:
            text = str(show_action(self.states[row], action))
        why = self.failed.get((row, index))
        if why is None:
            return text
        why = why if len(why) <= LONGEST_REASON else f"{why[:LONGEST_REASON]}..."
        return f"{text} ({why})" if action is NO_ACTION else f"{text} (failed: {why})"


def _log_priors(weights: Any) -> tuple[float, ...]:
    return tuple(math.log(weight) if weight > 0 else -math.inf for weight in weights)
