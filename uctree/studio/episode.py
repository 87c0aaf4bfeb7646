"""An episode in the studio: its states, actions and values, looked back at and undone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from uctree.errors import IllegalAction, UctreeError
from uctree.game import CHANCE, Game
from uctree.studio.messages import MOST_PLIES
from uctree.variation import shown_steps


class StudioEpisode:
    """All plies of an episode, and the one that is looked at."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.states = [game.start()]
        self.actions: list[Any] = []
        self.words: list[str] = []  # of the actions, with who took them
        self.rewards: list[np.ndarray] = []
        self.values: list[list[float] | None] = [None]  # per player, found by searches of the state
        self.ply = 0
        self.resigned: int | None = None  # the player who gave up

    @property
    def state(self) -> np.record:
        """The state that is looked at."""
        return self.states[self.ply]

    @property
    def to_play(self) -> int:
        return self.game.to_play(self.state)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing follows: the last ply is looked at."""
        return self.ply == len(self.actions)

    @property
    def is_over(self) -> bool:
        """Whether nobody is to move any more."""
        return (self.resigned is not None and self.is_at_end) or self.game.is_over(self.state)

    def take(self, action: Any) -> None:
        """Take an action in the state that is looked at; what followed it before is gone."""
        if self.resigned is not None and self.is_at_end:
            raise IllegalAction(
                f"player {self.resigned} has resigned; undo, or begin a new episode"
            )
        if self.ply >= MOST_PLIES:
            raise UctreeError(f"the studio keeps {MOST_PLIES:,} plies; begin a new episode")
        state = self.state
        after, reward = self.game.step(state, action)
        ((word, _),) = shown_steps(self.game, state, [action])
        self._cut()
        self.states.append(after)
        self.actions.append(self.game.plain_action(action))
        self.words.append(word)
        self.rewards.append(reward)
        self.values.append(None)
        self.ply += 1

    def jump(self, ply: int) -> None:
        """Look at the state after `ply` actions."""
        if ply > len(self.actions):
            raise UctreeError(f"the episode has {len(self.actions)} plies; got {ply}")
        self.ply = ply

    def undo(self, persons: Collection[int]) -> None:
        """Go back to the last decision of one of `persons`, or of anybody, and forget the rest."""
        ply = self.ply
        if self.resigned is None:
            for ply in reversed(range(self.ply)):
                player = self.game.to_play(self.states[ply])
                if player in persons or (not persons and player != CHANCE):
                    break
            else:
                raise UctreeError("there is no earlier decision to undo")
        self.ply = ply
        self._cut()

    def _cut(self) -> None:
        """Forget what follows the state that is looked at."""
        self.resigned = None
        del self.states[self.ply + 1 :], self.values[self.ply + 1 :]
        del self.actions[self.ply :], self.words[self.ply :], self.rewards[self.ply :]

    def numbers(self) -> list[Any]:
        """All actions as numbers and lists, from which another session begins."""
        return [action if isinstance(action, int) else action.tolist() for action in self.actions]

    def returns(self) -> list[float]:
        """What each player was paid up to the state that is looked at, discounted."""
        total = np.zeros(self.game.num_players)
        for ply, reward in enumerate(self.rewards[: self.ply]):
            total += self.game.discount**ply * reward
        return [float(each) for each in total]
