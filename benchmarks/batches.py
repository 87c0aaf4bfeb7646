"""Batched search: the time of a search without its network, compared with mctx. Prints JSON.

    python benchmarks/batches.py [mctx] [episodes] [rates] [network]

mctx: both sides search the same model with Gumbel's rule. A table of log-priors and values replaces
the network, so that nearly all time is that of the tree. mctx is jitted for the CPU, on one thread.
Ratios are of CPU time per simulation, from runs that alternate. episodes: the time of self-play of
connect four without the network, a tower of 64 x 4; rates: its speed with the network, by torch and
ONNX; network: the time of the network.
"""

from __future__ import annotations

import functools
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"  # before jax is imported
)

import numpy as np

import uctree
from uctree import evaluators, games, learn, selection
from uctree.engine.driver import BatchedSearch
from uctree.learn.selfplay import play_episodes

NUM_PLACES = 4096  # states of the model, which repeat
NUM_SIMULATIONS = 50
TURNS = 15
TIMED = 0.05  # seconds of a turn, at least; reading the CPU time takes up to 0.0005
LONGEST = 60  # plies of an episode, more than a search looks ahead

# Trees, actions, and the wanted speed relative to mctx: with a compiled evaluator, and with a batch
# evaluator in Python.
CASES = (
    (64, 9, 4.0, 3.0), (64, 82, 18.0, 18.0), (64, 441, 30.0, 30.0),
    (1, 9, 12.0, 1.5), (1, 82, 12.0, 1.5), (1, 441, 12.0, 2.0),
)  # fmt: skip


def model(num_actions: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-priors of every place, and its value for the player to move."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(NUM_PLACES, num_actions)).astype(np.float32)
    return logits, rng.uniform(-1, 1, NUM_PLACES).astype(np.float32)


# --- uctree --------------------------------------------------------------------------------------

Position = np.dtype([("place", np.int32), ("ply", np.int16), ("to_play", np.int8)])


def table_game(num_actions: int) -> uctree.Game:
    """A game of two players on the places of the model, without a winner."""

    def legal(state: Any, actions: np.ndarray) -> int:
        for action in range(num_actions):
            actions[action] = action
        return num_actions

    def step(state: Any, action: int, reward: np.ndarray) -> None:
        state.place = (state.place * 31 + action * 7 + 1) % NUM_PLACES
        state.ply += 1
        state.to_play = uctree.OVER if state.ply == LONGEST else 1 - state.to_play

    def observe(state: Any, player: int, planes: np.ndarray) -> None:
        planes[0] = state.place

    return uctree.Game(
        Position, legal, step, num_players=2, num_actions=num_actions, zero_sum=True,
        payoff_range=(-1, 1), observe=observe, observation_shape=(1,), data=model(num_actions),
        name=f"table of {num_actions} actions",
    )  # fmt: skip


def read_table(state: Any, values: np.ndarray, logits: np.ndarray, data: Any) -> None:
    value = float(data[1][state.place])
    values[state.to_play], values[1 - state.to_play] = value, -value
    row = data[0][state.place]
    for action in range(logits.shape[0]):
        logits[action] = row[action]


def table_network(num_actions: int) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The table as a function of observations."""
    logits, own = model(num_actions)
    values = np.stack([own, -own], axis=1)

    def evaluate(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = observations[:, 0].astype(np.intp)
        return logits.take(places, axis=0), values.take(places, axis=0)

    return evaluate


def uctree_search(game: uctree.Game, num_trees: int, evaluator: Any) -> Callable[[int], Any]:
    batch = BatchedSearch(game, num_trees, evaluator=evaluator, root_selection=selection.gumbel())
    roots = np.zeros(num_trees, Position)
    roots["place"] = np.arange(num_trees)

    def search(seed: int) -> None:
        batch.reset(range(num_trees), roots, num_simulations=NUM_SIMULATIONS, seed=seed)
        batch.run()

    return search


# --- mctx ----------------------------------------------------------------------------------------


def mctx_search(num_actions: int, num_trees: int) -> Callable[[int], Any]:
    import jax
    import mctx

    logits, values = (jax.numpy.asarray(table) for table in model(num_actions))
    places = jax.numpy.arange(num_trees)

    def step(parameters: Any, key: Any, action: Any, place: Any) -> Any:
        place = (place * 31 + action * 7 + 1) % NUM_PLACES
        zeros = jax.numpy.zeros(num_trees)
        output = mctx.RecurrentFnOutput(
            reward=zeros, discount=zeros - 1.0, prior_logits=logits[place], value=values[place]
        )
        return output, place

    @jax.jit
    def run(key: Any) -> Any:
        root = mctx.RootFnOutput(
            prior_logits=logits[places], value=values[places], embedding=places
        )
        return mctx.gumbel_muzero_policy(None, key, root, step, NUM_SIMULATIONS).action_weights

    return lambda seed: run(jax.random.PRNGKey(seed)).block_until_ready()


# --- figures -------------------------------------------------------------------------------------


def micros(search: Callable[[int], Any], num_trees: int, seed: int) -> float:
    """Microseconds of CPU time per simulation, over searches of at least `TIMED` seconds.

    One search before that is not timed: threads of the previous run come to rest, and caches are
    filled.
    """
    began = time.perf_counter()
    search(seed)
    repeats = math.ceil(TIMED / (time.perf_counter() - began))
    began = time.process_time()
    for i in range(repeats):
        search(seed + 1 + i)
    return 1e6 * (time.process_time() - began) / (repeats * num_trees * NUM_SIMULATIONS)


def against_mctx() -> dict[str, Any]:
    """Every case compared with mctx: with a compiled evaluator, and with one in Python."""
    found: dict[str, Any] = {}
    for num_trees, num_actions, *wanted in CASES:
        game = table_game(num_actions)
        network = evaluators.network(table_network(num_actions), cache=0)
        searches = {
            "mctx": mctx_search(num_actions, num_trees),
            "compiled": uctree_search(game, num_trees, evaluators.compiled(read_table)),
            "python": uctree_search(game, num_trees, network),
        }
        times: dict[str, list[float]] = {name: [] for name in searches}
        for turn in range(-1, TURNS):
            for name, search in searches.items():
                taken = micros(search, num_trees, 1000 * turn + 1000)
                if turn >= 0:  # the first turn compiles
                    times[name].append(taken)
        row = found[f"{num_trees} roots, {num_actions} actions"] = {
            f"{name}, us": round(statistics.median(taken), 2) for name, taken in times.items()
        }
        for name, goal in zip(("compiled", "python"), wanted, strict=True):
            ratios = [a / b for a, b in zip(times["mctx"], times[name], strict=True)]
            row[f"mctx by {name}"] = round(statistics.median(ratios), 2)
            row[f"mctx by {name}, least"] = round(min(ratios), 2)
            row[f"mctx by {name}, wanted"] = goal
    return found


def connect_four_network() -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A network that returns the same random values for every observation."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4096, 7)).astype(np.float32)
    values = rng.uniform(-1, 1, size=(4096, 2)).astype(np.float32)
    return lambda observations: (logits[: len(observations)], values[: len(observations)])


def episodes() -> dict[str, Any]:
    """Self-play of connect four: microseconds per simulation without the network."""
    game = games.connect_four()
    found: dict[str, Any] = {"wanted, at most": 10.0}
    for rule, target in (("gumbel", "gumbel"), ("puct", "visits")):
        for num_trees, leaves in ((8, 1), (64, 1), (1, 8), (8, 8)):
            options = learn.make_options(
                game, num_simulations=100, num_trees=num_trees, leaves=leaves, root_selection=rule,
                policy_target=target,
            )  # fmt: skip
            network = evaluators.network(connect_four_network(), leaves=leaves, cache=0)
            times = []
            for turn in range(6):
                numbers = range(8 * turn, 8 * turn + 8)
                began = time.process_time()
                played = list(play_episodes(game, network, options, numbers))
                taken = time.process_time() - began
                times.append(1e6 * taken / sum(each.simulations for each in played))
            found[f"{rule}, {num_trees} x {leaves} leaves, us"] = round(min(times), 2)
    return found


def rates() -> dict[str, Any]:
    """Self-play of connect four with a tower of 64 x 4, by one process with one thread."""
    game = games.connect_four()
    tower, found = learn.tower(game), dict[str, Any]()
    options = learn.make_options(
        game, num_simulations=64, root_selection="gumbel", policy_target="gumbel"
    )
    for backend in ("torch", "onnx", "int8"):
        network = learn.evaluator(tower, game, backend=backend)
        list(play_episodes(game, network, options, range(1)))  # compiles
        began = time.perf_counter()
        played = list(play_episodes(game, network, options, range(1, 65)))
        taken = time.perf_counter() - began
        for what, count in (
            ("positions", sum(len(each.positions) for each in played)),
            ("simulations", sum(each.simulations for each in played)),
        ):
            found[f"{backend}, {what} a second"] = round(count / taken)
    return found


def network() -> dict[str, Any]:
    """A tower for connect four: microseconds per position by backend, milliseconds of gradients."""
    import torch

    game = games.connect_four()
    tower = learn.tower(game)
    rng, found = np.random.default_rng(0), dict[str, Any]()
    for backend in ("torch", "onnx", "int8"):
        predict = learn.predictor(tower, game, backend=backend)
        for rows in (8, 64):
            shown = rng.integers(0, 2, (rows, *(game.observation_shape or ()))).astype(np.float32)
            taken = seconds_of(functools.partial(predict, shown))
            found[f"{backend}, {rows} rows, us a position"] = round(1e6 * taken / rows, 1)
    torch.set_num_threads(1)
    shown = torch.rand(256, *(game.observation_shape or ()))
    shown = shown.contiguous(memory_format=torch.channels_last)
    policies, values = torch.full((256, 7), 1 / 7), torch.zeros(256, 2)
    for precision in (torch.float32, torch.bfloat16):

        def step(precision: Any = precision) -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=precision is torch.bfloat16):
                policy, value = learn.losses(tower, shown, policies, values)
            (policy.mean() + value.mean()).backward()

        tower.train()
        found[f"{precision}, ms for gradients of 256"] = round(1e3 * seconds_of(step), 1)
    return found


def seconds_of(function: Callable[[], Any]) -> float:
    """The CPU time of a call, the median over turns."""
    function()
    taken = []
    for _ in range(TURNS):
        began = time.process_time()
        for _ in range(4):
            function()
        taken.append((time.process_time() - began) / 4)
    return statistics.median(taken)


SECTIONS = {"mctx": against_mctx, "episodes": episodes, "rates": rates, "network": network}


def main() -> None:
    names = sys.argv[1:] or list(SECTIONS)
    print(json.dumps({name: SECTIONS[name]() for name in names}, indent=2))


if __name__ == "__main__":
    main()
