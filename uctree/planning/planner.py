"""Planner: a search that asks what is behind actions, and takes answers in any order."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from uctree import evaluators
from uctree.engine import interrupts
from uctree.engine.compose import Composition, compose
from uctree.engine.driver import MOST_SIMULATIONS, TreeSearch
from uctree.engine.memory import num_bytes
from uctree.engine.options import Options, check_names, resolve, whole
from uctree.engine.queue import EvaluationQueue
from uctree.errors import IllegalAction, UctreeError
from uctree.game import OVER, Game
from uctree.kernels.answers import STATE
from uctree.kernels.batching import ANSWERED, EXHAUSTED, FAILED, OPEN, SEARCHING
from uctree.kernels.records import NONE
from uctree.mcts import checked_budget, result_of, tree_bytes
from uctree.planning.answers import AnswerAtOnce, Parts
from uctree.planning.book import Book, Known
from uctree.planning.footprint import Footprint
from uctree.planning.images import Watch
from uctree.planning.journal import Journal
from uctree.planning.lines import Lines
from uctree.planning.problem import Answer, Checked, Problem, Question, add_costs
from uctree.planning.treefile import answers_of, check_answers, read_answers
from uctree.planning.world import NOT_GIVEN, world_of
from uctree.result import SearchResult
from uctree.selection import Widening, widening
from uctree.tree import Tree

MOST_KNOWN = 256  # simulations in known states alone before somebody looks at clocks and stops
FEW_ANSWERS = 8  # after which the clock is read, if they take little time
TIERS = (64, 1024, 8192, 65536)  # kernels are compiled for as many actions


class AnsweredHere(NamedTuple):
    """What came of a search with answers that come at once."""

    goes_on: bool  # whether only time was up
    num_answers: int
    failure: tuple[Question, Exception] | None  # of the function that gives answers


class _Unbroken:
    """A block of a planner that Ctrl-C cuts nowhere but in functions of the user.

    A second Ctrl-C does not wait, and may leave anything half done. So the planner begins its tree
    again, from the answers that it has.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner, self._block = planner, interrupts.postponed()

    def __enter__(self) -> None:
        self._block.__enter__()
        if self._planner.is_torn:
            self._planner.begin_again()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if kind is not None and interrupts.was_forced():
            self._planner.is_torn = True
        self._block.__exit__(kind, error, trace)


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
        problem: Any,
        start: Any = NOT_GIVEN,
        *,
        to_play: Any = None,
        num_simulations: int | None = None,
        in_flight: int = 1,
        seed: int | None = None,
        ordered: bool | None = None,
        journal: str | Path | None = None,
        tree: str | Path | None = None,
        **options: Any,
    ) -> None:
        """
        Args:
            problem: a `Problem`, with the `start` of the search; or, without `start`, what else
                `plan` takes: a `World`, an environment, ...
            to_play: the player to move at the start of a `Problem`, or uctree.CHANCE.
            num_simulations: the budget; None for no limit.
            in_flight: how many simulations may wait for answers at the same time.
            seed: of all random numbers; 0 if omitted.
            ordered: whether answers count in the order of their questions, so that the tree does
                not depend on how long they take; if omitted, whether a seed is given.
            journal: a file to which every answer is written, and whose answers are not asked again.
            tree: a tree file of an earlier plan with these options, which is continued.
            options: as in `search`.
        """
        world = world_of(problem, start, to_play)
        problem, start, to_play = world.problem, world.start, world.to_play
        _check_options(problem, options)
        num_simulations = checked_budget(num_simulations, None)
        in_flight = whole("in_flight", in_flight)
        if in_flight < 1:
            raise ValueError(f"in_flight must be at least 1; got {in_flight}")
        if world.first_look is not None:
            world.first_look()
        self.problem, self.start, self.to_play, self.note = problem, start, to_play, world.note
        self.num_simulations, self.in_flight = num_simulations, in_flight
        self.seed = 0 if seed is None else whole("seed", seed)
        self.is_ordered = seed is not None if ordered is None else ordered
        self.options = options
        if problem.propose is not None:
            self.options = {"widening": widening()} | options
        limit = options.get("max_memory")
        most = None if limit is None else num_bytes(limit, "max_memory")
        # Half of it is for states; see `Planner._begin`.
        self.book = Book(problem, None if most is None else Footprint(most // 2))
        self._watch = Watch()
        self._watch.add(start)
        self._numbers: dict[tuple[int, int], int] = {}  # of questions without an answer
        self._slots: dict[int, list[int]] = {}  # of the simulations that wait for a question
        self._new: list[Question] = []  # questions that `ask` has not returned yet
        self._num_questions = 0
        self._search: TreeSearch | None = None
        self._root = 0  # the row of the state that is searched
        self._kept: Tree | None = None  # its tree, if there is one from a search before
        self._most_actions, self._gives_priors = 0, False  # of the search
        self._no_reward = (0.0,) * problem.num_players
        self._num_sampled = 0  # simulations at the last look at the root
        self._is_closed = self._was_solved = False
        self.is_torn = False  # whether a second Ctrl-C may have left something half done
        self._is_asked = False  # whether the question about the start was asked
        self.costs: dict[str, float] = {}  # of all calls so far, failed ones included
        self._journal = None
        if journal is not None:
            self._journal = Journal(journal, problem, start, self.book)
            self.costs |= self._journal.costs
        if tree is not None:
            self._load(tree)
        self.began = time.perf_counter()

    # Asking and telling.

    def ask(self, most: int | None = None) -> list[Question]:
        """New questions; none if the budget is used up, or until others are answered.

        Args:
            most: of questions; the others come with the next call.
        """
        while True:
            found = self.ask_briefly(most=most)
            if found or not self.goes_on:
                return found
            interrupts.check()

    def ask_briefly(self, *, most: int | None = None, until: int | None = None) -> list[Question]:
        """As `ask`, but it may also return none since simulations go on for long in known states.

        Args:
            until: how many simulations end the call.
        """
        if self._is_closed:
            raise UctreeError("the planner is closed; make another one")
        with self.unbroken():
            if self._search is None:
                self._ask_about_start()
            if self._search is not None and (most is None or len(self._new) < most):
                if self.book.to_play[self._root] != OVER:
                    self._run(until)
                    self._sample()
            if self.is_full:
                return []
            found = self._new
            if most is None:
                self._new = []
                return found
            found, self._new = found[:most], found[most:]
            return found

    @property
    def goes_on(self) -> bool:
        """Whether the last simulations needed no answer, and others can follow."""
        search = self._search
        if search is None or self._is_closed or self.book.to_play[self._root] == OVER:
            return False
        tree = search.tree
        is_left = tree.head["remaining"][0] > 0 and not self.is_solved
        return bool(is_left and tree.simulations >= self._rests_at[0])

    def _sample(self) -> None:
        """Keep what the root's actions are worth now, for the history of the result."""
        search = self._search
        assert search is not None
        if search.simulations > self._num_sampled:
            self._num_sampled = search.simulations
            search.samples.note(search.tree, search.simulations, time.perf_counter())

    def _rest_after(self, until: int | None) -> None:
        """Let the kernel return after some simulations, though no answer is needed."""
        search = self._search
        assert search is not None
        most = MOST_KNOWN
        if until is not None:
            most = max(1, min(most, until - search.simulations))
        self._rests_at[0] = search.tree.simulations + most

    def _ask_about_start(self) -> None:
        if self.book.states:
            self._begin()
        elif not self._is_asked:
            self._numbers[0, NONE] = self._num_questions
            self._new.append(self._start_question(self._num_questions))
            self._num_questions += 1
            self._is_asked = True

    def _start_question(self, number: int) -> Question:
        return Question(number, 0, NONE, self.start, to_play=self.to_play)

    def _run(self, until: int | None) -> None:
        """Simulate until all simulations wait for answers or the budget is used up, or briefly."""
        self._rest_after(until)
        driver = self._search.driver  # type: ignore[union-attr]
        run, take = self._run_kernel, driver.queue.take_questions
        rows, edges = self._rows, self._edges
        is_known = True
        while is_known:
            run()
            is_known = False
            for slot in take():
                place = rows[slot], edges[slot]
                if self._answer_known(slot, place):
                    is_known = True
                else:
                    self._wait(slot, *place)

    def answer_here(
        self, answer: AnswerAtOnce, costs: dict[str, float], seconds: float,
        until: int | None = None,
    ) -> AnsweredHere:  # fmt: skip
        """Search with answers that come at once, until one does not.

        It grows the tree that `ask` and `tell` would grow, without a question for each answer.

        Args:
            answer: see `answers_at_once`.
            costs: where the costs of an answer are booked; new ones end the search.
            seconds: how long to search; questions are asked after twice as long.
            until: how many simulations end the search.
        """
        search, book, clock = self._search, self.book, time.perf_counter
        if search is None or self._is_closed or book.to_play[self._root] == OVER:
            return AnsweredHere(False, 0, None)
        run, take = self._run_kernel, search.driver.queue.take_questions
        rows, edges, states, listed = self._rows, self._edges, book.states, book.actions
        movers, seed_of, note, write = book.to_play, book.seed, book.note_behind, self._write
        watch, count, failure, is_paid, now = self._watch, 0, None, False, clock()
        waits = self.is_full  # then nothing is asked
        end, latest, next_look = now + seconds, now + 2 * seconds, 1
        keyboard = interrupts.keyboard()
        self._rest_after(until)
        while True:
            run()
            slots = take()
            for slot in slots:
                place = row, index = rows[slot], edges[slot]
                if self._answer_known(slot, place):
                    continue
                found = None
                if not waits and index < len(listed[row]) and place not in self._numbers:
                    seed = seed_of(row, index)
                    keyboard.is_postponed = False  # as in `interrupts.allowed`, in less time
                    try:
                        if keyboard.is_waiting:
                            interrupts.check()
                        try:
                            found = answer(states[row], listed[row][index], movers[row], seed)
                        finally:
                            keyboard.is_postponed = True
                    except Exception as error:
                        self._wait(slot, row, index)
                        waits, failure = True, (self._new.pop(), error)
                        continue
                if found is None:
                    waits = True
                    self._wait(slot, row, index)
                    continue
                count += 1
                if watch.is_on:
                    watch.see(found[0])
                if self._journal is not None or costs:
                    is_paid = is_paid or bool(costs)
                    found = self._written_down(place, found, costs)
                known = note(place, found, seed)
                if book.most_actions > self._most_actions or book.has_priors > self._gives_priors:
                    self._begin()
                    return AnsweredHere(True, count, None)
                write(slot, known, found[1])
                if count == next_look:
                    before, now = now, clock()
                    waits = now > latest
                    next_look += FEW_ANSWERS if now - before < seconds / FEW_ANSWERS else 1
            if not slots:
                if not self.goes_on:
                    break
                self._rest_after(until)
                now = clock()
            if waits or is_paid or now > end:
                break
            if until is not None and search.simulations >= until:
                break
        self._sample()
        goes_on = bool(slots) or self.goes_on
        return AnsweredHere(goes_on and not self._new and failure is None, count, failure)

    def _written_down(
        self, place: tuple[int, int], found: Parts, costs: dict[str, float]
    ) -> Checked:
        """An answer with its costs, which are booked, after it was written to the journal."""
        answer = Checked._make(found)
        if costs:
            answer = answer._replace(costs=dict(costs))
            add_costs(self.costs, costs)
            costs.clear()
        if self._journal is not None:
            self._journal.note(self.book.question(0, *place), answer)
        return answer

    def _wait(self, slot: int, row: int, index: int) -> None:
        """Let a simulation wait for the answer to a question, which is new unless it was asked.

        The proposals of a state come one after another, each knowing those before. So an action
        has the same number in whatever order answers come.
        """
        number_known = len(self.book.actions[row])
        place = row, min(index, number_known)
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = self._num_questions
            self._num_questions += 1
            self._new.append(self.book.question(number, *place))
        waiting = self._slots.get(number)
        if waiting is None:
            self._slots[number] = [slot]
        else:
            waiting.append(slot)

    def tell(self, question: Question, answer: Answer) -> None:
        """Take the answer to a question; an answer with a mistake is refused, and may come again.

        A question is answered once.
        """
        with self.unbroken():
            self._check_open(question)
            checked = answer if type(answer) is Checked else self.book.checked(question, answer)
            self._watch.see(checked.state)
            if self._journal is not None:
                self._journal.note(question, checked)
            self._forget(question)
            if checked.costs:
                add_costs(self.costs, checked.costs)
            self.book.note(question, checked)
            self._resume(question)

    def tell_failure(
        self, question: Question, why: str, *, costs: dict[str, float] | None = None,
        paid: Any = None,
    ) -> None:  # fmt: skip
        """Close the edge that a question is about: it cannot be taken.

        Args:
            costs: of the calls that failed.
            paid: if given, the edge can be taken: it pays this, and the episode ends.
        """
        if question.edge == NONE:
            raise UctreeError(f"the start could not be evaluated: {why}")
        with self.unbroken():
            self._check_open(question)
            if self._journal is not None:
                self._journal.note_failure(question, why, costs or {}, paid)
            self._forget(question)
            add_costs(self.costs, costs or {})
            self.book.note_failure(question, why, paid)
            self._resume(question)

    def tell_costs(self, costs: dict[str, float]) -> None:
        """Book what calls cost whose answers are not used, because they came too late."""
        with self.unbroken():
            if self._journal is not None:
                self._journal.note_costs(costs)
            add_costs(self.costs, costs)

    def unbroken(self) -> _Unbroken:
        """A block that Ctrl-C cuts nowhere but in functions of the user."""
        return _Unbroken(self)

    def _check_open(self, question: Question) -> None:
        if self._numbers.get((question.row, question.edge)) != question.number:
            raise ValueError(f"question {question.number} was answered already, or never asked")

    def _forget(self, question: Question) -> None:
        del self._numbers[question.row, question.edge]

    def _resume(self, question: Question) -> None:
        """Hand what the book knows now to the simulations that waited for it."""
        book = self.book
        is_too_small = book.most_actions > self._most_actions
        if self._search is None or is_too_small or book.has_priors > self._gives_priors:
            self._begin()
            return
        for slot in self._slots.pop(question.number, ()):
            place = self._rows[slot], self._edges[slot]
            if not self._answer_known(slot, place):
                self._wait(slot, *place)

    def advance(self, action: Any, *, reuse: bool = True) -> None:
        """Go on from the state behind an action (or outcome) of the root, as the episode did.

        What is known is not asked again, and answers to earlier questions may still be told. The
        budget of simulations is a new one.

        Args:
            reuse: whether the subtree of the action becomes the tree; without it a new tree grows
                from what is known, as after `root_selection=gumbel`.
        """
        book, root = self.book, self._root
        if self._is_closed:
            raise UctreeError("the planner is closed; make another one")
        if not book.states or action not in book.actions[root]:
            listed = ", ".join(map(str, book.actions[root][:20])) if book.states else "none yet"
            raise IllegalAction(f"action {action!r} is not known at the root; known are: {listed}")
        place = root, book.actions[root].index(action)
        if place not in book.behind:
            raise UctreeError(
                f"what is behind {book.label(*place)} is not known yet: search on, or make a "
                "Planner that starts there"
            )
        with self.unbroken():
            self._kept = None
            if self._search is not None:
                self._search.close()
                if reuse and not self._search.composition.options.is_gumbel:
                    self._kept = self._search.tree.below(place[1])
                self._search = None
            self._slots.clear()
            self._root = book.behind[place][0]

    def ask_again(self) -> None:
        """Let `ask` return the questions without an answer once more, as nobody works on them.

        So it is after Ctrl-C, wherever it came.
        """
        with self.unbroken():
            self._find_waiting()
            self._new = [
                self._start_question(number)
                if edge == NONE
                else self.book.question(number, row, edge)
                for (row, edge), number in self._numbers.items()
            ]

    def _find_waiting(self) -> None:
        """Let all simulations wait for their questions, those too whose answer was never given."""
        self._slots.clear()
        if self._search is None or self._is_closed or self.book.to_play[self._root] == OVER:
            return
        queue = self._search.driver.queue
        for slot in queue.waiting():
            place = self._rows[slot], self._edges[slot]
            if self._statuses[slot] == OPEN and not self._answer_known(slot, place):
                self._wait(slot, *place)

    def begin_again(self) -> None:
        """Let the tree grow again from what is known."""
        self.is_torn = False
        self.book.drop_torn()
        if self._search is not None and not self._is_closed:
            self._search.close()
            self._search = None
        self._kept = None
        self.ask_again()

    def close(self) -> None:
        """End the search: simulations that wait for answers are undone."""
        if self._journal is not None:
            self._journal.close()
        if self._search is not None and not self._is_closed:
            self._was_solved, self._is_closed = self.is_solved, True
            self._search.close()

    @property
    def has_journal(self) -> bool:
        """Whether answers are written to a journal."""
        return self._journal is not None

    @property
    def num_waiting(self) -> int:
        """Questions without an answer."""
        return len(self._numbers)

    @property
    def simulations(self) -> int:
        """How many simulations have ended."""
        return 0 if self._search is None else self._search.simulations

    @property
    def is_full(self) -> bool:
        """Whether states take their part of `max_memory`, so that nothing new is asked."""
        footprint = self.book.footprint
        return footprint is not None and footprint.is_full

    @property
    def is_solved(self) -> bool:
        """Whether the start is proven."""
        if self._search is None or self._is_closed:
            return self._was_solved
        return bool(self._search.driver.queue.queues["is_solved"][0])

    def result(self, status: str = "simulations") -> SearchResult:
        """The result so far."""
        if self._search is None:
            self._begin_known()
        search = self._search
        assert search is not None
        if self.book.to_play[self._root] == OVER:
            status = "terminal"
        elif self.is_solved:
            status = "solved"
        elif status == "simulations" and self.is_full and self._numbers:
            status = "full"
        return result_of(
            search.composition, (search.tree,), status, simulations=self.simulations,
            seconds=time.perf_counter() - self.began, seed=self.seed, began=self.began,
            samples=(search.samples,), best_seen=tuple(filter(None, [search.best_seen()])),
            costs=dict(self.costs), num_failed=len(self.book.failed), note=self.note,
        )  # fmt: skip

    # The search.

    def _begin_known(self) -> None:
        if not self.book.states:
            raise UctreeError("nothing is known yet: answer the first question of ask()")
        self._begin()

    def _begin(self) -> None:
        """Make the tree, now that the start is known.

        A state with more actions than the kernels are compiled for, or the first one with priors,
        begins it again: all that is known is in the book, so nothing is asked twice.
        """
        book = self.book
        if self._search is not None:
            self._search.close()
            self._slots.clear()
        composition = self._composition(max(book.most_actions, 1))
        self._most_actions = composition.game.num_actions
        self._gives_priors = composition.options.evaluator.gives_priors
        tree, self._kept = self._kept, None
        if tree is not None and self._fits(tree, composition):
            tree.game = composition.game
        else:
            root = book.record(self._root)
            tree = Tree(
                composition.game, root, composition.layout, max(1, book.count(self._root)), 1024
            )
            if composition.options.sees_range(composition.game):
                tree.forget_range(seen=True)
        budget, most = self.num_simulations or MOST_SIMULATIONS, tree_bytes(composition.options)
        self._search = search = TreeSearch(
            composition, tree, seed=self.seed, num_simulations=budget,
            max_bytes=None if most is None else most // 2,
        )  # fmt: skip
        self._num_sampled = 0
        if book.to_play[self._root] == OVER:
            return
        queue = search.driver.queue
        queue.queues["is_ordered"] = self.is_ordered
        self._rows, self._edges = _view(queue.leaves["row"]), _view(queue.leaves["edge"])
        self._statuses, self._rests_at = (
            _view(queue.answers["status"]),
            _view(queue.queues["rests_at"]),
        )
        self._write = answer_writer(queue, self.problem.num_players, self._gives_priors)
        self._run_kernel = search.driver.runner()
        search.prepare_root(self._answer_root)
        if queue.queues["phase"][0] != SEARCHING:
            queue.queues["phase"] = SEARCHING
            tree.head["remaining"] = budget

    def _load(self, path: str | Path) -> None:
        """Continue the tree of a file, with the answers in it."""
        book = self.book
        if len(book):
            raise ValueError("a journal with answers has a tree of its own: give journal= or tree=")
        read_answers(path, self.problem, book)
        composition = self._composition(max(book.most_actions, 1))
        tree = Tree.load(path, composition.game, check_rules=False)
        check_answers(path, tree, book)
        root, lines = int(tree.state["row"]), Lines(path, self.problem, book)
        if lines.dumped(book.states[root]) != lines.dumped(self.start):
            raise UctreeError(
                f"{path} holds a tree of another state, "
                f"{self.problem.show(book.states[root])!r:.100}; plan from that one, or without "
                "tree="
            )
        if tree.layout != composition.layout:
            raise UctreeError(
                f"{path} was grown with other options: its tree has {tree.layout}, and these "
                f"options need {composition.layout}; plan with the same ones, or without tree="
            )
        self._root, self._kept = root, tree

    def _fits(self, tree: Tree, composition: Composition) -> bool:
        """Whether a search can continue a tree: its kernels are for as many actions."""
        return (
            tree.layout == composition.layout
            and tree.game.num_actions == composition.game.num_actions
        )

    def _composition(self, most_actions: int) -> Composition:
        problem = self.problem
        tier = next((size for size in TIERS if size >= most_actions), None)
        if tier is None:
            raise UctreeError(
                f"a state has {most_actions} actions; the most is {TIERS[-1]}: propose some of "
                "them with propose="
            )
        gives_priors = self.book.has_priors or bool(problem.priors)
        gives_priors = gives_priors and problem.propose is None
        template = _template(
            problem.num_players, tier, problem.chance is not None, problem.discount,
            problem.payoff_range is not None,
        )  # fmt: skip
        evaluator = evaluators.answering(gives_priors, self.in_flight)
        options: Options = resolve(template, evaluator=evaluator, check=False, **self.options)
        return replace(compose(template, options), game=self._game(tier), idle_workers=[])

    def _game(self, num_actions: int) -> Game:
        """The game of what is known, which a tree file takes along."""
        game, book = self.book.game(num_actions), self.book
        game.answers = lambda path: answers_of(book, path)
        return game

    def _answer_root(self) -> None:
        assert self._search is not None
        for slot in self._search.driver.queue.take_questions():
            self._answer_known(slot, (self._rows[slot], self._edges[slot]))

    def _answer_known(self, slot: int, place: tuple[int, int]) -> bool:
        """Write what the book knows about an edge or a state to a slot; False if it is unknown."""
        book = self.book
        found = book.behind.get(place)
        if found is not None:
            self._write(slot, book.known(found[0]), found[1])
            return True
        row, index = place
        if index == NONE:
            self._write(slot, book.known(row), self._no_reward)
        elif book.failed and place in book.failed:
            self._statuses[slot] = FAILED
        elif book.num_actions and book.num_actions.get(row, index + 1) <= index:
            self._statuses[slot] = EXHAUSTED
        else:
            return False
        return True


def answer_writer(
    queue: EvaluationQueue, num_players: int, gives_priors: bool
) -> Callable[[int, Known, tuple[float, ...]], None]:
    """`write(slot, known, reward)`, for what is known of a state and what the edge before it paid.

    It is called for every answer, so names are bound once, and numbers are written by way of views
    or by a call of `struct`, whichever takes less time.
    """
    answers, logits, size = queue.answers, queue.logits, queue.answers.itemsize
    record = _view(answers.view(np.uint8).reshape(-1))
    pack = struct.Struct(f"={num_players}d4q").pack_into
    values, numbers = _view(queue.values), _view(queue.values.reshape(-1))

    def write_priors(slot: int, weights: tuple[float, ...] | None) -> None:
        if weights is not None:
            logits[slot, : len(weights)] = weights
        else:
            logits[slot] = 0.0

    def write_one(slot: int, known: Known, reward: tuple[float, ...]) -> None:
        row, mover, count, weights, value = known
        if weights is not None or gives_priors:
            write_priors(slot, weights)
        numbers[slot] = value[0]
        pack(record, size * slot, reward[0], ANSWERED, row, count, mover)

    def write(slot: int, known: Known, reward: tuple[float, ...]) -> None:
        row, mover, count, weights, value = known
        if weights is not None or gives_priors:
            write_priors(slot, weights)
        for player, number in enumerate(value):
            values[slot, player] = number
        pack(record, size * slot, *reward, ANSWERED, row, count, mover)

    return write_one if num_players == 1 else write


def _view(array: Any) -> Any:
    """A memoryview, whose numbers are read and written faster than those of an array."""
    return memoryview(array)


def _check_options(problem: Problem, options: dict[str, Any]) -> None:
    """Refuse options of a search that a plan does not have, before anything is asked."""
    for name in ("evaluator", "leaves", "threads", "parallel", "open_loop", "check"):
        if name in options:
            raise TypeError(f"{name}= is for games that are compiled; plan without it")
    if "stop" in options:
        raise TypeError("stop= is an argument of plan; who owns a Planner stops asking")
    check_names(options)
    if options.get("transpositions") and problem.key is None:
        raise ValueError(
            "transpositions=True needs to know which states are equal: give the Problem key=f, "
            "where f(state) is equal for equal states"
        )
    if isinstance(options.get("chance"), Widening):
        raise ValueError(
            "chance=outcome_widening() is for compiled games with too many outcomes to list; "
            'chance=f of a Problem lists them all: use chance="sample" or "proportional"'
        )


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
