"""How long a batch takes whose states are not stored, and how large its positions are.

Run `python benchmarks/large_boards.py`; prints JSON. Episodes are random on a board of 100 x 100
for three players: far longer than those of players who see the board, so that paths are long.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any

import numpy as np

from uctree.engine.stepping import with_machine_code
from uctree.games import n_in_a_row
from uctree.learn.replay import Replay, make_positions
from uctree.learn.sequences import Columns, draw_sequences, make_sequence, sequence_schema
from uctree.views import whole

GAME = n_in_a_row(100, 100, 5, 3, view=21, rewards="placement")
BATCH, ROUNDS, EPISODES, STEPS = 256, 20, 12, 5


def main() -> None:
    episodes = [random_episode(seed) for seed in range(EPISODES)]
    found: dict[str, Any] = {"plies": [len(each[0]) for each in episodes]}
    with tempfile.TemporaryDirectory() as folder:
        found["alphazero"] = of_positions(os.path.join(folder, "positions"), episodes)
        found["muzero"] = of_sequences(os.path.join(folder, "sequences"), episodes)
    print(json.dumps(found, indent=1))


def random_episode(seed: int) -> tuple[list[int], np.ndarray, list[int]]:
    """The actions of a random episode on the whole board, its rewards and players."""
    episode = with_machine_code(whole(GAME)).random_episode(seed)
    return episode.actions, episode.rewards, [ply % 3 for ply in range(len(episode.actions))]


def policies(count: int) -> list[Any]:
    """Policies over 30 actions, as those of a search."""
    rng = np.random.default_rng(count)
    return [(rng.choice(441, 30, replace=False), rng.dirichlet(np.ones(30))) for _ in range(count)]


def of_positions(folder: str, episodes: list[Any]) -> dict[str, float]:
    with Replay(folder, GAME) as replay:
        for number, (actions, _, players) in enumerate(episodes):
            replay.append(number, make_positions(
                GAME, shown(players), policies(len(actions)), np.zeros((len(actions), 3)),
                actions=actions,
            ))  # fmt: skip
        window, rng = replay.window(10**9), np.random.default_rng(0)
        return size_of(replay) | timed(lambda: window.draw(rng, BATCH))


def of_sequences(folder: str, episodes: list[Any]) -> dict[str, float]:
    with Replay(folder, GAME, schema=sequence_schema(GAME)) as replay:
        for number, (actions, rewards, players) in enumerate(episodes):
            replay.append(number, make_sequence(
                GAME, shown(players), actions, rewards, policies(len(actions)),
                np.zeros((len(actions), 3)), is_over=True,
            ))  # fmt: skip
        columns = Columns(replay, 1.0)
        columns.extend(replay.end, None)
        window, rng = replay.window(10**9), np.random.default_rng(0)

        def draw() -> None:
            draw_sequences(window, columns, rng, BATCH, unroll_steps=STEPS)

        return size_of(replay) | timed(draw)


def shown(players: list[int]) -> np.ndarray:
    return np.array(players, np.int8).view([("to_play", np.int8)])


def size_of(replay: Replay) -> dict[str, float]:
    size = sum(each.stat().st_size for each in replay.folder.iterdir())
    return {"positions": replay.end, "bytes_per_position": size / replay.end}


def timed(draw: Any) -> dict[str, float]:
    """Milliseconds of a batch: of the first one (compilation included), then CPU and wall time."""
    began = time.perf_counter()
    draw()
    first = time.perf_counter() - began
    draws = [(time.process_time(), time.perf_counter())]
    for _ in range(ROUNDS):
        draw()
        draws.append((time.process_time(), time.perf_counter()))
    spent = np.diff(np.array(draws), axis=0) * 1000
    cpu, wall = np.median(spent, axis=0)
    return {"first_ms": 1000 * first, "second_ms": spent[0, 0], "cpu_ms": cpu, "wall_ms": wall}


if __name__ == "__main__":
    main()
