# Kernels hand on NumPy integers where they say int.
# mypy: disable-error-code="arg-type, return-value, type-arg"
"""Values where play can return to a state, in kernels: components, and sweeps over them.

`uctree.solver` says in which order they are called, and why the result is the value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from uctree.game import CHANCE
from uctree.kernels.backups import add_outcome, step_return
from uctree.kernels.records import NONE

CONVERGED = 1e-12  # sweeps end when the changes still to come are estimated to be smaller
NOISE = 1e-15  # changes of this size are rounding errors
WINDOW = 16  # sweeps from one estimate to the next
TIE = 1e-9  # choices whose values differ by less are equal


class Graph(NamedTuple):
    """All states of a game by number; the choices of state s are first[s] to first[s + 1]."""

    mover: np.ndarray  # [num_states], int64
    first: np.ndarray  # [num_states + 1], int64
    after: np.ndarray  # [num_choices], int64: where a choice leads; NONE if the episode ends
    paid: np.ndarray  # [num_choices, num_players]
    chance: np.ndarray  # [num_choices]: the probability of an outcome


class Components(NamedTuple):
    """Sets of states that can reach each other; a component stands after those it leads to."""

    order: np.ndarray  # [num_states], int64: the states, component by component
    starts: np.ndarray  # [num_states + 1], int64: where in `order` each one begins
    number: np.ndarray  # [num_states], int64: the component of a state


class Traversal(NamedTuple):
    """The memory of a search for components; int64, [num_states] each, filled with NONE."""

    index: np.ndarray  # when a state was entered
    low: np.ndarray  # the earliest entry that can be reached from it
    stack: np.ndarray  # states whose component is not known yet
    trail: np.ndarray  # the path to the current state
    current: np.ndarray  # the choice of a state that is followed


class Sweep(NamedTuple):
    """What the states of a component count with: `values` lowered to `cap`, raised to `floor`."""

    known: np.ndarray  # [num_states, players], the values of earlier components
    values: np.ndarray  # [num_states]
    floor: np.ndarray  # [num_states]
    cap: float
    sign: float  # 1 for player 0, -1 against it
    discount: float


PROGRESS = np.dtype([("sweeps", np.int64), ("change", np.float64)])


def find_components(graph: Graph, components: Components, traversal: Traversal) -> int:
    """The number of components, written to `components` (Tarjan 1972)."""
    index, low, stack = traversal.index, traversal.low, traversal.stack
    trail, current = traversal.trail, traversal.current
    count, placed, num_seen, num_waiting = 0, 0, 0, 0
    depth, entered = np.int64(-1), np.int64(0)
    while True:
        if entered != NONE:
            index[entered] = low[entered] = num_seen
            num_seen += 1
            stack[num_waiting] = entered
            num_waiting += 1
            current[entered] = graph.first[entered]
            depth += 1
            trail[depth] = entered
            entered = NONE
        state = trail[depth]
        if current[state] < graph.first[state + 1]:
            after = graph.after[current[state]]
            current[state] += 1
            if after != NONE and index[after] == NONE:
                entered = after
            elif after != NONE and components.number[after] == NONE:
                low[state] = min(low[state], index[after])
            continue
        if low[state] == index[state]:
            components.starts[count] = placed
            while components.number[state] == NONE:
                num_waiting -= 1
                other = stack[num_waiting]
                components.number[other] = count
                components.order[placed] = other
                placed += 1
            count += 1
        depth -= 1
        if depth < 0:
            components.starts[count] = placed
            return count
        low[trail[depth]] = min(low[trail[depth]], low[state])


def survey(
    graph: Graph, components: Components, component: int, known: np.ndarray, discount: float,
    player: int, found: np.ndarray,
) -> bool:  # fmt: skip
    """Whether play can stay in a component; `found` is what it then pays a player, and else.

    These are the least and the largest value of a way out, and the least and the largest reward of
    a step inside.
    """
    stays = False
    found[0], found[1], found[2], found[3] = np.inf, -np.inf, 0.0, 0.0
    for i in range(components.starts[component], components.starts[component + 1]):
        state = components.order[i]
        for choice in range(graph.first[state], graph.first[state + 1]):
            after, paid = graph.after[choice], graph.paid[choice, player]
            if after != NONE and components.number[after] == component:
                stays = True
                found[2], found[3] = min(found[2], paid), max(found[3], paid)
            else:
                rest = known[after, player] if after != NONE else 0.0
                value = step_return(paid, discount, rest)
                found[0], found[1] = min(found[0], value), max(found[1], value)
    return stays


# --- two players with opposed payoffs, or one player ---------------------------------------------


def choose(graph: Graph, components: Components, state: int, sweep: Sweep) -> float:
    """The value of a state by its choices."""
    mover = graph.mover[state]
    maximises = (mover == 0) == (sweep.sign > 0)
    result = 0.0
    for choice in range(graph.first[state], graph.first[state + 1]):
        after = graph.after[choice]
        rest = 0.0
        if after != NONE:
            if components.number[after] == components.number[state]:
                rest = max(sweep.floor[after], min(sweep.values[after], sweep.cap))
            else:
                rest = sweep.sign * sweep.known[after, 0]
        value = step_return(sweep.sign * graph.paid[choice, 0], sweep.discount, rest)
        if mover == CHANCE:
            result = add_outcome(result, graph.chance[choice], value)
        elif choice == graph.first[state]:
            result = value
        elif maximises:
            result = max(result, value)
        else:
            result = min(result, value)
    return result


def value_acyclic(
    graph: Graph, components: Components, component: int, count: int, sweep: Sweep,
    found: np.ndarray,
) -> int:  # fmt: skip
    """Value components from `component` on; the number of the first in which play can stay."""
    while component < count and not survey(
        graph, components, component, sweep.known, sweep.discount, np.int64(0), found
    ):
        state = components.order[components.starts[component]]
        sweep.known[state, 0] = choose(graph, components, state, sweep)
        component += 1
    return component


def converge(
    graph: Graph, components: Components, component: int, sweep: Sweep, heads: np.ndarray,
    num_sweeps: int,
) -> bool:  # fmt: skip
    """Sweep over a component until `values` no longer change; False if they still do."""
    for _ in range(num_sweeps):
        change = 0.0
        for i in range(components.starts[component], components.starts[component + 1]):
            state = components.order[i]
            value = choose(graph, components, state, sweep)
            change = max(change, abs(value - sweep.values[state]) / max(1.0, abs(value)))
            sweep.values[state] = value
        if is_converged(heads[0], change):
            return True
    return False


def is_converged(progress: Any, change: float) -> bool:
    """Whether the changes after this sweep add up to less than CONVERGED.

    They are estimated as a geometric series: no sweep changes more than the one before.
    """
    progress.sweeps += 1
    if change <= NOISE:
        return True
    if progress.sweeps % WINDOW != 0:
        return False
    ratio = change / progress.change
    progress.change = change
    if change > CONVERGED or ratio >= 1.0:
        return False
    return WINDOW * change * ratio <= CONVERGED * (1.0 - ratio)


# --- several players -----------------------------------------------------------------------------


def narrow(
    graph: Graph, components: Components, component: int, low: np.ndarray, high: np.ndarray,
    discount: float, heads: np.ndarray, num_sweeps: int,
) -> bool:  # fmt: skip
    """Sweep until the bounds on each player's value no longer change; False if they still do."""
    for _ in range(num_sweeps):
        change = 0.0
        for i in range(components.starts[component], components.starts[component + 1]):
            change = max(change, bound(graph, components.order[i], low, high, discount))
        if change == np.inf or is_converged(heads[0], change):
            return True
    return False


def narrow_acyclic(
    graph: Graph, components: Components, component: int, count: int, low: np.ndarray,
    high: np.ndarray, discount: float, found: np.ndarray,
) -> int:  # fmt: skip
    """Bound components from `component` on; the number of the first in which play can stay."""
    while component < count and not survey(
        graph, components, component, low, discount, np.int64(0), found
    ):
        bound(graph, components.order[components.starts[component]], low, high, discount)
        component += 1
    return component


def bound(graph: Graph, state: int, low: np.ndarray, high: np.ndarray, discount: float) -> float:
    """Tighten the bounds of a state by those of its choices; the largest change."""
    if graph.mover[state] == CHANCE:
        return expect(graph, state, low, high, discount)
    return unite(graph, state, low, high, discount)


def value_after(
    graph: Graph, choice: int, player: int, values: np.ndarray, discount: float
) -> float:
    """What a choice returns to a player."""
    after = graph.after[choice]
    rest = values[after, player] if after != NONE else 0.0
    return step_return(graph.paid[choice, player], discount, rest)


def expect(graph: Graph, state: int, low: np.ndarray, high: np.ndarray, discount: float) -> float:
    """Tighten the bounds of a chance state by the means over its outcomes; the largest change."""
    change = 0.0
    for player in range(low.shape[1]):
        lowest, highest = 0.0, 0.0
        for choice in range(graph.first[state], graph.first[state + 1]):
            p = graph.chance[choice]
            value = value_after(graph, choice, np.int64(player), low, discount)
            lowest = add_outcome(lowest, p, value)
            value = value_after(graph, choice, np.int64(player), high, discount)
            highest = add_outcome(highest, p, value)
        change = max(change, tighten(low, high, state, np.int64(player), lowest, highest))
    return change


def unite(graph: Graph, state: int, low: np.ndarray, high: np.ndarray, discount: float) -> float:
    """Tighten the bounds of a state, whichever choice is best for its mover; the largest change.

    A choice is out if another one is better for sure, or an earlier one surely no worse.
    """
    mover, first, end = graph.mover[state], graph.first[state], graph.first[state + 1]
    change, best = 0.0, -np.inf
    for choice in range(first, end):
        best = max(best, value_after(graph, choice, mover, low, discount))
    for player in range(low.shape[1]):
        lowest, highest, earlier = np.inf, -np.inf, -np.inf
        for choice in range(first, end):
            at_most = value_after(graph, choice, mover, high, discount)
            if best > at_most + TIE or earlier >= at_most - TIE:
                continue
            earlier = max(earlier, value_after(graph, choice, mover, low, discount))
            lowest = min(lowest, value_after(graph, choice, np.int64(player), low, discount))
            highest = max(highest, value_after(graph, choice, np.int64(player), high, discount))
        change = max(change, tighten(low, high, state, np.int64(player), lowest, highest))
    return change


def tighten(
    low: np.ndarray, high: np.ndarray, state: int, player: int, lowest: float, highest: float
) -> float:
    """Write the bounds of a state for a player where they are new; the change.

    If the old bounds exclude the new ones, as where rewards grow without end, there are none: they
    become infinite.
    """
    if lowest > high[state, player] + TIE or highest < low[state, player] - TIE:
        low[state, player], high[state, player] = -np.inf, np.inf
        return np.inf
    change = max(0.0, lowest - low[state, player], high[state, player] - highest)
    low[state, player] = max(low[state, player], lowest)
    high[state, player] = min(high[state, player], highest)
    return change
