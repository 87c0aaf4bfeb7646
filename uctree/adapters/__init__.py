"""Worlds of other libraries, in and out: Gymnasium, PettingZoo, OpenSpiel, Python objects.

`from_...` makes a `World` that `plan` searches, `to_...` and `openspiel_bot` the reverse. The
other libraries are imported here alone, and on first use. `plan` asks `as_world` for what is no
`Problem`. Read `objects.py` first: what all of them share.
"""

from uctree.adapters.dispatch import as_world
from uctree.adapters.gymnasium_in import from_gymnasium
from uctree.adapters.gymnasium_out import to_gymnasium
from uctree.adapters.objects import from_object
from uctree.adapters.openspiel import from_openspiel, openspiel_bot
from uctree.adapters.openspiel_out import to_openspiel
from uctree.adapters.pettingzoo_in import from_pettingzoo
from uctree.adapters.pettingzoo_out import to_pettingzoo

__all__ = [
    "as_world", "from_gymnasium", "from_object", "from_openspiel", "from_pettingzoo",
    "openspiel_bot", "to_gymnasium", "to_openspiel", "to_pettingzoo",
]  # fmt: skip
