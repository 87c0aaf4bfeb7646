"""PettingZoo out: a game as an environment for all of its players."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from uctree import specs
from uctree.adapters.episodes import RunningEpisode, check_finite
from uctree.adapters.objects import library
from uctree.game import Game


def to_pettingzoo(game: Game | str) -> Any:
    """A `pettingzoo.AECEnv` whose agents `player_0`, ... are the players of a game.

    An observation is a dict of `observation` and `action_mask`, as in PettingZoo's classic games.
    Chance is drawn inside a step.
    """
    game = specs.as_game(game)
    check_finite(game, "to_pettingzoo")
    return _env_class()(game)


@lru_cache(maxsize=1)
def _env_class() -> type:
    """The class of our environments; made on first use, since PettingZoo is an extra."""
    library("pettingzoo", "pettingzoo")
    from gymnasium import spaces
    from pettingzoo import AECEnv

    class GameAEC(AECEnv):  # type: ignore[misc]
        def __init__(self, game: Game) -> None:
            super().__init__()
            self.game, self.render_mode = game, "ansi"
            self.metadata = {
                "render_modes": ["ansi"], "name": game.name, "is_parallelizable": False,
            }  # fmt: skip
            self.possible_agents = [f"player_{player}" for player in range(game.num_players)]
            self.agents: list[str] = []
            shape = RunningEpisode(game, np.random.default_rng(0)).observation(0).shape
            self._observations = spaces.Dict(
                {
                    "observation": spaces.Box(-np.inf, np.inf, shape, np.float32),
                    "action_mask": spaces.Box(0, 1, (game.num_actions,), np.int8),
                }
            )
            self._actions = spaces.Discrete(game.num_actions)
            self._rng = np.random.default_rng()

        def observation_space(self, agent: str) -> Any:
            return self._observations

        def action_space(self, agent: str) -> Any:
            return self._actions

        def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
            if seed is not None:
                self._rng = np.random.default_rng(seed)
            self.episode = RunningEpisode(self.game, self._rng)
            self.agents = list(self.possible_agents)
            self.rewards = dict.fromkeys(self.agents, 0.0)
            self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
            self.terminations = dict.fromkeys(self.agents, False)
            self.truncations = dict.fromkeys(self.agents, False)
            self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
            self._skip_agent_selection = None
            self.agent_selection = self.possible_agents[max(0, self.episode.to_play)]

        def observe(self, agent: str) -> dict[str, np.ndarray]:
            player = self.possible_agents.index(agent)
            return {
                "observation": self.episode.observation(player),
                "action_mask": self.episode.mask(player),
            }

        def step(self, action: Any) -> None:
            agent, episode = self.agent_selection, self.episode
            if self.terminations[agent] or self.truncations[agent]:
                self._was_dead_step(action)
                return
            episode.act(int(action))
            self._cumulative_rewards[agent] = 0.0
            pairs = zip(self.possible_agents, episode.rewards, strict=True)
            self.rewards = {each: float(reward) for each, reward in pairs}
            is_over, is_cut = episode.is_over, episode.is_cut
            self.terminations = dict.fromkeys(self.agents, is_over)
            self.truncations = dict.fromkeys(self.agents, is_cut)
            if not is_over:
                self.agent_selection = self.possible_agents[episode.to_play]
            self._accumulate_rewards()
            if is_over or is_cut:
                self._deads_step_first()

        def render(self) -> str:
            return self.game.show(self.episode.state)

        def close(self) -> None:
            pass

    return GameAEC
