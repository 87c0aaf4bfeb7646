"""Explains why a kernel stopped: what is wrong with a game or an evaluator, and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.doctor.contract import shortened
from uctree.doctor.first_look import first_breach, indented
from uctree.engine.compile import interpreted
from uctree.engine.compose import Composition
from uctree.engine.reach import place_of_error
from uctree.engine.workspace import Workspace
from uctree.errors import IllegalAction
from uctree.game import ENDLESS, LARGEST, Game
from uctree.kernels.answers import HIDDEN_STATE
from uctree.kernels.status import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_CHOICE,
    BAD_COUNT,
    BAD_REWARD,
    BAD_SCORE,
    BAD_TO_PLAY,
    BAD_VALUE,
    ENDLESS_CHANCE,
    ENDLESS_PLAYOUT,
    NOT_ZERO_SUM,
    PAYS_EARLY,
)
from uctree.tree import Tree

# What a rule that writes out of bounds may cause.
_MAYBE_MEMORY = {BAD_COUNT, BAD_ACTION, BAD_TO_PLAY, BAD_CHANCE, BAD_REWARD, BAD_VALUE}


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
        BAD_CHANCE: f"chance must give 1 to {game.max_outcomes} outcomes of at least 0, whose "
        "probabilities are not negative and add up to 1",
        BAD_REWARD: f"step paid {reward}; rewards must be finite, and at most {LARGEST:g}",
        BAD_VALUE: f"{evaluator.name} gave a value or prior that is not a finite number, or a "
        f"value above {LARGEST:g}",
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
        ENDLESS_CHANCE: f"{ENDLESS} chance states followed each other, and no player was to move; "
        "step must set to_play to a player or to uctree.OVER in the end",
    }[status]
    return with_path(composition, work, tree, path, what, is_rule=status in _MAYBE_MEMORY)


def with_path(
    composition: Composition, work: Workspace, tree: Tree, path: np.ndarray, what: str, *,
    is_rule: bool = True,
) -> str:  # fmt: skip
    """The message `what`, with the path that led to it and what plain Python says there.

    Args:
        is_rule: whether a mistake in a rule may be the cause, so that a look at the rules helps.
    """
    game = composition.game
    depth = int(work.work["depth"][0])
    taken = [game.plain_action(tree.action(edge)) for edge in path["edge"][:depth]]
    if game.dtype == HIDDEN_STATE:  # nobody else knows these states
        return f"{game.name}: {what}. It happened after the actions {taken} from the root"
    state, count, found = _replayed(game, tree.state, taken)
    if game.is_continuous:
        taken = [action.tolist() for action in taken]
    where = f"after the actions {taken} from the root"
    if state is not None and count < depth:
        where = f"by the action {taken[count]} after the actions {taken[:count]} from the root"
    lines = [f"{game.name}: {what}.", f"  It happened {where}"]
    if state is not None:
        below = "in or below" if count == depth else "in"
        lines[-1] += f", {below} the state\n{_indented(game, state)}"
    if is_rule and not found:
        found = _seen_below(game, [each for each in (state, work.states[1]) if each is not None])
    if found:
        lines.append(f"  {indented(found)}")
    elif is_rule and not (composition.options.debug or interpreted()):
        lines.append("  Run with debug=True for bounds checks.")
    return "\n".join(lines)


def _replayed(game: Game, root: np.record, actions: list[Any]) -> tuple[np.record | None, int, str]:
    """The state after these actions, how many of them plain Python took, and what it raised.

    The state is None if it cannot be known: in open loop, no outcomes of chance are in a path.
    """
    state = game.copy(root)
    for count, action in enumerate(actions):
        try:
            state, _ = game.step(state, action)
        except IllegalAction:
            return None, count, ""
        except Exception as error:
            return state, count, f"Plain Python says: {_text(error)}"
    return state, len(actions), ""


def _seen_below(game: Game, states: list[Any]) -> str:
    """What a few episodes in plain Python from the first state that shows something say."""
    for state in states:
        try:
            finding = first_breach(game, state)
        except Exception:  # a state that broken rules have left
            continue
        if finding is not None:
            after = f" after the actions {shortened(finding.actions)} from there"
            return f"Plain Python says{after if finding.actions else ''}: {finding.message}"
    return ""


def _text(error: Exception) -> str:
    place = place_of_error(error)
    text = f"{type(error).__name__}: {error}"
    return f"{text}\n{place}" if place else text


def _indented(game: Game, state: np.void) -> str:
    try:
        text = game.show(state)
    except Exception:  # `show` may fail on a broken state
        text = str(state)
    return "\n".join(f"    {line}" for line in text.splitlines())
