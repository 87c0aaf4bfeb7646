"""Gymnasium out: a game as an environment for one of its players."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from uctree import specs
from uctree.adapters.episodes import RunningEpisode, check_finite
from uctree.adapters.objects import library
from uctree.game import Game

Opponent = Callable[[Game, Any, np.random.Generator], int]


def random_opponent(game: Game, state: Any, rng: np.random.Generator) -> int:
    """A legal action, drawn at random."""
    return int(rng.choice(game.legal(state)))


def to_gymnasium(
    game: Game | str,
    *,
    player: int = 0,
    opponent: Opponent = random_opponent,
    illegal: str = "end",
    illegal_reward: float = -1.0,
) -> Any:
    """A `gymnasium.Env` in which one player of a game acts; a step ends when it is to move again.

    Observations are those of the game, or all numbers of its state. `info["action_mask"]` has 1 for
    each legal action.

    Args:
        opponent: `opponent(game, state, rng)` returns the action of any other player; `rng` is the
            generator of the environment.
        illegal: what an illegal action does: "end" the episode and pay `illegal_reward`, or "noop",
            nothing.
    """
    game = specs.as_game(game)
    check_finite(game, "to_gymnasium")
    if illegal not in ("end", "noop"):
        raise ValueError(f'illegal is "end" or "noop"; got {illegal!r}')
    if not 0 <= player < game.num_players:
        raise ValueError(f"player must be 0 to {game.num_players - 1}; got {player}")
    return _env_class()(game, player, opponent, illegal, illegal_reward)


@lru_cache(maxsize=1)
def _env_class() -> type:
    """The class of our environments; made on first use, since Gymnasium is an extra."""
    library("gymnasium", "gym")
    import gymnasium

    class GameEnv(gymnasium.Env):
        metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

        def __init__(
            self, game: Game, player: int, opponent: Opponent, illegal: str, illegal_reward: float
        ) -> None:
            self.game, self.player, self.opponent = game, player, opponent
            self.illegal, self.illegal_reward = illegal, illegal_reward
            self.render_mode = "ansi"
            shape = RunningEpisode(game, np.random.default_rng(0)).observation(player).shape
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
            self.action_space = gymnasium.spaces.Discrete(game.num_actions)
            self.episode: RunningEpisode | None = None
            self._is_over = True

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed, options=options)
            self.episode = RunningEpisode(self.game, self.np_random)
            self._let_others_act()
            self._is_over = self.episode.is_over
            return self._seen()

        def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            episode = self.episode
            if episode is None or self._is_over:
                raise RuntimeError("the episode is over: call reset() first")
            if not episode.mask(self.player)[int(action)]:
                self._is_over = self.illegal == "end"
                observation, info = self._seen()
                reward = self.illegal_reward if self._is_over else 0.0
                return observation, reward, self._is_over, False, info | {"illegal": True}
            episode.act(int(action))
            reward = float(episode.rewards[self.player]) + self._let_others_act()
            is_cut = episode.is_cut
            self._is_over = episode.is_over or is_cut
            observation, info = self._seen()
            return observation, reward, episode.is_over, is_cut, info

        def render(self) -> str:
            return "" if self.episode is None else self.game.show(self.episode.state)

        def _let_others_act(self) -> float:
            """What the player is paid until it is to move."""
            episode, reward = self.episode, 0.0
            assert episode is not None
            while not (episode.is_over or episode.is_cut or episode.to_play == self.player):
                episode.act(self.opponent(self.game, episode.state, self.np_random))
                reward += float(episode.rewards[self.player])
            return reward

        def _seen(self) -> tuple[np.ndarray, dict[str, Any]]:
            assert self.episode is not None
            mask = self.episode.mask(self.player)
            return self.episode.observation(self.player), {"action_mask": mask}

        def action_masks(self) -> np.ndarray:
            """The legal actions, under the name that maskable agents look for."""
            assert self.episode is not None
            return self.episode.mask(self.player).astype(bool)

    return GameEnv
