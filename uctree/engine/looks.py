"""Remembers which games were looked at before they were searched, in memory and on disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

import uctree
from uctree.doctor.first_look import refuse_broken
from uctree.engine.compile import interpreted
from uctree.engine.disk_cache import has_mark, save_mark
from uctree.engine.fingerprint import Fingerprint, fingerprint
from uctree.engine.recent import Recent
from uctree.engine.treefile import describe_dtype
from uctree.engine.watch import Watch
from uctree.game import Game

MOST_REMEMBERED = 10_000
MOST_COMPARED = 2**16  # bytes of an array in data: every search compares them
_seen: Recent[str, bool] = Recent(MOST_REMEMBERED)


@dataclass
class _Looked:
    """That a game was looked at."""

    watch: Watch  # of what the look depends on
    name: str  # of all that; "" if it has no name
    start: bytes
    is_deep: bool = False  # whether it was looked at from another state as well


def look_at(game: Game, state: np.record | None = None) -> None:
    """Raise BrokenGame if a few episodes of a game break its contract.

    Nothing is done if the same game was looked at before, with the same data and start, which
    machine code does not depend on; nor in plain Python, where mistakes raise anyway.

    Args:
        state: where a search begins; the first one that is not the start is looked at from there.
    """
    looked: _Looked | None = game.tables.get("look")
    if looked is None or looked.watch.has_changed():
        if interpreted():
            return
        looked = game.tables["look"] = _look_at_start(game)
    if looked.is_deep or state is None or state.tobytes() == looked.start or interpreted():
        return
    name = looked.name and hashlib.sha256(looked.name.encode() + state.tobytes()).hexdigest()
    _look_once(game, name, state)
    looked.is_deep = True


def _look_at_start(game: Game) -> _Looked:
    found = _fingerprint(game)
    name = "" if found.unknown else found.name
    _look_once(game, name)
    for array in game.data:
        if array.nbytes <= MOST_COMPARED:
            found.watch.add_array(array)
    return _Looked(found.watch, name, game.start().tobytes())


def _look_once(game: Game, name: str, state: np.record | None = None) -> None:
    """Look, unless a look of this name was made before."""
    if not (name and (_seen.get(name) or has_mark(name))):
        refuse_broken(game, state)
        if name:
            save_mark(name)
    if name:
        _seen.put(name, True)


def _fingerprint(game: Game) -> Fingerprint:
    """A hash of all that the look depends on."""
    rules = game.rules
    functions = (
        rules.legal, rules.start, rules.chance, rules.observe, rules.random_action, rules.playout,
        rules.heuristic, rules.priors, rules.exact, rules.bounds, rules.invariant,
    )  # fmt: skip
    declared = (
        str(describe_dtype(game.dtype)), game.num_players, game.num_actions, game.max_outcomes,
        str(game.action_space), game.observation_shape, game.payoff_range, game.zero_sum,
        game.discount, game.max_plies, game.repetition_value, game.key_fields,
    )  # fmt: skip
    return fingerprint(rules.step, {}, functions, game.data, declared, uctree.__version__)
