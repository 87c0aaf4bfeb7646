"""Kernels that fill batches from states, also from states that are reached again by actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.kernels.binding import UNBOUND
from uctree.kernels.status import GUARD

# Bound when a kernel is composed.
legal = observe = step = UNBOUND
move_window = read_window = put_window = reframed = UNBOUND
NUM_ACTIONS = GUARD_AT = UNBOUND

WRONG_LEGAL = -1  # the status of a kernel: `legal` returned a wrong number of actions
NONE = -1  # the action of an unused slot; the base of a row that continues from the one before
SLOT, FIRST, COUNT, CHOICE = 0, 1, 2, 3  # columns of the rows that are walked
LEAST_REST = 1e-3  # what a policy leaves out below this is rounding


def fill_batch(
    states: Any, policy_actions: np.ndarray, policy_shares: np.ndarray, choices: np.ndarray,
    action_table: np.ndarray, cell_table: np.ndarray, observation: np.ndarray,
    cells: np.ndarray, planes: np.ndarray, policy: np.ndarray, mask: np.ndarray,
    actions: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Write observations, policies and legal actions of states; negative if `legal` is wrong.

    `observation` and `cells` are views of the same array: in the game's shape, and [plane, cell].
    """
    for i in range(planes.shape[0]):
        choice = choices[i]
        show(i, states[i], choice, cell_table, observation, cells, planes, data)
        for slot in range(policy_actions.shape[1]):
            if policy_actions[i, slot] >= 0:
                action = action_table[choice, policy_actions[i, slot]]
                policy[i, action] = policy_shares[i, slot]
        count = list_legal(states[i], actions, data)
        if count < 0:
            return WRONG_LEGAL
        for j in range(count):
            mask[i, action_table[choice, actions[j]]] = True
    return 0


def show(
    i: int, state: Any, choice: int, cell_table: np.ndarray, observation: np.ndarray,
    cells: np.ndarray, planes: np.ndarray, data: Any,
) -> None:  # fmt: skip
    """Write the observation of a state under a symmetry to row i."""
    for plane in range(planes.shape[1]):
        for cell in range(planes.shape[2]):
            cells[plane, cell] = 0.0
    observe(state, np.int64(state.to_play), observation, data)
    for plane in range(planes.shape[1]):
        for cell in range(planes.shape[2]):
            planes[i, plane, cell_table[choice, cell]] = cells[plane, cell]


def list_legal(state: Any, actions: np.ndarray, data: Any) -> int:
    """Write the legal actions; their number, or a negative one if `legal` is wrong."""
    count = np.int64(legal(state, actions, data))
    if count < 1 or count > NUM_ACTIONS or actions[GUARD_AT] != GUARD:
        return np.int64(WRONG_LEGAL)
    return count


# --- states that are reached again ---------------------------------------------------------------


def walk(
    bases: Any, rows: np.ndarray, moves: np.ndarray, states: Any, reward: np.ndarray, data: Any
) -> None:
    """Write the states that the moves of each row lead to, from one of `bases`."""
    for i in range(rows.shape[0]):
        states[i] = bases[rows[i, SLOT]]
        play(states[i], moves, rows[i, FIRST], rows[i, COUNT], reward, data)
        move_window(states[i], data)


def play(
    state: Any, moves: np.ndarray, first: int, count: int, reward: np.ndarray, data: Any
) -> None:
    """Take actions in a state, which changes."""
    for move in range(first, first + count):
        for player in range(reward.shape[0]):
            reward[player] = 0.0
        step(state, np.int64(moves[move]), reward, data)


def fill_walked(
    bases: Any, state_of: Any, rows: np.ndarray, moves: np.ndarray, policy_actions: np.ndarray,
    policy_shares: np.ndarray, action_table: np.ndarray, cell_table: np.ndarray,
    observation: np.ndarray, cells: np.ndarray, planes: np.ndarray, policy: np.ndarray,
    mask: np.ndarray, windows: np.ndarray, taken: np.ndarray, own: np.ndarray,
    actions: np.ndarray, reward: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """As `fill_batch`, for the states that the moves of each row lead to.

    A row without a base goes on from the row before it, and is seen in the window of the last row
    that has one: observation, policy and legal actions are those of that window. `windows` gets the
    centre of each state's own window, `taken` the share of its policy that is in the other.
    """
    for i in range(planes.shape[0]):
        if rows[i, SLOT] != NONE:
            state_of[0] = bases[rows[i, SLOT]]
        state, choice = state_of[0], rows[i, CHOICE]
        play(state, moves, rows[i, FIRST], rows[i, COUNT], reward, data)
        move_window(state, data)
        read_window(state, windows, i)
        root = i
        while rows[root, SLOT] == NONE:
            root -= 1
        count = list_legal(state, actions, data)
        if count < 0:
            return WRONG_LEGAL
        taken[i] = fill_policy(
            i, root, choice, count, policy_actions, policy_shares, action_table, policy, mask,
            windows, own, actions,
        )  # fmt: skip
        put_window(state, windows, root)
        show(i, state, choice, cell_table, observation, cells, planes, data)
    return 0


def fill_policy(
    i: int, root: int, choice: int, count: int, policy_actions: np.ndarray,
    policy_shares: np.ndarray, action_table: np.ndarray, policy: np.ndarray, mask: np.ndarray,
    windows: np.ndarray, own: np.ndarray, actions: np.ndarray,
) -> float:  # fmt: skip
    """Write the policy and the legal actions of row i in the window of row `root`.

    What the slots leave out of a policy is spread over all other legal actions. What is outside the
    window is left out, and the rest scaled to add up to 1. Returns its share before.
    """
    for action in range(own.shape[0]):
        own[action] = 0.0
    mass, listed = 0.0, 0
    for slot in range(policy_actions.shape[1]):
        if policy_actions[i, slot] >= 0:
            own[policy_actions[i, slot]] = policy_shares[i, slot]
            mass += float(policy_shares[i, slot])
            listed += 1
    rest = 1.0 - mass
    each = rest / (count - listed) if count > listed and rest > LEAST_REST else 0.0
    found = 0.0
    for j in range(count):
        action = reframed(np.int64(actions[j]), windows, i, root)
        if action != NONE:
            place = action_table[choice, action]
            mask[i, place] = True
            if listed > 0:
                share = own[actions[j]] if own[actions[j]] > 0.0 else each
                policy[i, place] = share
                found += share
    if found > 0.0:
        for place in range(policy.shape[1]):
            policy[i, place] = float(policy[i, place]) / found
    return found


def first_wrong(
    state_of: Any, moves: np.ndarray, to_play: np.ndarray, actions: np.ndarray,
    reward: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """The ply of an episode at which another player is to move, or its move is not legal.

    -1 if there is none. The last move may be NONE.
    """
    for ply in range(moves.shape[0]):
        if state_of[0].to_play != to_play[ply]:
            return np.int64(ply)
        if moves[ply] == NONE and ply == moves.shape[0] - 1:
            continue
        count = list_legal(state_of[0], actions, data)
        is_legal = False
        for j in range(count):
            is_legal |= actions[j] == moves[ply]
        if not is_legal:
            return np.int64(ply)
        play(state_of[0], moves, np.int64(ply), np.int64(1), reward, data)
    return np.int64(-1)


# --- windows -------------------------------------------------------------------------------------
# What a game without a window has in place of the functions above.


def no_window(state: Any, data: Any) -> None:
    """Replaces `move_window`."""


def no_center(state: Any, windows: np.ndarray, row: int) -> None:
    """Replaces `read_window` and `put_window`."""


def as_it_is(action: int, windows: np.ndarray, row: int, root: int) -> int:
    """Replaces `reframed`."""
    return action


def read_center(state: Any, windows: np.ndarray, row: int) -> None:
    """Write the centre of the window to a row."""
    windows[row, 0], windows[row, 1] = state.view_row, state.view_col


def put_center(state: Any, windows: np.ndarray, row: int) -> None:
    """Put the window to the centre of a row."""
    state.view_row, state.view_col = windows[row, 0], windows[row, 1]
