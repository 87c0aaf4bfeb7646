"""Backward induction if actions are vectors: every mover foresees the best replies.

The consecutive decisions of one player are one vector. It is maximised by evaluating points all
over the box and climbing from the best of them, coordinate by coordinate. To evaluate a vector, the
replies of the next players are found in the same way, one level deeper. So the work grows with the
number of times the turn passes to another player, and `solve_backward` raises an error if it would
take too long. If the other players are frozen, all decisions of one player are one vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from uctree import evaluators, specs
from uctree.engine.bindings import action_array, game_bindings
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.looks import look_at
from uctree.engine.recent import MOST_KERNELS, table_of
from uctree.errors import BrokenGame, UctreeError
from uctree.game import OVER, Box, Game, State, StateViews, make_rng
from uctree.kernels.binding import UNBOUND, noinline
from uctree.kernels.rules import DIM, DISCOUNT, NUM_PLAYERS, find_bounds, project, step

MOST_SWEEPS = 200  # through the coordinates of one decision
COARSE = 1e-3  # the step, as a share of the box, below which climbing uses slopes
MOST_CORNERED = 6  # coordinates of a decision up to which all corners of its box are evaluated
MOST_PAYOFFS = 3e8  # that one call may take, by an estimate
# Indices of `counts`: payoffs; the error; points per coordinate; who decides if others are frozen.
PAID, WRONG, POINTS, DECIDER = 0, 1, 2, 3
NO_PAYOFF, TOO_LONG = 1, 2  # errors

solve_first = UNBOUND  # solves the first level
FREEZES = UNBOUND  # whether all but one player follow a given path


# --- for people ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BackwardSolution:
    """The actions of players who all foresee the best replies of the next ones."""

    actions: list[np.ndarray]
    returns: np.ndarray  # [num_players], from the state on
    tolerance: float  # by how much the returns differ if other points are evaluated
    evaluations: int  # payoffs computed


def solve_backward(
    game: Game | str, state: State | None = None, *, points: int = 16
) -> BackwardSolution:
    """The actions from a state on if every mover foresees all best replies.

    Args:
        state: the start of the game if omitted.
        points: how many points per coordinate of a decision are evaluated before climbing. Peaks
            narrower than the gaps between them may be missed.
    """
    game = specs.as_game(game)
    solver = BackwardSolver(game, points)
    state = game.start() if state is None else game.copy(state)
    value = solver.value(state)
    again = BackwardSolver(game, points + max(3, points // 4)).value(state)
    actions = solver.actions(state)
    tolerance = float(np.abs(value - again).max()) + 1e-10
    return BackwardSolution(actions, value, tolerance, solver.evaluations)


class BackwardSolver:
    """Finds best replies in one continuous game, and counts the payoffs it computed."""

    def __init__(self, game: Game, points: int = 16, frozen: bool = False) -> None:
        """
        Args:
            points: as in `solve_backward`.
            frozen: let one player decide while the others follow a given path.
        """
        if not game.is_continuous:
            raise TypeError(
                f"the actions of {game.name} are numbers; uctree.solve(game) gives exact values"
            )
        if game.max_plies is None:
            raise UctreeError(
                f"backward induction needs to know when {game.name} ends: give it max_plies="
            )
        if points < 4:
            raise ValueError(f"points must be at least 4; got {points}")
        self.game, self.points, self.is_frozen = game, points, frozen
        self.evaluations, self.levels = 0, 1
        stages, dim = game.max_plies, game.dim
        longest = stages * dim
        fields = [("x", float, (longest,)), ("best", float, (longest,)), ("low", float, (longest,)),
                  ("high", float, (longest,)), ("value", float, (game.num_players,)),
                  ("current", float, (game.num_players,)), ("used", np.int64),
                  ("spare", float, (longest,)), ("table", float, (9, 9)),
                  ("seen", float, (4096,))]  # fmt: skip
        self.frames = np.zeros(stages + 1, fields)
        self.states = np.zeros(2 * stages + 2, game.dtype)
        self.actions_array, self.reward = action_array(game), np.zeros(game.num_players)
        self.counts = np.zeros(4, np.int64)
        self.path = np.zeros((stages, dim))  # what the frozen players do
        self.steps = np.zeros((longest + 1, longest))
        for size in range(1, longest + 1):
            self.steps[size, :size] = generators(size)

    def _kernel(self, levels: int) -> Kernel:
        """The kernel that solves this many nested levels."""
        known = table_of(self.game, "backward", MOST_KERNELS)
        key = (levels, self.is_frozen, interpreted())
        kernel: Kernel | None = known.get(key)
        look_at(self.game, self.states[0])
        if kernel is None or kernel.is_stale:
            solve: Callable[..., int] = no_level
            for _ in range(levels):
                solve = level_kernel(solve)
            bound = game_bindings(self.game, evaluators.playout())
            bound |= {"solve_first": solve, "FREEZES": self.is_frozen}
            label = f"{self.game.name}: backward induction, {levels} levels"
            kernel = compile_kernel(solve_root, bound, (self._memory(),), label=label)
            known.put(key, kernel)
        return kernel

    def _memory(self) -> Memory:
        return Memory(
            states=self.states,
            frames=self.frames,
            actions=self.actions_array,
            reward=self.reward,
            steps=self.steps,
            counts=self.counts,
            path=self.path,
            data=self.game.data,
        )

    def value(self, state: State) -> np.ndarray:
        """The value of a state per player if every later mover foresees the rest."""
        if self.game.is_over(state):
            return np.zeros(self.game.num_players)
        self._solve(state)
        return self.frames["value"][0].copy()

    def decision(self, state: State) -> list[np.ndarray]:
        """The actions of a state's mover until the turn passes to another player."""
        self._solve(state)
        mover, actions = self.game.to_play(state), []
        best = self.frames["best"][0].copy()
        for first in range(0, int(self.frames["used"][0]), self.game.dim):
            if self.game.to_play(state) != mover:
                break
            low, _ = self.game.box(state)
            action = best[first : first + len(low)]
            if isinstance(self.game.action_space, Box):
                action = np.clip(action, *self.game.box(state))
            else:
                action = self.game.action_space.project(action)  # type: ignore[union-attr]
            actions.append(action)
            state, _ = self.game.step(state, action)
        return actions

    def value_against(self, state: State, player: int, path: Sequence[np.ndarray]) -> float:
        """The most a player can get from a state on if the others act as in `path`."""
        self.path[:] = 0.0
        for row, action in zip(self.path, path, strict=False):
            row[: len(action)] = action
        self.counts[DECIDER] = player
        self._solve(state)
        return float(self.frames["value"][0, player])

    def actions(self, state: State) -> list[np.ndarray]:
        """The actions from a state to the end."""
        actions: list[np.ndarray] = []
        while not self.game.is_over(state):
            decided = self.decision(state)
            actions += decided
            state = self.game.play(decided, state)
        return actions

    def _solve(self, state: State) -> None:
        levels, guess = (1, 0.0) if self.is_frozen else self._guess(state)
        if guess > MOST_PAYOFFS:
            raise UctreeError(
                f"backward induction of {self.game.name} would take about {guess:.0e} payoffs "
                "here; it is for games with few changes of turn: search, or solve a later state"
            )
        self.states[0] = self.game.copy(state)
        self.counts[:3] = 0, 0, self.points
        self.levels = max(self.levels, levels)
        kernel = self._kernel(self.levels)
        memory = self._memory()
        if kernel.interpreted:
            memory = memory._replace(
                states=StateViews(self.states), frames=self.frames.view(np.recarray)
            )
        kernel.run(memory)
        self.evaluations += int(self.counts[PAID])
        if self.counts[WRONG]:
            what = {
                NO_PAYOFF: "step paid a reward that is not finite, or bounds gave no box",
                TOO_LONG: f"an episode continued after max_plies={self.game.max_plies}, or had "
                "more changes of turn than another one",
            }
            raise BrokenGame(f"{self.game.name}: {what[int(self.counts[WRONG])]}")

    def _guess(self, state: State) -> tuple[int, float]:
        """How often the turn changes in one random episode, and how many payoffs that may take."""
        game, rng = self.game, make_rng(0)
        total, movers = 1.0, 0
        mover: int | None = None
        here = game.copy(state)
        for _ in range(game.max_plies or 0):
            if game.is_over(here):
                break
            if game.to_play(here) != mover:
                mover, movers = game.to_play(here), movers + 1
                total *= (self.points + 60) * game.dim
            here, _ = game.step(here, game.random_vector(here, rng))
        return movers, total


def generators(dim: int) -> tuple[float, ...]:
    """The steps of an additive recurrence that fills a box of `dim` coordinates evenly.

        x(n) = frac(n · g),   g = (1/φ, 1/φ², ...),   φ > 1 the root of φ^(dim+1) = φ + 1
                                                                                       [Eq. 62]

    The R sequence of M. Roberts (2018); in one dimension φ is the golden ratio.

    >>> [round(step, 6) for step in generators(1)]
    [0.618034]
    """
    phi = 2.0
    for _ in range(64):
        phi = (1.0 + phi) ** (1.0 / (dim + 1))
    return tuple(phi**-j for j in range(1, dim + 1))


# --- kernels -------------------------------------------------------------------------------------
# Level i has its own row of `frames` and two states: the one in which its player moves, and one to
# step. Its `pay` gives the value of its vector, after the replies of the levels below.


class Memory(NamedTuple):
    """What the kernels of an induction read and write."""

    states: Any  # [2 levels + 2]
    frames: np.ndarray  # [levels]
    actions: np.ndarray  # see `bindings.action_array`
    reward: np.ndarray  # [players]
    steps: np.ndarray  # [coordinates + 1, coordinates]: `generators` of each number of them
    counts: np.ndarray  # see PAID
    path: np.ndarray  # [plies, coordinates of an action]: what the frozen players do
    data: Any  # of the game


def level_kernel(deeper: Callable[..., int]) -> Callable[..., int]:
    """The kernel that solves one level of the induction; `deeper` solves the next."""

    def pay(level: int, memory: Memory) -> float:
        """The value of a level's vector for its mover; `current` gets that of every player."""
        here, states, counts = memory.frames[level], memory.states, memory.counts
        mover = decider(level, memory)
        discount = play_vector(level, memory)
        if counts[WRONG] == 0 and states[2 * level + 1].to_play != OVER:
            states[2 * level + 2] = states[2 * level + 1]
            deeper(level + 1, memory)
            for player in range(NUM_PLAYERS):
                here.current[player] += discount * memory.frames[level + 1].value[player]
        if not math.isfinite(here.current[mover]):
            counts[WRONG] = NO_PAYOFF
        return here.current[mover] if counts[WRONG] == 0 else -math.inf

    def pay_at(level: int, i: int, x: float, memory: Memory) -> float:
        """The value of a level's vector for its mover after one coordinate is set."""
        memory.frames[level].x[i] = x
        return pay(level, memory)

    def slope(level: int, i: int, x: float, h: float, memory: Memory) -> float:
        """The derivative of the payoff by a coordinate, from differences of ever smaller steps.

        The differences are extrapolated to a step of zero, and the entry of the table that agrees
        best with its neighbours is taken (C. J. F. Ridders, 1982). So the slope of a quadratic
        payoff is exact at wide steps, at which rounding errors are small.
        """
        table = memory.frames[level].table
        best, best_error = 0.0, math.inf
        for k in range(table.shape[0]):
            f_right = pay_at(level, i, x + h, memory)
            f_left = pay_at(level, i, x - h, memory)
            table[k, 0] = (f_right - f_left) / (2.0 * h)
            factor = 4.0
            for j in range(1, k + 1):
                table[k, j] = (factor * table[k, j - 1] - table[k - 1, j - 1]) / (factor - 1.0)
                factor *= 4.0
                error = max(
                    abs(table[k, j] - table[k, j - 1]), abs(table[k, j] - table[k - 1, j - 1])
                )
                if error < best_error:
                    best, best_error = table[k, j], error
            if best_error <= 1e-14 * (abs(f_left) + abs(f_right)) / h:
                break
            h *= 0.5
        return best

    def climb_line(level: int, i: int, value: float, width: float, memory: Memory) -> float:
        """Move one coordinate uphill, by parabolas, then by its slope; the value there."""
        here = memory.frames[level]
        low, high, x = here.low[i], here.high[i], here.x[i]
        span, bend = high - low, 0.0
        h = width * span
        for _ in range(60):
            if h < COARSE * span or span <= 0.0:
                break
            left, right = max(low, x - h), min(high, x + h)
            f_left = f_right = value
            if left < x:
                f_left = pay_at(level, i, left, memory)
            if right > x:
                f_right = pay_at(level, i, right, memory)
            if f_left > value and f_left >= f_right:
                x, value = left, f_left
                continue
            if f_right > value:
                x, value = right, f_right
                continue
            peak = min(right, max(left, vertex(left, f_left, x, value, right, f_right)))
            if left < x < right:
                bend = curvature(left, f_left, x, value, right, f_right)
            if peak != x:
                f_peak = pay_at(level, i, peak, memory)
                if f_peak > value:
                    x, value = peak, f_peak
            h *= 0.1
        for _ in range(5):
            h = min(0.1 * span, min(x - low, high - x))
            if h < 1e-6 * span or bend >= 0.0 or span <= 0.0:
                break
            move = -slope(level, i, x, h, memory) / bend
            f_new = pay_at(level, i, x + move, memory)
            # Near the peak slopes are more precise than values: ignore a loss within rounding.
            if f_new < value - 1e-10 * (1.0 + abs(value)) or abs(move) > COARSE * span:
                break
            x, value = x + move, f_new
            if abs(move) < 1e-12 * span:
                break
        return pay_at(level, i, x, memory)

    def climb(level: int, memory: Memory) -> float:
        """Move a level's vector uphill, coordinate by coordinate; its value there."""
        here = memory.frames[level]
        value = pay(level, memory)
        width = 0.1
        for _ in range(MOST_SWEEPS):
            moved = 0.0
            for i in range(here.used):
                before = here.x[i]
                value = climb_line(level, np.int64(i), value, width, memory)
                span = here.high[i] - here.low[i]
                if span > 0.0:
                    moved = max(moved, abs(here.x[i] - before) / span)
            if moved < 1e-11 or here.used == 1 or memory.counts[WRONG] != 0:
                break
            width = min(0.1, max(2.0 * COARSE, 2.0 * moved))
        return value

    def solve(level: int, memory: Memory) -> int:
        """Write the best vector of a level's mover and its value for all players to `frames`."""
        here, steps, counts = memory.frames[level], memory.steps, memory.counts
        for i in range(here.x.shape[0]):
            here.x[i] = 0.0
        pay(level, memory)  # writes the box
        used = np.int64(here.used)
        num_points = num_looks(used, counts[POINTS], here.seen.shape[0])
        for n in range(num_points):
            set_point(here, steps, used, np.int64(n))
            here.seen[n] = pay(level, memory)
        best_value = -math.inf
        first = np.int64(-1)
        for _ in range(2):
            chosen = best_seen(here, steps, used, num_points, first)
            if chosen < 0 or counts[WRONG] != 0:
                break
            set_point(here, steps, used, chosen)
            value = climb(level, memory)
            if value > best_value:
                best_value = value
                for i in range(used):
                    here.best[i] = here.x[i]
            first = chosen
        for i in range(used):
            here.x[i] = here.best[i]
        pay(level, memory)
        for player in range(NUM_PLAYERS):
            here.value[player] = here.current[player]
        return 0

    # Inlined at every call on every level, they would take too much memory.
    for function in (pay, slope, climb_line, solve):
        noinline(function)
    return solve


def no_level(level: int, memory: Memory) -> int:
    """Set an error below the last level: there are more changes of turn than expected."""
    memory.counts[WRONG] = TOO_LONG
    return 0


def decider(level: int, memory: Memory) -> int:
    """The player who decides on a level."""
    return memory.counts[DECIDER] if FREEZES else np.int64(memory.states[2 * level].to_play)


def solve_root(memory: Memory) -> int:
    """Write the best vector of the first state's mover to `frames`."""
    return solve_first(np.int64(0), memory)


def play_vector(level: int, memory: Memory) -> float:
    """Play the vector of a level until the turn changes; the discount of later rewards."""
    here, states, counts = memory.frames[level], memory.states, memory.counts
    actions, reward, path, data = memory.actions, memory.reward, memory.path, memory.data
    mover = decider(level, memory)
    states[2 * level + 1] = states[2 * level]
    for player in range(NUM_PLAYERS):
        here.current[player] = 0.0
    used, plies, discount = np.int64(0), np.int64(0), 1.0
    while states[2 * level + 1].to_play != OVER:
        is_mine = states[2 * level + 1].to_play == mover
        if not is_mine and not FREEZES:
            break
        if plies >= path.shape[0]:
            counts[WRONG] = TOO_LONG
            break
        dim = np.int64(find_bounds(states[2 * level + 1], actions, data))
        for j in range(dim):
            actions[0, j] = here.x[used + j] if is_mine else path[plies, j]
        if dim < 1 or project(actions, dim) < 0:
            counts[WRONG] = NO_PAYOFF
            break
        if is_mine:
            for j in range(DIM):
                here.low[used + j] = actions[1, j]
                here.high[used + j] = actions[2, j]
                here.x[used + j] = actions[0, j]
            used += DIM
        plies += 1
        for player in range(NUM_PLAYERS):
            reward[player] = 0.0
        step(states[2 * level + 1], actions[0], reward, data)
        for player in range(NUM_PLAYERS):
            here.current[player] += discount * reward[player]
        discount *= DISCOUNT
    here.used = used
    if states[2 * level + 1].to_play == OVER:
        counts[PAID] += 1
    return discount


def num_corners(used: int) -> int:
    """How many corners of a box of `used` coordinates are evaluated."""
    return 1 << used if used <= MOST_CORNERED else 2


def num_looks(used: int, points: int, most: int) -> int:
    """How many points are evaluated before climbing: corners, and some per coordinate."""
    return min(most, num_corners(used) + points * used)


def set_point(here: Any, steps: np.ndarray, used: int, n: int) -> None:
    """Write the n-th point to evaluate: first corners, then points evenly over the box."""
    corners = num_corners(used)
    for i in range(used):
        if n >= corners:
            share = 0.5 + (n - corners) * steps[used, i]
            share -= math.floor(share)
        elif used <= MOST_CORNERED:
            share = float((n >> i) & 1)
        else:
            share = float(n)
        here.x[i] = here.low[i] + share * (here.high[i] - here.low[i])


def best_seen(here: Any, steps: np.ndarray, used: int, num_points: int, other: int) -> int:
    """The best of the evaluated points that is not close to the point `other`; -1 for none."""
    best = np.int64(-1)
    for n in range(num_points):
        if other >= 0 and not is_apart(here, steps, used, np.int64(n), other):
            continue
        if best < 0 or here.seen[n] > here.seen[best]:
            best = np.int64(n)
    return best


def is_apart(here: Any, steps: np.ndarray, used: int, n: int, other: int) -> bool:
    """Whether two of the evaluated points differ by a fifth of the box in a coordinate."""
    set_point(here, steps, used, other)
    for i in range(used):
        here.spare[i] = here.x[i]
    set_point(here, steps, used, n)
    for i in range(used):
        if abs(here.x[i] - here.spare[i]) > 0.2 * (here.high[i] - here.low[i]):
            return True
    return False


def vertex(a: float, f_a: float, b: float, f_b: float, c: float, f_c: float) -> float:
    """The highest point of the parabola through three points.

        b - ((b-a)² (f(b)-f(c)) - (b-c)² (f(b)-f(a))) / (2 ((b-a) (f(b)-f(c)) - (b-c) (f(b)-f(a))))
                                                                                       [Eq. 63]

    b itself if there is none.

    >>> vertex(-1.0, -4.0, 0.0, -1.0, 2.0, -1.0)
    1.0
    """
    p, q = (b - a) * (f_b - f_c), (b - c) * (f_b - f_a)
    if p - q <= 0.0:
        return b
    return b - 0.5 * ((b - a) * p - (b - c) * q) / (p - q)


def curvature(a: float, f_a: float, b: float, f_b: float, c: float, f_c: float) -> float:
    """The second derivative of the parabola through three points.

    >>> curvature(-1.0, -4.0, 0.0, -1.0, 2.0, -1.0)
    -2.0
    """
    return 2.0 * ((f_c - f_b) / (c - b) - (f_b - f_a) / (b - a)) / (c - a)
