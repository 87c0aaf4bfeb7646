"""Matches in worlds of Python objects: a World as a game of plain Python, and a planning agent."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from uctree.errors import IllegalAction, UctreeError
from uctree.game import CHANCE, OVER, Game
from uctree.planning.calls import plan
from uctree.planning.problem import as_actions, as_outcomes, as_step, as_vector
from uctree.planning.world import World, world_of

RECORD = np.dtype([("row", np.int64), ("to_play", np.int8)])


class States:
    """The states that were met, by number; records of the game hold these numbers."""

    def __init__(self, world: World) -> None:
        self.problem = world.problem
        self.states: list[Any] = [world.start]
        self.behind: dict[tuple[int, int], tuple[int, int, Any]] = {}
        self._listed: dict[int, Any] = {}

    def listed(self, row: int, to_play: int) -> Any:
        """The actions of a state, or its outcomes with their probabilities."""
        if row not in self._listed:
            problem, state = self.problem, self.states[row]
            if to_play == CHANCE:
                assert problem.chance is not None
                self._listed[row] = as_outcomes(problem.chance(state))
            else:
                assert problem.actions is not None
                self._listed[row] = as_actions(problem.actions(state), problem.priors)
        return self._listed[row]

    def step(self, row: int, to_play: int, index: int) -> tuple[int, int, Any]:
        """The number of the state behind an action, who plays there, and the reward."""
        if (row, index) not in self.behind:
            names, _ = self.listed(row, to_play)
            if not 0 <= index < len(names):
                raise IllegalAction(f"the state has {len(names)} actions; got number {index}")
            step = as_step(self.problem.step(self.states[row], names[index]), names[index])
            paid = as_vector(step.reward, self.problem.num_players, to_play)
            self.states.append(step.state)
            after = OVER if step.over else int(step.to_play)
            if after >= 0 and not self.listed(len(self.states) - 1, after)[0]:
                after = OVER
            self.behind[row, index] = len(self.states) - 1, after, paid
        return self.behind[row, index]


def world_game(thing: Any, *, num_actions: int = 1024, name: str | None = None) -> Game:
    """A world as a game in plain Python, for `arena.match` and `arena.play`.

    Actions are numbered in the order in which the world lists them. No search can compile it: the
    agents are `PlanAgent`, `"random"`, `"greedy"`, and your own. States are kept with the game.

    Args:
        thing: what `plan` takes without a start: a `World`, a state of OpenSpiel, an object, ...
        num_actions: the largest number of actions of a state.
    """
    world = world_of(thing)
    problem = world.problem
    if problem.actions is None or problem.is_async:
        raise UctreeError("a match needs a world that lists its actions, by plain functions")
    states = States(world)

    def legal(state: Any, actions: Any) -> int:
        names, _ = states.listed(int(state.row), int(state.to_play))
        for index in range(len(names)):
            actions[index] = index
        return len(names)

    def step(state: Any, action: Any, reward: Any) -> None:
        row, after, paid = states.step(int(state.row), int(state.to_play), int(action))
        state.row, state.to_play = row, after
        for player, part in enumerate(paid):
            reward[player] += part

    def chance(state: Any, outcomes: Any, probabilities: Any) -> int:
        _, weights = states.listed(int(state.row), CHANCE)
        for index, weight in enumerate(weights):
            outcomes[index], probabilities[index] = index, weight
        return len(weights)

    def start(state: Any) -> None:
        state.to_play = world.to_play

    def show_action(state: Any, action: Any) -> str:
        names, _ = states.listed(int(state.row), int(state.to_play))
        shown = problem.show_action
        label = names[int(action)]
        return str(label) if shown is None else shown(states.states[int(state.row)], label)

    has_chance = problem.chance is not None
    game = Game(
        RECORD, legal, step, num_players=problem.num_players, num_actions=num_actions,
        name=problem.name if name is None else name, start=start,
        payoff_range=problem.payoff_range, discount=problem.discount,
        chance=chance if has_chance else None, max_outcomes=num_actions if has_chance else 0,
        show=lambda state: str(problem.show(states.states[int(state.row)])),
        show_action=show_action,
    )  # fmt: skip
    _states_of[game] = states
    return game


_states_of: weakref.WeakKeyDictionary[Game, States] = weakref.WeakKeyDictionary()


def states_of(game: Game) -> States | None:
    """The states of a game of `world_game`; None for any other game."""
    return _states_of.get(game)


class PlanAgent:
    """Takes the action that `uctree.plan` finds, in a game of `world_game`.

    The seed of each plan is computed from the seed of the episode and the ply.
    """

    def __init__(self, **options: Any) -> None:
        """
        Args:
            options: as in `uctree.plan`, such as num_simulations, seconds, selection.
        """
        if not {"num_simulations", "seconds", "budget", "stop"} & set(options):
            raise TypeError("a plan needs a limit: give num_simulations=, seconds= or budget=")
        self.options = options

    def prepare(self, game: Game) -> None:
        if game not in _states_of:
            raise UctreeError(f"{game.name} is compiled: search(...) plays it, not PlanAgent")

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.prepare(game)
        self.states, self.seed, self.num_plans = _states_of[game], seed, 0

    def act(self, state: Any) -> int:
        row, to_play = int(state["row"]), int(state["to_play"])
        names, _ = self.states.listed(row, to_play)
        world = World(self.states.problem, self.states.states[row], to_play)
        self.num_plans += 1
        seed = (self.seed + self.num_plans) % 2**63
        return int(names.index(plan(world, seed=seed, **self.options).action))
