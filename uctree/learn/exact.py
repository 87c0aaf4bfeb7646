"""Positions whose exact result is known, and how often a player keeps it.

A position counts only where some legal action gives the exact result away: in all others everyone
is right. Small games are solved here. Connect four on 6 x 7 is asked of bitbully, a program for
tests and benchmarks that uctree does not depend on; its licence is the AGPL.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import treefile
from uctree.arena.ratings import mean_interval
from uctree.choice import temperature
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game, State
from uctree.learn.diagnosis import finite
from uctree.learn.options import Options
from uctree.learn.together import Searches, predict
from uctree.mcts import search, search_many
from uctree.solver import solve

MOST_STATES = 10_000  # of a game that is solved; tic-tac-toe has 5,478
NUM_POSITIONS = 200  # of a game that is asked of bitbully
PLIES = (4, 30)  # its first and its last
SIMULATIONS = 100  # of the searches by playouts whose games they are from
EQUAL = 1e-9  # returns that differ by less are the same


@dataclass(frozen=True, eq=False)
class ExactPositions:
    """States in which some action gives the exact result away, and the actions that do not."""

    states: list[np.record]
    kept: np.ndarray  # [n, num_actions], bool
    source: str  # "solved", all such states of the game; "bitbully", a sample

    def share_kept(self, actions: Sequence[int]) -> float:
        """In which share of the positions an action keeps the result."""
        return float(np.mean(self._keeps(actions)))

    def interval(self, actions: Sequence[int]) -> list[float] | None:
        """The same with its interval, of a sample; None where these are all positions."""
        if self.source == "solved":
            return None
        low, high = mean_interval(self._keeps(actions).astype(float))
        return finite((max(0.0, low), min(1.0, high)))

    def _keeps(self, actions: Sequence[int]) -> np.ndarray:
        return self.kept[np.arange(len(self.kept)), np.asarray(actions)]


def agreement(
    game: Game, evaluator: Evaluator, options: Options, *, seed: int = 0
) -> dict[str, Any] | None:
    """How often a network keeps the exact result, by its policy alone and by search.

    None where the exact results of a game are not known; only a text where the program that knows
    them is not installed.
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
        "raw": positions.share_kept(raw),
        "raw_interval": positions.interval(raw),
        "search": positions.share_kept(found),
        "search_interval": positions.interval(found),
    }


# --- who is asked --------------------------------------------------------------------------------


def raw_actions(game: Game, evaluator: Evaluator, states: Sequence[State]) -> list[int]:
    """What a network takes without any search: the action with the largest prior."""
    priors, _ = predict(game, evaluator, states)
    return [int(action) for action in priors.argmax(axis=1)]


def searched_actions(
    game: Game, evaluator: Evaluator, states: Sequence[State], options: Options, *,
    num_simulations: int | None = None, seed: int = 0,
) -> list[int]:  # fmt: skip
    """What a network's search takes."""
    searches = Searches(game, evaluator, options, num_simulations)
    roots = searches.roots(states, range(seed, seed + len(states)))
    return [searches.action(root) for root in roots]


def playout_actions(
    game: Game, states: Sequence[State], num_simulations: int, *, seed: int = 0
) -> list[int]:
    """What a search by playouts takes, to compare with."""
    found = search_many(game, states, num_simulations=num_simulations, seed=seed)
    return [result.action for result in found if result.action is not None]


# --- exact results -------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)  # every checkpoint of a run is asked the same
def exact_positions(
    game: Game, *, num_positions: int = NUM_POSITIONS, seed: int = 0
) -> ExactPositions | None:
    """Positions of a game with exact results; None where nobody knows them.

    All states of a game that has at most 10,000, and a sample for connect four on 6 x 7, from games
    of 100 simulations a ply at temperature 1; ModuleNotFoundError where bitbully is not installed.

    Args:
        num_positions, seed: of the sample.
    """
    steps = _all_steps(game)
    if steps is not None:
        return _solved(game, steps)
    spec = treefile.find_spec(game) or ""
    if not spec.startswith("connect_four(rows=6, cols=7"):
        return None
    return _sampled(game, num_positions, seed)


# Every state that is not over, with where each action leads and what it pays.
_Steps = list[tuple[np.record, dict[int, tuple[np.record, np.ndarray]]]]


def _all_steps(game: Game) -> _Steps | None:
    """All that can happen in a game; None where that is too much."""
    states = [game.start()]
    known = {game.key(states[0])}
    steps: _Steps = []
    for state in states:  # which grows meanwhile: breadth first
        if game.is_over(state):
            continue
        steps.append((state, {action: game.step(state, action) for action in game.legal(state)}))
        for after, _ in steps[-1][1].values():
            key = game.key(after)
            if key not in known:
                known.add(key)
                states.append(after)
        if len(known) > MOST_STATES:
            return None
    return steps


def _solved(game: Game, steps: _Steps) -> ExactPositions | None:
    """Those of all states in which there is something to lose."""
    solution = solve(game, max_states=MOST_STATES)
    chosen, kept = [], []
    for state, after in steps:
        player = game.to_play(state)
        if player < 0:
            continue
        values = {
            action: float((reward + game.discount * solution.value_of(there))[player])
            for action, (there, reward) in after.items()
        }
        best = max(values.values())
        row = _row(game, [action for action in values if values[action] > best - EQUAL])
        if row.sum() < len(values):
            chosen.append(state)
            kept.append(row)
    return ExactPositions(chosen, np.array(kept), "solved") if chosen else None


def _sampled(game: Game, num_positions: int, seed: int) -> ExactPositions:
    """Positions of connect four, one from each of many games."""
    try:
        bitbully: Any = importlib.import_module("bitbully")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "exact results of connect four are known to bitbully, which is not installed: "
            "pip install bitbully",
            name=error.name,
        ) from error
    oracle = bitbully.BitBully()
    chosen: dict[bytes, np.record] = {}
    kept = []
    for actions in _games(game, seed):
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
            kept.append(row)
            if len(chosen) == num_positions:
                break
    return ExactPositions(list(chosen.values()), np.array(kept), "bitbully")


def _games(game: Game, seed: int) -> Iterator[list[int]]:
    """Beginnings of games without end, each of so many plies as was drawn for it."""
    rng = np.random.default_rng(seed)
    choice = temperature(1.0, decay=1.0)
    while True:
        num_plies, actions = int(rng.integers(PLIES[0], PLIES[1] + 1)), list[int]()
        state = game.start()
        while len(actions) < num_plies and not game.is_over(state):
            result = search(
                game, state, num_simulations=SIMULATIONS, choice=choice,
                seed=int(rng.integers(2**62)),
            )  # fmt: skip
            assert result.action is not None, "a player is to play"
            actions.append(result.action)
            state, _ = game.step(state, result.action)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        if not game.is_over(state):
            yield actions


def _row(game: Game, actions: Sequence[int]) -> np.ndarray:
    if not actions:
        raise UctreeError(f"{game.name}: no action keeps the result, which cannot be")
    row = np.zeros(game.num_actions, bool)
    row[list(actions)] = True
    return row
