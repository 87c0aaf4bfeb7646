"""An episode of a game under way, as environments of other libraries need it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.game import CHANCE, OVER, Game


class RunningEpisode:
    """A state that goes on by actions; outcomes of chance are drawn in between."""

    def __init__(self, game: Game, rng: np.random.Generator) -> None:
        self.game, self.rng = game, rng
        self.state, self.num_plies = game.start(), 0
        self.rewards = np.zeros(game.num_players)  # of the last action, and of chance after it
        self._draw()

    @property
    def to_play(self) -> int:
        return int(self.state["to_play"])

    @property
    def is_over(self) -> bool:
        return self.to_play == OVER

    @property
    def is_cut(self) -> bool:
        """Whether the episode has as many plies as a playout may have."""
        most = self.game.max_plies
        return most is not None and self.num_plies >= most and not self.is_over

    def act(self, action: int) -> None:
        """Take an action; raises IllegalAction if it is not legal."""
        self.rewards = np.zeros(self.game.num_players)
        self._step(action)
        self._draw()

    def mask(self, player: int) -> np.ndarray:
        """1 for each action that `player` can take now."""
        mask = np.zeros(self.game.num_actions, np.int8)
        if self.to_play == player:
            mask[self.game.legal(self.state)] = 1
        return mask

    def observation(self, player: int) -> np.ndarray:
        """What a network would see, or all numbers of the state."""
        if self.game.observation_shape is not None:
            return np.array(self.game.observation(self.state, player), np.float32)
        fields = [np.ravel(self.state[name]) for name in self.game.dtype.names or ()]
        return np.concatenate(fields).astype(np.float32)

    def _step(self, action: int) -> None:
        self.state, reward = self.game.step(self.state, action)
        self.rewards += reward
        self.num_plies += 1

    def _draw(self) -> None:
        while self.to_play == CHANCE:
            outcomes, probabilities = zip(*self.game.outcomes(self.state), strict=True)
            share = np.array(probabilities) / sum(probabilities)
            self._step(int(outcomes[self.rng.choice(len(outcomes), p=share)]))


def check_finite(game: Any, name: str) -> None:
    """Refuse what is no game with numbered actions."""
    if not isinstance(game, Game):
        raise TypeError(f"{name} takes a uctree.Game; got {type(game).__name__}")
    if game.is_continuous:
        raise ValueError(f"the actions of {game.name} are vectors; {name} takes numbered ones")
