"""The regret that solvers of a continuous game reach at given budgets.

Every payoff and every gradient that a solver computes counts as one simulation.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from uctree import backup, continuous, selection, specs
from uctree.continuous import refine, regret
from uctree.engine.identity import describe_game, game_differences
from uctree.engine.jsonlines import LineFile
from uctree.engine.jsontext import json_text, parse_json
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.mcts import search
from uctree.pages.chart import Series, line_chart

GOALS = (1.0, 0.1, 0.01)  # of the largest stage regret


@dataclass(frozen=True)
class Run:
    """The result of one solver with one budget and one seed."""

    solver: str
    budget: int
    seed: int
    evaluations: int
    # The largest stage regret of each player; None without a complete path within the budget.
    regret: tuple[float, ...] | None
    payoff: tuple[float, ...] | None
    path: tuple[tuple[float, ...], ...]

    @property
    def worst(self) -> float:
        """The largest stage regret; infinite without a complete path."""
        return math.inf if self.regret is None else max(self.regret)


Solver = Callable[[Game, int, int], tuple[list[np.ndarray], int]]


def _of_search(
    game: Game, budget: int, seed: int, by: str = "visits", **options: Any
) -> tuple[list[np.ndarray], int]:
    result = search(game, game.start(), num_simulations=max(1, budget), seed=seed, **options)
    return result.principal_variation(by=by).actions, result.evaluations


def _refined(
    game: Game, budget: int, seed: int, kind: refine.Refinement, **options: Any
) -> tuple[list[np.ndarray], int]:
    """A search whose simulations and improvements stay within the budget."""
    num_simulations = int(budget / (1 + kind.cost(game) * kind.frequency))
    return _of_search(game, num_simulations, seed, refine=kind, **options)


def plain_search(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Progressive widening with UCB1 and random proposals."""
    return _of_search(game, budget, seed, selection=selection.ucb1(1.0))


def gradient_search(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """`plain_search`, with paths that are moved along own gradients."""
    kind = refine.gradient(0.1, clip=1.0, frequency=0.05)
    return _refined(game, budget, seed, kind, selection=selection.ucb1(1.0))


def local_search(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """`plain_search`, with local max^n around paths."""
    kind = refine.local_minimax(0.05, frequency=0.02)
    return _refined(game, budget, seed, kind, selection=selection.ucb1(1.0))


def foresight_search(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Local max^n with peaks around the best line; proposals at peaks; maximum backup."""
    return _refined(
        game, budget, seed, refine.best_replies(), proposal=continuous.quadratic(),
        selection=selection.ucb1(0.005), widening=selection.widening(4, 0.3),
        backup=backup.maximum(), by="value",
    )  # fmt: skip


def ascent(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Own-gradient ascent, without a tree."""
    num_steps = max(1, budget // refine.gradient().cost(game))
    found = continuous.own_gradient_ascent(game, rate=0.02, num_steps=num_steps, seed=seed)
    return found.actions, found.evaluations


def local_maxn(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Local max^n by steps both ways, without a tree."""
    return _local(game, budget, seed, peaks=False)


def local_replies(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Local max^n with peaks of parabolas, along slopes, without a tree."""
    return _local(game, budget, seed, peaks=True, uphill=1.0)


def _local(game: Game, budget: int, seed: int, **options: Any) -> tuple[list[np.ndarray], int]:
    kind = refine.local_minimax(levels=refine.stages_of(game), **options)
    num_steps = max(1, budget // kind.cost(game))
    decay = 1e-3 ** (1.0 / num_steps)  # from the first step to a thousandth of it
    found = continuous.local_maxn(
        game, step=0.1, decay=decay, num_steps=num_steps, seed=seed, **options
    )
    return found.actions, found.evaluations


def backward(game: Game, budget: int, seed: int) -> tuple[list[np.ndarray], int]:
    """Backward induction with global optimisation; it ignores the budget."""
    found = continuous.solve_backward(game)
    return found.actions, found.evaluations


SOLVERS: dict[str, Solver] = {
    "search": plain_search,
    "gradient-search": gradient_search,
    "local-search": local_search,
    "foresight-search": foresight_search,
    "ascent": ascent,
    "local-maxn": local_maxn,
    "local-replies": local_replies,
    "backward": backward,
}


def run(game: Game | str, solver: str, budget: int, seed: int) -> Run:
    """The path a solver finds with a budget, and its regret; None if it exceeded the budget."""
    game = specs.as_game(game)
    path, evaluations = SOLVERS[solver](game, budget, seed)
    episode = game.replay(path)
    measured, payoff = None, None
    if episode.complete and evaluations <= budget:
        found = regret.measure(game, path)
        measured, payoff = tuple(found.by_player.tolist()), tuple(found.payoff.tolist())
    plain = tuple(tuple(np.asarray(action).tolist()) for action in path)
    return Run(solver, budget, seed, evaluations, measured, payoff, plain)


def chosen_solvers(names: str) -> list[str]:
    """The names of solvers from text: "all", or names separated by commas."""
    wanted = list(SOLVERS) if names == "all" else [name.strip() for name in names.split(",")]
    unknown = [name for name in wanted if name not in SOLVERS]
    if unknown:
        raise UctreeError(
            f"no solver is named {', '.join(unknown)}; there are {', '.join(SOLVERS)}, and all"
        )
    return wanted


def study(
    game: Game | str,
    solvers: Sequence[str],
    budgets: Sequence[int],
    seeds: Iterable[int],
    *,
    file: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """One run of every solver, budget and seed; runs that are in the file are not repeated.

    Args:
        file: one line of JSON per run, added as it ends, so that a stopped study can be resumed.
        progress: called with the number of finished runs and of all runs.
    """
    game = specs.as_game(game)
    wanted = [(s, b, seed) for s in solvers for b in budgets for seed in seeds]
    known: dict[tuple[str, int, int], Run] = {}
    with contextlib.ExitStack() as stack:
        lines = None
        if file is not None:
            lines = stack.enter_context(contextlib.closing(LineFile(file, "study", BEGINNING)))
            known = {(r.solver, r.budget, r.seed): r for r in _earlier_runs(lines, game)}
        for number, each in enumerate(wanted):
            if each not in known:
                known[each] = run(game, *each)
                if lines is not None:
                    lines.append(json_text(asdict(known[each])))
            if progress is not None:
                progress(number + 1, len(wanted))
    return [known[each] for each in wanted]


BEGINNING = b'{"game":'  # the first bytes of every file


def _earlier_runs(file: LineFile, game: Game) -> list[Run]:
    """The runs that a file holds; one without lines gets the first."""
    if not file.lines:
        file.append(json_text({"game": describe_game(game)}))
        return []
    try:
        stored = dict(parse_json(file.lines[0])["game"])
    except (ValueError, KeyError, TypeError):
        raise UctreeError(
            f"{file.path} was not written by a study of solvers; give another folder"
        ) from None
    differences = game_differences(stored, game, "in the file", "here")
    if differences:
        raise UctreeError(
            f"{file.path} holds runs of another game ({differences[0]}); give another folder"
        )
    return [_run_from(line, file.path, number) for number, line in enumerate(file.lines[1:], 2)]


def _run_from(line: bytes, path: Path, number: int) -> Run:
    """The run of a line."""
    try:
        given = parse_json(line)
        values = {each.name: given[each.name] for each in fields(Run)}
        if type(values["solver"]) is not str:
            raise ValueError(f"solver is {values['solver']!r}")
        for name in ("budget", "seed", "evaluations"):
            if type(values[name]) is not int:
                raise ValueError(f"{name} is {values[name]!r}")
        for name in ("regret", "payoff"):
            if values[name] is not None:
                values[name] = _numbers(values[name])
        values["path"] = tuple(map(_numbers, values["path"]))
    except (ValueError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UctreeError(
            f"{path}, line {number} is damaged ({what:.200}); without this line the study repeats "
            "the run"
        ) from None
    return Run(**values)


def _numbers(given: Any) -> tuple[float, ...]:
    if type(given) is not list or not all(type(each) in (int, float) for each in given):
        raise ValueError(f"expected numbers, not {given!r}")
    return tuple(map(float, given))


@dataclass(frozen=True)
class Summary:
    """The regret of one solver at one budget, over all seeds."""

    solver: str
    budget: int
    seeds: int
    median: float
    low: float  # quartiles
    high: float
    reached: tuple[int, ...]  # seeds below each of GOALS


def summaries(runs: Sequence[Run]) -> list[Summary]:
    """Median and quartiles of the largest stage regret, by solver and budget."""
    groups: dict[tuple[str, int], list[float]] = {}
    for each in runs:
        groups.setdefault((each.solver, each.budget), []).append(each.worst)
    found = []
    for (solver, budget), worst in groups.items():
        low, median, high = np.quantile(worst, (0.25, 0.5, 0.75), method="lower").tolist()
        reached = tuple(sum(w < goal for w in worst) for goal in GOALS)
        found.append(Summary(solver, budget, len(worst), median, low, high, reached))
    return found


def first_budgets(found: Sequence[Summary], share: float = 0.95) -> dict[str, list[int | None]]:
    """The smallest budget at which a solver is below each of GOALS on this share of the seeds."""
    table: dict[str, list[int | None]] = {}
    for name in dict.fromkeys(each.solver for each in found):
        mine = sorted((s for s in found if s.solver == name), key=lambda s: s.budget)
        table[name] = [
            next((s.budget for s in mine if s.reached[i] >= share * s.seeds), None)
            for i in range(len(GOALS))
        ]
    return table


# --- a picture -----------------------------------------------------------------------------------

FLOOR = 1e-12  # regrets below it are rounding


def draw(found: Sequence[Summary], title: str) -> str:
    """The median regret against the budget, with quartiles, as SVG; both axes logarithmic."""
    curves = []
    for name in dict.fromkeys(each.solver for each in found):
        mine = sorted((s for s in found if s.solver == name), key=lambda s: s.budget)
        drawn = [[max(FLOOR, v) for v in (s.median, s.low, s.high)] for s in mine]
        median, low, high = zip(*drawn, strict=True)
        curves.append(Series(name, [s.budget for s in mine], median, low, high))
    return line_chart(
        curves, title=title, x_label="simulations, payoffs and gradients counted",
        y_label="largest stage regret: median and quartiles", log_x=True, log_y=True,
    )  # fmt: skip
