"""Random play without agents: chance outcomes, and random walks through a game."""

from __future__ import annotations

import random

import numpy as np

from uctree.game import CHANCE, Game


def draw_outcome(game: Game, state: np.record, rng: random.Random) -> int:
    """A chance outcome, drawn by its probability."""
    outcomes, probabilities = zip(*game.outcomes(state), strict=True)
    return int(rng.choices(outcomes, probabilities)[0])


def random_walk(
    game: Game, state: np.record, num_plies: int, rng: random.Random
) -> tuple[list[int], list[np.record]]:
    """Up to `num_plies` random actions until the episode ends, and the states, `state` first."""
    actions, states = list[int](), [state]
    while len(actions) < num_plies and not game.is_over(states[-1]):
        state = states[-1]
        by_chance = game.to_play(state) == CHANCE
        actions.append(
            draw_outcome(game, state, rng) if by_chance else rng.choice(game.legal(state))
        )
        states.append(game.step(state, actions[-1])[0])
    return actions, states
