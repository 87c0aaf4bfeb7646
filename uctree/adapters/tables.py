"""Gymnasium environments that state their transitions as a table `P`: exact chance, no copies."""

from __future__ import annotations

import random
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from uctree.adapters.cloning import layers_of
from uctree.game import CHANCE
from uctree.planning.problem import Problem, Step
from uctree.planning.world import World

# Wrappers that pass observations, rewards and actions on as they are.
TRANSPARENT = {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "Autoreset",
               "RecordEpisodeStatistics"}  # fmt: skip


MOST_SOLVED = 2000  # states for which the value of random play is computed at once


class TableState(NamedTuple):
    """A state of a table; its number is what the environment shows as the observation."""

    observation: int
    num_steps: int = 0  # from the start; so that no path returns to an earlier state
    action: Any = None  # set if its outcome is to be drawn


def has_table(env: Any) -> bool:
    """Whether `env.unwrapped.P[state][action]` lists (probability, state, reward, over)."""
    base = env.unwrapped
    table, state = getattr(base, "P", None), getattr(base, "s", None)
    if not isinstance(table, dict) or state is None or int(state) not in table:
        return False
    if any(type(layer).__name__ not in TRANSPARENT for layer in layers_of(env)[:-1]):
        return False
    rows = table[int(state)]
    return isinstance(rows, dict) and all(
        len(outcome) == 4 for outcomes in rows.values() for outcome in outcomes
    )


def from_table(env: Any, horizon: int, discount: float, options: dict[str, Any]) -> World:
    """The world of an environment that has a table; equal states are one state."""
    table = _Table(env.unwrapped, horizon, discount)
    start = TableState(int(env.unwrapped.s))
    functions: dict[str, Any] = {
        "actions": table.actions, "step": table.step, "key": lambda state: tuple(state),
        "name": type(env.unwrapped).__name__ if env.spec is None else env.spec.id,
        "discount": discount, "horizon": horizon, "show": lambda state: str(state.observation),
        "dump": list, "load": lambda data: TableState(*data),
    }  # fmt: skip
    if table.is_random:
        functions["chance"] = table.chance
    if not any(options.get(name) for name in ("value", "values", "playout")):
        if len(table.rows) <= MOST_SOLVED:
            functions["value"] = table.random_value
        else:
            functions["playout"] = table.playout
    note = f"its table P states all transitions of {len(table.rows)} states, so none is copied"
    return World(Problem(**(functions | options)), start, note=note)


class _Table:
    """The transitions, with equal outcomes of an action as one."""

    def __init__(self, base: Any, horizon: int, discount: float) -> None:
        self.horizon, self.discount = horizon, discount
        self.rows = {
            int(state): {int(action): _merged(outcomes) for action, outcomes in row.items()}
            for state, row in base.P.items()
        }
        self.is_random = any(len(each) > 1 for row in self.rows.values() for each in row.values())
        mask = getattr(base, "action_mask", None)
        self._legal = {
            state: [action for action in row if mask is None or mask(state)[action]]
            for state, row in self.rows.items()
        }

    def actions(self, state: TableState) -> list[int]:
        return self._legal[state.observation]

    def step(self, state: TableState, action: Any) -> Step:
        """The only outcome of an action, or the choice among several."""
        if state.action is None:
            outcomes = self.rows[state.observation][action]
            if len(outcomes) > 1:
                return Step(state._replace(action=action), to_play=CHANCE)
            ((after, reward, over),) = outcomes
        else:
            after, reward, over = action
        return Step(TableState(after, state.num_steps + 1), reward, over=over)

    def chance(self, state: TableState) -> list[tuple[Any, float]]:
        return list(self.rows[state.observation][state.action].items())

    @cached_property
    def _random_values(self) -> dict[int, float]:
        """The mean return of random play for `horizon` steps: what playouts estimate with noise."""
        place = {number: row for row, number in enumerate(self.rows)}
        moves, paid = np.zeros((len(place), len(place))), np.zeros(len(place))
        for number, row in self.rows.items():
            share = 1.0 / len(self._legal[number])
            for action in self._legal[number]:
                for (after, reward, over), probability in row[action].items():
                    paid[place[number]] += share * probability * reward
                    if not over:
                        moves[place[number], place[after]] += share * probability
        values = np.zeros(len(place))
        for _ in range(self.horizon):
            values = paid + self.discount * (moves @ values)
        return dict(zip(place, values.tolist(), strict=True))

    def random_value(self, state: TableState) -> float:
        return self._random_values[state.observation]

    def playout(self, state: TableState, rng: random.Random) -> float:
        number, total, factor = state.observation, 0.0, 1.0
        for _ in range(self.horizon):
            outcomes = self.rows[number][rng.choice(self._legal[number])]
            weights = list(outcomes.values())
            number, reward, over = rng.choices(list(outcomes), weights)[0]
            total += factor * reward
            factor *= self.discount
            if over:
                break
        return total


def _merged(outcomes: Any) -> dict[tuple[int, float, bool], float]:
    """The probability of each outcome (state, reward, over)."""
    merged: dict[tuple[int, float, bool], float] = {}
    for probability, after, reward, over in outcomes:
        outcome = int(after), float(reward), bool(over)
        merged[outcome] = merged.get(outcome, 0.0) + float(probability)
    return merged
