"""Bots of OpenSpiel as agents of a match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uctree.adapters.objects import library
from uctree.arena.worlds import states_of
from uctree.errors import UctreeError
from uctree.game import Game


class BotAgent:
    """Takes the actions of a `pyspiel.Bot`.

    It plays games of OpenSpiel, as `world_game(from_openspiel(...))` makes them, and compiled games
    whose actions have the same numbers as those of a game of OpenSpiel.
    """

    def __init__(self, make: Callable[[Any, int, int], Any], game: Any = None) -> None:
        """
        Args:
            make: `make(game, player, seed)` returns a bot for a `pyspiel.Game` and a seat.
            game: for compiled games the same game of OpenSpiel, or its name.
        """
        if not callable(make):
            raise TypeError(
                "BotAgent takes a function make(game, player, seed) that returns a pyspiel.Bot, "
                f"since every episode has a new one; got {make!r}"
            )
        self.make, self.theirs = make, game

    def prepare(self, game: Game) -> None:
        self._start(game)

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.game, self.player, self.states = game, player, states_of(game)
        self.state = self._start(game)
        self.bot = self.make(self.state.get_game(), player, seed % 2**31)

    def act(self, state: Any) -> int:
        names = self._names(state)
        if sorted(names) != self.state.legal_actions():
            raise UctreeError(
                f"OpenSpiel lists the actions {self.state.legal_actions()} and {self.game.name} "
                f"lists {sorted(names)}: they are not the same game, or number actions differently"
            )
        return self._number(state, self.bot.step(self.state))

    def watch(self, state: Any, action: int) -> None:
        label = action if self.states is None else self._names(state)[action]
        mover = self.state.current_player()
        if mover != self.player:  # it knows its own
            self.bot.inform_action(self.state, mover, label)
        self.state.apply_action(label)

    def _start(self, game: Game) -> Any:
        """OpenSpiel's state at the start of an episode."""
        pyspiel, states = library("pyspiel", "spiel"), states_of(game)
        if states is not None and isinstance(states.states[0], pyspiel.State):
            return states.states[0].clone()
        if states is not None or self.theirs is None:
            raise UctreeError(
                f"{game.name} is no game of OpenSpiel: play in arena.world_game(adapters."
                'from_openspiel(...)), or say which one it is: BotAgent(make, game="connect_four")'
            )
        theirs = self.theirs
        theirs = pyspiel.load_game(theirs) if isinstance(theirs, str) else theirs
        return theirs.new_initial_state()

    def _names(self, state: Any) -> Any:
        """OpenSpiel's numbers of the actions or outcomes of a state."""
        if self.states is None:
            return self.game.legal(state)
        names, _ = self.states.listed(int(state["row"]), int(state["to_play"]))
        return names

    def _number(self, state: Any, label: int) -> int:
        return label if self.states is None else self._names(state).index(label)
