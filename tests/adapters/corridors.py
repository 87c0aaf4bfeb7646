"""A corridor as an environment of Gymnasium, whose state is copied in several ways."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


class Corridor(gym.Env):
    """One walks from 0 to 3; the place is kept in a list, which shallow copies would share."""

    observation_space = gym.spaces.Box(-99, 99, (1,))
    action_space = gym.spaces.Discrete(2)
    is_random = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.inside = {"place": [0]}
        return self._observation(), {}

    def _observation(self):
        return np.array(self.inside["place"], np.float32)

    def step(self, action):
        stays = self.is_random and self.np_random.random() < 0.5
        self.inside["place"][0] += 0 if stays else 2 * int(action) - 1
        place = self.inside["place"][0]
        return self._observation(), float(place == 3), abs(place) >= 3, False, {}


class WithStates(Corridor):
    def get_state(self):
        return self.inside["place"][0]

    def set_state(self, state):
        self.inside = {"place": [state]}


class LikeALE(Corridor):
    def clone_state(self, include_rng=False):
        return self.inside["place"][0]

    def restore_state(self, state):
        self.inside = {"place": [state]}


class Rebuilt(Corridor):
    """A copy begins anew, as those of environments that are copied through their arguments."""

    def __deepcopy__(self, memo):
        twin = Rebuilt()
        twin.reset()
        return twin


def made(kind=Corridor, steps=(), limit=20):
    env = gym.wrappers.TimeLimit(kind(), limit)
    env.reset(seed=1)
    for action in steps:
        env.step(action)
    return env
