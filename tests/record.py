"""Rewrite what tests/golden holds: `make golden`. Read the diff before you commit it."""

from __future__ import annotations

from pathlib import Path

import uctree.games
from uctree import Game

GOLDEN = Path(__file__).parent / "golden"


def episode_text(game: Game) -> str:
    """A random episode as people read it: the actions, the returns, the state at the end."""
    episode = game.random_episode(seed=0)
    state, words = game.start(), []
    for action in episode.actions:
        words.append(f"{action} ({game.show_action(state, action)})")
        state, _ = game.step(state, action)
    returns = " ".join(f"{value:g}" for value in episode.returns)
    actions = "\n".join(words)
    return f"{game.name}\n\nactions:\n{actions}\n\nreturns: {returns}\n\n{game.show(state)}\n"


def record_episodes() -> None:
    """Write one episode of every game in `uctree.games`."""
    GOLDEN.mkdir(exist_ok=True)
    for name in uctree.games.__all__:
        game = getattr(uctree.games, name)()
        if game.is_continuous:  # digits of floats differ from machine to machine
            continue
        (GOLDEN / f"episode_{name}.txt").write_text(episode_text(game))


if __name__ == "__main__":
    record_episodes()
