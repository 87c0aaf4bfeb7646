"""Matches between agents: which one is stronger, with intervals.

Imported by `learn` and `cli`; it uses `mcts`, `workers` and `pages`.
Read `matches.py` first, then `ratings.py`; `ablation.py` plays whole grids of settings.
"""

from __future__ import annotations

from uctree.arena.ablation import Ablation, AblationProgress, ablate
from uctree.arena.advice import Advice, AdviceProgress, advise, random_states
from uctree.arena.agents import Agent, GreedyAgent, RandomAgent, SearchAgent, make_agent
from uctree.arena.bots import BotAgent
from uctree.arena.episodes import play
from uctree.arena.matches import MatchProgress, match, read_match
from uctree.arena.ratings import (
    Ratings,
    Sprt,
    SprtState,
    bradley_terry,
    expected_score,
    placement_scores,
    rate,
)
from uctree.arena.records import GameRecord, read_games
from uctree.arena.standings import MatchResult, Standing
from uctree.arena.worlds import PlanAgent, world_game

__all__ = [
    "Ablation",
    "AblationProgress",
    "Advice",
    "AdviceProgress",
    "Agent",
    "BotAgent",
    "GameRecord",
    "GreedyAgent",
    "MatchProgress",
    "MatchResult",
    "PlanAgent",
    "RandomAgent",
    "Ratings",
    "SearchAgent",
    "Sprt",
    "SprtState",
    "Standing",
    "ablate",
    "advise",
    "bradley_terry",
    "expected_score",
    "make_agent",
    "match",
    "placement_scores",
    "play",
    "random_states",
    "rate",
    "read_games",
    "read_match",
    "world_game",
]
