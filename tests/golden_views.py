"""The answers of uctree.views, and of places in n in a row, to the test vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import uctree
from uctree.games import n_in_a_row
from uctree.games.n_in_a_row import placement_rewards
from uctree.views import Frame

Input = dict[str, Any]
Answer = dict[str, Any]


def _frame(given: Input) -> Frame:
    return Frame(given["board_size"], given["board_size"], given["view"])


def _listed(place: tuple[int, int] | None) -> list[int] | None:
    return None if place is None else list(place)


def _forward(given: Input) -> Answer:
    frame = _frame(given)
    center = frame.clamped(given["raw_center"])
    places = [frame.cell(action, center) for action in range(given["view"] ** 2)]
    return {
        "center": list(center),
        "cells": [_listed(places[action]) for action in given["actions"]],
        "valid_actions": sum(place is not None for place in places),
    }


def _inverse(given: Input) -> Answer:
    return {"action": _frame(given).index(given["cell"], given["center"])}


def _reframe(given: Input) -> Answer:
    frame, action, center = _frame(given), given["action"], given["action_center"]
    found = frame.reframed(action, center, given["target_center"])
    return {"cell": _listed(frame.cell(action, center)), "action_in_target_frame": found}


def _seen(given: Input) -> tuple[uctree.Game, np.record]:
    """The game with a window, and its state with these stones, all of player 0."""
    side = given["board_size"]
    game = n_in_a_row(side, side, min(5, side), 3, view=given["view"], focus=False)
    state = game.view.game.start()
    for row, col in given["stones"]:
        state["board"][row, col] = 1
    return game, game.view.state(state)


def _center(given: Input) -> Answer:
    """The centre by the frame, which has to be that of the game's window."""
    frame = _frame(given)
    game, state = _seen(given)
    middle, center = frame.middle(given["stones"]), frame.center(given["stones"])
    assert game.view.center_of(state) == center
    return {"raw_center": list(middle), "center": list(center)}


def _thumbnail(given: Input) -> Answer:
    """The thumbnail by the frame, which has to be that in the observation of the game."""
    frame = _frame(given)
    game, state = _seen(given)
    small = frame.thumbnail(state["board"] == 1)
    assert np.abs(game.observation(state, 0)[4] - small).max() < 1e-6
    filled = {f"{i},{j}": float(small[i, j]) for i, j in np.argwhere(small > 0)}
    return {"edges": frame.edges()[0], "nonzero": filled}


def _placement(given: Input) -> Answer:
    rewards = placement_rewards(given["rank_keys"], given["placement_rewards"])
    return {"rewards": rewards, "total": sum(rewards)}


FAMILIES: dict[str, Callable[[Input], Answer]] = {
    "localview.forward.": _forward,
    "localview.inverse.": _inverse,
    "localview.reframe.": _reframe,
    "localview.center.": _center,
    "thumbnail.": _thumbnail,
    "placement.": _placement,
}
