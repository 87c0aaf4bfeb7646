"""Searches and games of a network, many at the same time, so that leaves are valued in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uctree.arena.agents import Agent, AgentSource, derived_seed
from uctree.arena.episodes import AgentPool, Task, play_in_turns
from uctree.arena.records import GameRecord
from uctree.choice import robust_choice
from uctree.engine.driver import BatchedSearch, Root
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.game import Game, State
from uctree.learn.latent import predict_roots
from uctree.learn.options import Options, fill_in
from uctree.learn.replay import observe_states
from uctree.learn.selfplay import search_options

MAX_BATCH = 1024  # observations of one batch in `predict`


class NetworkSearch:
    """Searches with one network to measure its strength: full budget, no noise, no solver."""

    def __init__(
        self, game: Game, evaluator: Evaluator, options: Options,
        num_simulations: int | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            num_simulations: of each search; by default those of the options.
        """
        options = fill_in(options, game)
        self.game, self.evaluator = game, evaluator
        self.num_simulations = num_simulations or options.num_simulations or 1
        self.is_gumbel = options.root_selection == "gumbel"
        settings = search_options(options, iteration=0)
        self.searches = BatchedSearch(
            game, options.num_trees, keeps_trees=False, evaluator=evaluator, **settings
        )

    def roots(self, states: Sequence[State], seeds: Sequence[int]) -> list[Root]:
        """The root of a search of each state; each search has its own seed."""
        found: dict[int, Root] = {}
        for number, tree in self.searches.search(
            states, num_simulations=self.num_simulations, seeds=seeds, noise=False
        ):
            found[number] = self.searches.root(tree)
        return [found[number] for number in range(len(states))]

    def action(self, root: Root) -> int:
        """The final choice of a search."""
        edge = (
            root.gumbel_choice()
            if self.is_gumbel
            else robust_choice(root.visits, root.q[:, root.to_play])
        )
        return int(root.actions[edge])

    def policy(self, root: Root) -> np.ndarray:
        """The policy of a search over the edges of the root."""
        return root.improved() if self.is_gumbel else root.visits / root.visits.sum()


class PolicyAlone:
    """Plays the action with the largest prior, without search; an opponent of searches."""

    def __init__(self, game: Game, evaluator: Evaluator) -> None:
        self.game, self.evaluator = game, evaluator

    def roots(self, states: Sequence[State], seeds: Sequence[int]) -> list[Any]:
        """The action of each state."""
        priors, _ = predict(self.game, self.evaluator, states)
        return priors.argmax(axis=1).tolist()

    def action(self, root: Any) -> int:
        return int(root)


Searches = NetworkSearch | PolicyAlone


def predict(
    game: Game, evaluator: Evaluator, states: Sequence[State]
) -> tuple[np.ndarray, np.ndarray]:
    """Priors and values of states by a network alone, without search.

    Priors are [n, num_actions], 0 for illegal actions. Values are [n, num_players], that of the
    player to move first.
    """
    if evaluator.model is not None:
        return _predict_by_model(game, evaluator.model, states)
    network = evaluator.batch
    if network is None or not network.observes:
        raise UctreeError(
            f"the evaluator {evaluator.name} is not a network, which takes observations; pass "
            "run.evaluator(), or an evaluator from uctree.learn.evaluator"
        )
    priors = np.zeros((len(states), game.num_actions))
    values = np.zeros((len(states), game.num_players))
    for first in range(0, len(states), MAX_BATCH):
        part = slice(first, first + MAX_BATCH)
        batch = observe_states(game, states[part])
        logits, values[part] = network.value(batch.observations)
        assert logits is not None, "a network gives priors"
        priors[part] = masked_softmax(logits, batch.legal)
    return priors, _as_in_search(game, values)


def _predict_by_model(
    game: Game, model: Any, states: Sequence[State]
) -> tuple[np.ndarray, np.ndarray]:
    """As `predict`, by the representation and the prediction of a learned model."""
    priors = np.zeros((len(states), game.num_actions))
    values = np.zeros((len(states), game.num_players))
    for first in range(0, len(states), MAX_BATCH):
        part = slice(first, first + MAX_BATCH)
        legal, logits, values[part] = predict_roots(game, model.functions, states[part])
        priors[part] = masked_softmax(logits, legal)
    return priors, _as_in_search(game, values)


def masked_softmax(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """The softmax over the legal actions of each row; 0 for the others."""
    logits = np.where(legal, logits.astype(float), -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return shares


def _as_in_search(game: Game, values: np.ndarray) -> np.ndarray:
    """The values of a zero-sum game as searches use them: half the difference of both."""
    if game.zero_sum:
        values[:, 0] = 0.5 * (values[:, 0] - values[:, 1])
        values[:, 1] = -values[:, 0]
    return values


# --- games ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchedPly:
    """The root of a network's search at one ply of a game."""

    ply: int
    root: Root


class NetworkSeat:
    """An agent whose action is set by a batched search before it is to act."""

    def __init__(self, search: Searches, searched: list[SearchedPly]) -> None:
        self.search, self.searched = search, searched

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.seed, self.ply, self.action = seed, 0, -1

    def watch(self, state: np.record, action: int) -> None:
        self.ply += 1

    @property
    def search_seed(self) -> int:
        return derived_seed(self.seed, self.ply)

    def decide(self, root: Any) -> None:
        """Choose an action by the search of the current state, and record the search."""
        if isinstance(root, Root):
            self.searched.append(SearchedPly(self.ply, root))
        self.action = self.search.action(root)

    def act(self, state: np.record) -> int:
        view = self.search.game.view
        return self.action if view is None else view.to_whole(state, self.action)


@dataclass(eq=False)
class BatchedGame:
    """A game between agents that is played at the same time as others."""

    game: Game
    task: Task
    sources: dict[str, AgentSource]
    searched: list[SearchedPly] = field(default_factory=list)  # of all its networks, by ply
    result: GameRecord | None = None  # None until the game is over

    @property
    def record(self) -> GameRecord:
        assert self.result is not None, "the game is over"
        return self.result


def network_seat(search: Searches, searched: list[SearchedPly]) -> Callable[[], Agent]:
    """A function that makes the agent of a network."""
    return lambda: NetworkSeat(search, searched)


def play_batched(games: Sequence[BatchedGame], max_games: int, on_end: Callable[[], None]) -> None:
    """Play games to their ends; each network searches the states of all current games in batches.

    Args:
        max_games: how many games are played at the same time.
        on_end: called after every game.
    """
    waiting, active = deque(games), list[_ActiveGame]()
    while waiting or active:
        while waiting and len(active) < max_games:
            active.append(_ActiveGame(waiting.popleft()))
            active[-1].advance()
        _decide([each for each in active if each.seat is not None])
        for each in active:
            if each.seat is not None:
                each.advance()
            if each.seat is None:
                on_end()
        active = [each for each in active if each.seat is not None]


class _ActiveGame:
    """A game in progress, stopped at the next decision of a network."""

    def __init__(self, game: BatchedGame) -> None:
        self.game = game
        self.agents = AgentPool(game.game, game.sources)
        self.turns: Generator[tuple[Agent, np.record], None, GameRecord] = play_in_turns(
            self.agents, game.task
        )
        self.seat: NetworkSeat | None = None  # the network to move; None when the game is over
        self.state: np.record | None = None

    def advance(self) -> None:
        """Play until a network is to move, or to the end."""
        self.seat = None
        while self.seat is None:
            try:
                agent, self.state = next(self.turns)
            except StopIteration as end:
                self.game.result = end.value
                self.agents.close()
                return
            if isinstance(agent, NetworkSeat):
                self.seat = agent


def _decide(active: Sequence[_ActiveGame]) -> None:
    """Let each network search the states of all games in which it is to move."""
    groups: dict[Searches, list[_ActiveGame]] = {}
    for each in active:
        assert each.seat is not None
        groups.setdefault(each.seat.search, []).append(each)
    for search, group in groups.items():
        seats = [each.seat for each in group if each.seat is not None]
        states = [each.state for each in group if each.state is not None]
        for seat, root in zip(
            seats, search.roots(states, [seat.search_seed for seat in seats]), strict=True
        ):
            seat.decide(root)
