"""The regret of a complete path: what players would gain by other actions.

The stage regret of an action is what its mover would gain by another one if all later players give
their best replies. It is never negative, and it is zero at every stage if and only if the path is
subgame perfect. The open-loop regret keeps the others' actions fixed, and must not be used to judge
play in turns: in a subgame-perfect equilibrium it need not be zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import specs
from uctree.continuous.backward import BackwardSolver
from uctree.engine.fingerprint import fingerprint
from uctree.engine.recent import table_of
from uctree.engine.watch import Watch
from uctree.errors import IncompletePath, UctreeError
from uctree.game import CHANCE, Game, State, make_rng, random_below
from uctree.solver import solve
from uctree.variation import Variation

MOST_DEVIATIONS = 1_000_000  # lines that are tried to find an open-loop regret
MOST_LINES = 1_000_000  # states that max^n over candidates may visit
EXACT = 1e-12  # rounding of values that were enumerated


@dataclass(frozen=True)
class Regret:
    """The regret of a complete path, of all kinds."""

    movers: np.ndarray  # [num_plies], the player to move at each stage
    stage: np.ndarray  # [num_plies], of the mover, never negative
    open_loop: np.ndarray  # [num_players], others frozen, never negative
    equilibrium_gap: np.ndarray  # [num_players], of either sign: not a regret
    payoff: np.ndarray  # [num_players], what the path pays
    tolerance: float  # the error that each number may have

    @property
    def by_player(self) -> np.ndarray:
        """The largest stage regret of every player; 0 for one who never decides."""
        largest = np.zeros(len(self.payoff))
        for mover, amount in zip(self.movers, self.stage, strict=True):
            if mover >= 0:
                largest[mover] = max(largest[mover], amount)
        return largest

    def __str__(self) -> str:
        rows = ["player  stage regret  open-loop regret  equilibrium gap        payoff"]
        columns = (self.by_player, self.open_loop, self.equilibrium_gap, self.payoff)
        for player, row in enumerate(zip(*columns, strict=True)):
            rows.append("{:6d}  {:12.6g}  {:16.6g}  {:15.6g}  {:12.6g}".format(player, *row))
        return "\n".join([*rows, f"tolerance {self.tolerance:.1g}"])


def measure(
    game: Game | str,
    path: Variation | Sequence[Any],
    *,
    state: State | None = None,
    points: int = 16,
) -> Regret:
    """The regret of a complete path, of all kinds.

    Args:
        path: actions from `state` to the end, or a principal variation.
        state: where the path begins; the start of the game if omitted.
        points: as in `continuous.solve_backward`.
    """
    game = specs.as_game(game)
    walk = _Walk(game, path, state)
    value, tolerance = _values(game, walk.states[0], points)
    stage = []
    for i, mover in enumerate(walk.movers):
        taken = walk.rewards[i] + game.discount * value(walk.states[i + 1])
        gain = 0.0 if mover == CHANCE else float(value(walk.states[i])[mover] - taken[mover])
        stage.append(max(0.0, gain))
    return Regret(
        np.array(walk.movers),
        np.array(stage),
        open_loop_regret(game, path, state=state, points=points),
        value(walk.states[0]) - walk.returns,
        walk.returns,
        tolerance,
    )


def stage_regret(
    game: Game | str,
    path: Variation | Sequence[Any],
    *,
    state: State | None = None,
    points: int = 16,
) -> np.ndarray:
    """What the mover of every stage would gain by another action, given best replies."""
    return measure(game, path, state=state, points=points).stage


def open_loop_regret(
    game: Game | str,
    path: Variation | Sequence[Any],
    *,
    state: State | None = None,
    points: int = 16,
) -> np.ndarray:
    """What every player would gain by other actions if the others keep theirs.

    Deviations that make another player's action illegal do not count.
    """
    game = specs.as_game(game)
    walk = _Walk(game, path, state)
    if game.is_continuous:
        solver = BackwardSolver(game, points, frozen=True)
        best = [
            solver.value_against(walk.states[0], player, walk.actions)
            if player in walk.movers
            else walk.returns[player]
            for player in range(game.num_players)
        ]
    else:
        best = [_best_deviation(game, walk, player) for player in range(game.num_players)]
    return np.maximum(0.0, np.array(best) - walk.returns)


def sampled_gap(
    game: Game | str,
    path: Variation | Sequence[Any],
    *,
    candidates: Sequence[Sequence[Any]] | None = None,
    num_candidates: int = 10,
    include_path: bool = False,
    state: State | None = None,
    seed: int = 0,
) -> np.ndarray:
    """What max^n over sampled actions pays minus what the path pays, per player; of either sign.

    There is one list of candidates per stage, whatever the actions before; chance is averaged. It
    compares the path with an estimated equilibrium and is not a regret: it may be negative even
    for the last player, because earlier players deviate too.

    Args:
        candidates: one list per stage; if omitted, they are drawn uniformly from the legal actions
            on the path, and beyond its end from the action space.
        include_path: add the path's own action at every stage.
    """
    game = specs.as_game(game)
    walk = _Walk(game, path, state)
    if candidates is None:
        candidates = _drawn_candidates(game, walk, num_candidates, seed)
    if len(candidates) < len(walk.actions):
        raise ValueError(f"candidates has {len(candidates)} stages; the path has "
                         f"{len(walk.actions)}")  # fmt: skip
    lists = [list(stage) for stage in candidates]
    if include_path:
        lists = [[*stage, *walk.actions[i : i + 1]] for i, stage in enumerate(lists)]
    return sampled_equilibrium(game, walk.states[0], lists)[1] - walk.returns


def sampled_equilibrium(
    game: Game | str, state: State, candidates: Sequence[Sequence[Any]]
) -> tuple[list[Any], np.ndarray]:
    """The actions of max^n over a list of candidates per stage, and what they pay.

    The first wins a tie; candidates that are not legal are left out. The payoff is a mean over
    chance, and the list of actions ends at the first chance state.
    """
    game = specs.as_game(game)
    tried = 0

    def worth(here: State, stage: int, action: Any) -> tuple[list[Any], np.ndarray]:
        nonlocal tried
        tried += 1
        if tried > MOST_LINES:
            raise UctreeError(
                f"max^n over these candidates visits more than {MOST_LINES:,} states of "
                f"{game.name}; use fewer candidates"
            )
        after, reward = game.step(here, action)
        actions, rest = reply(after, stage + 1)
        return [action, *actions], reward + game.discount * rest

    def reply(here: State, stage: int) -> tuple[list[Any], np.ndarray]:
        if game.is_over(here):
            return [], np.zeros(game.num_players)
        mover = game.to_play(here)
        if mover == CHANCE:
            drawn = [(p, worth(here, stage, outcome)[1]) for outcome, p in game.outcomes(here)]
            return [], np.sum([p * paid for p, paid in drawn], axis=0)
        if stage >= len(candidates):
            raise UctreeError(
                f"there are candidates for {len(candidates)} stages, and {game.name} continues "
                "after them; give more of them, or give the game max_plies="
            )
        best: tuple[list[Any], np.ndarray] | None = None
        for action in _legal_of(game, here, candidates[stage]):
            found = worth(here, stage, action)
            if best is None or found[1][mover] > best[1][mover]:
                best = found
        assert best is not None
        return best

    return reply(game.copy(state), 0)


# --- paths ---------------------------------------------------------------------------------------


class _Walk:
    """A complete path: its states, movers and rewards."""

    def __init__(self, game: Game, path: Variation | Sequence[Any], state: State | None) -> None:
        actions = path.actions if isinstance(path, Variation) else path
        start = game.start() if state is None else game.copy(state)
        episode = game.replay(actions, start)
        if not episode.complete:
            raise IncompletePath(len(episode.actions), game.name)
        self.actions, self.returns, self.rewards = episode.actions, episode.returns, episode.rewards
        self.states = [start]
        for action in self.actions:
            self.states.append(game.step(self.states[-1], action)[0])
        self.movers = [game.to_play(each) for each in self.states[:-1]]


def _values(game: Game, state: State, points: int) -> tuple[Callable[[State], np.ndarray], float]:
    """A function that gives values of states if all foresee the rest, and its tolerance."""
    if not game.is_continuous:
        solution = solve(game, state)
        return (
            lambda here: (
                np.zeros(game.num_players)
                if game.is_over(here)
                else np.asarray(solution.value_of(here))
            ),
            EXACT,
        )
    solver, known = BackwardSolver(game, points), table_of(game, "root values", MOST_ROOTS)
    root = (game.key(state), points)
    found: tuple[np.ndarray, float, Watch] | None = known.get(root)
    if found is None or found[2].has_changed():
        again = BackwardSolver(game, points + max(3, points // 4)).value(state)
        value = solver.value(state)
        watch = fingerprint(game.rules.step, {}, game.rules.bounds).watch
        found = value, float(np.abs(value - again).max()) + 1e-10, watch
        known.put(root, found)
    value, tolerance, _ = found

    def value_of(here: State) -> np.ndarray:
        return value if game.key(here) == root[0] else solver.value(here)

    return value_of, tolerance


# Values of roots that are kept: many paths are measured from one root, whose value is expensive.
MOST_ROOTS = 1024


def _legal_of(game: Game, state: State, candidates: Sequence[Any]) -> list[Any]:
    """The candidates that are legal in a state; the first legal action if there is none."""
    if game.is_continuous:
        return list(candidates)
    legal = game.legal(state)
    return [action for action in candidates if action in legal] or legal[:1]


def _drawn_candidates(game: Game, walk: _Walk, count: int, seed: int) -> list[list[Any]]:
    """Random actions for every stage of the path, and for stages after its end."""
    rng = make_rng(seed)
    lists: list[list[Any]] = []
    for stage in range(max(len(walk.actions), game.max_plies or 0)):
        state = walk.states[min(stage, len(walk.actions) - 1)]
        if game.is_continuous:
            lists.append([game.random_vector(state, rng) for _ in range(count)])
        else:
            on_path = stage < len(walk.actions)
            actions = game.legal(state) if on_path else range(game.num_actions)
            with np.errstate(over="ignore"):
                lists.append([actions[random_below(rng, len(actions))] for _ in range(count)])
    return lists


def _best_deviation(game: Game, walk: _Walk, player: int) -> float:
    """The most a player can get by its own actions if the others act as in the path."""
    tried = 0

    def best(state: State, stage: int) -> float:
        nonlocal tried
        tried += 1
        if tried > MOST_DEVIATIONS:
            raise UctreeError(
                f"{game.name} has more than {MOST_DEVIATIONS:,} deviations from this path; its "
                "open-loop regret takes too long"
            )
        if game.is_over(state):
            return 0.0
        legal = game.legal(state)
        if game.to_play(state) != player:
            legal = [a for a in walk.actions[stage : stage + 1] if a in legal]
        worth = [-np.inf]  # if another player's action is no longer legal
        for action in legal:
            after, reward = game.step(state, action)
            worth.append(float(reward[player] + game.discount * best(after, stage + 1)))
        return max(worth)

    return best(walk.states[0], 0)
