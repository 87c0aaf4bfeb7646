"""Random episodes of a game with a window, played anywhere on the board, and their positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.views import obvious
from tests.views.test_frames import listed
from uctree.learn.replay import make_positions
from uctree.learn.sequences import make_sequence
from uctree.learn.targets import to_frames


@dataclass
class Played:
    """An episode: states with who is to move, actions of the whole game, and random targets."""

    states: list[Any]
    actions: list[int]
    policies: list[tuple[np.ndarray, np.ndarray]]  # of the window
    rewards: np.ndarray
    values: np.ndarray  # in the order of the players

    @property
    def players(self):
        return np.array([int(each["to_play"]) for each in self.states])


def play(game, seed):
    """A random episode; policies are concentrated, as those of searches are."""
    rng, everything = np.random.default_rng(seed), game.view.whole
    state, found = everything.start(), Played([], [], [], np.zeros(0), np.zeros(0))
    rewards = []
    while not game.is_over(state):
        legal = np.array(game.legal(state))
        found.states.append(state)
        found.policies.append((legal, rng.dirichlet(np.full(len(legal), 0.3))))
        found.actions.append(int(rng.choice(everything.legal(state))))
        state, reward = everything.step(state, found.actions[-1])
        rewards.append(reward)
    found.rewards = np.array(rewards)
    found.values = rng.uniform(-1, 1, found.rewards.shape)
    return found


def as_positions(game, played):
    """As AlphaZero stores it; two plies of opening are positions as well, but never drawn."""
    count, players = len(played.actions), played.players
    is_drawn = np.arange(count) >= 2
    return make_positions(
        game, np.array(players, np.int8).view([("to_play", np.int8)]), played.policies,
        to_frames(played.values, players), weights=is_drawn, policy_weights=is_drawn,
        actions=played.actions,
    )  # fmt: skip


def as_sequence(game, played):
    """As MuZero stores it."""
    return make_sequence(
        game, np.array(played.players, np.int8).view([("to_play", np.int8)]), played.actions,
        played.rewards, played.policies, played.values, is_over=True,
    )  # fmt: skip


def policy_in(game, state, policy, center, slots):
    """A policy that was cut to the largest shares, in the window around `center`; and its share.

    What was cut is spread over the other legal actions; what is outside is left out.
    """
    actions, shares = policy
    order = np.argsort(-shares, kind="stable")[:slots]
    kept = dict(zip(actions[order].tolist(), shares[order].astype(np.float16), strict=True))
    rest = 1.0 - float(sum(map(float, kept.values())))
    others = [action for action in game.legal(state) if action not in kept]
    each = rest / len(others) if others and rest > 1e-3 else 0.0
    dense, frame = np.zeros(game.num_actions), game.view.frame
    here = listed(frame, game.view.center_of(state))
    there = listed(frame, center)
    for action in game.legal(state):
        if here[action] in there:
            dense[there.index(here[action])] = kept.get(action, each)
    return dense / max(dense.sum(), 1e-12), dense.sum()


def planes_in(game, state, center):
    """The observation of a state in the window around `center`."""
    return obvious.planes(
        state["board"], int(state["to_play"]), game.view.frame, center, game.num_players
    )
