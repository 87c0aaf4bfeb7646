"""as_world: which adapter a thing needs."""

from __future__ import annotations

import sys
from typing import Any

from uctree.adapters.gymnasium_in import from_gymnasium
from uctree.adapters.objects import from_object
from uctree.adapters.openspiel import from_openspiel
from uctree.adapters.pettingzoo_in import from_pettingzoo
from uctree.game import Game
from uctree.planning.world import World


def as_world(thing: Any) -> World:
    """The world of a thing that an adapter knows; TypeError for others."""
    # What belongs to a library cannot exist before the library was imported.
    pyspiel = sys.modules.get("pyspiel")
    if pyspiel is not None and isinstance(thing, (pyspiel.Game, pyspiel.State)):
        return from_openspiel(thing)
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is not None and isinstance(thing, (gymnasium.Env, gymnasium.vector.VectorEnv)):
        return from_gymnasium(thing)
    pettingzoo = sys.modules.get("pettingzoo")
    if pettingzoo is not None and isinstance(thing, (pettingzoo.AECEnv, pettingzoo.ParallelEnv)):
        return from_pettingzoo(thing)
    if isinstance(thing, Game):
        raise TypeError("plan is for Python objects; search a uctree.Game with uctree.search")
    if all(callable(getattr(thing, name, None)) for name in ("legal", "step", "clone")):
        return from_object(thing)
    raise TypeError(
        "plan takes a uctree.Problem with a start, a uctree.World, or what uctree.adapters knows: "
        "an environment of Gymnasium or PettingZoo, a state of OpenSpiel, or an object with "
        "legal(), step(action) and clone() (other names: uctree.adapters.from_object); got "
        f"{type(thing).__name__}"
    )
