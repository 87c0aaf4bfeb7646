"""Plans by a table of transitions, compared with exact values."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import adapters

gym = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
pytestmark = pytest.mark.peer


def exact_values(table, discount):
    """The values of all states by value iteration."""
    values = np.zeros(len(table))
    while True:
        found = [max(expected(outcomes, values, discount) for outcomes in row.values())
                 for row in table.values()]  # fmt: skip
        if np.abs(np.array(found) - values).max() < 1e-10:
            return values
        values = np.array(found)


def expected(outcomes, values, discount):
    return sum(p * (reward + (not over) * discount * values[after])
               for p, after, reward, over in outcomes)  # fmt: skip


def value_of(policy, table, discount):
    """The value of the start by a policy, exactly."""
    moves, paid = np.zeros((len(table), len(table))), np.zeros(len(table))
    for state, action in policy.items():
        for p, after, reward, over in table[state][action]:
            paid[state] += p * reward
            moves[state, after] += p * discount * (not over)
    return np.linalg.solve(np.eye(len(table)) - moves, paid)[0]


@pytest.mark.slow
def test_plans_on_the_slippery_lake_are_worth_almost_what_is_possible():
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    env.reset(seed=1)
    table, policy = env.unwrapped.P, {}
    for state, row in table.items():
        env.unwrapped.s = state
        if all(outcome[3] for outcomes in row.values() for outcome in outcomes):
            policy[state] = 0  # the goal, or a hole
            continue
        world = adapters.from_gymnasium(env, discount=0.99)
        result = uctree.plan(world, num_simulations=3000, transpositions=True, seed=1)
        policy[state] = result.action
    best = exact_values(table, 0.99)[0]
    assert best == pytest.approx(0.41464, abs=1e-5)
    assert value_of(policy, table, 0.99) > 0.95 * best
