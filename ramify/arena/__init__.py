"""Matches between agents: who is stronger, and how sure that is."""

from __future__ import annotations

from ramify.arena.ablation import Ablation, AblationProgress, ablate
from ramify.arena.advice import Advice, AdviceProgress, advise, random_states
from ramify.arena.agents import Agent, GreedyAgent, RandomAgent, SearchAgent, make_agent
from ramify.arena.episodes import play
from ramify.arena.matches import MatchProgress, match, read_match
from ramify.arena.ratings import (
    Ratings,
    Sprt,
    SprtState,
    bradley_terry,
    expected_score,
    placement_scores,
    rate,
)
from ramify.arena.records import GameRecord, read_games
from ramify.arena.standings import MatchResult, Standing

__all__ = [
    "Ablation",
    "AblationProgress",
    "Advice",
    "AdviceProgress",
    "Agent",
    "GameRecord",
    "GreedyAgent",
    "MatchProgress",
    "MatchResult",
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
]
