"""Episodes as sequences, from which learned models are trained: actions, rewards and ends as well.

A position holds the action that was taken, what it paid until the next decision (chance included),
and whether the episode ended then. If an episode was cut, one more position closes it: its state,
its value, and no action. Value targets are made when a batch is drawn, from the values that are
newest then.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn import moves
from uctree.learn.filling import NONE
from uctree.learn.options import check_learnable
from uctree.learn.replay import (
    POLICY_SLOTS,
    Replay,
    Schema,
    Window,
    check_array,
    check_numbers,
    faults_of,
    make_batch,
    refuse_where,
    write_policies,
)
from uctree.learn.targets import from_frames, n_step_returns, symmetries_of, to_frames
from uctree.views import NOWHERE, whole

GOES_ON, OVER, CUT = 0, 1, 2  # what follows the action of a position


def sequence_dtype(game: Game) -> np.dtype:
    """The dtype of a stored position of a sequence.

    `rewards` are in the order of the players; `search_values` begin with the player to move. The
    other fields are those of `replay.position_dtype`. The `action` of a game with a window is that
    of the whole game, because those of the window mean nothing without its centre.
    """
    check_learnable(game)
    state = [field for field in moves.state_fields(game) if field[0] != "action"]
    return np.dtype([
        *state, ("action", "<i4"), ("rewards", "<f4", game.num_players), ("end", "u1"),
        *moves.policy_fields(game, POLICY_SLOTS),
        ("search_values", "<f4", game.num_players), ("weight", "<f4"), ("policy_weight", "<f4"),
        ("ply", "<i4"),
    ])  # fmt: skip


def sequence_schema(game: Game) -> Schema:
    """The schema of a replay of sequences."""
    return Schema(sequence_dtype(game), functools.partial(_check_sequence, game))


def make_sequence(
    game: Game, states: np.ndarray, actions: Any, rewards: Any, policies: Any, search_values: Any,
    *, is_over: bool, weights: Any = 1.0, policy_weights: Any = 1.0, plies: Any = None,
) -> np.ndarray:  # fmt: skip
    """The positions of an episode, ready for `Replay.append`.

    Args:
        states: one record for each action; if the episode was cut, one more for its last state. If
            actions are stored in their place, only `to_play` is read.
        actions: [num_actions], those that were taken; of the whole game if it has a window.
        rewards: [num_actions, num_players], what they paid until the next decision.
        policies: for each state, as in `make_positions`; the last state of a cut episode has none.
        search_values: [num_states, num_players], in the order of the players.
        is_over: whether the episode ended with the last action; else it was cut.
    """
    count = len(actions)
    positions = np.zeros(len(states), sequence_dtype(game))
    positions["action"] = NONE
    moves.write_states(positions, states, actions)
    positions["action"][:count], positions["rewards"][:count] = actions, rewards
    positions["end"][count - 1] = OVER if is_over else CUT
    write_policies(positions, policies)
    positions["search_values"] = to_frames(search_values, states["to_play"])
    positions["weight"][:count] = weights
    positions["policy_weight"][:count] = policy_weights
    positions["ply"] = np.arange(len(states)) if plies is None else plies
    return positions


def _check_sequence(game: Game, positions: Any) -> None:
    """Raise UctreeError if a sequence cannot be trained on."""
    check_array(game, positions, sequence_dtype(game))
    check_numbers(positions, ("rewards", "search_values", "policy_shares"))
    actions, ends, num_actions = positions["action"], positions["end"], whole(game).num_actions
    is_last = np.arange(len(positions)) == len(positions) - 1
    closes = is_last & (actions == NONE)
    takes = ~closes
    before_last = np.append(is_last[1:], False) if closes.any() else is_last
    faults = faults_of(game, positions) | {
        "no action": takes & ((actions < 0) | (actions >= num_actions)),
        "a weight, and no action": closes & (positions["weight"] > 0),
        "an end in the middle of the episode": takes & ~before_last & (ends != GOES_ON),
        "no end": before_last & takes & ((ends == GOES_ON) | (ends > CUT)),
        "an end and a state behind it": np.full(
            len(positions), bool(closes.any()) and bool((ends == OVER).any())
        ),
    }
    refuse_where(positions, faults)
    if not takes.any():
        raise UctreeError("an episode has at least one action; got none")
    moves.check_moves(game, positions)


# --- what is kept in memory ----------------------------------------------------------------------


class Columns:
    """What value targets need of every position of a replay, in memory, by number.

    Positions before `base`, and damaged ones, have no columns.
    """

    def __init__(self, replay: Replay, discount: float) -> None:
        self.replay, self.discount = replay, discount
        self.base = self.end = replay.base
        players = replay.game.num_players
        self._arrays: dict[str, np.ndarray] = {
            "first": np.zeros(0, np.int64),  # the number of the episode's first position
            "stop": np.zeros(0, np.int64),  # the number after its last one
            "to_play": np.zeros(0, np.int8),
            "action": np.zeros(0, np.int32),
            "end": np.zeros(0, np.uint8),
            "rewards": np.zeros((0, players)),
            "values": np.zeros((0, players)),  # of the search, in the order of the players
            "returns": np.zeros((0, players)),  # to the end
            "ends_unknown": np.zeros(0, bool),  # the episode was cut, and its last value is unknown
            "priority": np.zeros(0),
        }
        self.rotates = True  # players moved in turn in all episodes so far

    def __getitem__(self, name: str) -> np.ndarray:
        """A column of the positions from `base` to `end`."""
        return self._arrays[name][: self.end - self.base]

    def extend(self, end: int, num_steps: int | None) -> None:
        """Read the episodes up to a position; each has the priority of its value error."""
        replay = self.replay
        for entry in replay.entries_between(self.end, end):
            first, count = int(entry["first"]), int(entry["count"])
            self._reserve(first + count)
            positions = replay.intact_positions(entry)
            if positions is not None:
                self._write(first, positions, num_steps)
            self.end = first + count

    def forget(self, before: int) -> None:
        """Drop the columns of positions before this one, if these are most of all."""
        count = min(before, self.end) - self.base
        if count < (self.end - self.base) / 2:
            return
        for name, array in self._arrays.items():
            self._arrays[name] = array[count : self.end - self.base].copy()
        self.base += count

    def _reserve(self, end: int) -> None:
        for name, old in self._arrays.items():
            if len(old) < end - self.base:
                longer = np.zeros((max(1024, 2 * (end - self.base)), *old.shape[1:]), old.dtype)
                longer[: len(old)] = old
                self._arrays[name] = longer

    def _write(self, first: int, positions: np.ndarray, num_steps: int | None) -> None:
        part = slice(first - self.base, first - self.base + len(positions))
        arrays, to_play = self._arrays, moves.players_of(positions)
        values = from_frames(positions["search_values"].astype(float), to_play)
        takes = positions["action"] != NONE
        count = int(takes.sum())
        rewards = positions["rewards"].astype(float)
        was_cut, is_closed = positions["end"][count - 1] == CUT, count < len(positions)
        final = values[count] if is_closed else None  # the value behind the last action
        returns = np.vstack([
            n_step_returns(rewards[:count], discount=self.discount, final_value=final),
            values[count:],
        ])  # fmt: skip
        arrays["first"][part], arrays["stop"][part] = first, first + len(positions)
        arrays["ends_unknown"][part] = was_cut and not is_closed
        for name, column in (
            ("to_play", to_play), ("action", positions["action"]), ("end", positions["end"]),
            ("rewards", rewards), ("values", values), ("returns", returns),
        ):  # fmt: skip
            arrays[name][part] = column
        numbers = np.arange(first, first + len(positions))
        targets = self.value_targets(numbers, num_steps, first + len(positions))
        rows = np.arange(len(numbers))
        errors = np.abs(targets - values)[rows, to_play]
        arrays["priority"][part] = np.where(np.isfinite(errors), errors, 0.0)
        in_turn = (to_play[:-1] + 1) % self.replay.game.num_players == to_play[1:]
        self.rotates = self.rotates and bool(in_turn[positions["end"][:-1] == GOES_ON].all())

    def value_targets(
        self, numbers: np.ndarray, num_steps: int | None, end: int | None = None
    ) -> np.ndarray:
        """The n-step returns of positions, [n, num_players] in the order of the players [Eq. 67].

        A row is NaN if the episode was cut and nobody knows what its last state is worth.
        """
        rows, arrays = numbers - self.base, self._arrays
        returns, unknown = arrays["returns"][rows], arrays["ends_unknown"][rows]
        if num_steps is not None:
            later = rows + num_steps
            inside = later < arrays["stop"][rows] - self.base
            at = later[inside]
            # The rewards after num_steps are replaced by the value.
            change = self.discount**num_steps * (arrays["values"][at] - arrays["returns"][at])
            returns[inside] += change
            unknown = unknown & ~inside
        returns[unknown] = np.nan
        return returns


# --- batches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceBatch:
    """Inputs and targets of n sequences of K steps, whose first position was drawn.

    Beyond the end of an episode the value and the rewards are 0, and nothing else is taught; beyond
    a cut nothing at all is. In a game with a window all positions of a sequence are seen in that of
    the first one: observations, actions and policies. Nothing is taught behind an action outside.
    """

    observations: np.ndarray  # [n, K + 1, *observation_shape], float32; those that `exists`
    actions: np.ndarray  # [n, K], int64; at random beyond the end
    policies: np.ndarray  # [n, K + 1, num_actions], float32
    policy_weights: np.ndarray  # [n, K + 1], float32; 0 if no policy is taught
    values: np.ndarray  # [n, K + 1, num_players], the player to move first
    value_weights: np.ndarray  # [n, K + 1]
    rewards: np.ndarray  # [n, K, num_players], the player who acts first
    reward_weights: np.ndarray  # [n, K]
    turns: np.ndarray  # [n, K], int64: how many seats on the next player sits, or num_players: OVER
    turn_weights: np.ndarray  # [n, K]
    exists: np.ndarray  # [n, K + 1], bool: the episode has this position
    weights: np.ndarray  # [n], float32, of importance
    numbers: np.ndarray  # [n], of the first positions


def draw_sequences(
    window: Window, columns: Columns, rng: np.random.Generator, batch_size: int, *,
    unroll_steps: int, num_steps: int | None = None, value_mix: float = 0.0,
    symmetries: bool = True, exponent: float = 0.0, correction: float = 0.0,
    newest: Reanalysed | None = None,
) -> SequenceBatch:  # fmt: skip
    """A batch of sequences, each drawn by the weight and the priority of its first position.

    Args:
        unroll_steps: K.
        num_steps: n of n-step returns, in decisions; None: to the end.
        value_mix: the share of the search's values in the value targets.
        exponent: that of priorities; 0 draws by weights alone [Eq. 77].
        correction: that of importance weights [Eq. 78].
        newest: policies that replace those of the episodes.
    """
    numbers, weights = _drawn(window, columns, rng, batch_size, exponent, correction)
    game = window.replay.game
    choices = np.zeros(batch_size, np.int64)
    if symmetries and game.symmetries is not None:
        choices = rng.integers(len(symmetries_of(game)[0]), size=batch_size)
    stop = columns["stop"][numbers - columns.base]
    grid = numbers[:, None] + np.arange(unroll_steps + 1)
    exists = grid < stop[:, None]
    rows = np.minimum(grid, stop[:, None] - 1) - columns.base
    flat = (rows + columns.base).ravel()
    positions = window.replay.gather(window.entries, flat)
    if newest is not None:
        newest.replace(positions, flat)
    batch = make_batch(
        game, positions, np.repeat(choices, unroll_steps + 1), with_values=False,
        paths=window.paths(rows + columns.base),
    )  # fmt: skip
    shape = batch_size, unroll_steps + 1
    to_play = columns["to_play"][rows]
    values = _mixed(columns, flat, num_steps, value_mix).reshape(*shape, game.num_players)
    ends = columns["end"][rows]
    # Beyond the last position of an episode that ended, not of one that was cut.
    is_beyond = ~exists & (ends == OVER)
    known = np.isfinite(values).all(axis=2)
    values = np.where((exists & known)[..., None], values, 0.0)
    takes = exists & (columns["action"][rows] != NONE)
    actions, rewards, turns, turn_weights = _steps(columns, rows, takes, to_play)
    drawn = rng.integers(game.num_actions, size=actions.shape)
    actions, is_seen = _in_first_window(game, actions, batch.windows, takes)
    taken = takes[:, :-1] & is_seen[:, 1:]
    actions = np.where(taken, _transformed(game, actions, choices), drawn)
    return SequenceBatch(
        observations=batch.observations.reshape(*shape, *(game.observation_shape or ())),
        actions=actions,
        policies=batch.policy.reshape(*shape, -1),
        policy_weights=batch.policy_weights.reshape(shape) * (takes & is_seen),
        values=_framed(values, to_play).astype(np.float32),
        value_weights=(is_seen & ((exists & known) | is_beyond)).astype(np.float32),
        rewards=_framed(rewards, to_play[:, :-1]).astype(np.float32),
        reward_weights=((takes | is_beyond)[:, :-1] & is_seen[:, 1:]).astype(np.float32),
        turns=turns,
        turn_weights=(turn_weights & is_seen[:, 1:]).astype(np.float32),
        exists=exists & is_seen,
        weights=weights.astype(np.float32),
        numbers=numbers,
    )


def _drawn(
    window: Window, columns: Columns, rng: np.random.Generator, count: int, exponent: float,
    correction: float,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The numbers of positions, and their importance weights."""
    weights = np.diff(window.cumulative, prepend=0.0)
    if exponent > 0:
        part = slice(window.start - columns.base, window.end - columns.base)
        weights = weights * prioritised(columns["priority"][part], exponent)
    cumulative = np.cumsum(weights)
    total = cumulative[-1] if len(cumulative) else 0.0
    if not total > 0:
        raise UctreeError(
            f"{window.replay.folder} has no position to draw from {window.start} to {window.end}"
        )
    drawn = np.searchsorted(cumulative, rng.random(count) * total, side="right")
    drawn = np.minimum(drawn, np.searchsorted(cumulative, total))  # rounding may exceed it
    shares = weights[drawn] / total
    return window.start + drawn, importance(shares, window.num_positions, correction)


SMALLEST_PRIORITY = 1e-3  # so that no position is never drawn


def prioritised(errors: Any, exponent: float) -> np.ndarray:
    """How often positions are drawn by their value errors.

        p_i ∝ (|V_i - z_i| + 1e-3)^α                                                   [Eq. 77]

    >>> prioritised([0.0, 0.999, 3.999], exponent=1.0).round(3).tolist()
    [0.001, 1.0, 4.0]
    """
    return np.asarray((np.asarray(errors, float) + SMALLEST_PRIORITY) ** exponent)


def importance(shares: Any, count: int, correction: float) -> np.ndarray:
    """The weights that undo that some positions are drawn more often; the largest is 1.

        w_i = (N · p_i)^-β / max_j (N · p_j)^-β                                        [Eq. 78]

    >>> importance([0.5, 0.25], count=4, correction=1.0).tolist()
    [0.5, 1.0]
    """
    weights = (np.asarray(shares, float) * count) ** -correction
    return np.asarray(weights / weights.max())


def _mixed(
    columns: Columns, numbers: np.ndarray, num_steps: int | None, share: float
) -> np.ndarray:
    """The value targets of positions, with a share of the search's values [Eq. 68]."""
    targets = columns.value_targets(numbers, num_steps)
    if share == 0.0:
        return targets
    return (1.0 - share) * targets + share * columns["values"][numbers - columns.base]


def _steps(
    columns: Columns, rows: np.ndarray, takes: np.ndarray, to_play: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Actions, rewards, turns and their weights of the steps from each position to the next."""
    players = columns["rewards"].shape[1]
    takes, here = takes[:, :-1], rows[:, :-1]
    actions = columns["action"][here].astype(np.int64)
    rewards = np.where(takes[..., None], columns["rewards"][here], 0.0)
    ends = columns["end"][here]
    turns = np.where(ends == OVER, players, (to_play[:, 1:] - to_play[:, :-1]) % players)
    has_next = rows[:, 1:] > here  # the state behind a cut may not be known
    return actions, rewards, turns.astype(np.int64), takes & ((ends == OVER) | has_next)


def _in_first_window(
    game: Game, actions: np.ndarray, windows: np.ndarray, takes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Actions in the window of the first position of their sequence, and what they lead to.

    Returns actions [n, K], and whether each position [n, K + 1] is reached inside that window.
    """
    is_seen = np.ones(takes.shape, bool)
    if game.view is None:
        return actions, is_seen
    first = windows.reshape(*takes.shape, 2)[:, :1]
    seen = game.view.local_actions(actions, first)
    is_seen[:, 1:] = np.logical_and.accumulate((seen != NOWHERE) | ~takes[:, :-1], axis=1)
    return seen, is_seen


def _framed(vectors: np.ndarray, players: np.ndarray) -> np.ndarray:
    flat = to_frames(vectors.reshape(-1, vectors.shape[-1]), players.ravel())
    return flat.reshape(vectors.shape)


def _transformed(game: Game, actions: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """Actions under the symmetry of their sequence."""
    if game.symmetries is None:
        return actions
    table, _ = symmetries_of(game)
    return np.asarray(table)[choices[:, None], np.maximum(actions, 0)]


# --- searches that were made again ---------------------------------------------------------------


def reanalysed_dtype(game: Game) -> np.dtype:
    """The dtype of a position that was searched again with newer weights.

    `state` is the CRC-32 of its state: if a replay loses positions, others get their numbers.
    """
    return np.dtype([
        ("number", "<i8"), ("state", "<u4"), *moves.policy_fields(game, POLICY_SLOTS),
        ("search_values", "<f8", game.num_players), ("weight", "<f4"),
    ])  # fmt: skip


def reanalysed_schema(game: Game) -> Schema:
    """The schema of a replay of positions that were searched again."""
    return Schema(reanalysed_dtype(game), functools.partial(_check_reanalysed, game))


def _check_reanalysed(game: Game, positions: Any) -> None:
    check_array(game, positions, reanalysed_dtype(game))
    actions, shares = positions["policy_actions"], positions["policy_shares"]
    finite = np.isfinite(positions["search_values"]).all(axis=1) & np.isfinite(shares).all(axis=1)
    refuse_where(positions, {
        "a number that is not finite": ~finite,
        "a number below 0": positions["number"] < 0,
        "an action out of range": ((actions < NONE) | (actions >= game.num_actions)).any(axis=1),
    })  # fmt: skip


class Reanalysed:
    """The newest policies of positions that were searched again, by the number of the position."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._policies: dict[int, np.void] = {}

    def note(self, found: np.ndarray, columns: Columns, window: Window) -> None:
        """Take over policies and values; `columns` get the values.

        Args:
            window: with all positions of the columns.
        """
        found = found[(found["number"] >= columns.base) & (found["number"] < columns.end)]
        found = found[columns["stop"][found["number"] - columns.base] > 0]  # others are damaged
        states = window.replay.states(window.entries, found["number"])
        for each in found[_sums(states) == found["state"]]:
            number = int(each["number"])
            self._policies[number] = each.copy()  # not a view, which would keep all of `found`
            columns["values"][number - columns.base] = each["search_values"]

    def forget(self, before: int) -> None:
        """Drop the policies of positions before this one."""
        self._policies = {n: each for n, each in self._policies.items() if n >= before}

    def replace(self, positions: np.ndarray, numbers: np.ndarray) -> None:
        """Write the newest policies into copies of positions."""
        if not self._policies:
            return
        for place, number in enumerate(numbers.tolist()):
            policy = self._policies.get(number)
            if policy is not None:
                for name in ("policy_actions", "policy_shares"):
                    positions[name][place] = policy[name]
                positions["policy_weight"][place] = 1.0


def _sums(states: np.ndarray) -> np.ndarray:
    """The CRC-32 of each state."""
    return np.array([zlib.crc32(state.tobytes()) for state in states], np.uint32)


def make_reanalysed(
    game: Game, numbers: np.ndarray, states: np.ndarray, policies: Sequence[Any],
    values: Sequence[np.ndarray],
) -> np.ndarray:  # fmt: skip
    """The positions of a search made again, ready for `Replay.append`."""
    found = np.zeros(len(numbers), reanalysed_dtype(game))
    found["number"], found["state"], found["weight"] = numbers, _sums(states), 1.0
    found["search_values"] = values
    write_policies(found, policies)
    return found
