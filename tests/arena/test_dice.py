"""Random play without agents."""

from __future__ import annotations

import collections
import random

from uctree import CHANCE, games
from uctree.arena.dice import draw_outcome, random_walk


def test_outcomes_are_drawn_by_their_probabilities():
    game, rng = games.twenty48(), random.Random(1)
    counts = collections.Counter(draw_outcome(game, game.start(), rng) % 2 for _ in range(4000))
    assert abs(counts[1] / 4000 - 0.1) < 0.02  # a 4 instead of a 2


def test_a_walk_has_legal_actions_and_their_states():
    game = games.pig(20)
    actions, states = random_walk(game, game.start(), 12, random.Random(2))
    assert (len(actions), len(states)) == (12, 13)
    assert any(game.to_play(state) == CHANCE for state in states)
    assert game.key(game.play(actions)) == game.key(states[-1])


def test_a_walk_ends_with_the_episode():
    game = games.tic_tac_toe()
    actions, states = random_walk(game, game.start(), 100, random.Random(3))
    assert len(actions) <= 9
    assert game.is_over(states[-1])
