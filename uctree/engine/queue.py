"""The evaluation queue: simulations that wait for values, and the leaves that Python evaluates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uctree.errors import BrokenGame, UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game
from uctree.kernels.batching import (
    CACHE_ENTRY,
    CACHE_WAYS,
    CONTROL,
    QUEUE,
    answer_dtype,
    slot_dtype,
)  # fmt: skip
from uctree.kernels.records import NONE

_NAMES = list(CONTROL.names or ())
_NUM_REQUESTS, _NUM_RESULTS = _NAMES.index("num_requests"), _NAMES.index("num_results")
_NUM_STOPPED, _IS_PAUSED = _NAMES.index("num_stopped"), _NAMES.index("is_paused")
_NUM_ROOTS, _IS_SCATTERED = _NAMES.index("num_roots"), _NAMES.index("is_scattered")

# Answers the questions of a batch for a learned model: log-priors and values by question.
Answer = Callable[["EvaluationQueue"], tuple[np.ndarray, np.ndarray]]


ALIGNMENT = 64  # bytes; torch copies arrays that do not begin at a multiple of them


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of zeros that torch need not copy."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    content = np.zeros(size + ALIGNMENT, np.uint8)
    first = -content.ctypes.data % ALIGNMENT
    return content[first : first + size].view(kind).reshape(shape)


class EvaluationQueue:
    """The leaves of a batch of trees that wait for their values, and the evaluation cache.

    Args:
        path: the dtype of a step of a path.
        max_depth: how many steps a path may have.
    """

    def __init__(
        self, game: Game, evaluator: Evaluator, path: np.dtype, num_trees: int, leaves: int,
        max_depth: int,
    ) -> None:  # fmt: skip
        rows, batch = num_trees * leaves, evaluator.batch
        self.game, self.evaluator = game, evaluator
        # None if there is no cache to refresh.
        self.generation = None if batch is None or evaluator.answers else batch.generation
        self.queues = np.zeros(num_trees, QUEUE)
        self.paths = np.zeros((rows, max_depth), path)
        self.slots = np.zeros(rows, slot_dtype(game.num_players))
        self.stack = np.arange(rows)
        self.answers = np.zeros(rows if evaluator.answers else 1, answer_dtype(game.num_players))
        self.asked = np.zeros(rows if evaluator.answers else 1, np.int64)
        imagined = rows if evaluator.model is not None else 1
        self.questions = np.zeros((3, imagined), np.int64)
        self.rewards = np.zeros((imagined, game.num_players))
        # Players move in turn if a model does not say anything else.
        self.turns = np.full(imagined, 1 % game.num_players)
        self.leaves = np.zeros(rows, game.dtype)
        self.control = np.zeros(1, CONTROL)
        counts: Any = self.control.view(np.int64)
        self._counts = memoryview(counts)  # faster to read than NumPy arrays
        asked: Any = self.asked
        self._asked = memoryview(asked)
        observes = batch is not None and batch.observes
        shape = game.observation_shape if observes else (1,)
        assert shape is not None
        self.observations = aligned_zeros((rows if observes else 1, *shape), np.float32)
        self.requested_states = np.zeros(1 if observes else rows, game.dtype)
        self.request_keys = np.zeros((rows, 2), np.uint64)
        self.request_table = np.full(1 << (2 * rows).bit_length(), NONE, np.int64)
        self.width = game.num_actions if evaluator.gives_priors else 1
        if evaluator.answers:
            self.width = max(self.width, game.max_outcomes)
        # Batches replace these arrays; answers are written into them, and are not rounded.
        num_results = rows if evaluator.answers else 1
        number: Any = evaluator.number
        self._number = np.dtype(number)  # that kernels are compiled for
        self.logits: np.ndarray = np.zeros((num_results, self.width), number)
        self.values: np.ndarray = np.zeros((num_results, game.num_players), number)
        self._make_cache(0 if batch is None else batch.cache_bytes)
        self.answer: Answer | None = None  # of a learned model

    def _make_cache(self, num_bytes: int) -> None:
        """Make as many cache entries as fit, a power of two."""
        each = 4 * (self.width + self.game.num_players) + CACHE_ENTRY.itemsize
        rows = 1 << max(0, int(num_bytes // each).bit_length() - 1) if num_bytes >= each else 0
        rows = rows if rows >= CACHE_WAYS else 0
        self.cache_entries = np.zeros(rows, CACHE_ENTRY)
        self.cache_logits = np.zeros((rows, self.width), np.float32)
        self.cache_values = np.zeros((rows, self.game.num_players), np.float32)

    def refresh_cache(self) -> None:
        """Drop the cached results if the evaluator has changed."""
        batch = self.evaluator.batch
        if batch is not None and batch.generation != self.generation:
            self.generation = batch.generation
            self.cache_entries["stamp"] = 0

    def evaluate(self) -> None:
        """Evaluate the requested leaves; an exception of the evaluator becomes a UctreeError."""
        batch, count = self.evaluator.batch, self._counts[_NUM_REQUESTS]
        if batch is None or count == 0 or self._counts[_NUM_RESULTS]:
            return
        logits: np.ndarray | None
        try:
            if self.answer is not None:
                logits, values = self.answer(self)
            else:
                rows = self.observations if batch.observes else self.requested_states
                logits, values = batch.value(rows[:count])
            if self.evaluator.gives_priors:
                self.logits = self._checked(logits, count, self.width, "logits", "num_actions")
            players = self.game.num_players
            self.values = self._checked(values, count, players, "values", "num_players")
        except UctreeError:
            raise
        except Exception as error:
            raise UctreeError(
                f"the evaluator {self.evaluator.name} raised {type(error).__name__}: {error}"
            ) from error
        self._counts[_NUM_RESULTS] = count

    def _checked(self, given: Any, count: int, width: int, what: str, name: str) -> np.ndarray:
        shape = (count, width)
        if type(given) is np.ndarray and given.dtype == self._number and given.shape == shape:
            if given.flags.c_contiguous and given.flags.writeable:
                return given
        array = np.require(given, self._number, ["C", "W"])
        if array.shape != shape:
            raise BrokenGame(
                f"{what} of a batch of {count} must be [{count}, {width}], one row per leaf and "
                f"{name} of {self.game.name}; got {list(array.shape)}"
            )
        return array

    def reserve_depth(self, depth: int) -> bool:
        """Make paths at least this long; whether they had to be replaced."""
        if depth <= self.paths.shape[1]:
            return False
        longer = np.zeros((len(self.paths), depth), self.paths.dtype)
        longer[:, : self.paths.shape[1]] = self.paths
        self.paths = longer
        return True

    @property
    def is_paused(self) -> bool:
        """Whether no simulation may begin, because edges are about to move."""
        return bool(self._counts[_IS_PAUSED])

    @property
    def num_requests(self) -> int:
        """Rows that are to be evaluated, or questions to a learned model."""
        return self._counts[_NUM_REQUESTS]

    @property
    def num_roots(self) -> int:
        """How many of the questions to a learned model are about roots."""
        return self._counts[_NUM_ROOTS]

    @property
    def is_scattered(self) -> bool:
        """Whether the answers of a learned model do not belong into adjacent places."""
        return bool(self._counts[_IS_SCATTERED])

    def take_questions(self) -> list[int]:
        """The slots of the simulations that ask something new since the last call."""
        counts = self._counts
        count = counts[_NUM_REQUESTS]
        if count == 0:
            return []
        counts[_NUM_REQUESTS] = 0
        # With one simulation in flight it is always one.
        return [self._asked[0]] if count == 1 else self._asked[:count].tolist()

    def waiting(self) -> list[int]:
        """The slots of the simulations of a single tree that wait, by the order of questions."""
        from_first = np.roll(self.stack, -int(self.queues["first_waiting"][0]))
        slots: list[int] = from_first[: self.num_waiting].tolist()
        return sorted(slots, key=self.slots["ticket"].__getitem__)

    @property
    def num_waiting(self) -> int:
        """Simulations whose leaves are not evaluated yet."""
        if self.evaluator.batch is None:
            return 0
        return int(self.queues["num_waiting"].sum())

    def take_stopped(self) -> int:
        """How many trees have stopped since the last call."""
        count = self._counts[_NUM_STOPPED]
        self._counts[_NUM_STOPPED] = 0
        return count

    def clear(self) -> None:
        """Cancel all simulations that wait."""
        for name in ("num_waiting", "num_ready", "is_solved"):
            self.queues[name] = 0
        for name in ("num_requests", "num_results", "is_paused", "num_roots", "is_scattered"):
            self.control[name] = 0
        self.request_table[:] = NONE
