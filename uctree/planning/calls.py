"""plan(): asks a planner, calls the user's functions, and tells it what they answer."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from numbers import Real
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from uctree import stopping
from uctree.engine import interrupts
from uctree.engine.options import check_names, whole
from uctree.errors import UctreeError
from uctree.mcts import Progress, checked_budget
from uctree.planning.answers import AnswerAtOnce, answers_at_once
from uctree.planning.planner import Planner
from uctree.planning.problem import (
    Problem,
    Question,
    add_costs,
    as_vector,
    booked,
    booking,
    driven,
    driven_async,
    is_async,
    is_awaitable,
    playout_seed,
    values_of,
)
from uctree.planning.world import NOT_GIVEN, OBJECT_PARTS, world_of
from uctree.result import SearchResult

SLOW_CALL = 1e-3  # seconds; several calls in flight then get a thread each
LOOK_SECONDS = 0.05  # between looks for Ctrl-C while a plan waits


def plan(
    problem: Any,
    start: Any = NOT_GIVEN,
    *,
    num_simulations: int | None = None,
    seconds: float | None = None,
    budget: dict[str, float] | None = None,
    to_play: Any = None,
    in_flight: int = 1,
    seed: int | None = None,
    ordered: bool | None = None,
    journal: str | Path | None = None,
    tree: str | Path | None = None,
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
    comes first; Ctrl-C ends it with what was found so far. A second one raises KeyboardInterrupt at
    once; a `Planner` goes on after both, from all answers that came.

    Args:
        problem: a `Problem`, with the `start` of the search; or, without `start`, a `World` or what
            `uctree.adapters` makes one of: a Gymnasium environment, a state of OpenSpiel, an
            object with `legal`, `step` and `clone`. If its methods have other names, give these:
            `legal="moves"`, and so on for `step`, `clone`, `over`, `to_play`, `reward`, `returns`
            and `num_players`, as in `adapters.from_object`. Or a `Planner`, which
            stays open, so that it can `advance` and be planned with again.
        budget: the most of each cost that calls of `uctree.spent` may add up to.
        to_play: the player to move at the start of a `Problem`, or uctree.CHANCE; 0 if omitted.
        in_flight: how many simulations may wait for answers at the same time. Functions that are
            `async` then run concurrently, and slow ones that are not in as many threads.
        seed: of all random numbers; 0 if omitted.
        ordered: whether answers count in the order of their questions, so that the tree does not
            depend on how long they take; if omitted, whether a seed is given.
        journal: a file to which every answer is written. The same call with the same file goes on
            where the last one ended, and asks nothing twice.
        tree: a tree file of an earlier plan with the same options (`result.tree.save(path)`), which
            is continued: nothing in it is asked again.
        on_error: if a call fails: "raise" the error; "drop" the action and go on without it; or let
            it have the "value" `error_value` and end the episode. A proposal that fails is dropped.
        retries: how often a call that failed is made again.
        backoff: seconds before the first of these; each further one waits twice as long.
        timeout: seconds after which a call counts as failed; an `async` one is cancelled.
        stop: as in `search`.
        progress: as in `search`.
        options: as in `search`.
    """
    _check_limits(budget or {}, retries, backoff, timeout)
    if isinstance(problem, Planner):
        _check_of_planner(
            options | {"num_simulations": num_simulations, "to_play": to_play, "seed": seed,
                       "ordered": ordered, "journal": journal, "tree": tree,
                       "start": None if start is NOT_GIVEN else start}
        )  # fmt: skip
        planner, began = problem, time.perf_counter()
        _check_limited(planner.num_simulations, seconds, budget, stop)
        _check_on_error(planner.problem, on_error, error_value, planner.options)
    else:
        parts = {name: options.pop(name) for name in OBJECT_PARTS if name in options}
        world = world_of(problem, start, to_play, parts)
        check_names(options)
        num_simulations = checked_budget(num_simulations, seconds)
        _check_limited(num_simulations, seconds, budget, stop)
        _check_on_error(world.problem, on_error, error_value, options)
        planner = Planner(
            world, num_simulations=num_simulations, in_flight=in_flight, seed=seed,
            ordered=ordered, journal=journal, tree=tree, **options,
        )  # fmt: skip
        began = planner.began
    deadline = math.inf if seconds is None else began + seconds
    with interrupts.armed(), planner.unbroken():
        calls = _Calls(planner, retries, backoff, timeout)
        run = _Run(planner, calls, budget or {}, on_error, error_value)
        try:
            calls.open()
            status = run.until(deadline, stopping.watch(stop), progress)
        except KeyboardInterrupt:
            # A second Ctrl-C may have cut a simulation; and without the start there is no result.
            if interrupts.was_forced() or not planner.book.states:
                raise
            status = "interrupted"
        finally:
            calls.close()
            run.take_rest()
            if planner is problem:
                planner.ask_again()  # what was not answered
            else:
                planner.close()
    if not planner.book.states:
        limit = "budget was spent" if seconds is None else f"{seconds} seconds were over"
        raise UctreeError(
            f"the {limit} before the start was evaluated, so there is nothing to return; give more"
        )
    return planner.result(status)


def _check_limited(
    num_simulations: int | None, seconds: float | None, budget: Any, stop: Any
) -> None:
    if num_simulations is None and seconds is None and not budget and stop is None:
        raise ValueError("a plan needs a limit: give num_simulations=, seconds= or budget=")


def _check_of_planner(given: dict[str, Any]) -> None:
    """Refuse arguments that a Planner has already."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise TypeError(
            f"{names[0]}= belongs to the Planner: give it there. plan(planner) takes what is about "
            "calls: seconds, budget, on_error, error_value, retries, backoff, timeout, stop and "
            "progress"
        )


def _check_limits(
    budget: dict[str, float], retries: int, backoff: float, timeout: float | None
) -> None:
    """Refuse limits that would limit nothing, or end everything."""
    limits = {f"budget {name!r}": limit for name, limit in budget.items()} | {"backoff": backoff}
    if timeout is not None:
        limits["timeout"] = timeout
    for name, limit in limits.items():
        is_number = isinstance(limit, Real) and not isinstance(limit, bool)
        if not is_number or not (limit > 0 or (limit == 0 and name == "backoff")):
            least = "of at least 0" if name == "backoff" else "above 0"
            raise ValueError(f"{name} must be a number {least}; got {limit!r}")
    if whole("retries", retries) < 0:
        raise ValueError(f"retries must be at least 0; got {retries}")


def _check_on_error(
    problem: Problem, on_error: str, error_value: Any, options: dict[str, Any]
) -> None:
    """Refuse what makes no sense before anything is asked."""
    if on_error not in ("raise", "drop", "value"):
        raise ValueError(f'on_error is "raise", "drop" or "value"; got {on_error!r}')
    if on_error != "value":
        return
    if error_value is None:
        raise ValueError('on_error="value" needs error_value=, what a failed action is worth')
    if options.get("solver"):
        raise ValueError(
            'on_error="value" lets failed actions have a value that is made up, and solver=True '
            'would take it for proven; use on_error="drop", or no solver'
        )
    as_vector(error_value, problem.num_players, -1 if problem.chance is not None else 0)


class _Run:
    """A planner with its budget, and what happens on errors."""

    def __init__(
        self, planner: Planner, calls: _Calls, budget: dict[str, float], on_error: str,
        error_value: Any,
    ) -> None:  # fmt: skip
        self.planner, self.calls, self.budget = planner, calls, budget
        self.on_error, self.error_value = on_error, error_value

    def until(
        self, deadline: float, watch: stopping.Watch, progress: Callable[[Progress], None] | None
    ) -> str:
        """Run until the search ends; returns its status. Ctrl-C takes effect once in a round."""
        planner, calls, next_look = self.planner, self.calls, 0
        while True:
            interrupts.check()
            goes_on, until = False, next_look if watch.stops else None
            if not self.is_spent:
                goes_on, failed = calls.answer_at_once(planner, until)
                if failed is not None:
                    self.take(*failed)
                if not goes_on:
                    calls.begin(planner.ask_briefly(until=until))
                    goes_on = planner.goes_on
            if calls.num_running:
                calls.wait(0.0 if goes_on else min(deadline, time.perf_counter() + LOOK_SECONDS))
                while calls.outcomes:
                    self.take(*calls.outcomes.popleft())
            elif not goes_on:
                return "budget" if self.is_spent else "simulations"
            if time.perf_counter() >= deadline:
                return "seconds"
            if progress is not None and planner.simulations:
                result = planner.result("running")
                with interrupts.allowed():
                    progress(Progress(planner.simulations, planner.num_simulations, result.seconds,
                                      result.tree, result.costs))  # fmt: skip
            if watch.stops and planner.simulations >= max(1, next_look):
                next_look = planner.simulations + (watch.interval or 1)
                most = planner.num_simulations
                left = None if most is None else most - planner.simulations
                with interrupts.allowed():
                    reached = watch.reached(planner.result("running"), left)
                if reached is not None:
                    return reached

    def take_rest(self) -> None:
        """Tell the planner what has come by now, however the search ended; failures only cost."""
        for question, answer, costs in self.calls.rest():
            if question is None or isinstance(answer, BaseException):
                self.planner.tell_costs(costs)
            else:
                self.planner.tell(question, answer)

    @property
    def is_spent(self) -> bool:
        """Whether a cost has reached its budget."""
        if not self.budget:
            return False
        costs = self.planner.costs
        return any(costs.get(name, 0.0) >= most for name, most in self.budget.items())

    def take(self, question: Question | None, answer: Any, costs: dict[str, float]) -> None:
        """Tell the planner an answer, or that there is none."""
        if question is None:
            self.planner.tell_costs(costs)
        elif isinstance(answer, BaseException):
            self._fail(question, answer, costs)
        else:
            self.planner.tell(question, answer)

    def _fail(self, question: Question, error: BaseException, costs: dict[str, float]) -> None:
        what = f"{type(error).__name__}: {error}"
        if question.edge < 0:
            where = "the start"
        else:
            where = "a proposal" if question.wanted else f"action {question.action!r}"
        if self.on_error == "raise" or question.edge < 0:
            if costs:
                self.planner.tell_costs(costs)
            raise UctreeError(f"the call for {where} failed with {what}") from error
        paid = self.error_value if self.on_error == "value" and not question.wanted else None
        if paid is None and question.to_play < 0:
            self.planner.tell_costs(costs)
            raise UctreeError(
                f"the call for the outcome {question.action!r} failed with {what}; an outcome of "
                'chance cannot be dropped: use on_error="value"'
            ) from error
        self.planner.tell_failure(question, what, costs=costs, paid=paid)


# --- calls ---------------------------------------------------------------------------------------


Outcome = tuple[Question | None, Any, dict[str, float]]  # with an answer or an exception, and costs


class _Calls:
    """Questions that are being answered: here, in threads, or in an event loop.

    They are answered here one after another until calls turn out to be slow, or `async`.
    """

    def __init__(
        self, planner: Planner, retries: int, backoff: float, timeout: float | None
    ) -> None:
        self.problem, self.seed = planner.problem, planner.seed
        self._knows = planner.book.knows if self.problem.key is not None else None
        self.retries, self.backoff, self.timeout = retries, backoff, timeout
        self._is_plain = retries == 0 and timeout is None and self.problem.values is None
        self._comes_at_once = self._is_plain and self.problem.actions is not None
        self.outcomes: deque[Outcome] = deque()  # that nobody has taken yet
        self._done: SimpleQueue[Outcome] = SimpleQueue()  # by threads and the event loop
        self._waiting: deque[Question] = deque()  # to be answered here
        self._num_elsewhere = 0  # in threads, or in the event loop
        self._many = planner.in_flight > 1
        self._recent = 0.0  # seconds that a question took lately
        self._seconds: dict[Any, float] = {}  # that calls of a function took lately
        self._batch = _Batch(self)
        self._answer_at_once: AnswerAtOnce | None = None
        self._costs_here: dict[str, float] = {}  # of the question that is answered in this thread
        self._booking, self._is_open = booking(self._costs_here), False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock, self._threads = threading.Lock(), _Threads()

    def open(self) -> None:
        """Begin to take questions; `close` ends that."""
        with interrupts.shielded():
            self._booking.__enter__()
            self._is_open = True
            if self.problem.is_async:
                self._in_loop()

    @property
    def num_running(self) -> int:
        return self._num_elsewhere + len(self._waiting)

    def begin(self, questions: list[Question]) -> None:
        """Begin to answer questions."""
        if self._loop is not None:
            if questions:  # the loop is woken once for all of them
                self._loop.call_soon_threadsafe(self._begin_tasks, questions)
            self._num_elsewhere += len(questions)
        elif self.timeout is not None or (self._many and self._recent > SLOW_CALL):
            for question in questions:
                self._threads.start(self._answer_in_thread, question)
            self._num_elsewhere += len(questions)
        else:
            self._waiting.extend(questions)

    def wait(self, deadline: float) -> None:
        """Wait for an answer until the deadline at most, and move all that came to `outcomes`.

        A wait that Ctrl-C cuts may lose what it has just got, so this one is not to be cut.
        """
        if self._waiting:
            self._answer_here()
            return
        patience = max(0.0, deadline - time.perf_counter())
        while self._num_elsewhere:
            try:
                outcome = self._done.get(timeout=patience)
            except Empty:
                break
            self._num_elsewhere -= outcome[0] is not None
            self.outcomes.append(outcome)
            patience = 0.0

    def rest(self) -> Iterator[Outcome]:
        """Yield what came and was not taken, with what was booked for answers that never came."""
        yield from self.outcomes
        while not self._done.empty():
            yield self._done.get()
        if self._costs_here:
            yield None, None, self._costs_here

    def _answer_here(self) -> None:
        """Answer the questions that wait, for about as long as a slow call takes."""
        waiting, num_before = self._waiting, len(self.outcomes)
        began = now = time.perf_counter()
        if self.problem.values is not None and len(waiting) > 1:
            questions = list(waiting)
            waiting.clear()
            self._answer_together(questions)
            now = time.perf_counter()
        while waiting and now - began < SLOW_CALL:
            self.outcomes.append(self._answer(waiting.popleft()))
            now = time.perf_counter()
        num_answered = len(self.outcomes) - num_before
        self._recent = 0.5 * (self._recent + (now - began) / num_answered)

    def answer_at_once(self, planner: Planner, until: int | None) -> tuple[bool, Outcome | None]:
        """Let a planner search with answers that come at once, for about half a slow call.

        Returns whether it can go on so, and the call that failed if one did.

        Args:
            until: as in `Planner.answer_here`.
        """
        if not self._comes_at_once or self._loop is not None or self.num_running:
            return False, None
        if self._many and self._recent > SLOW_CALL:
            return False, None
        began, costs = time.perf_counter(), self._costs_here
        if self._answer_at_once is None:
            # In a journal, playouts must depend on their states alone.
            is_in_order = not self._many and not planner.has_journal
            in_order = playout_seed(self.seed, len(planner.book)) if is_in_order else None
            self._answer_at_once = answers_at_once(
                self.problem, self.seed, self._knows, in_order=in_order
            )
        found = planner.answer_here(self._answer_at_once, costs, SLOW_CALL / 2, until)
        if found.num_answers:
            self._recent = 0.5 * (self._recent + (time.perf_counter() - began) / found.num_answers)
        if found.failure is None:
            return found.goes_on, None
        outcome = *found.failure, dict(costs)
        costs.clear()
        return False, outcome

    def _answer(self, question: Question) -> Outcome:
        """The answer to a question, by calls from this thread."""
        costs: dict[str, float] = {}
        call = self._call_plainly if self._is_plain else self._call
        with booking(costs), interrupts.allowed():
            try:
                calls = self.problem.calls(question, self.seed, costs, self._knows)
                return question, driven(calls, question, call), costs
            except Exception as error:
                return question, error, costs
            except BaseException:
                self._keep(costs)
                raise

    def _keep(self, *costs: dict[str, float]) -> None:
        """Let what was booked for answers that never came be counted."""
        self.outcomes.extend((None, None, each) for each in costs if each)

    def _answer_in_thread(self, question: Question) -> None:
        began = time.perf_counter()
        try:
            outcome = self._answer(question)
        except BaseException as error:  # else the plan would wait for ever
            outcome = question, error, {}
        self._recent = 0.5 * (self._recent + time.perf_counter() - began)
        self._done.put(outcome)

    def _begin_tasks(self, questions: list[Question]) -> None:
        for question in questions:
            task = asyncio.ensure_future(self._answer_async(question))
            self._tasks.add(task)  # a loop holds no reference to its tasks
            task.add_done_callback(self._tasks.discard)

    async def _answer_async(self, question: Question) -> None:
        costs: dict[str, float] = {}
        with booking(costs):
            try:
                calls = self.problem.calls(question, self.seed, costs, self._knows)
                answer: Any = await driven_async(calls, question, self._call_async)
            except BaseException as error:  # else the plan would wait for ever
                answer = error
        self._done.put((question, answer, costs))

    # Questions that are answered together, since values are asked for many states at once.

    def _answer_together(self, questions: list[Question]) -> None:
        """Answer questions whose values are asked for in one call."""
        pending: list[tuple[Question, Any, dict[str, float], Any]] = []
        try:
            for question in questions:
                costs: dict[str, float] = {}
                calls = self.problem.calls(question, self.seed, costs, self._knows)
                with booking(costs), interrupts.allowed():
                    try:
                        state = self._until_values(calls, question)
                    except StopIteration as end:
                        self.outcomes.append((question, end.value, costs))
                    except Exception as error:
                        self.outcomes.append((question, error, costs))
                    except BaseException:
                        self._keep(costs)
                        raise
                    else:
                        pending.append((question, calls, costs, state))
            if pending:
                self._value_together(pending)
        finally:  # of those that Ctrl-C left without an answer
            self._keep(*(costs for _, _, costs, _ in pending))

    def _until_values(self, calls: Any, question: Question) -> Any:
        """Make the calls before that for the value; returns its state, or ends as `calls`."""
        result = None
        while True:
            function, arguments, check = calls.send(result)
            if function is self.problem.values:
                return arguments[0][0]
            try:
                result = self._call(function, arguments, check, question)
            except StopIteration as error:
                raise RuntimeError("a function raised StopIteration") from error

    def _value_together(self, pending: list[Any]) -> None:
        """Answer questions for which a value is all that is missing; they leave the list."""
        states = [state for _, _, _, state in pending]
        costs: dict[str, float] = {}
        try:
            with booking(costs), interrupts.allowed():
                values = self._call(
                    self.problem.values, (states,), lambda given, _: values_of(given, len(states)),
                    pending[0][0],
                )  # fmt: skip
        except Exception:
            values = [None] * len(states)  # then one by one, so that one state spoils no other
        finally:
            self._keep(costs)
        for value in values:
            question, calls, own, state = pending[0]
            outcome = self._concluded(question, calls, own, state, value)
            self.outcomes.append(outcome)
            del pending[0]

    def _concluded(
        self, question: Question, calls: Any, costs: dict[str, float], state: Any, value: Any
    ) -> Outcome:
        """The answer to a question whose value is known; None if it is to be asked alone."""
        with booking(costs), interrupts.allowed():
            try:
                if value is None:
                    value = self._call(
                        self.problem.values, ([state],), lambda given, _: values_of(given, 1)[0],
                        question,
                    )  # fmt: skip
                calls.send(self.problem.checked_value(value, question))
            except StopIteration as end:
                return question, end.value, costs
            except Exception as error:
                return question, error, costs
        raise AssertionError("an answer ends with its value")

    # Single calls.

    def _call_plainly(self, function: Any, arguments: Any, check: Any, question: Question) -> Any:
        """What is used of the result of a call, made once."""
        given = function(*arguments)
        if hasattr(type(given), "__await__"):
            given = asyncio.run_coroutine_threadsafe(_awaited(given), self._in_loop()).result()
        return check(given, question)

    def _call(self, function: Any, arguments: Any, check: Any, question: Question) -> Any:
        """The same, with a limit of time, and made again if it fails."""
        for attempt in range(self.retries + 1):
            try:
                return check(self._given(function, arguments), question)
            except Exception:
                if attempt == self.retries:
                    raise
                time.sleep(self.backoff * 2**attempt)
        raise AssertionError("unreachable")

    def _given(self, function: Any, arguments: Any) -> Any:
        if self.timeout is None:
            given = function(*arguments)
        else:
            given = self._result_of(self._begun(function, arguments))
        if is_awaitable(given):
            loop = self._in_loop()
            given = self._result_of(asyncio.run_coroutine_threadsafe(_awaited(given), loop))
        return given

    def _result_of(self, future: Future[Any]) -> Any:
        """The result of a call under way; if it takes too long it is cancelled, and fails."""
        try:
            return future.result(self.timeout)
        except TimeoutError:
            if future.done() and not future.cancelled():
                return future.result()  # it raised the error itself, or came just now
            future.cancel()
            raise TimeoutError(f"no answer within {self.timeout} seconds") from None

    def _begun(self, function: Any, arguments: Any) -> Future[Any]:
        """A call in a thread of its own; what it costs after it was cancelled is booked, too."""
        future: Future[Any] = Future()
        costs, late = booked(), dict[str, float]()

        def run() -> None:
            with booking(late):
                try:
                    result, error = function(*arguments), None
                except BaseException as raised:
                    result, error = None, raised
            if not future.set_running_or_notify_cancel():
                if late:
                    self._done.put((None, None, late))
                return
            with self._lock:
                add_costs(costs, late)
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._threads.start(contextvars.copy_context().run, run)
        return future

    async def _call_async(
        self, function: Any, arguments: Any, check: Any, question: Question
    ) -> Any:
        """As `_call`, in the event loop; functions that are slow and not async get a thread."""
        for attempt in range(self.retries + 1):
            try:
                if function is self.problem.values:
                    return check([await self._batch.value(arguments[0][0])], question)
                return check(await self._given_async(function, arguments), question)
            except Exception:
                if attempt == self.retries:
                    raise
                await asyncio.sleep(self.backoff * 2**attempt)
        raise AssertionError("unreachable")

    async def _given_async(self, function: Any, arguments: Any) -> Any:
        if self.timeout is None:
            return await self._given_in_loop(function, arguments)
        try:
            async with asyncio.timeout(self.timeout):
                return await self._given_in_loop(function, arguments)
        except TimeoutError as error:
            if error.args:
                raise
            raise TimeoutError(f"no answer within {self.timeout} seconds") from None

    async def _given_in_loop(self, function: Any, arguments: Any) -> Any:
        if self._seconds.get(function, 0.0) > SLOW_CALL and not is_async(function):
            given = await asyncio.wrap_future(self._begun(function, arguments))
        else:
            began = time.perf_counter()
            given = function(*arguments)
            self._seconds[function] = time.perf_counter() - began
        return await given if is_awaitable(given) else given

    def _in_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop in its thread, where all further questions are answered."""
        with interrupts.shielded(), self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._threads.start(_run_loop, self._loop)
            return self._loop

    def close(self) -> None:
        """Give up what is still running."""
        with interrupts.shielded():
            if self._is_open:
                self._booking.__exit__()
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._threads.close()


class _Batch:
    """States whose values are asked for at once: those that come while a call is under way."""

    def __init__(self, calls: _Calls) -> None:
        self.calls = calls
        self._states: list[tuple[Any, asyncio.Future[Any]]] = []
        self._is_running = False

    async def value(self, state: Any) -> Any:
        """The value of a state."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._states.append((state, future))
        if not self._is_running:
            self._is_running = True
            try:
                await asyncio.sleep(0)  # others that are ready join
                while self._states:
                    await self._ask()
            finally:
                self._is_running = False
        return await future

    async def _ask(self) -> None:
        asked, self._states = self._states, []
        try:
            states = [state for state, _ in asked]
            given = await self.calls._given_async(self.calls.problem.values, (states,))
            values = values_of(given, len(states))
        except Exception as error:
            for _, future in asked:
                future.set_exception(error)
            return
        for (_, future), value in zip(asked, values, strict=True):
            future.set_result(value)


class _Threads:
    """Threads that wait for work once they have none; a new one is started if none waits.

    They are daemons: a call that never returns does not keep the process alive.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._num_threads = self._num_idle = 0
        self._is_closed, self._lock = False, threading.Lock()

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in one of the threads."""
        with interrupts.shielded():  # a thread that nobody knows of would never end
            with self._lock:
                is_new = self._num_idle == 0
                self._num_idle -= not is_new
                self._num_threads += is_new
            if is_new:
                threading.Thread(target=self._run, daemon=True, name="uctree-plan").start()
            self._work.put(partial(function, *arguments))

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # and what it holds, until more work comes
            with self._lock:
                if self._is_closed:
                    return
                self._num_idle += 1

    def close(self) -> None:
        """Let all threads end, those that work as soon as they have done so."""
        with self._lock:
            self._is_closed = True
        for _ in range(self._num_threads):
            self._work.put(None)


async def _awaited(given: Any) -> Any:
    return await given


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped; then cancel what is left."""
    loop.run_forever()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
