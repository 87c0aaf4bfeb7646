"""Training targets of an episode: policies, values, weights; NumPy alone.

An episode has the plies 0 ... L-1, chance plies included. Rewards and values are vectors over
players in absolute order; `to_frames` reorders them at the very end, the player to move first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uctree.choice import temperature_policy
from uctree.errors import BrokenGame
from uctree.game import Game

STRETCH = 0.001  # ε of h: keeps its inverse steep enough to tell large returns apart

# --- policies ------------------------------------------------------------------------------------


def dense_policy(actions: Any, shares: Any, num_actions: int) -> np.ndarray:
    """A policy over the edges of a root as one over all actions, float32.

    >>> dense_policy([2, 0], [0.75, 0.25], num_actions=4)
    array([0.25, 0.  , 0.75, 0.  ], dtype=float32)
    """
    policy = np.zeros(num_actions, np.float32)
    policy[np.asarray(actions)] = shares
    return policy


def visit_policy(
    actions: Any, visits: Any, num_actions: int, temperature: float = 1.0
) -> np.ndarray:
    """The policy of a root's visits over all actions, float32; shares as in `temperature_policy`.

    >>> visit_policy([2, 0], [30, 10], num_actions=4)
    array([0.25, 0.  , 0.75, 0.  ], dtype=float32)
    """
    return dense_policy(actions, temperature_policy(np.asarray(visits), temperature), num_actions)


def divergence(policies: Any, priors: Any) -> np.ndarray:
    """The KL divergence of a policy from the prior of its search, one number per row.

        KL(π ‖ P) = Σ_a π(a) ln( π(a) / P(a) )                                         [Eq. 69]

    Terms with π(a) = 0 are 0. A prior of 0, which a softmax in single precision can give, counts as
    the smallest normal number, so that the result is finite.

    >>> float(divergence([0.5, 0.5, 0.0], [0.5, 0.25, 0.25])) == 0.5 * math.log(2)
    True
    """
    policy = np.asarray(policies, float)
    prior = np.maximum(np.asarray(priors, float), np.finfo(np.float32).tiny)
    ratio = np.where(policy > 0, policy, 1.0) / np.where(policy > 0, prior, 1.0)
    return np.asarray((policy * np.log(ratio)).sum(axis=-1))


def surprise_weights(divergences: Any, share: float = 0.5) -> np.ndarray:
    """The weight of each position of an episode: more if the search's policy is far from the prior.

        w_i = (1 - β) + β · KL_i / mean(KL)                                            [Eq. 70]

    KL_i is that of [Eq. 69], β is `share`. The weights have mean 1; if all KL_i are 0, all are 1.

    >>> surprise_weights([0.0, 1.0, 0.0, 3.0])
    array([0.5, 1. , 0.5, 2. ])
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be within 0 and 1; got {share}")
    surprise = np.asarray(divergences, float)
    mean = surprise.mean() if surprise.size else 0.0
    if not mean > 0:
        return np.ones(len(surprise))
    return (1.0 - share) + share * surprise / mean


# --- values --------------------------------------------------------------------------------------


def n_step_returns(
    rewards: Any, *, discount: float = 1.0, values: Any = None, num_steps: int | None = None,
    final_value: Any = None,
) -> np.ndarray:  # fmt: skip
    """The n-step returns from each ply on, [num_plies, num_players], with n = `num_steps`.

        z_t = Σ_{i<k} γ^i r_{t+i} + γ^k V_{t+k},  k = min(num_steps, L - t)            [Eq. 67]

    V_L is 0 if the episode is over; if it was truncated, `final_value`. Without `num_steps` the
    rewards count to the end.

    Args:
        values: V of each ply, from its search. A row of NaN marks a ply without a search, such as a
            chance ply; r_t + γ V_{t+1} takes its place.

    >>> n_step_returns([[1.0], [0.0], [4.0]], discount=0.5)
    array([[2.],
           [2.],
           [4.]])
    >>> n_step_returns([[1.0], [0.0], [4.0]], discount=0.5, values=[[9], [6], [8]], num_steps=2)
    array([[3.],
           [2.],
           [4.]])
    """
    rewards = np.asarray(rewards, float)
    last = np.zeros(rewards.shape[1]) if final_value is None else np.asarray(final_value, float)
    returns = np.vstack([rewards, last])
    for ply in reversed(range(len(rewards))):
        returns[ply] += discount * returns[ply + 1]
    if num_steps is None or num_steps >= len(rewards):
        return returns[:-1]
    if num_steps < 0 or values is None or np.shape(values) != rewards.shape:
        raise ValueError(
            "num_steps is at least 0 and needs values= of the shape of rewards, "
            f"{rewards.shape}; got num_steps={num_steps}, values of shape {np.shape(values)}"
        )
    known = np.vstack([np.asarray(values, float), last])
    for ply in reversed(range(len(rewards))):
        if np.isnan(known[ply]).any():
            known[ply] = rewards[ply] + discount * known[ply + 1]
    # Replace the rewards after num_steps plies by the value.
    change = discount**num_steps * (known - returns)[num_steps:-1]
    returns[: len(change)] += change
    return returns[:-1]


def mixed_values(returns: Any, search_values: Any, share: float) -> np.ndarray:
    """The returns of an episode, mixed with the value of the search at each ply.

        (1 - w) · z + w · V                                                            [Eq. 68]

    z has much variance and no bias, V little variance and some bias; w is `share`.

    >>> mixed_values([1.0, -1.0], [0.5, -0.5], share=0.25)
    array([ 0.875, -0.875])
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be within 0 and 1; got {share}")
    return (1.0 - share) * np.asarray(returns, float) + share * np.asarray(search_values, float)


def to_frames(vectors: Any, players: Any) -> np.ndarray:
    """Each row reordered for its player: me, next, ..., previous [Eq. 13].

    >>> to_frames([[10, 20, 30], [10, 20, 30]], players=[0, 2])
    array([[10, 20, 30],
           [30, 10, 20]])
    """
    vectors = np.asarray(vectors)
    num_players = vectors.shape[1]
    order = (np.asarray(players)[:, None] + np.arange(num_players)) % num_players
    return np.take_along_axis(vectors, order, axis=1)


def from_frames(vectors: Any, players: Any) -> np.ndarray:
    """Each row, which begins with its player, in the order of the players [Eq. 13].

    >>> from_frames([[10, 20, 30], [30, 10, 20]], players=[0, 2])
    array([[10, 20, 30],
           [10, 20, 30]])
    """
    vectors = np.asarray(vectors)
    num_players = vectors.shape[1]
    order = (np.arange(num_players) - np.asarray(players)[:, None]) % num_players
    return np.take_along_axis(vectors, order, axis=1)


def squash(x: Any) -> Any:
    """A return of any size on a compressed scale: h(x).

        h(x) = sign(x) (√(|x| + 1) - 1) + ε x = x / (√(|x| + 1) + 1) + ε x,  ε = 0.001 [Eq. 65]

    The second form loses no digits near 0. Takes numbers, arrays and tensors.

    >>> squash(3.0), squash(-8.0)
    (1.003, -2.008)
    """
    return x / ((abs(x) + 1) ** 0.5 + 1) + STRETCH * x


def unsquash(y: Any) -> Any:
    """The return x with `squash(x) == y`.

        x = y (s + 1) / (1 + ε (s + 1)),  s = √(|x| + 1) = 2c / (1 + √(1 + 4 ε c)),
        c = 1 + ε + |y|                                                                [Eq. 66]

    >>> round(unsquash(1.003), 12), round(unsquash(-2.008), 12)
    (3.0, -8.0)
    """
    c = 1 + STRETCH + abs(y)
    root = 2 * c / (1 + (1 + 4 * STRETCH * c) ** 0.5)
    return y * (root + 1) / (1 + STRETCH * (root + 1))


# --- symmetries ----------------------------------------------------------------------------------


def transform(
    game: Game, choices: Any, observations: np.ndarray, policies: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Observations and policies, transformed by symmetries; sample i by that of `choices[i]`."""
    actions, cells = symmetries_of(game)
    choices = np.asarray(choices)
    # A cell of the image is read from the cell that the inverse gives.
    came_from = np.argsort(cells, axis=1)[choices][:, None, :]
    planes = observations.reshape(len(observations), -1, cells.shape[1])
    turned = np.take_along_axis(planes, came_from, axis=2).reshape(observations.shape)
    return turned, np.take_along_axis(policies, np.argsort(actions, axis=1)[choices], axis=1)


def symmetries_of(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """The game's symmetries of actions and of cells; an error if it has none that fit."""
    if game.symmetries is None:
        raise ValueError(
            f"{game.name} has no symmetries; give Game(symmetries=...), or use symmetries=False"
        )
    actions, cells = game.symmetries
    if math.prod(game.observation_shape or (0,)) % cells.shape[1]:
        raise BrokenGame(
            f"the symmetries of {game.name} move {cells.shape[1]} cells; its observation has the "
            f"shape {game.observation_shape}, which does not divide into planes of that size"
        )
    return actions, cells
