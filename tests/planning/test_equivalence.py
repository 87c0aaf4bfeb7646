"""Compiled games as problems of Python objects: the same trees, visit for visit."""

from __future__ import annotations

import random

import numpy as np
import pytest

import uctree
from tests.planning.test_planner import lines, planned
from tests.random_games import any_game, table_logits, table_values
from uctree import Problem, Step, backup, selection


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Kernels in plain Python, which give the same numbers: each of these games is another one."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


class Place:
    """A state as an object with attributes, which compares by identity."""

    def __init__(self, number, ply, to_play):
        self.number, self.ply, self.to_play = number, ply, to_play


def objects_of(game, priors, **options):
    """A problem whose states are objects and whose actions are texts."""
    movers, counts, choices, chances, after, rewards, values, logits = game.data

    def listed(place):
        return choices[place.number, : counts[place.number]].tolist()

    def actions(place):
        names = [f"to {action}" for action in listed(place)]
        if not priors:
            return names
        return list(zip(names, np.exp(logits[place.number, listed(place)]).tolist(), strict=True))

    def step(place, name):
        action = int(name.split()[1])
        then = int(after[place.number, action])
        reward = rewards[place.number, action].tolist()
        mover = int(movers[then])
        return Step(Place(then, place.ply + 1, mover), reward, mover, mover == uctree.OVER)

    def chance(place):
        weights = chances[place.number, : counts[place.number]].tolist()
        return [(f"to {a}", weight) for a, weight in zip(listed(place), weights, strict=True)]

    return Problem(
        actions=actions, step=step, chance=chance if game.rules.chance else None,
        num_players=game.num_players, value=lambda place: values[place.number].tolist(),
        discount=game.discount, priors=priors,
        payoff_range=None if game.payoff_range is None else game.payoff_range.tolist(), **options,
    )  # fmt: skip


def same_names(found):
    return {tuple(name.removeprefix("to ") for name in path): x for path, x in found.items()}


# (seed of the game, whether it has priors, options); games with 1 to 4 players, chance, rewards on
# the way, discount, many actions, circles.
CASES = [
    *[(seed, seed % 2 == 0, {}) for seed in range(24)],
    *[(seed, False, {"solver": True}) for seed in range(12)],
    *[(seed, False, {"opponents": "paranoid"}) for seed in range(12)],
    *[(seed, False, {"chance": "proportional"}) for seed in range(12)],
    *[(seed, True, {"root_noise": selection.dirichlet()}) for seed in range(12)],
    *[(seed, True, {"root_selection": selection.gumbel()}) for seed in range(12)],
    *[(seed, False, {"backup": backup.soft_maximum(0.5)}) for seed in range(6)],
    *[(seed, True, {"widening": selection.widening()}) for seed in range(6)],
]


def named(case):
    seed, priors, options = case
    return f"{seed}{'p' * priors}-{'-'.join(options)}"


def unlimited(game):
    """The game without a largest number of plies and without declared zero sums."""
    from tests import random_games

    options = {"discount": game.discount}
    if game.payoff_range is not None:
        options["payoff_range"] = game.payoff_range.tolist()
    return random_games.game_of(
        game.data, has_chance=game.rules.chance is not None, **options
    )  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=named(case), marks=pytest.mark.slow if case[0] > 5 else ())
        for case in CASES
    ],
)
def test_objects_give_the_tree_of_the_compiled_game(case):
    seed, priors, options = case
    game, state = any_game(seed)
    game = unlimited(game)
    if options.get("chance") and game.rules.chance is None:
        options = {}
    evaluator = table_logits if priors else table_values
    start = Place(int(state["place"]), 0, int(state["to_play"]))
    problem = objects_of(game, priors)
    arguments = {"num_simulations": 60, "seed": seed, **options}
    try:
        wanted = uctree.search(game, state, evaluator=evaluator, check=False, **arguments)
    except ValueError as error:  # no game for a solver
        with pytest.raises(type(error), match="solver=True needs a game"):
            planned(problem, start, start.to_play, **arguments)
        return
    found = planned(problem, start, start.to_play, **arguments)
    assert same_names(lines(found)) == lines(wanted)
    assert found.status == wanted.status


@pytest.mark.parametrize("seed", range(6))
def test_objects_give_one_tree_in_whatever_order_answers_come(seed):
    game, state = any_game(seed)
    start = Place(int(state["place"]), 0, int(state["to_play"]))
    problem = objects_of(game, seed % 2 == 0)
    found = []
    for order in range(3):
        shuffle = random.Random(order) if order else None
        options = {"num_simulations": 60, "in_flight": 6, "seed": seed}
        found.append(lines(planned(problem, start, start.to_play, shuffle, **options)))
    assert found[0] == found[1] == found[2]
