"""Remembers which games were looked at before they were searched, in memory and on disk."""

from __future__ import annotations

import uctree
from uctree.doctor.first_look import refuse_broken
from uctree.engine.compile import interpreted
from uctree.engine.disk_cache import has_mark, save_mark
from uctree.engine.fingerprint import Fingerprint, fingerprint
from uctree.engine.recent import Recent
from uctree.engine.treefile import describe_dtype
from uctree.game import Game

MOST_REMEMBERED = 10_000
MOST_COMPARED = 2**16  # bytes of an array in data: every search compares them
_seen: Recent[str, bool] = Recent(MOST_REMEMBERED)


def look_at(game: Game) -> None:
    """Raise BrokenGame if a few episodes of a game break its contract.

    Nothing is done if the same game was looked at before, with the same data and start, which
    machine code does not depend on; nor in plain Python, where mistakes raise anyway.
    """
    watch = game.tables.get("look")
    if (watch is not None and not watch.has_changed()) or interpreted():
        return
    found = _fingerprint(game)
    is_seen = not found.unknown and (_seen.get(found.name) or has_mark(found.name))
    if not is_seen:
        refuse_broken(game)
        if not found.unknown:
            save_mark(found.name)
    if not found.unknown:
        _seen.put(found.name, True)
    for array in game.data:
        if array.nbytes <= MOST_COMPARED:
            found.watch.add_array(array)
    game.tables["look"] = found.watch


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
