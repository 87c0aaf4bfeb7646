"""Searches in a learned model: the time of a search beside mctx, and its memory. Prints JSON.

    python benchmarks/models.py [speed] [memory]

The model has two layers of 256 neurons, random weights and as many logits as actions; 64 roots are
searched with 50 simulations each by Gumbel's rule, on one thread. uctree computes it by ONNX
Runtime, as it does after a training; mctx is jitted for the CPU. CPU time per simulation,
from runs that alternate; "outside" is uctree's time without the two functions of the model. Trees
are kept as in self-play, without what only `tree` needs.
"""

from __future__ import annotations

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
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from batches import Position, table_game  # beside this file

from uctree import Game, selection
from uctree.engine.driver import BatchedSearch
from uctree.learn.latent import Functions, evaluator
from uctree.learn.model_inference import export_model

WIDTH, ROOTS, SIMULATIONS = 256, 64, 50
TURNS, TIMED = 9, 0.1  # turns, and seconds of each at least

# Actions; wanted: the speed relative to mctx, and microseconds outside of the network.
CASES = ((9, 1.1, 2.5), (82, 1.6, 2.5), (441, 5.0, 6.0))


def weights(num_actions: int) -> dict[str, np.ndarray]:
    """h' = relu(relu(h W1 + E[a]) W2); logits, value and reward are linear in h'."""
    rng = np.random.default_rng(0)

    def made(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / math.sqrt(shape[0])).astype(np.float32)

    return {
        "W1": made(WIDTH, WIDTH), "W2": made(WIDTH, WIDTH), "P": made(WIDTH, num_actions),
        "E": 0.3 * rng.normal(size=(num_actions, WIDTH)).astype(np.float32),
        "VR": made(WIDTH, 2),
        "start": np.abs(rng.normal(size=(ROOTS, WIDTH))).astype(np.float32),
    }  # fmt: skip


class Layers:
    """The model by ONNX Runtime, as a run of `uctree train` has it; adds up its time."""

    def __init__(self, num_actions: int, game: Game) -> None:
        self.seconds = 0.0
        made = export_model(_module(num_actions), game, rotates=True).functions(game)
        self.functions = Functions(self._timed(made.initial), self._timed(made.recurrent))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: np.ndarray) -> Any:
            began = time.thread_time()
            found = function(*given)
            self.seconds += time.thread_time() - began
            return found

        return call


def _module(num_actions: int) -> Any:
    import torch

    class Module(torch.nn.Module):
        """The two functions of the model; roots have the hidden states of `start`."""

        def __init__(self) -> None:
            super().__init__()
            for name, array in weights(num_actions).items():
                self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(array)))
            self.signs = torch.tensor([[1.0, -1.0]])

        def initial(self, observations: Any) -> Any:
            hidden = self.start[observations[:, 0].long()]
            logits, values, _ = self.read(hidden)
            return hidden, logits, values

        def recurrent(self, hidden: Any, actions: Any) -> Any:
            inner = torch.relu(hidden @ self.W1 + self.E[actions])
            after = torch.relu(inner @ self.W2)
            logits, values, rewards = self.read(after)
            return after, rewards, logits, values

        def read(self, hidden: Any) -> Any:
            both = torch.tanh(hidden @ self.VR)
            return hidden @ self.P, both[:, :1] * self.signs, both[:, 1:] * self.signs

    return Module()


def uctree_search(num_actions: int) -> tuple[Callable[[int], Any], Layers, BatchedSearch]:
    game = table_game(num_actions)
    layers = Layers(num_actions, game)
    batch = BatchedSearch(
        game, ROOTS, keeps_trees=False, evaluator=evaluator(game, layers.functions),
        root_selection=selection.gumbel(),
    )  # fmt: skip
    roots = np.zeros(ROOTS, Position)
    roots["place"] = np.arange(ROOTS)  # which is all that the model observes

    def search(seed: int) -> None:
        batch.reset(range(ROOTS), roots, num_simulations=SIMULATIONS, seed=seed)
        batch.run()

    return search, layers, batch


def mctx_search(num_actions: int) -> Callable[[int], Any]:
    import jax
    import jax.numpy as jnp
    import mctx

    w = {name: jnp.asarray(array) for name, array in weights(num_actions).items()}

    def read(hidden: Any) -> Any:
        both = jnp.tanh(hidden @ w["VR"])
        return hidden @ w["P"], both[:, 0], both[:, 1]

    def step(params: Any, key: Any, action: Any, hidden: Any) -> Any:
        inner = jax.nn.relu(hidden @ w["W1"] + w["E"][action])
        after = jax.nn.relu(inner @ w["W2"])
        logits, value, reward = read(after)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=-jnp.ones(ROOTS), prior_logits=logits, value=value
        ), after

    @jax.jit
    def run(key: Any) -> Any:
        logits, value, _ = read(w["start"])
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=w["start"])
        return mctx.gumbel_muzero_policy(None, key, root, step, SIMULATIONS).action_weights

    return lambda seed: run(jax.random.PRNGKey(seed)).block_until_ready()


def microseconds(search: Callable[[int], Any], seed: int) -> float:
    """CPU time per simulation."""
    began = time.perf_counter()
    search(seed)
    repeats = max(1, math.ceil(TIMED / (time.perf_counter() - began)))
    began = time.process_time()
    for i in range(repeats):
        search(seed + 1 + i)
    return 1e6 * (time.process_time() - began) / (repeats * ROOTS * SIMULATIONS)


def speed() -> list[dict[str, Any]]:
    rows = []
    for num_actions, wanted, most in CASES:
        ours, layers, _ = uctree_search(num_actions)
        theirs = mctx_search(num_actions)
        ours(0), theirs(0)
        times: dict[str, list[float]] = {"uctree": [], "mctx": [], "outside": []}
        for turn in range(TURNS):
            times["mctx"].append(microseconds(theirs, 1000 * turn))
            times["uctree"].append(microseconds(ours, 1000 * turn))
            layers.seconds, began = 0.0, time.thread_time()
            for i in range(5):
                ours(1000 * turn + i)
            spent = time.thread_time() - began - layers.seconds
            times["outside"].append(1e6 * spent / (5 * ROOTS * SIMULATIONS))
        ratios = [a / b for a, b in zip(times["mctx"], times["uctree"], strict=True)]
        rows.append({
            "actions": num_actions,
            **{f"{name}_us": round(statistics.median(each), 2) for name, each in times.items()},
            "ratio": round(statistics.median(ratios), 2), "least": round(min(ratios), 2),
            "wanted": wanted, "wanted_outside_us": most,
        })  # fmt: skip
    return rows


def memory() -> list[dict[str, Any]]:
    """Megabytes that the trees use after a search, and those of mctx: 24 bytes an action and node.

    Both have the same hidden states besides.
    """
    rows = []
    for num_actions, *_ in CASES:
        search, _, batch = uctree_search(num_actions)
        search(0)
        arrays = batch._storage.tree_arrays()
        heads = arrays["heads"][:, 0]
        edges = int(heads["used"].sum()) * arrays["edges"].dtype.itemsize
        each = arrays["untried"].dtype.itemsize + arrays["untried_actions"].dtype.itemsize
        untried = int(heads["num_untried"].sum()) * each
        hidden = batch._latent.hidden.nbytes
        theirs = 24 * num_actions * (SIMULATIONS + 1) * ROOTS
        rows.append({
            "actions": num_actions, "edges_mb": round(edges / 1e6, 2),
            "log_priors_mb": round(untried / 1e6, 2), "mctx_mb": round(theirs / 1e6, 2),
            "share": round((edges + untried) / theirs, 3),
            "hidden_states_mb": round(hidden / 1e6, 2),
        })  # fmt: skip
    return rows


def main(parts: list[str]) -> None:
    kinds = {"speed": speed, "memory": memory}
    print(json.dumps({name: kinds[name]() for name in parts or kinds}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
