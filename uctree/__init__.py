"""Monte Carlo tree search for games and planning problems written in plain Python."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from uctree.errors import BrokenGame, IllegalAction, IncompletePath, UctreeError
from uctree.game import (
    CHANCE,
    OVER,
    Box,
    Episode,
    Game,
    Sphere,
    board_symmetries,
    random_below,
    random_bits,
    random_normal,
    random_unit,
)  # fmt: skip

if TYPE_CHECKING:
    from uctree import (
        adapters,
        arena,
        backup,
        choice,
        continuous,
        evaluators,
        games,
        learn,
        principle,
        selection,
        stopping,
        views,
    )
    from uctree.arena.advice import advise
    from uctree.bits import lowest_bit, nth_bit, popcount
    from uctree.comparison import Comparison, compare
    from uctree.continuous import refine, regret
    from uctree.doctor.checkup import check
    from uctree.doctor.contract import Finding, Report
    from uctree.doctor.speed import RuleSpeed, rule_speed
    from uctree.engine.disk_cache import CacheEntry, cache_entries, cache_folder, clear_cache
    from uctree.mcts import Progress, Searcher, search, search_many
    from uctree.planning.calls import plan
    from uctree.planning.planner import Planner
    from uctree.planning.problem import Answer, Problem, Question, Step, spent
    from uctree.planning.world import World
    from uctree.result import SearchResult
    from uctree.solver import Solution, solve
    from uctree.tree import Node, Tree
    from uctree.variation import Variation

__version__ = "0.1.0"

__all__ = [
    "CHANCE",
    "OVER",
    "Answer",
    "Box",
    "BrokenGame",
    "CacheEntry",
    "Comparison",
    "Episode",
    "Finding",
    "Game",
    "IllegalAction",
    "IncompletePath",
    "Node",
    "Planner",
    "Problem",
    "Progress",
    "Question",
    "Report",
    "RuleSpeed",
    "SearchResult",
    "Searcher",
    "Solution",
    "Sphere",
    "Step",
    "Tree",
    "UctreeError",
    "Variation",
    "World",
    "adapters",
    "advise",
    "arena",
    "backup",
    "board_symmetries",
    "cache_entries",
    "cache_folder",
    "check",
    "choice",
    "clear_cache",
    "compare",
    "continuous",
    "evaluators",
    "games",
    "learn",
    "lowest_bit",
    "nth_bit",
    "plan",
    "popcount",
    "principle",
    "random_below",
    "random_bits",
    "random_normal",
    "random_unit",
    "refine",
    "regret",
    "rule_speed",
    "search",
    "search_many",
    "selection",
    "solve",
    "spent",
    "stopping",
    "views",
]  # fmt: skip

# Loaded on first use, so that `import uctree` stays light.
_LATER = {
    "Node": "tree", "Tree": "tree", "SearchResult": "result", "Variation": "variation",
    "Comparison": "comparison", "compare": "comparison",
    "Progress": "mcts", "Searcher": "mcts", "search": "mcts", "search_many": "mcts",
    "plan": "planning.calls", "Planner": "planning.planner", "Answer": "planning.problem",
    "Problem": "planning.problem", "Question": "planning.problem", "Step": "planning.problem",
    "spent": "planning.problem", "World": "planning.world",
    "CacheEntry": "engine.disk_cache", "cache_entries": "engine.disk_cache",
    "cache_folder": "engine.disk_cache", "clear_cache": "engine.disk_cache",
    "check": "doctor.checkup", "Report": "doctor.contract", "Finding": "doctor.contract",
    "solve": "solver", "Solution": "solver", "rule_speed": "doctor.speed",
    "RuleSpeed": "doctor.speed",
    "popcount": "bits", "lowest_bit": "bits", "nth_bit": "bits", "advise": "arena.advice",
}  # fmt: skip
_MODULES = {
    "adapters": "adapters", "arena": "arena", "backup": "backup", "choice": "choice",
    "continuous": "continuous", "evaluators": "evaluators", "games": "games", "learn": "learn",
    "principle": "principle", "refine": "continuous.refine", "regret": "continuous.regret",
    "selection": "selection", "stopping": "stopping", "views": "views",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(importlib.import_module(f"uctree.{_LATER[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"uctree.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'uctree' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
