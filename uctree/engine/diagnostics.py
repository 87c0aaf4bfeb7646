"""Explains why a kernel stopped: what is wrong with a game or an evaluator, and where."""

from __future__ import annotations

import numpy as np

from uctree.engine.compose import Composition
from uctree.engine.workspace import Workspace
from uctree.game import ENDLESS, Game
from uctree.kernels.status import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_CHOICE,
    BAD_COUNT,
    BAD_REWARD,
    BAD_SCORE,
    BAD_TO_PLAY,
    BAD_VALUE,
    ENDLESS_PLAYOUT,
    NOT_ZERO_SUM,
    PAYS_EARLY,
)
from uctree.tree import Tree


def explain_status(
    composition: Composition, work: Workspace, tree: Tree, path: np.ndarray, status: int
) -> str:
    """The message for an error status: what is wrong, and the path that led to it."""
    game, evaluator = composition.game, composition.options.evaluator
    depth = int(work.work["depth"][0])
    reward = path["reward"][depth - 1] if depth else None
    to_play = int(work.states["to_play"][1])
    what = {
        BAD_COUNT: f"legal returned a count outside 1 to {game.num_actions} in a state that is not "
        "over, or wrote more than that many actions. If the episode has ended, step must set "
        "to_play = uctree.OVER",
        BAD_ACTION: "bounds, random_action or the proposal gave a vector that is not an action: "
        + str(game.action_space)
        if game.is_continuous
        else f"legal or random_action gave an action outside [0, {game.num_actions}), or "
        "legal gave none in a state that is not over",
        BAD_TO_PLAY: f"step set to_play to {to_play}; expected a player 0 to "
        f"{game.num_players - 1}, uctree.OVER, or uctree.CHANCE in a game that has chance=",
        BAD_CHANCE: f"chance must give 1 to {game.max_outcomes} outcomes whose probabilities "
        "add up to 1",
        BAD_REWARD: f"step paid {reward}; rewards must be finite",
        BAD_VALUE: f"{evaluator.name} gave a value or prior that is not a finite number",
        NOT_ZERO_SUM: "the game is declared zero_sum=True, but a reward or value does not add up "
        "to zero over the two players; fix it, or omit zero_sum",
        BAD_CHOICE: "the rule chose an edge that does not exist; `choose` must return an index "
        "from 0 to count - 1",
        BAD_SCORE: "the rule gave no edge a score that is a number; `score` must not be nan or "
        "minus infinity everywhere",
        PAYS_EARLY: f"step paid {reward} before the end of the episode; solver=True needs a game "
        "that pays only at its end: search without it",
        ENDLESS_PLAYOUT: f"a playout was still going after {ENDLESS} plies; give the game "
        "max_plies=, or cut playouts with evaluators.playout(max_plies=...)",
    }[status]
    return with_path(game, work, tree, path, what)


def with_path(game: Game, work: Workspace, tree: Tree, path: np.ndarray, what: str) -> str:
    """The message `what`, with the path from the root that led to it."""
    depth = int(work.work["depth"][0])
    taken = [game.plain_action(tree.action(edge)) for edge in path["edge"][:depth]]
    if game.is_continuous:
        taken = [action.tolist() for action in taken]
    return (
        f"{game.name}: {what}.\n  It happened after the actions {taken} from the root, "
        f"in or below the state\n{_indented(game, work.states[1])}\n"
        "  Run with debug=True for bounds checks."
    )


def _indented(game: Game, state: np.void) -> str:
    try:
        text = game.show(state)
    except Exception:  # `show` may fail on a broken state
        text = str(state)
    return "\n".join(f"    {line}" for line in text.splitlines())
