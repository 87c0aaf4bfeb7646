"""Binds a game and an evaluator to the names that kernels use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uctree.engine.compile import adapt
from uctree.evaluators import Evaluator
from uctree.game import Box, Game
from uctree.kernels.playouts import draw_legal, draw_shortcut, play_shortcut, play_steps
from uctree.kernels.status import GUARD
from uctree.kernels.vectors import (
    draw_in_box,
    draw_on_sphere,
    draw_own_vector,
    fixed_bounds,
    into_box,
    onto_sphere,
    state_bounds,
)
from uctree.tree import num_values


def game_bindings(game: Game, evaluator: Evaluator, notes_actions: bool = False) -> dict[str, Any]:
    """The bindings of kernels to a game and an evaluator, by name.

    Args:
        notes_actions: whether playouts note the players' actions; see `playouts.note_played`.
    """
    bound: dict[str, Any] = {
        "NUM_PLAYERS": game.num_players,
        "NUM_ACTIONS": max(1, game.num_actions),
        "IS_CONTINUOUS": game.is_continuous,
        "DIM": game.dim,
        "MAX_OUTCOMES": game.max_outcomes,
        "GUARD_AT": max(game.num_actions, game.max_outcomes),
        "DISCOUNT": game.discount,
        "ZERO_SUM": game.zero_sum,
        "NUM_VALUES": num_values(game),
        "HAS_CHANCE": game.rules.chance is not None,
        "HAS_HEURISTIC": game.rules.heuristic is not None,
        "IS_ENDLESS_BAD": game.max_plies is None and evaluator.max_plies is None,
        "TAKES_PRIORS": False,
        "HAS_BATCH_EVALUATOR": evaluator.batch is not None,
        "IMAGINES": False,  # unless the evaluator is a learned model
        "NOTES_ACTIONS": notes_actions,
        "evaluate_state": _no_function,
    }
    for name in ("legal", "step", "chance", "heuristic", "random_action", "bounds"):
        bound[name] = bound_rule(game, name)
    bound["playout_to_end"], bound["give_priors"] = (
        bound_rule(game, "playout"),
        bound_rule(game, "priors"),
    )
    bound["know_exactly"], bound["observe"] = bound_rule(game, "exact"), bound_rule(game, "observe")
    bound["draw_action"] = draw_legal if game.rules.random_action is None else draw_shortcut
    if game.is_continuous:
        bound |= _vector_bindings(game)
    # The game's own playout has no limit and notes no actions; else playouts go step by step.
    own = game.rules.playout is not None and evaluator.max_plies is None and not notes_actions
    bound["play_on"] = play_shortcut if own else play_steps
    bound["KEEPS_BEST"] = bound["KEEPS_PLAYOUTS"] = False  # unless a search is composed
    return bound | dict(evaluator.functions)


def _vector_bindings(game: Game) -> dict[str, Any]:
    """The bindings that draw vectors of the game's space, and project them into it."""
    is_box = isinstance(game.action_space, Box)
    own = game.rules.random_action is not None
    return {
        "legal": _list_nothing,
        "draw_action": draw_own_vector if own else draw_in_box if is_box else draw_on_sphere,
        "find_bounds": fixed_bounds if game.rules.bounds is None else state_bounds,
        "project": into_box if is_box else onto_sphere,
    }


def action_array(game: Game) -> np.ndarray:
    """The array to which kernels write legal actions or outcomes; or one action that is a vector.

    Guards follow the last action, to detect a `legal` that writes too many. A vector is the first
    of three rows; the others are the corners of its box.
    """
    if game.action_space is None:
        return np.full(2 * max(game.num_actions, game.max_outcomes) + 1024, GUARD, np.int32)
    actions = np.zeros((3, game.dim))
    if isinstance(game.action_space, Box):
        actions[1], actions[2] = game.action_space.low, game.action_space.high
    return actions


def bound_rule(game: Game, name: str) -> Callable[..., Any]:
    """A rule of the game as kernels call it, with `data` as last argument."""
    function = getattr(game.rules, name)
    if function is None:
        return _no_function
    given = [f"argument_{i}" for i in range(len(game.signatures[name]))] + ["data"]
    return adapt(function, given, given if game.takes_data(name) else given[:-1])


def _no_function() -> None:
    """Replaces a rule that a game does not have; kernels bound to it never call it."""


def _list_nothing(state: Any, actions: np.ndarray, data: Any) -> int:
    """Replaces `legal` if actions are vectors."""
    return 0
