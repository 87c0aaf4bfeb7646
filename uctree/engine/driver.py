"""Drivers: they run the kernel on a batch of trees, evaluate leaves, grow trees, explain failures.

`Driver` does this for one tree or many; `TreeSearch` and `BatchedSearch` set the budgets. The
kernel prepares roots, except for Dirichlet noise, which NumPy draws.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from uctree import specs
from uctree.engine import interrupts
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.compose import Composition, batch_of, compose, num_blocks
from uctree.engine.diagnostics import explain_status, with_path
from uctree.engine.frames import Frame
from uctree.engine.history import BestSeen, Samples
from uctree.engine.latent import LatentTrees
from uctree.engine.options import Options, resolve, whole
from uctree.engine.queue import EvaluationQueue
from uctree.engine.storage import ManyTrees, OneTree, Storage, one_tree_arrays, out_of_memory
from uctree.engine.workspace import Workspace, keeps_best, max_depth
from uctree.errors import BrokenGame
from uctree.game import CHANCE, Game, State, StateViews, make_rng
from uctree.kernels import gumbel
from uctree.kernels.batching import (
    FINISHED,
    IDLE,
    RESET,
    ROOT_EVALUATION,
    ROOT_READY,
    SEARCHING,
    begin_budget,
)  # fmt: skip
from uctree.kernels.context import Batch
from uctree.kernels.evaluation import weigh
from uctree.kernels.records import FIRST_BLOCK, MOST_VISITS, NONE, UNSEEN
from uctree.kernels.status import DONE, NEED_CAPACITY, WAITING
from uctree.tree import Tree, edge_dtype

MOST_SIMULATIONS = MOST_VISITS  # of a tree


class Worker:
    """The working memory of one thread: a workspace, an evaluation queue, an rng per tree."""

    def __init__(
        self, composition: Composition, state: np.record, num_trees: int, rngs: np.ndarray
    ) -> None:
        game, options, arrays = composition.game, composition.options, composition.arrays
        self.composition, self.rngs = composition, rngs
        self.rate = 0.0  # simulations per second of the last search
        self.work = Workspace(game, options, arrays, state)
        self.root_arrays = one_tree_arrays(game, options)
        # In a learned model no path is longer than the budget, which is not known yet.
        depth = self.work.max_depth if options.evaluator.model is None else 1
        self.queue = EvaluationQueue(
            game, options.evaluator, arrays.path, num_trees, options.leaves, depth
        )
        self._frame: Frame | None = None
        self._shown: Storage | None = None  # the storage in the frame
        self._shown_version = 0  # of it
        self._shown_roots: dict[str, np.ndarray] | None = None  # its root arrays

    def call(self, storage: Storage) -> int:
        """Call the kernel once; returns its status."""
        composition, queue = self.composition, self.queue
        kernel, data = composition.kernel, composition.game.data
        if queue.generation is not None:
            queue.refresh_cache()
        if not kernel.interpreted:
            if (
                self._shown is not storage
                or self._shown_version != storage.version
                or self._shown_roots is not storage.root_arrays
            ):
                self._show(storage)
            words = self._frame.words  # type: ignore[union-attr]
            status: int = kernel.call(words, queue.logits, queue.values, data)
            return status
        with np.errstate(over="ignore"):
            batch = Batch._make(map(self._as_records, self._batch(storage)))
            return int(kernel.call(batch, queue.logits, queue.values, data))

    def reserve_depth(self, depth: int) -> None:
        """Let paths have as many edges."""
        if self.queue.reserve_depth(min(depth, self.work.max_depth)):
            self._frame = self._shown = None  # it has the addresses of the earlier ones

    def _batch(self, storage: Storage) -> Batch:
        return batch_of(storage, self.work, self.queue, self.rngs)

    def _show(self, storage: Storage) -> None:
        """Write the arrays of a storage to the frame, those that have changed."""
        if self._frame is None:
            self._frame = Frame(self._batch(storage))
        else:
            if self._shown_roots is not storage.root_arrays:
                self._frame.write(storage.root_arrays)
            self._frame.write(storage.tree_arrays())
            self._frame.write({"rngs": self.rngs, "lock": self.work.lock})
        self._shown, self._shown_version = storage, storage.version
        self._shown_roots = storage.root_arrays

    def _as_records(self, array: np.ndarray) -> Any:
        """An array as interpreted kernels read it, records by attribute."""
        if not array.dtype.names:
            return array
        is_state = array.dtype == self.composition.game.dtype
        return StateViews(array) if is_state else array.view(np.recarray)

    def forget_storage(self) -> None:
        """Release the storage of the last call."""
        self._shown = None


def take_worker(composition: Composition, state: np.record, rngs: np.ndarray) -> Worker:
    """A worker for one tree: an idle one of an earlier search, or a new one."""
    try:
        worker: Worker = composition.idle_workers.pop()
    except IndexError:
        return Worker(composition, state, 1, rngs)
    if worker.work.max_depth != max_depth(composition.game, state):
        return Worker(composition, state, 1, rngs)
    worker.composition, worker.rngs = composition, rngs
    worker.work.reset(state)
    worker.queue.queues[:] = 0
    worker.queue.control[:] = 0
    return worker


def give_back(workers: list[Worker]) -> None:
    """Let later searches reuse these workers, unless they have a Python evaluator."""
    for worker in workers:
        idle = worker.composition.idle_workers
        if worker.queue.evaluator.batch is None and len(idle) < MOST_IDLE:
            worker.work.lock = np.zeros(1, np.int64)
            del worker.composition  # which holds the worker: in a cycle both would stay for long
            idle.append(worker)


MOST_IDLE = 4  # idle workers of a composition


class Driver:
    """Runs the kernel on the trees of a storage, in one thread or several."""

    def __init__(self, composition: Composition, storage: Storage, workers: list[Worker]) -> None:
        self.composition, self.storage, self.workers = composition, storage, workers
        self.evaluation_seconds = 0.0  # spent in Python evaluators
        self._pool = ThreadPoolExecutor(len(workers)) if len(workers) > 1 else None

    @property
    def queue(self) -> EvaluationQueue:
        """The queue of the first worker; Python evaluators have no other."""
        return self.workers[0].queue

    def run_kernel(
        self, workers: list[Worker] | None = None, *, first: int | None = None
    ) -> int:  # fmt: skip
        """Call the kernel and grow the storage as needed.

        Returns WAITING if leaves are to be evaluated, else DONE.

        Args:
            first: the status of a call that was made already, of a single thread.
        """
        workers = workers or self.workers
        queue = workers[0].queue
        while True:
            try:
                if len(workers) == 1:
                    status = self._call_one(workers[0]) if first is None else first
                    first = None
                    if status in (DONE, WAITING) and not queue.is_paused:
                        return status  # the usual case first: often this is one simulation
                    statuses = [status]
                else:
                    statuses = self._call(workers)
                for worker, status in zip(workers, statuses, strict=True):
                    if status not in (DONE, WAITING, NEED_CAPACITY):
                        self._raise_status(worker, status)
            except BaseException:
                self.clear()
                raise
            if NEED_CAPACITY not in statuses and not (queue.is_paused and DONE in statuses):
                return statuses[0]
            if self.storage.moves_edges and queue.num_waiting:
                # No simulation may be in flight while edges move.
                queue.control["is_paused"] = 1
                return WAITING
            queue.control["is_paused"] = 0
            try:
                self.storage.grow(int(queue.control["tree"][0]))
            except MemoryError as error:
                self.clear()
                raise out_of_memory(self.composition.game) from error

    def runner(self) -> Callable[[], int]:
        """`run_kernel` for as long as the driver exists; it takes a microsecond less.

        That counts in a plan, where a call often is a single simulation.
        """
        worker, storage = self.workers[0], self.storage
        kernel, queue, data = worker.composition.kernel, worker.queue, worker.composition.game.data
        if kernel.interpreted or len(self.workers) > 1 or queue.generation is not None:
            return self.run_kernel
        call, logits, values = kernel.entry, queue.logits, queue.values

        def run() -> int:
            if worker._shown is not storage or worker._shown_version != storage.version:
                return self.run_kernel()
            try:
                status: int = call(worker._frame.words, logits, values, data)  # type: ignore[union-attr]
            except BaseException:
                self.clear()
                raise
            if status in (DONE, WAITING) and not queue.is_paused:
                return status
            return self.run_kernel(first=status)

        return run

    def evaluate(self) -> None:
        """Let the Python evaluator evaluate the requested leaves."""
        began, queue = time.perf_counter(), self.queue
        try:
            if queue.answer is not None:
                queue.evaluate()  # a short call, after which Ctrl-C takes effect
            else:
                with interrupts.allowed():
                    queue.evaluate()
        except BaseException:
            self.clear()
            raise
        self.evaluation_seconds += time.perf_counter() - began

    def _call(self, workers: list[Worker]) -> list[int]:
        """The status of the kernel in each thread, once all have ended."""
        assert self._pool is not None
        futures: list[Future[int]] = []
        try:
            for worker in workers:
                futures.append(self._pool.submit(self._call_one, worker))
            wait(futures)
        except BaseException:
            self.storage.view(0).head["remaining"] = 0  # no further simulation begins
            interrupts.wait_for(futures)  # nothing is cancelled before the threads have stopped
            raise
        return [future.result() for future in futures]

    def _call_one(self, worker: Worker) -> int:
        try:
            return worker.call(self.storage)
        except Exception as error:
            work = worker.work
            if work.lock[0] == work.work["worker"][0]:  # no other thread could continue
                self.storage.view(0).head["remaining"] = 0
                work.lock[0] = 0
            what = f"a rule or evaluator raised {type(error).__name__}: {error}"
            tree, path = self._place(worker)
            raise BrokenGame(with_path(self.composition, work, tree, path, what)) from error

    def _place(self, worker: Worker) -> tuple[Tree, np.ndarray]:
        """The current tree and path of a worker."""
        control = worker.queue.control[0]
        return self.storage.view(int(control["tree"])), worker.queue.paths[int(control["slot"])]

    def _raise_status(self, worker: Worker, status: int) -> None:
        tree, path = self._place(worker)
        raise BrokenGame(explain_status(self.composition, worker.work, tree, path, status))

    def clear(self) -> None:
        """Cancel all simulations in flight."""
        for number in range(self.storage.num_trees):
            view = self.storage.view(number)
            if view.layout.pending:
                view.edges["pending"][: int(view.head["used"][0])] = 0
        for worker in self.workers:
            worker.queue.clear()
            worker.forget_storage()

    def close(self) -> None:
        """Stop the threads, also those of the evaluator, and cancel all simulations in flight."""
        try:
            if self._pool is not None:
                self._pool.shutdown()
        finally:
            self.clear()
            self.stop_evaluator()

    def stop_evaluator(self) -> None:
        """Let the threads of a Python evaluator end; its next call starts new ones."""
        batch = self.queue.evaluator.batch
        if batch is not None:
            batch.close()

    def begin_budgets(self, noise_seed: Sequence[int]) -> None:
        """Start the budgets of trees whose roots are ready, with noise in their priors.

        Args:
            noise_seed: appended to a tree's own seed, for its Dirichlet noise.
        """
        options, queues = self.composition.options, self.queue.queues
        for number in map(int, np.flatnonzero(queues["phase"] == ROOT_READY)):
            queue, view = queues.view(np.recarray)[number], self.storage.view(number)
            if options.root_noise is not None:
                priors = root_block(view)["prior"].astype(float)
                if queue.has_noise:
                    rng = np.random.default_rng([int(queue.seed), *noise_seed])
                    priors = options.root_noise.draw(priors, rng)
                self.storage.root_arrays["noises"][number, : len(priors)] = priors
            begin_budget(view.head.view(np.recarray)[0], queue)

    def root_noise(self, number: int) -> np.ndarray | None:
        """The noise of a root's edges, or their priors with noise; None without noise."""
        options = self.composition.options
        if not (options.is_gumbel or options.root_noise is not None):
            return None
        count = len(root_block(self.storage.view(number)))
        return self.storage.root_arrays["noises"][number, :count].copy()


# --- budgets -------------------------------------------------------------------------------------


class Pieces:
    """How many simulations to run before looking at the clock, from how long others took."""

    def __init__(self, first: int, rate: float = 0.0) -> None:
        self.size, self.rate = first, rate  # simulations, and simulations per second

    def adapt(self, simulations: int, seconds: float, *, longest: int, goal: float) -> None:
        """Let the next piece take about `goal` seconds, because these simulations took `seconds`.

        Args:
            longest: the most simulations of the next piece.
        """
        self.rate = simulations / max(1e-6, seconds)
        self.size = max(1, min(longest, int(self.rate * goal)))


def _reserve(options: Options, tree: Tree, num_workers: int = 1) -> int:
    """How many free edges a tree must have before a simulation."""
    game, layout = tree.game, tree.layout
    if layout.dim:  # the largest block may double
        used = int(tree.head["used"][0])
        blocks = 4 * max(FIRST_BLOCK, int(tree.edges["num_edges"][:used].max()))
        return num_blocks(game, options) * blocks
    reserve = num_workers * options.leaves * (game.num_actions + game.max_outcomes + 1)
    if layout.appends:  # blocks double, and a path has many
        reserve *= 8
    if layout.sparse:  # a block of edges may double
        reserve += 2 * game.num_actions + FIRST_BLOCK
    return reserve


# --- one tree ------------------------------------------------------------------------------------


class TreeSearch:
    """Searches one tree, in pieces of a few hundredths of a second."""

    PIECE_SECONDS = 0.02
    LONGEST_FIRST = 64  # simulations
    FIRST_PIECES = 2048  # beyond this many simulations a piece is at most as long as all before it

    def __init__(
        self, composition: Composition, tree: Tree, *, seed: int, stream: int = 0,
        max_bytes: int | None = None, num_simulations: int | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            stream: the number of the tree, if one search has several.
            num_simulations: the budget, for rules that need it in advance.
        """
        options = composition.options
        self.composition, self.tree = composition, tree
        self.before, self.most_visits = tree.simulations, tree.most_visits
        self.seed, self.stream = seed, stream
        self.cancelled = False
        self.samples = Samples()
        self._is_prepared = False
        self._part_times: list[int] | None = None
        self._best: BestSeen | None = None
        num_workers = options.threads if options.shares_tree and not interpreted() else 1
        # A tree that is searched again gets fresh random numbers.
        streams = (self.before + (stream + worker << 40) for worker in range(num_workers))
        workers = [
            take_worker(composition, tree.state, make_rng(seed, stream=number)[None])
            for number in streams
        ]
        for number, worker in enumerate(workers):
            worker.work.lock = workers[0].work.lock
            worker.work.work["worker"] = 1 + number
        # The speed of an earlier search saves the first pieces, which only measure it.
        rate = workers[0].rate
        first = max(1, min(self.LONGEST_FIRST, int(rate * self.PIECE_SECONDS)))
        self.pieces = Pieces(first, rate)
        reserve = _reserve(options, tree, num_workers)
        self.storage = OneTree(tree, workers[0].root_arrays, max_bytes, reserve)
        self.driver = Driver(composition, self.storage, workers)
        self._queue_head["budget"] = num_simulations or 1
        self._queue_head["seed"] = seed % 2**64
        self._queue_head["has_noise"] = 1

    @property
    def _queue_head(self) -> np.ndarray:
        return self.driver.queue.queues

    @property
    def simulations(self) -> int:
        """How many this search made; read from the tree, so that an interrupt loses none."""
        return self.tree.simulations - self.before

    def run(
        self, until: int | None, deadline: float, look: Callable[[], None] | None = None
    ) -> str:
        """Simulate until the search has `until` simulations; "" if it has, else why it ended.

        The reasons are "seconds", "solved", "full" and "cancelled".
        """
        if not self._is_prepared:
            self._is_prepared = True
            self.prepare_root(self.driver.evaluate)
        while until is None or self.simulations < until:
            now = time.perf_counter()
            if self.cancelled:
                return "cancelled"
            if now >= deadline and self.tree.simulations > 0:  # at least one simulation
                return "seconds"
            before = self.simulations
            left = MOST_SIMULATIONS - self.most_visits - self.simulations
            if left <= 0:
                return "full"
            if until is not None:
                left = min(left, until - before)
            piece = min(left, max(self.pieces.size, self.composition.options.leaves))
            if self.pieces.rate and deadline < math.inf:
                piece = min(piece, max(1, int(self.pieces.rate * (deadline - now))))
            if self._simulate(piece, most=left):
                return "solved"
            clock, done = time.perf_counter(), self.simulations
            # Pieces grow slowly, so that short searches are sampled several times as well.
            longest = min(8 * self.pieces.size, max(self.FIRST_PIECES, done))
            self.pieces.adapt(done - before, clock - now, longest=longest, goal=self.PIECE_SECONDS)
            self.samples.note(self.tree, done, clock)
            if look is not None:
                look()
            interrupts.check()
        return ""

    def prepare_root(self, evaluate: Callable[[], None]) -> None:
        """Let the root be evaluated if it needs priors, and prepare it for the budget."""
        tree, queue, driver = self.tree, self._queue_head, self.driver
        tree.root_noise = None
        if not tree.layout.priors or tree.root.to_play == CHANCE:
            return
        queue["simulations_before"] = tree.head["simulations"]
        queue["since_root_before"] = tree.head["since_root"]
        queue["phase"], queue["stops_when_ready"] = ROOT_EVALUATION, 1
        tree.head["remaining"] = 1 if tree.edges["first"][0] == NONE else 0
        while queue["phase"][0] == ROOT_EVALUATION:
            if driver.run_kernel(driver.workers[:1]) == WAITING:
                evaluate()
        driver.begin_budgets([self.before, self.stream])
        tree.root_noise = driver.root_noise(0)
        for worker in driver.workers[1:]:
            worker.queue.queues[:] = queue

    def _simulate(self, num_simulations: int, most: int) -> bool:
        """Run at least `num_simulations`, or as many as a piece's time allows.

        Returns whether the root is solved. Simulations that wait for values stay in flight.

        Args:
            most: how many simulations may begin.
        """
        tree, driver, queue = self.tree, self.driver, self.driver.queue
        until = tree.simulations + num_simulations
        deadline = time.perf_counter() + self.PIECE_SECONDS
        if self.composition.options.evaluator.batch is None:
            most = num_simulations
        else:
            # One batch more, which stays in flight; simulations without a request end at once.
            most = min(most, num_simulations + self.composition.options.leaves)
        tree.head["remaining"] = most - queue.num_waiting
        for worker in driver.workers:
            worker.queue.queues["phase"] = SEARCHING
        while True:
            status = driver.run_kernel()
            if any(worker.queue.queues["is_solved"][0] for worker in driver.workers):
                return True
            if status == DONE or tree.simulations >= until or time.perf_counter() >= deadline:
                return False
            driver.evaluate()

    def part_times(self) -> list[int]:
        """Nanoseconds in each part of the timed simulations, summed over threads."""
        if self._part_times is not None:
            return self._part_times
        times = [worker.work.work["times"][0].tolist() for worker in self.driver.workers]
        return [sum(part) for part in zip(*times, strict=True)]

    def best_seen(self) -> BestSeen | None:
        """The best episode of this search's simulations; None if none ended, or if not kept."""
        if self._part_times is not None:  # closed
            return self._best
        if not keeps_best(self.composition.game):
            return None
        works = [worker.work.work[0] for worker in self.driver.workers]
        best = max(works, key=lambda work: float(work["best_return"]))
        if best["best_return"] == -math.inf:
            return None
        path = best["best_actions"][: best["best_depth"]].copy()
        return BestSeen(float(best["best_return"]), path, int(best["best_drawn"]))

    def close(self) -> None:
        """Stop the driver, and release unused memory and workers."""
        self.driver.close()
        self.tree.resize(0)
        self._best = self.best_seen()
        self._part_times = self.part_times()
        self.driver.workers[0].rate = self.pieces.rate
        give_back(self.driver.workers)


# --- many trees ----------------------------------------------------------------------------------


_NO_TREES = np.zeros(0, np.int64)


class BatchedSearch:
    """Searches many states at once; a Python evaluator gets the leaves of all trees in one batch.

    Each tree is the one that `search` would grow; below a Gumbel root, except for ties of scores,
    and with `leaves` above 1 only without the evaluation cache, which trees share.
    With a compiled evaluator, a call of `step` takes a few hundredths of a second.

    >>> from uctree import evaluators, games
    >>> def judge(states):
    ...     return np.zeros((len(states), 2))
    >>> game = games.tic_tac_toe()
    >>> batch = BatchedSearch(game, 3, evaluator=evaluators.python(judge))
    >>> batch.reset(range(3), [game.start()] * 3, num_simulations=20)
    >>> batch.run()
    >>> [int(batch.root(number).visits.sum()) for number in range(3)]
    [20, 20, 20]
    """

    PIECE_SECONDS = 0.02
    FIRST_PIECE = 64  # simulations, of all trees

    def __init__(
        self, game: Game | str, num_trees: int, *, keeps_trees: bool = True, **options: Any
    ) -> None:
        """
        Args:
            keeps_trees: whether `tree` can be called. Else the trees of a Gumbel search take less
                memory: they forget the priors of actions that their budgets cannot reach.
            options: as in `search`: `evaluator`, `selection`,
                `root_selection`, `root_noise`, `leaves`, `solver` and the like.
        """
        game = specs.as_game(game)
        if num_trees < 1:
            raise ValueError(f"num_trees must be at least 1; got {num_trees}")
        if game.is_continuous:
            raise ValueError(
                f"a batched search is for actions that are numbers; those of {game.name} are "
                "vectors: search its states one by one"
            )
        self.num_trees, self._keeps_trees = num_trees, keeps_trees
        self.options: Options = resolve(game, **options)
        self._latent = None
        if self.options.evaluator.model is None:
            self.composition = compose(game, self.options, many=True)
        else:
            self._latent = LatentTrees(game, num_trees, self.options)
            self.composition = self._latent.compose(self.options)
        # That of the roots, and that of the trees, whose states a learned model may imagine.
        self.root_game, self.game = game, self.composition.game
        game, layout = self.game, self.composition.layout
        example = Tree(game, game.start(), layout, 1, 1)
        if self.options.sees_range(game):
            example.forget_range(seen=True)
        reserve = _reserve(self.options, example)
        self._storage = ManyTrees(example, self.options, num_trees, reserve)
        rngs = np.zeros((num_trees, 1), np.uint64)
        worker = Worker(self.composition, example.state, num_trees, rngs)
        self._driver = Driver(self.composition, self._storage, [worker])
        self._num_searching = 0
        # A Python evaluator ends a call of the kernel anyway.
        self._has_pieces = self.options.evaluator.batch is None
        self._budgets = np.zeros(num_trees, np.int64)
        self._pieces, self._num_begun = Pieces(self.FIRST_PIECE), 0  # of all trees
        self._are_cut = False  # whether some budgets have several pieces
        worker.queue.queues["resumes_first"] = True  # answers come in batches
        worker.queue.queues["keeps_priors"] = keeps_trees
        if self._latent is not None:
            roots = self._storage.root_arrays["roots"]
            worker.queue.answer = partial(self._latent.answer, roots=roots)

    # Searching.

    def reset(
        self,
        trees: Sequence[int],
        states: Sequence[State] | np.ndarray,
        *,
        num_simulations: int | Sequence[int],
        seed: int | Sequence[int] = 0,
        noise: bool | Sequence[bool] = True,
    ) -> None:
        """Let trees start from new roots, at which a player is to move.

        Args:
            states: records of the game, or an array of them.
            num_simulations: of each tree, or one number for each.
            seed: of the first of these trees, for its root's noise and all other random numbers;
                each further tree has the next seed. Or one seed for each.
            noise: whether the roots get the noise of the options, all of them or each.
        """
        budgets: Any = num_simulations
        least = most = budgets
        are_equal = isinstance(num_simulations, (int, np.integer))  # the usual case is fast
        if not are_equal:
            budgets = np.array(num_simulations, np.int64)
            least, most = int(budgets.min()), int(budgets.max())
        if least < 1:
            raise ValueError(f"num_simulations must be at least 1; got {least}")
        queues, game = self._driver.queue.queues, self.root_game
        index = np.asarray(trees, np.int64)
        if not (isinstance(states, np.ndarray) and states.dtype == game.dtype):
            states = np.array([game.copy(state) for state in states], game.dtype)
        if states.shape != index.shape:
            raise ValueError(
                f"each tree gets a state; got {len(index)} trees, {len(states)} states"
            )
        if (states["to_play"] < 0).any():
            raise ValueError(
                "a tree needs a root with a player to move; got a chance state, or one that is over"
            )
        if self._latent is not None:
            states = self._latent.set_roots(index, states, most)
            self._driver.workers[0].reserve_depth(most + 1)
        self._storage.set_roots(index, states)
        queues["budget"][index], queues["phase"][index] = budgets, RESET
        self._budgets[index] = budgets
        queues["seed"][index] = _seeds(seed, len(index))
        queues["has_noise"][index] = noise
        self._num_searching = int(np.count_nonzero(queues["phase"]))
        if self._has_pieces:
            piece = self._piece()
            pieces = min(budgets, piece) if are_equal else np.minimum(budgets, piece)
            queues["piece"][index] = pieces
            self._num_begun += pieces * len(index) if are_equal else int(pieces.sum())
            self._are_cut |= piece < most

    def step(self) -> np.ndarray:
        """Evaluate one batch of leaves; returns the trees whose budgets are now used up."""
        with interrupts.postponed(), interrupts.armed():
            return self._step()

    def _step(self) -> np.ndarray:
        """As `step`, in a block in which Ctrl-C waits."""
        driver = self._driver
        try:
            began = time.perf_counter()
            if driver.run_kernel() == WAITING:
                driver.evaluate()
            elif self._has_pieces:
                self._size_pieces(time.perf_counter() - began)
            interrupts.check()
        except BaseException:
            self._stop()
            raise
        return self._finished() if driver.queue.take_stopped() else _NO_TREES

    def _finished(self) -> np.ndarray:
        """The trees whose budgets are used up; those with a new root begin theirs."""
        driver, phases = self._driver, self._driver.queue.queues["phase"]
        driver.begin_budgets([0, 0])
        if self._are_cut:
            self._begin_pieces()
        done = np.flatnonzero(phases == FINISHED)
        phases[done] = IDLE
        self._num_searching -= len(done)
        if not self._num_searching:
            self._are_cut = False
            driver.stop_evaluator()
        return done

    def _piece(self) -> int:
        """How many simulations a tree may begin before the next look at the clock."""
        return max(1, self._pieces.size // self._num_searching)

    def _begin_pieces(self) -> None:
        """Let every tree continue that is not solved and whose budget is not used up."""
        queues, heads = self._driver.queue.queues, self._storage.tree_arrays()["heads"]
        left = self._budgets - heads["simulations"][:, 0]
        goes_on = (queues["phase"] == FINISHED) & (queues["is_solved"] == 0) & (left > 0)
        if goes_on.any():
            pieces = np.minimum(left[goes_on], self._piece())
            heads["remaining"][goes_on, 0] = pieces
            queues["phase"][goes_on] = SEARCHING
            self._num_begun += int(pieces.sum())

    def _size_pieces(self, seconds: float) -> None:
        """Adapt the pieces to the seconds that the last ones took."""
        if self._num_begun:
            longest = 8 * self._num_begun
            self._pieces.adapt(self._num_begun, seconds, longest=longest, goal=self.PIECE_SECONDS)
        self._num_begun = 0

    def _stop(self) -> None:
        """Stop all trees; they keep what they have found."""
        self._driver.queue.queues["phase"] = IDLE
        self._storage.tree_arrays()["heads"]["remaining"] = 0
        self._num_searching = 0
        self._driver.clear()
        self._driver.stop_evaluator()

    def search(
        self, states: Sequence[State], *, num_simulations: int, seeds: Sequence[int],
        noise: bool = True,
    ) -> Iterator[tuple[int, int]]:  # fmt: skip
        """Yield the number of each state and of its tree as its search ends.

        As many states are searched at once as there are trees. A tree is reused for another state
        when the next pair is requested.
        """
        self._stop()  # an earlier search that was abandoned
        left = deque(range(len(states)))
        searching: dict[int, int] = {}  # the number of the state of a tree

        def begin(tree: int) -> None:
            if left:
                searching[tree] = number = left.popleft()
                self.reset(
                    [tree], [states[number]], num_simulations=num_simulations,
                    seed=seeds[number], noise=noise,
                )  # fmt: skip

        for tree in range(self.num_trees):
            begin(tree)
        while searching:
            for tree in map(int, self.step()):
                yield searching.pop(tree), tree
                begin(tree)

    def run(self) -> None:
        """Let all trees use up their budgets."""
        with interrupts.postponed(), interrupts.armed():
            while self._num_searching:
                self._step()

    # Reading.

    def root(self, number: int) -> Root:
        """The statistics of the root of a tree."""
        view, layout = self._view(number), self.composition.layout
        block = root_block(view)
        edges = view.root.edges
        to_play = int(view.state["to_play"])
        proven, is_best = _proven_root(view, to_play) if layout.proofs else (None, None)
        return Root(
            actions=block["action"].astype(np.int32),
            visits=view.edge_visits(edges),
            q=view.mean_values(edges),
            priors=view.priors(edges),
            noise=self._driver.root_noise(number),
            value=view.mean_values(range(1))[0],
            raw=view.raw_value if layout.raw else None,
            to_play=to_play,
            parameters=self.options.root_selection.parameters,
            proven=proven,
            is_best=is_best,
        )

    def _view(self, number: int) -> Tree:
        """A tree on the arrays of the batch; it is valid until the next reset."""
        view = self._storage.view(number)
        if self._driver.queue.queues["phase"][number] == RESET:  # the arrays hold the earlier tree
            return Tree(self.game, view.state, self.composition.layout, 1, 1)
        return view

    def tree(self, number: int) -> Tree:
        """A copy of one of the trees, as `search` would have grown it, with nothing in flight."""
        if not self._keeps_trees:
            raise ValueError("this search has forgotten parts of its trees; got keeps_trees=False")
        view = self._view(number)
        block = root_block(view)
        used = int(view.head["used"][0])
        edges = self._explicit_edges(number) if view.layout.sparse else view.edges[:used].copy()
        copy = Tree(
            self.game, self.game.copy(view.state), self.options.layout(self.game), len(block), 1
        )
        if copy.layout.pending:
            edges["pending"] = 0
        copy.edges, copy.head[:] = edges, view.head
        copy.head["capacity"] = copy.head["used"] = len(edges)
        copy.head["num_untried"] = 0
        copy.root_squares[:] = view.root_squares[: len(copy.root_squares)]
        copy.table = view.table.copy()
        copy.root_noise = self._driver.root_noise(number)
        copy.rules = self.composition.rules
        return copy

    def _explicit_edges(self, number: int) -> np.ndarray:
        """The records of a tree, with an edge for every action of each evaluated node."""
        game, view = self.game, self._view(number)
        dtype = edge_dtype(game, self.options.layout(game))
        names, weights = list(dtype.names or ()), np.zeros(game.num_actions)
        blocks, used = [view.edges[:1][names].astype(dtype)], 1
        nodes = deque([(blocks[0][:1], view.edges[0], view.state)])
        while nodes:
            target, node, state = nodes.popleft()
            if node["first"] == NONE:
                continue
            actions = game.legal(state)
            block = np.zeros(len(actions), dtype)
            made = view.edges[node["first"] : node["first"] + node["num_edges"]]
            block["action"], block["first"] = actions, NONE
            if view.layout.proofs == "bounds":
                block["low"], block["high"] = -np.inf, np.inf
            if view.layout.answers:
                block["row"], block["mover"] = NONE, UNSEEN
            if len(made) < len(actions):
                untried = self._storage.untried(number)[node["untried"] :]
                row = untried[: len(actions)].astype(float)
                _weigh_kernel(interpreted()).call(row, len(row), float(node["largest"]), weights)
                block["prior"] = weights[: len(row)] / node["sum_weights"]
            for edge in made:
                at = actions.index(edge["action"])
                block[at] = edge[names]
                if edge["first"] != NONE:
                    nodes.append((block[at : at + 1], edge, self._state_behind(state, edge)))
            target["first"], target["num_edges"] = used, len(actions)
            blocks.append(block)
            used += len(block)
        return np.concatenate(blocks)

    def _state_behind(self, state: np.record, edge: np.void) -> np.record:
        """The state behind an edge of a state."""
        if not self.composition.layout.answers:
            return self.game.step(state, int(edge["action"]))[0]
        after = self.game.copy(state)
        for name, source in (("row", "row"), ("count", "count"), ("to_play", "mover")):
            after[name] = edge[source]
        return after


def _seeds(given: int | Sequence[int], count: int) -> np.ndarray:
    """A seed for each of so many trees; if one is given, each further tree has the next one."""
    if isinstance(given, (Sequence, np.ndarray)):
        return np.array([whole("seed", each) % 2**64 for each in given], np.uint64)
    first = np.uint64(whole("seed", given) % 2**64)
    return np.arange(count, dtype=np.uint64) + first


@cache
def _weigh_kernel(is_interpreted: bool) -> Kernel:
    example = (np.zeros(1), 1, 0.0, np.zeros(1))
    return compile_kernel(weigh, {}, example, label="priors")


def _proven_root(view: Tree, to_play: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The mean proven value of the edges that are proven best at a root, and which they are."""
    proven, after = view.proven_values(range(1))[0], view.proven_values(view.root.edges)
    is_best = np.zeros(len(after), bool)
    if not np.isnan(proven).any():
        is_best = (after == proven).all(axis=1)
    elif view.proof(0) == "mover":  # the value of the player to move is proven
        is_best = after[:, to_play] == view.edges["proven"][0, to_play]
    return (after[is_best].mean(axis=0), is_best) if is_best.any() else (None, None)


def root_block(tree: Tree) -> np.ndarray:
    """The records of a root's edges."""
    first, count = int(tree.edges["first"][0]), int(tree.edges["num_edges"][0])
    return tree.edges[max(0, first) : max(0, first) + (0 if first == NONE else count)]


# --- roots ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Root:
    """The statistics of a root after a search, by edge."""

    actions: np.ndarray  # [edges], int32
    visits: np.ndarray  # [edges], int64
    q: np.ndarray  # [edges, players]; 0 for an edge without visits
    priors: np.ndarray | None  # [edges], as the evaluator gave them
    noise: np.ndarray | None  # [edges], Gumbel noise, or priors with Dirichlet noise
    value: np.ndarray  # [players], the mean over all simulations
    raw: np.ndarray | None  # [players], the evaluator's value, if Gumbel's rule needs it
    to_play: int
    parameters: tuple[float, ...]  # of Gumbel's rule
    is_best: np.ndarray | None  # [edges], bool: which are proven best for the player to move
    proven: np.ndarray | None  # [players], the mean proven value of these edges

    def improved(self) -> np.ndarray:
        """The improved policy over the edges, a target for training [Eq. 31]."""
        return self._by_gumbel(0)

    def gumbel_choice(self) -> int:
        """The edge to play after Gumbel's search [Eq. 33]."""
        return int(self._by_gumbel(1)[0])

    def _by_gumbel(self, what: int) -> np.ndarray:
        if self.raw is None or self.priors is None:
            raise ValueError("only a search with root_selection=gumbel improves its policy")
        noise = np.zeros(len(self.visits)) if self.noise is None else self.noise
        out = np.zeros(len(self.visits))
        _gumbel_kernel(interpreted()).call(
            what, np.ascontiguousarray(self.q[:, self.to_play]), self.priors, self.visits,
            float(self.raw[self.to_play]), noise, np.array(self.parameters), np.zeros(len(out)),
            out,
        )  # fmt: skip
        return out


def read_gumbel(
    what: int, q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw: float,
    noise: np.ndarray, parameters: np.ndarray, draws: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Write to `out` the improved policy (`what` 0), or to `out[0]` the edge to play (1)."""
    count = out.shape[0]
    if what == 1:
        most = np.int64(0)
        for i in range(count):
            most = max(most, visits[i])
        gumbel.write_draws(count, noise, prior, draws)
        out[0] = gumbel.choose_root(count, q, prior, visits, raw, draws, most, parameters, out)
        return
    completion = gumbel.mixed_value(count, q, prior, visits, raw)
    edges = gumbel.Completed(count, q, prior, visits, completion)
    total = gumbel.improve(edges, parameters, out)
    for i in range(count):
        out[i] /= total


@cache
def _gumbel_kernel(is_interpreted: bool) -> Kernel:
    one = np.zeros(1)
    example = (0, one, one, np.zeros(1, np.int64), 0.0, one, one, one, one)
    return compile_kernel(read_gumbel, {}, example, label="gumbel's policy")
