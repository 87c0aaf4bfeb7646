"""Tables that keep what was used most recently."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from uctree.game import Game

MOST_KERNELS = 64  # of a game and a kind, kept in memory

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A table of at most `most` entries; the one not used for longest makes room for a new one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """The value of a key, which is now the most recently used; None if there is none."""
        try:
            self._entries.move_to_end(key)
            return self._entries[key]
        except KeyError:  # also if another thread has just removed it
            return None

    def put(self, key: Key, value: Value) -> None:
        """Set the value of a key."""
        self._entries[key] = value
        while len(self._entries) > self.most:
            self._entries.popitem(last=False)


def table_of(game: Game, name: str, most: int) -> Recent:
    """The table of this name that belongs to a game, and is dropped with it."""
    try:
        return game.tables[name]
    except KeyError:
        return game.tables.setdefault(name, Recent(most))
