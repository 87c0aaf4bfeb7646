"""Networks of runs as agents of matches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uctree import specs
from uctree.arena.agents import SearchAgent
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.learn.run import Learned, Run, load

if TYPE_CHECKING:
    import torch


class NetworkAgent:
    """Takes what a search finds whose leaves are valued by the network of a run.

    >>> NetworkAgent("runs/ttt", simulations=200, iteration=40).settings["simulations"]
    200
    """

    def __init__(
        self, run: str, simulations: int | None = None, seconds: float | None = None, *,
        iteration: int | None = None, network: torch.nn.Module | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """
        Args:
            run: the folder of a run, or of one of its checkpoints.
            simulations, seconds: the budget of each search; as in training where none is given.
            iteration: of the checkpoint; by default the newest.
            network: where it is a module of one's own, one like it, whose weights are replaced.
            options: as in `uctree.search`.
        """
        if "evaluator" in options:
            raise TypeError("the network of the run is the evaluator; leave evaluator= away")
        self.run, self.iteration, self.network = run, iteration, network
        self.settings = {"simulations": simulations, "seconds": seconds} | options
        budget = {} if simulations or seconds else {"simulations": 1}
        SearchAgent(**self.settings | budget)  # refuses what no search has
        self.agent: SearchAgent | None = None

    def prepare(self, game: Game) -> None:
        """Load the network, and compile the search; UctreeError where it is of another game."""
        learned = self._load(game)
        settings = self.settings | {"evaluator": learned.evaluator()}
        if self.settings["simulations"] is None and self.settings["seconds"] is None:
            settings["simulations"] = learned.options.num_simulations
        self.agent = SearchAgent(**settings)
        self.agent.prepare(game)

    def _load(self, game: Game) -> Learned:
        if self.iteration is None:
            return load(self.run, game, self.network)
        return Run.open(self.run, game).learned(self.iteration, self.network)

    def begin(self, game: Game, player: int, seed: int) -> None:
        if self.agent is None:
            self.prepare(game)
        self._prepared.begin(game, player, seed)

    def act(self, state: np.record) -> int:
        return self._prepared.act(state)

    def watch(self, state: np.record, action: int) -> None:
        self._prepared.watch(state, action)

    @property
    def _prepared(self) -> SearchAgent:
        if self.agent is None:
            raise UctreeError("an agent begins an episode before it acts")
        return self.agent


def network_agent(text: str, iteration: int | None = None) -> NetworkAgent:
    """The agent of a text as `network(run="runs/ttt", simulations=200, selection=puct(c=2))`.

    Args:
        iteration: of the checkpoint, where the text does not say.
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
    """The checkpoint that a run's network is of now; None for the folder of a checkpoint."""
    if (Path(run) / "manifest.json").exists():
        return None
    return Run.open(run, game).learned().checkpoint.iteration
