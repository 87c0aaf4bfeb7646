"""Planner: a search that asks what is behind actions, and takes answers in any order."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

from uctree import evaluators
from uctree.engine.compose import Composition, compose
from uctree.engine.driver import MOST_SIMULATIONS, TreeSearch
from uctree.engine.options import Options, check_names, resolve, whole
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.kernels.answers import STATE
from uctree.kernels.batching import ANSWERED, EXHAUSTED, FAILED, SEARCHING
from uctree.kernels.records import NONE
from uctree.mcts import checked_budget, result_of
from uctree.planning.book import Book
from uctree.planning.problem import Answer, Problem, Question
from uctree.result import SearchResult
from uctree.selection import widening
from uctree.tree import Tree

TIERS = (64, 1024, 8192, 65536)  # kernels are compiled for as many actions


class Planner:
    """A search in the hands of its caller, who answers its questions.

    `ask` gives questions, `tell` takes answers in any order. `plan` does both.

    >>> from uctree.planning.problem import Problem, Step
    >>> count = Problem(actions=lambda n: ["add", "double"],
    ...                 step=lambda n, a: Step(n + 1 if a == "add" else 2 * n, n == 8, over=n > 7))
    >>> planner = Planner(count, 1, num_simulations=50, seed=1)
    >>> while questions := planner.ask():
    ...     for question in questions:
    ...         planner.tell(question, count.answer(question))
    >>> planner.result().simulations
    50
    """

    def __init__(
        self,
        problem: Problem,
        start: Any,
        *,
        to_play: int = 0,
        num_simulations: int | None = None,
        in_flight: int = 1,
        seed: int | None = None,
        ordered: bool | None = None,
        book: Book | None = None,
        **options: Any,
    ) -> None:
        """
        Args:
            to_play: the player to move at the start, or uctree.CHANCE.
            num_simulations: the budget; None for no limit.
            in_flight: how many simulations may wait for answers at the same time.
            seed: of all random numbers; 0 if omitted.
            ordered: whether answers count in the order of their questions, so that the tree does
                not depend on how long they take; if omitted, whether a seed is given.
            book: what is known already, from a journal.
            options: as in `search`.
        """
        for name in ("evaluator", "leaves", "threads", "parallel", "open_loop", "check"):
            if name in options:
                raise TypeError(f"{name}= is for games that are compiled; plan without it")
        check_names(options)
        num_simulations = checked_budget(num_simulations, None)
        in_flight = whole("in_flight", in_flight)
        if in_flight < 1:
            raise ValueError(f"in_flight must be at least 1; got {in_flight}")
        self.problem, self.start, self.to_play = problem, start, to_play
        self.num_simulations, self.in_flight = num_simulations, in_flight
        self.seed = 0 if seed is None else whole("seed", seed)
        self.is_ordered = seed is not None if ordered is None else ordered
        self.options = options
        if problem.propose is not None:
            self.options = {"widening": widening()} | options
        self.book = Book(problem) if book is None else book
        self._numbers: dict[tuple[int, int], int] = {}  # of questions without an answer
        self._slots: dict[int, list[int]] = {}  # of the simulations that wait for a question
        self._num_questions = 0
        self._search: TreeSearch | None = None
        self._is_closed = self._was_solved = False
        self._is_asked = False  # whether the question about the start was asked
        self.began = time.perf_counter()

    # Asking and telling.

    def ask(self) -> list[Question]:
        """New questions; none if the budget is used up, or until others are answered."""
        if self._is_closed:
            raise UctreeError("the planner is closed; make another one")
        if self._search is None and len(self.book) > 0:
            self._begin()
        if self._search is None:
            if self._is_asked:
                return []
            self._is_asked = True
            return [self._question(0, NONE)]
        questions: list[Question] = []
        driver = self._search.driver
        while True:
            driver.run_kernel()
            known = 0
            for slot in driver.queue.take_questions():
                row, index = self._rows[slot], self._edges[slot]
                if self._answer_known(slot, row, index):
                    known += 1
                    continue
                number = self._numbers.get((row, index))
                if number is None:
                    questions.append(self._question(row, index))
                    number = questions[-1].number
                self._slots.setdefault(number, []).append(slot)
            if not known:
                return questions

    def tell(self, question: Question, answer: Answer) -> None:
        """Take the answer to a question."""
        self._forget(question)
        self.book.note(question, answer)
        if self._search is None or self.book.most_actions > self._most_actions:
            self._begin()
            return
        for slot in self._slots.pop(question.number, ()):
            self._answer_known(slot, question.row, question.edge)

    def tell_failure(self, question: Question, why: str) -> None:
        """Close the edge that a question is about: it cannot be taken."""
        if question.edge == NONE:
            raise UctreeError(f"the start could not be evaluated: {why}")
        self._forget(question)
        self.book.note_failure(question, why)
        for slot in self._slots.pop(question.number, ()):
            self._answer_known(slot, question.row, question.edge)

    def close(self) -> None:
        """End the search: simulations that wait for answers are undone."""
        if self._search is not None and not self._is_closed:
            self._was_solved, self._is_closed = self.is_solved, True
            self._search.close()

    @property
    def num_waiting(self) -> int:
        """Questions without an answer."""
        return len(self._numbers)

    @property
    def simulations(self) -> int:
        """How many simulations have ended."""
        return 0 if self._search is None else self._search.simulations

    @property
    def is_solved(self) -> bool:
        """Whether the start is proven."""
        if self._search is None or self._is_closed:
            return self._was_solved
        return bool(self._search.driver.queue.queues["is_solved"][0])

    def result(self, status: str = "simulations") -> SearchResult:
        """The result so far."""
        if self._search is None:
            raise UctreeError("nothing is known yet: answer the first question of ask()")
        search = self._search
        seconds = time.perf_counter() - self.began
        return result_of(
            search.composition, (search.tree,), "solved" if self.is_solved else status,
            simulations=self.simulations, seconds=seconds, seed=self.seed, began=self.began,
            samples=(search.samples,), best_seen=tuple(filter(None, [search.best_seen()])),
        )  # fmt: skip

    # The search.

    def _begin(self) -> None:
        """Make the tree, now that the start is known.

        A state with more actions than the kernels are compiled for begins it again: all that is
        known is in the book, so nothing is asked twice.
        """
        book = self.book
        if self._search is not None:
            self._search.close()
            self._slots.clear()
        composition = self._composition(max(book.most_actions, 1))
        self._most_actions = composition.game.num_actions
        root = book.record(0)
        tree = Tree(composition.game, root, composition.layout, max(1, book.count(0)), 1024)
        if composition.options.sees_range(composition.game):
            tree.forget_range(seen=True)
        budget = self.num_simulations or MOST_SIMULATIONS
        self._search = search = TreeSearch(
            composition, tree, seed=self.seed, num_simulations=budget
        )
        queue = search.driver.queue
        queue.queues["is_ordered"] = self.is_ordered
        self._rows, self._edges = _view(queue.leaves["row"]), _view(queue.leaves["edge"])
        self._values = _view(queue.values)
        names = queue.answers.dtype.names or ()
        self._answers = {name: _view(queue.answers[name]) for name in names}
        search.prepare_root(self._answer_root)
        if queue.queues["phase"][0] != SEARCHING:
            queue.queues["phase"] = SEARCHING
            tree.head["remaining"] = budget

    def _composition(self, most_actions: int) -> Composition:
        problem = self.problem
        tier = next((size for size in TIERS if size >= most_actions), None)
        if tier is None:
            raise UctreeError(
                f"a state has {most_actions} actions; the most is {TIERS[-1]}: propose some of "
                "them with propose="
            )
        weights = self.book.weights[0]
        gives_priors = self.to_play >= 0 and weights is not None and problem.propose is None
        template = _template(
            problem.num_players, tier, problem.chance is not None, problem.discount,
            problem.payoff_range is not None,
        )  # fmt: skip
        evaluator = evaluators.answering(gives_priors, self.in_flight)
        options: Options = resolve(template, evaluator=evaluator, check=False, **self.options)
        return replace(compose(template, options), game=self.book.game(tier), idle_workers=[])

    def _answer_root(self) -> None:
        assert self._search is not None
        for slot in self._search.driver.queue.take_questions():
            self._answer_known(slot, self._rows[slot], self._edges[slot])

    def _question(self, row: int, index: int) -> Question:
        book, number = self.book, self._num_questions
        self._num_questions += 1
        self._numbers[row, index] = number
        if index == NONE:
            return Question(number, 0, NONE, self.start, to_play=self.to_play)
        known = book.actions[row]
        if index < len(known):
            return Question(
                number, row, index, book.states[row], known[index], (), book.to_play[row]
            )
        return Question(number, row, index, book.states[row], None, known, book.to_play[row])

    def _forget(self, question: Question) -> None:
        if self._numbers.pop((question.row, question.edge), None) != question.number:
            raise ValueError(f"question {question.number} was answered already, or never asked")

    def _answer_known(self, slot: int, row: int, index: int) -> bool:
        """Write what the book knows about an edge or a state to a slot; False if it is unknown."""
        book, answers = self.book, self._answers
        status, reward = ANSWERED, None
        if index != NONE:
            found = book.behind.get((row, index))
            if found is None:
                if (row, index) in book.failed:
                    answers["status"][slot] = FAILED
                    return True
                if book.num_actions.get(row, index + 1) <= index:
                    answers["status"][slot] = EXHAUSTED
                    return True
                return False
            row, reward = found
            for player, part in enumerate(reward):
                answers["reward"][slot, player] = part
        answers["row"][slot] = row
        answers["mover"][slot] = book.to_play[row]
        answers["count"][slot] = book.count(row)
        for player, part in enumerate(book.values[row]):
            self._values[slot, player] = part
        weights = book.weights[row]
        queue = self._search.driver.queue  # type: ignore[union-attr]
        if weights is not None and not (queue.evaluator.gives_priors or book.to_play[row] < 0):
            raise BrokenGame(
                f"actions(state) gave priors in state {row}, but none at the start: give them in "
                "every state or in none; priors=False takes pairs as actions"
            )
        if weights is not None:
            queue.logits[slot, : len(weights)] = weights
        elif queue.evaluator.gives_priors:
            queue.logits[slot] = 0.0
        answers["status"][slot] = status
        return True


def _view(array: Any) -> Any:
    """A memoryview, whose numbers are read and written faster than those of an array."""
    return memoryview(array)


@lru_cache(maxsize=64)
def _template(
    num_players: int, num_actions: int, has_chance: bool, discount: float, has_range: bool
) -> Game:
    """A game for which kernels are compiled, once for all problems of these numbers."""
    chance: dict[str, Any] = {}
    if has_chance:
        chance = {"chance": lambda state, outcomes, probabilities: 0, "max_outcomes": num_actions}
    return Game(
        STATE, lambda state, actions: state.count, lambda state, action, reward: None,
        num_players=num_players, num_actions=num_actions, discount=discount,
        payoff_range=(0.0, 1.0) if has_range else None, key_fields=("row", "edge"),
        name="planning", **chance,
    )  # fmt: skip
