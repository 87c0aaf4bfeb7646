"""Agents for matches that search with the network of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from uctree import specs
from uctree.arena.agents import SearchAgent, derived_seed
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn.batched_play import NetworkSearch
from uctree.learn.run import Learned, Run, load
from uctree.views import View

if TYPE_CHECKING:
    import torch


class NetworkAgent:
    """An agent that plays the action of a search; a run's network values the leaves.

    >>> NetworkAgent("runs/ttt", num_simulations=200, iteration=40).settings["num_simulations"]
    200
    """

    def __init__(
        self, run: str, num_simulations: int | None = None, seconds: float | None = None, *,
        iteration: int | None = None, network: torch.nn.Module | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """
        Args:
            run: the folder of a run, or of one of its checkpoints.
            num_simulations, seconds: the budget of each search; by default that of training.
            iteration: that of the checkpoint; by default the newest.
            network: for a custom module, one of the same architecture; its weights are loaded.
            options: as in `uctree.search`.
        """
        if "evaluator" in options:
            raise TypeError("the network of the run is the evaluator; omit evaluator=")
        self.run, self.iteration, self.network = run, iteration, network
        self.settings = {"num_simulations": num_simulations, "seconds": seconds} | options
        budget = {} if num_simulations or seconds else {"num_simulations": 1}
        SearchAgent(**self.settings | budget)  # raises if an option is unknown
        self.agent: SearchAgent | ModelAgent | None = None
        self.game: Game | None = None  # that of the run, with the actions of a window if it has one

    def prepare(self, game: Game) -> None:
        """Load the network and compile the search; UctreeError if its game is another one."""
        learned = self._load(game)
        self.game = learned.game
        if learned.is_model:
            self.agent = ModelAgent(learned, **self.settings)
            return
        settings = self.settings | {"evaluator": learned.evaluator()}
        if self.settings["num_simulations"] is None and self.settings["seconds"] is None:
            settings["num_simulations"] = learned.options.num_simulations
        self.agent = SearchAgent(**settings)
        self.agent.prepare(self.game)

    def _load(self, game: Game) -> Learned:
        if self.iteration is None:
            return load(self.run, game, self.network)
        return Run.open(self.run, game).learned(self.iteration, self.network)

    def begin(self, game: Game, player: int, seed: int) -> None:
        if self.agent is None:
            self.prepare(game)
        self._prepared.begin(self.game or game, player, seed)

    def act(self, state: np.record) -> int:
        action = self._prepared.act(state)
        return action if self._view is None else self._view.to_whole(state, action)

    def watch(self, state: np.record, action: int) -> None:
        seen = action if self._view is None else self._view.to_local(state, action)
        self._prepared.watch(state, seen)

    @property
    def _view(self) -> View | None:
        """The window in which the agent acts, if its game has one."""
        return None if self.game is None else self.game.view

    @property
    def _prepared(self) -> SearchAgent | ModelAgent:
        if self.agent is None:
            raise UctreeError("call begin(game, player, seed) before act(state) or watch(...)")
        return self.agent


class ModelAgent:
    """An agent that plays the action of a search in a learned model."""

    def __init__(
        self, learned: Learned, *, num_simulations: int | None, seconds: float | None,
        **options: Any,
    ) -> None:  # fmt: skip
        if seconds is not None or options:
            given = [*(["seconds"] if seconds is not None else []), *options]
            raise UctreeError(
                f"a search in a learned model has no {', '.join(given)}: give num_simulations "
                "alone; the other options are those of its training"
            )
        self.game = learned.game
        self.search = NetworkSearch(
            self.game, learned.evaluator(), msgspec.structs.replace(learned.options, num_trees=1),
            num_simulations,
        )  # fmt: skip

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.seed, self.ply = seed, 0

    def act(self, state: np.record) -> int:
        root = self.search.roots([state], [derived_seed(self.seed, self.ply)])[0]
        return self.search.action(root)

    def watch(self, state: np.record, action: int | None) -> None:
        self.ply += 1


def network_agent(text: str, iteration: int | None = None) -> NetworkAgent:
    """The agent that a text such as `network(run="runs/ttt", num_simulations=200)` describes.

    Args:
        iteration: that of the checkpoint, if the text does not give one.
    """
    rules = [specs.rule_functions(option) for option in specs.RULES]
    functions = {name: rule for each in rules for name, rule in each.items()}
    try:
        positional, keywords = specs.read_arguments(specs.split_call(text)[1], functions)
        keywords = {"iteration": iteration} | keywords
        agent: NetworkAgent = specs.make("network", NetworkAgent, (positional, keywords))
    except UctreeError as error:
        raise UctreeError(f"agent {text}: {error}") from error
    return agent


def newest_iteration(run: str, game: Game) -> int | None:
    """The iteration of a run's newest checkpoint; None if the folder is itself a checkpoint."""
    if (Path(run) / "manifest.json").exists():
        return None
    return Run.open(run, game).learned().checkpoint.iteration
