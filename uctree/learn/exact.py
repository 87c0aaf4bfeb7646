"""Positions with known exact results, and how often an agent plays optimally in them.

An action is optimal if it keeps the exact result. Positions in which every legal action is optimal
are left out. Small games are solved here. Connect four on 6 x 7 is scored by bitbully, a program
for tests and benchmarks that uctree does not depend on; its licence is the AGPL.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import specs
from uctree.arena.ratings import mean_interval
from uctree.choice import temperature
from uctree.engine.identity import find_spec, rules_fingerprint
from uctree.engine.recent import table_of
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game, State
from uctree.learn.batched_play import NetworkSearch, predict
from uctree.learn.diagnosis import finite_interval
from uctree.learn.options import Options
from uctree.mcts import search
from uctree.selection import ucb1
from uctree.solver import solve

MAX_STATES = 10_000  # of a game that is solved; tic-tac-toe has 5,478

MOST_KEPT = 4  # samples of a game

# Positions of connect four are drawn from games of playout searches.
NUM_POSITIONS = 200
NUM_PLIES = (4, 30)  # fewest and most plies before a position
SIMULATIONS = 100

TOLERANCE = 1e-9  # returns that differ by less are equal


@dataclass(frozen=True, eq=False)
class ExactPositions:
    """States in which some legal action is not optimal, and the optimal actions."""

    states: list[np.record]
    optimal: np.ndarray  # [n, num_actions], bool
    source: str  # "solved": all such states of the game; "bitbully": a sample

    def share_optimal(self, actions: Sequence[int]) -> float:
        """The share of positions in which an action is optimal; one action per position."""
        return float(np.mean(self._are_optimal(actions)))

    def interval(self, actions: Sequence[int]) -> list[float] | None:
        """The interval of `share_optimal`; None if these are all positions of the game."""
        if self.source == "solved":
            return None
        low, high = mean_interval(self._are_optimal(actions).astype(float))
        return finite_interval((max(0.0, low), min(1.0, high)))

    def _are_optimal(self, actions: Sequence[int]) -> np.ndarray:
        return self.optimal[np.arange(len(self.optimal)), np.asarray(actions)]


def agreement(
    game: Game, evaluator: Evaluator, options: Options, *, seed: int = 0
) -> dict[str, Any] | None:
    """How often a network plays optimally, by its policy alone and by search.

    None if the exact results of the game are not known; {"missing": text} if the program that
    computes them is not installed.
    """
    try:
        positions = exact_positions(game)
    except ModuleNotFoundError as error:
        return {"missing": str(error)}
    if positions is None:
        return None
    raw = raw_actions(game, evaluator, positions.states)
    found = searched_actions(game, evaluator, positions.states, options, seed=seed)
    return {
        "source": positions.source,
        "positions": len(positions.states),
        "raw": positions.share_optimal(raw),
        "raw_interval": positions.interval(raw),
        "search": positions.share_optimal(found),
        "search_interval": positions.interval(found),
    }


# --- actions of a network ------------------------------------------------------------------------


def raw_actions(game: Game, evaluator: Evaluator, states: Sequence[State]) -> list[int]:
    """The action with the largest prior in each state, without search."""
    priors, _ = predict(game, evaluator, states)
    return [int(action) for action in priors.argmax(axis=1)]


def searched_actions(
    game: Game, evaluator: Evaluator, states: Sequence[State], options: Options, *,
    num_simulations: int | None = None, seed: int = 0,
) -> list[int]:  # fmt: skip
    """The action of a search with a network in each state."""
    network = NetworkSearch(game, evaluator, options, num_simulations)
    roots = network.roots(states, range(seed, seed + len(states)))
    return [network.action(root) for root in roots]


# --- exact results -------------------------------------------------------------------------------


def exact_positions(
    game: Game | str, *, num_positions: int = NUM_POSITIONS, seed: int = 0
) -> ExactPositions | None:
    """Positions of a game with their optimal actions; None if exact results are not known.

    They are kept for all checkpoints of a run, unless the rules change.

    Of a game with at most 10,000 states, all states. Of connect four on 6 x 7, a sample from games
    with 100 simulations per ply at temperature 1; ModuleNotFoundError if bitbully is not installed.

    Args:
        num_positions, seed: of the sample.
    """
    game = specs.as_game(game)
    known = table_of(game, "exact positions", MOST_KEPT)
    key = rules_fingerprint(game, by_source=False), num_positions, seed
    found = known.get(key)
    if found is None or key[0] is None:
        found = (_exact_positions(game, num_positions, seed),)
        known.put(key, found)
    positions: ExactPositions | None = found[0]
    return positions


def _exact_positions(game: Game, num_positions: int, seed: int) -> ExactPositions | None:
    steps = _all_steps(game)
    if steps is not None:
        return _solved(game, steps)
    spec = find_spec(game) or ""
    if not spec.startswith("connect_four(rows=6, cols=7"):
        return None
    return _sampled(game, num_positions, seed)


# Every state that is not over, with the next state and the reward of each action.
_Steps = list[tuple[np.record, dict[int, tuple[np.record, np.ndarray]]]]


def _all_steps(game: Game) -> _Steps | None:
    """All steps of a game; None if it has more than `MAX_STATES` states."""
    states = [game.start()]
    known = {game.key(states[0])}
    steps: _Steps = []
    for state in states:  # the list grows meanwhile: breadth first
        if game.is_over(state):
            continue
        steps.append((state, {action: game.step(state, action) for action in game.legal(state)}))
        for after, _ in steps[-1][1].values():
            key = game.key(after)
            if key not in known:
                known.add(key)
                states.append(after)
        if len(known) > MAX_STATES:
            return None
    return steps


def _solved(game: Game, steps: _Steps) -> ExactPositions | None:
    """All states in which some action is not optimal."""
    solution = solve(game, max_states=MAX_STATES)
    chosen, optimal = [], []
    for state, after in steps:
        player = game.to_play(state)
        if player < 0:
            continue
        values = {
            action: float((reward + game.discount * solution.value_of(next_state))[player])
            for action, (next_state, reward) in after.items()
        }
        best = max(values.values())
        row = _row(game, [action for action in values if values[action] > best - TOLERANCE])
        if row.sum() < len(values):
            chosen.append(state)
            optimal.append(row)
    return ExactPositions(chosen, np.array(optimal), "solved") if chosen else None


def _sampled(game: Game, num_positions: int, seed: int) -> ExactPositions:
    """Positions of connect four, each from another game."""
    try:
        bitbully: Any = importlib.import_module("bitbully")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "exact results of connect four need bitbully, which is not installed: "
            "pip install bitbully",
            name=error.name,
        ) from error
    oracle = bitbully.BitBully()
    chosen: dict[bytes, np.record] = {}
    optimal = []
    for actions in _openings(game, seed):
        board = bitbully.Board()
        for action in actions:
            board.play(action)
        scores = oracle.score_all_moves(board)
        results = {action: np.sign(score) for action, score in scores.items()}
        best = max(results.values())
        row = _row(game, [action for action in results if results[action] == best])
        state = game.play(actions)
        if row.sum() < len(results) and game.key(state) not in chosen:
            chosen[game.key(state)] = state
            optimal.append(row)
            if len(chosen) == num_positions:
                break
    return ExactPositions(list(chosen.values()), np.array(optimal), "bitbully")


def _openings(game: Game, seed: int) -> Iterator[list[int]]:
    """The actions of openings, without end; the number of plies of each is drawn at random."""
    rng = np.random.default_rng(seed)
    choice = temperature(1.0, decay=1.0)
    rule = ucb1(c=2**0.5)  # other positions would not be comparable with those of earlier runs
    while True:
        num_plies, actions = int(rng.integers(NUM_PLIES[0], NUM_PLIES[1] + 1)), list[int]()
        state = game.start()
        while len(actions) < num_plies and not game.is_over(state):
            result = search(
                game, state, num_simulations=SIMULATIONS, selection=rule, choice=choice,
                seed=int(rng.integers(2**62)),
            )  # fmt: skip
            assert result.action is not None, "a player is to move"
            actions.append(result.action)
            state, _ = game.step(state, result.action)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        if not game.is_over(state):
            yield actions


def _row(game: Game, actions: Sequence[int]) -> np.ndarray:
    if not actions:
        raise UctreeError(f"{game.name}: the exact values leave no optimal action; report this bug")
    row = np.zeros(game.num_actions, bool)
    row[list(actions)] = True
    return row
