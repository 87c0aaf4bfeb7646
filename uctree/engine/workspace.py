"""The working memory of one thread, besides the tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.engine.bindings import action_array
from uctree.engine.options import Options
from uctree.errors import BrokenGame
from uctree.game import ENDLESS, Game
from uctree.kernels.records import MAX_DEPTH
from uctree.selection import Widening
from uctree.tree import Layout, num_values


@dataclass(frozen=True)
class Arrays:
    """The dtypes and key ranges of a thread's arrays."""

    work: np.dtype
    path: np.dtype
    key_ranges: np.ndarray


def arrays_of(game: Game, options: Options, layout: Layout) -> Arrays:
    """The dtypes and key ranges of a thread's arrays for these options."""
    return Arrays(
        work_dtype(game, options, layout),
        path_dtype(num_values(game), options.transpositions),
        key_ranges(game),
    )


# --- workspaces ----------------------------------------------------------------------------------


def max_depth(game: Game, state: np.record) -> int:
    """The largest number of edges of a path from this root."""
    return min(MAX_DEPTH, _plies_left(game, state))


def keeps_best(game: Game) -> bool:
    """Whether a search keeps the best episode it has seen: for one player, without chance."""
    return game.num_players == 1 and game.rules.chance is None


class Workspace:
    """The arrays that one thread works on, besides the tree."""

    def __init__(self, game: Game, options: Options, arrays: Arrays, state: np.record) -> None:
        self.states = np.zeros(3, game.dtype)
        self.states[0] = state
        self.lock = np.zeros(1, np.int64)
        self.data = game.data
        self.key_ranges = arrays.key_ranges
        self.key_views = key_views(self.states)
        self.game, self.max_depth = game, max_depth(game, state)
        self.work = np.zeros(1, arrays.work)
        self._fill(game, options, _plies_left(game, state))
        self._fresh = self.work.tobytes()

    def reset(self, state: np.record) -> None:
        """Forget an earlier search, to begin another with the same options."""
        self.work.view(np.uint8)[:] = np.frombuffer(self._fresh, np.uint8)
        self.work["plies_left"] = _plies_left(self.game, state)
        self.states[0] = state

    def _fill(self, game: Game, options: Options, plies_left: int) -> None:
        work, evaluator = self.work[0], options.evaluator
        longest = ENDLESS if evaluator.max_plies is None else evaluator.max_plies
        work["actions"] = work["drawn"] = action_array(game)
        if options.proposal is not None:
            work["proposal"][: len(options.proposal.parameters)] = options.proposal.parameters
        if options.refine is not None:
            work["refine"][: len(options.refine.parameters)] = options.refine.parameters
        work["num_playouts"], work["longest_playout"] = evaluator.num_playouts, longest
        work["plies_left"] = plies_left
        work["parameters"][: len(options.selection.parameters)] = options.selection.parameters
        root_parameters = options.root_selection.parameters
        work["root_parameters"][: len(root_parameters)] = root_parameters
        work["backup_parameter"] = options.backup.parameter
        both = options.selection, options.root_selection
        work["smallest_range"] = max(rule.smallest_range for rule in both)
        work["amaf_first"] = -1
        for rule in (options.root_selection, options.selection):
            if rule.amaf is not None:
                work["amaf_parameter"] = rule.amaf.parameter
                work["amaf_threshold"] = rule.amaf.ref
        if options.widening is not None:
            given = options.widening
            most = game.num_actions if given.most is None else given.most
            work["widening"][: len(given.parameters)] = given.parameters
            work["most_edges"] = most
        if keeps_best(game):
            work["best_return"] = -math.inf
        if isinstance(options.chance, Widening):
            work["outcome_k"], work["outcome_alpha"] = options.chance.parameters


def work_dtype(game: Game, options: Options, layout: Layout) -> np.dtype:
    """The record of what one thread needs for a simulation."""
    actions, players = game.num_actions, game.num_players
    largest = max(actions, game.max_outcomes)
    chooses = any(r.choose is not None for r in (options.selection, options.root_selection))
    array = action_array(game)
    wide = largest if chooses or options.root_noise is not None else 1
    return np.dtype(
        [
            ("returns", float, (players,)),
            ("reward", float, (players,)),
            ("values", float, (players,)),
            ("more_values", float, (players,)),
            ("sample", float, (players,)),
            ("worker", np.int64),  # the thread's number, from 1 on: what the lock holds
            ("depth", np.int64),
            ("ending", np.int64),
            ("leaf_player", np.int64),
            ("count", np.int64),  # legal actions of the leaf
            ("timed", np.int64),
            ("clock", np.int64),
            ("times", np.int64, (4,)),
            ("stamp", np.int64),
            ("num_playouts", np.int64),  # of a leaf
            ("longest_playout", np.int64),  # plies
            ("plies_left", np.int64),  # after the root
            ("parameters", float, (max(1, len(options.selection.parameters)),)),
            ("root_parameters", float, (max(1, len(options.root_selection.parameters)),)),
            ("backup_parameter", float),
            ("smallest_range", float),  # of returns, that is stretched to [0, 1]
            ("amaf_parameter", float),
            ("amaf_threshold", np.int64),
            ("amaf_nodes", np.int64, (players,)),
            ("amaf_first", np.int64),
            ("widening", float, (4,)),  # see `selection.Widening.parameters`
            ("most_edges", np.int64),  # of a node that widens
            ("outcome_k", float),
            ("outcome_alpha", float),
            ("actions", array.dtype, array.shape),
            ("drawn", array.dtype, array.shape),  # of playouts; the leaf's actions stay
            ("proposal", float, (8,)),
            ("probabilities", float, (game.max_outcomes + 1024,)),
            ("logits", float, (actions if layout.priors else 1,)),
            ("played", np.int64, (1 + players * actions if layout.amaf else 1,)),
            ("amaf_edges", np.int32, (actions if layout.amaf else 1,)),
            ("legal_stamp", np.int64, (actions if options.open_loop else 1,)),
            ("order", np.int32, (max(1, actions) if options.widening is not None else 1,)),
            ("q", float, (wide,)),
            ("prior", float, (wide,)),
            ("visits", np.int64, (wide,)),
            ("scratch", float, (wide,)),
            ("noise", float, (wide,)),
            ("considered", np.int64, (wide,)),  # edges of a Gumbel root
            ("draws", float, (wide,)),  # of these edges
            ("num_considered", np.int64),
            # Of the leaf's actions, in the order of `legal`.
            ("log_priors", options.log_prior_dtype, (actions if layout.priors else 1,)),
            ("weights", float, (actions if layout.priors else 1,)),
            *([] if options.refine is None else options.refine.fields(game)),
            *(_best_fields(game) if keeps_best(game) else []),
        ]
    )


def _best_fields(game: Game) -> list[Any]:
    """The best episode so far: its return, its path, and the rng of the playout after it."""
    longest = min(MAX_DEPTH, game.max_plies or MAX_DEPTH)
    action = (float, (longest, game.dim)) if game.is_continuous else (np.int32, (longest,))
    return [
        ("best_return", float),
        ("best_drawn", np.uint64),
        ("best_depth", np.int64),
        ("best_actions", *action),
    ]


def path_dtype(num_values: int, shares_nodes: bool) -> np.dtype:
    fields: list[Any] = [("edge", np.int32), ("player", np.int32)]
    if shares_nodes:
        fields.append(("node", np.int32))
    return np.dtype([*fields, ("reward", np.float64, (num_values,))])


def key_ranges(game: Game) -> np.ndarray:
    """The begin and end of the key fields' bytes in a record, one row per range."""
    fields: Any = game.dtype.fields
    spans = sorted((fields[n][1], fields[n][1] + fields[n][0].itemsize) for n in game.key_fields)
    merged: list[list[int]] = []
    for begin, end in spans:
        if merged and merged[-1][1] == begin:
            merged[-1][1] = end
        else:
            merged.append([begin, end])
    return np.array(merged, np.int64).reshape(-1, 2)


def key_views(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of states, and the eight bytes that start at each byte as one number."""
    size = states.itemsize
    content = states.view(np.uint8).reshape(len(states), size)
    if size < 8:
        return content, np.zeros((1, 1), np.uint64)
    words: np.ndarray = np.ndarray(
        (len(states), size - 7), np.uint64, buffer=content, strides=(size, 1)
    )
    return content, words


def _plies_left(game: Game, state: np.record) -> int:
    """The largest number of plies after the root."""
    if game.max_plies is None:
        return ENDLESS
    ply = int(state["ply"]) if "ply" in (game.dtype.names or ()) else 0
    if ply >= game.max_plies:
        raise BrokenGame(
            f"the root is at ply {ply}, but {game.name} has max_plies={game.max_plies} and should "
            "be over by then"
        )
    return game.max_plies - ply
