"""plan(): asks a planner, calls the user's functions, and tells it what they answer."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from uctree import stopping
from uctree.engine.options import check_names
from uctree.errors import UctreeError
from uctree.mcts import Progress, checked_budget
from uctree.planning.book import Book
from uctree.planning.journal import Journal
from uctree.planning.planner import Planner
from uctree.planning.problem import Answer, Problem, Question
from uctree.planning.world import NOT_GIVEN, world_of
from uctree.result import SearchResult

SLOW_CALL = 1e-3  # seconds; several calls in flight then get a thread each
FIRST_CALLS = 3  # are timed, to find out whether calls are slow


def plan(
    problem: Any,
    start: Any = NOT_GIVEN,
    *,
    num_simulations: int | None = None,
    seconds: float | None = None,
    budget: dict[str, float] | None = None,
    to_play: int | None = None,
    in_flight: int = 1,
    seed: int | None = None,
    ordered: bool | None = None,
    journal: str | Path | None = None,
    on_error: str = "raise",
    error_value: Any = None,
    retries: int = 0,
    backoff: float = 1.0,
    timeout: float | None = None,
    stop: Any = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> SearchResult:
    """The result of a search in a world of Python objects, by calling its functions.

    The search ends after `num_simulations`, `seconds` or when the `budget` is spent, whichever
    comes first; Ctrl-C ends it with what was found so far.

    Args:
        problem: a `Problem`, with the `start` of the search; or, without `start`, a `World` or what
            `uctree.adapters` makes one of: a Gymnasium environment, a state of OpenSpiel, an
            object with `legal`, `step` and `clone`.
        budget: the most of each cost that calls of `uctree.spent` may add up to.
        to_play: the player to move at the start of a `Problem`, or uctree.CHANCE; 0 if omitted.
        in_flight: how many simulations may wait for answers at the same time. Functions that are
            `async` then run concurrently, and slow ones that are not in as many threads.
        seed: of all random numbers; 0 if omitted.
        ordered: whether answers count in the order of their questions, so that the tree does not
            depend on how long they take; if omitted, whether a seed is given.
        journal: a file to which every answer is written. The same call with the same file goes on
            where the last one ended, and asks nothing twice.
        on_error: if a call fails: "raise" the error; "drop" the action and go on without it; or let
            it have the "value" `error_value` and end the episode.
        retries: how often a call that failed is made again.
        backoff: seconds before the first of these; each further one waits twice as long.
        timeout: seconds after which a question counts as failed.
        stop: as in `search`.
        progress: as in `search`.
        options: as in `search`.
    """
    world = world_of(problem, start, to_play)
    problem, start = world.problem, world.start
    check_names(options)
    num_simulations = checked_budget(num_simulations, seconds)
    if num_simulations is None and seconds is None and not budget and stop is None:
        raise ValueError("a plan needs a limit: give num_simulations=, seconds= or budget=")
    if on_error not in ("raise", "drop", "value"):
        raise ValueError(f'on_error is "raise", "drop" or "value"; got {on_error!r}')
    if on_error == "value" and error_value is None:
        raise ValueError('on_error="value" needs error_value=, what a failed action is worth')
    book = Book(problem)
    written = None if journal is None else Journal(journal, problem, start, book)
    planner = Planner(
        problem, start, to_play=world.to_play, num_simulations=num_simulations, in_flight=in_flight,
        seed=seed, ordered=ordered, book=book, **options,
    )  # fmt: skip
    run = _Run(planner, written, budget or {}, on_error, error_value)
    calls = _Calls(problem, planner.seed, in_flight, retries, backoff, timeout)
    deadline = math.inf if seconds is None else planner.began + seconds
    try:
        status = run.until(deadline, calls, stopping.watch(stop), progress)
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        calls.close()
        planner.close()
        if written is not None:
            written.close()
    return replace(planner.result(status), note=world.note)


class _Run:
    """A planner with its journal, its budget, and what happens on errors."""

    def __init__(
        self, planner: Planner, journal: Journal | None, budget: dict[str, float], on_error: str,
        error_value: Any,
    ) -> None:  # fmt: skip
        self.planner, self.journal, self.budget = planner, journal, budget
        self.on_error, self.error_value = on_error, error_value
        self.costs = {} if journal is None else journal.costs

    def until(
        self, deadline: float, calls: _Calls, watch: stopping.Watch,
        progress: Callable[[Progress], None] | None,
    ) -> str:  # fmt: skip
        """Run until the search ends; returns its status."""
        planner, next_look = self.planner, 0
        while True:
            if not self.is_spent:
                calls.begin(planner.ask())
            if not calls.num_running:
                return "budget" if self.is_spent else "simulations"
            for question, answer in calls.finished(deadline):
                self.take(question, answer)
            if time.perf_counter() >= deadline:
                return "seconds"
            if progress is not None and len(planner.book) > 0 and planner.simulations:
                result = planner.result("running")
                progress(Progress(planner.simulations, planner.num_simulations, result.seconds,
                                  result.tree))  # fmt: skip
            if watch.stops and planner.simulations >= max(1, next_look):
                next_look = planner.simulations + (watch.interval or 1)
                budget = planner.num_simulations
                left = None if budget is None else budget - planner.simulations
                reached = watch.reached(planner.result("running"), left)
                if reached is not None:
                    return reached

    @property
    def is_spent(self) -> bool:
        """Whether a cost has reached its budget."""
        return any(self.costs.get(name, 0.0) >= most for name, most in self.budget.items())

    def take(self, question: Question, answer: Answer | Exception) -> None:
        """Write an answer down, and tell the planner."""
        if isinstance(answer, Exception):
            self._fail(question, answer)
            return
        if self.journal is not None:
            self.journal.note(question, answer)
        else:
            for name, cost in (answer.costs or {}).items():
                self.costs[name] = self.costs.get(name, 0.0) + cost
        self.planner.tell(question, answer)

    def _fail(self, question: Question, error: Exception) -> None:
        what = f"{type(error).__name__}: {error}"
        where = f"action {question.action!r}" if question.edge >= 0 else "the start"
        if self.on_error == "raise" or question.edge < 0:
            raise UctreeError(f"the call for {where} failed with {what}") from error
        if self.on_error == "value":
            # The end of the episode, paid by the step.
            self.take(question, Answer(None, self.error_value, over=True))
            return
        if question.to_play < 0:
            raise UctreeError(
                f"the call for the outcome {question.action!r} failed with {what}; an outcome of "
                'chance cannot be dropped: use on_error="value"'
            ) from error
        if self.journal is not None:
            self.journal.note_failure(question, what)
        self.planner.tell_failure(question, what)


# --- calls ---------------------------------------------------------------------------------------


class _Calls:
    """Questions that are being answered: here, in threads, or in an event loop."""

    def __init__(
        self, problem: Problem, seed: int, in_flight: int, retries: int, backoff: float,
        timeout: float | None,
    ) -> None:  # fmt: skip
        self.problem, self.seed = problem, seed
        self.retries, self.backoff, self.timeout = retries, backoff, timeout
        self._done: SimpleQueue[tuple[Question, Answer | Exception]] = SimpleQueue()
        self._deadlines: dict[int, float] = {}  # by the number of the question
        self._running: dict[int, Question] = {}
        self._waiting: deque[Question] = deque()  # to be answered here
        self._loop: asyncio.AbstractEventLoop | None = None
        self._may_thread = in_flight > 1 and not problem.is_async
        self._spent, self._num_calls = 0.0, 0
        if problem.is_async:
            self._loop = asyncio.new_event_loop()
            threading.Thread(
                target=_run_loop, args=(self._loop,), daemon=True, name="uctree-plan"
            ).start()

    @property
    def num_running(self) -> int:
        return len(self._running) + len(self._waiting)

    @property
    def _uses_threads(self) -> bool:
        if self.timeout is not None:
            return True
        is_slow = self._spent > SLOW_CALL * self._num_calls
        return self._may_thread and self._num_calls >= FIRST_CALLS and is_slow

    def begin(self, questions: list[Question]) -> None:
        """Begin to answer questions."""
        for question in questions:
            if self._loop is None and not self._uses_threads:
                self._waiting.append(question)
                continue
            self._running[question.number] = question
            if self.timeout is not None:
                self._deadlines[question.number] = time.perf_counter() + self.timeout
            if self._loop is not None:
                asyncio.run_coroutine_threadsafe(self._answer_async(question), self._loop)
            else:
                threading.Thread(
                    target=self._answer_in_thread, args=(question,), daemon=True,
                    name=f"uctree-plan-{question.number}",
                ).start()  # fmt: skip

    def finished(self, deadline: float) -> list[tuple[Question, Answer | Exception]]:
        """Wait for an answer until the deadline at the latest; all that have come."""
        found: list[tuple[Question, Answer | Exception]] = []
        if self._waiting:
            began = now = time.perf_counter()
            while self._waiting and now - began < SLOW_CALL:
                question = self._waiting.popleft()
                found.append((question, self._answer(question)))
                now = time.perf_counter()
            self._spent += now - began
            self._num_calls += len(found)
            return found
        while self._running:
            try:
                question, answer = self._done.get(timeout=self._patience(deadline, bool(found)))
            except Empty:
                break
            if self._running.pop(question.number, None) is not None:  # else it came too late
                self._deadlines.pop(question.number, None)
                found.append((question, answer))
        return found + self._late()

    def _patience(self, deadline: float, has_some: bool) -> float | None:
        """How many seconds to wait for the next answer."""
        if has_some:
            return 0.0
        earliest = min([deadline, *self._deadlines.values()])
        return None if earliest == math.inf else max(0.0, earliest - time.perf_counter())

    def _late(self) -> list[tuple[Question, Answer | Exception]]:
        now = time.perf_counter()
        late = [number for number, when in self._deadlines.items() if when <= now]
        for number in late:
            del self._deadlines[number]
        error = TimeoutError(f"no answer within {self.timeout} seconds")
        return [(self._running.pop(number), error) for number in late]

    def _answer(self, question: Question) -> Answer | Exception:
        for attempt in range(self.retries + 1):
            try:
                return self.problem.answer(question, self.seed)
            except Exception as error:
                if attempt == self.retries:
                    return error
                time.sleep(self.backoff * 2**attempt)
        raise AssertionError("unreachable")

    def _answer_in_thread(self, question: Question) -> None:
        self._done.put((question, self._answer(question)))

    async def _answer_async(self, question: Question) -> None:
        for attempt in range(self.retries + 1):
            try:
                answer: Answer | Exception = await self.problem.answer_async(question, self.seed)
                break
            except Exception as error:
                answer = error
                if attempt < self.retries:
                    await asyncio.sleep(self.backoff * 2**attempt)
        self._done.put((question, answer))

    def close(self) -> None:
        """Give up what is still running."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped; then cancel what is left."""
    loop.run_forever()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
