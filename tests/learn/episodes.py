"""Random episodes for tests of the replay and of runs."""

from __future__ import annotations

import numpy as np

from uctree import specs
from uctree.learn.replay import make_positions
from uctree.learn.sequences import make_sequence

LEARNABLE = [name for name, make in specs.built_in().items() if make().rules.observe is not None]


def episode(game, seed, max_plies=60):
    """The positions of a random episode, with random targets."""
    rng = np.random.default_rng(seed)
    played = game.random_episode(seed)
    state, states = game.start(), []
    for action in played.actions[:max_plies]:
        if game.to_play(state) >= 0:
            states.append(state)
        state, _ = game.step(state, action)
    records = np.zeros(len(states), game.dtype)
    for i, each in enumerate(states):
        records[i] = each
    count = len(records)
    return make_positions(
        game, records, rng.dirichlet(np.ones(game.num_actions), count),
        rng.uniform(-1, 1, (count, game.num_players)),
        search_values=rng.uniform(-1, 1, (count, game.num_players)),
        weights=rng.uniform(0.5, 2, count), policy_weights=rng.integers(2, size=count),
    )  # fmt: skip


def sequence(game, seed):
    """A random episode of a game without chance as a sequence, with random policies and values."""
    rng = np.random.default_rng(seed)
    played = game.random_episode(seed)
    state, states = game.start(), []
    for action in played.actions:
        states.append(state)
        state, _ = game.step(state, action)
    count = len(states)
    return make_sequence(
        game, np.array(states, game.dtype), played.actions, played.rewards,
        rng.dirichlet(np.ones(game.num_actions), count),
        rng.uniform(-1, 1, (count, game.num_players)), is_over=True,
        weights=rng.uniform(0.5, 2, count),
    )  # fmt: skip
