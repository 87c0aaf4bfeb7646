"""Searches and games of networks, many at the same time, so that a network is asked in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from uctree.arena.agents import Agent, AgentSource, derived_seed
from uctree.arena.episodes import Squad, Task, play_in_turns
from uctree.arena.records import GameRecord
from uctree.choice import robust_choice
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.forest import Forest, Root
from uctree.game import Game, State
from uctree.learn.options import Options, fill_in
from uctree.learn.replay import observed
from uctree.learn.selfplay import search_options

MOST_ROWS = 1024  # observations that a network is shown at once


class Searches:
    """Searches by one network as its strength is measured: all simulations, no noise, no solver."""

    def __init__(
        self, game: Game, evaluator: Evaluator, options: Options,
        num_simulations: int | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            num_simulations: of a search; as in the options where it is not given.
        """
        options = fill_in(options, game)
        self.game, self.evaluator = game, evaluator
        self.num_simulations = num_simulations or options.num_simulations or 1
        self.is_gumbel = options.root_selection == "gumbel"
        settings = search_options(options, iteration=0)
        self.forest = Forest(game, options.num_trees, evaluator=evaluator, **settings)

    def roots(self, states: Sequence[State], seeds: Sequence[int]) -> list[Root]:
        """What the searches of states found, each with a seed of its own."""
        found: dict[int, Root] = {}
        for number, tree in self.forest.search(
            states, num_simulations=self.num_simulations, seeds=seeds, noise=False
        ):
            found[number] = self.forest.root(tree)
        return [found[number] for number in range(len(states))]

    def action(self, root: Root) -> int:
        """The action that a search ends with."""
        edge = (
            root.gumbel_choice()
            if self.is_gumbel
            else robust_choice(root.visits, root.q[:, root.to_play])
        )
        return int(root.actions[edge])

    def policy(self, root: Root) -> np.ndarray:
        """The policy that a search ends with, over the edges of the root."""
        return root.improved() if self.is_gumbel else root.visits / root.visits.sum()


def predict(
    game: Game, evaluator: Evaluator, states: Sequence[State]
) -> tuple[np.ndarray, np.ndarray]:
    """What a network says of states, without any search.

    Priors [n, num_actions] of the legal actions, and values [n, num_players] in the frame of the
    player to play.
    """
    outside = evaluator.outside
    if outside is None or not outside.observes:
        raise UctreeError(
            f"the evaluator {evaluator.name} is not a network, which is shown observations; give "
            "run.evaluator(), or one from uctree.learn.evaluator"
        )
    priors = np.zeros((len(states), game.num_actions))
    values = np.zeros((len(states), game.num_players))
    for first in range(0, len(states), MOST_ROWS):
        part = slice(first, first + MOST_ROWS)
        shown = observed(game, states[part])
        logits, values[part] = outside.value(shown.observations)
        assert logits is not None, "a network gives priors"
        logits = np.where(shown.legal, logits.astype(float), -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        priors[part] = weights / weights.sum(axis=1, keepdims=True)
    if game.zero_sum:  # as the search does it
        values[:, 0] = 0.5 * (values[:, 0] - values[:, 1])
        values[:, 1] = -values[:, 0]
    return priors, values


# --- games ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Note:
    """What a network's search said at one ply of a game."""

    ply: int
    root: Root


class Seat:
    """A network that plays one seat of a game; it is told what its search found before it acts."""

    def __init__(self, searches: Searches, notes: list[Note]) -> None:
        self.searches, self.notes = searches, notes

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.seed, self.ply, self.action = seed, 0, -1

    def watch(self, state: np.record, action: int) -> None:
        self.ply += 1

    @property
    def search_seed(self) -> int:
        return derived_seed(self.seed, self.ply)

    def decide(self, root: Root) -> None:
        """Take what the search of the present state found."""
        self.notes.append(Note(self.ply, root))
        self.action = self.searches.action(root)

    def act(self, state: np.record) -> int:
        return self.action


@dataclass(eq=False)
class Play:
    """A game that is played beside others."""

    game: Game
    task: Task
    sources: dict[str, AgentSource]
    notes: list[Note] = field(default_factory=list)  # of all its networks, by ply
    record: GameRecord | None = None  # when it is over

    @property
    def ended(self) -> GameRecord:
        assert self.record is not None, "it was played"
        return self.record


def network_seat(searches: Searches, notes: list[Note]) -> Callable[[], Agent]:
    """What makes the agent of a network."""
    return lambda: Seat(searches, notes)


def play_together(plays: Sequence[Play], most: int, ended: Callable[[], None]) -> None:
    """Play games to their ends, at most so many at once; each network decides for all together.

    Args:
        ended: called after every game.
    """
    left, live = deque(plays), list[_Live]()
    while left or live:
        while left and len(live) < most:
            live.append(_Live(left.popleft()))
            live[-1].advance()
        _decide([each for each in live if each.seat is not None])
        for each in live:
            if each.seat is not None:
                each.advance()
            if each.seat is None:
                ended()
        live = [each for each in live if each.seat is not None]


class _Live:
    """A game under way: whose decision it waits for."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.squad = Squad(play.game, play.sources)
        self.turns: Generator[tuple[Agent, np.record], None, GameRecord] = play_in_turns(
            self.squad, play.task
        )
        self.seat: Seat | None = None  # the network that is to act; None when the game is over
        self.state: np.record | None = None

    def advance(self) -> None:
        """Play on until a network is to act, or to the end."""
        self.seat = None
        while self.seat is None:
            try:
                agent, self.state = next(self.turns)
            except StopIteration as end:
                self.play.record = end.value
                self.squad.close()
                return
            if isinstance(agent, Seat):
                self.seat = agent


def _decide(live: Sequence[_Live]) -> None:
    """Let each network search the states of all games in which it is to act."""
    groups: dict[Searches, list[_Live]] = {}
    for each in live:
        assert each.seat is not None
        groups.setdefault(each.seat.searches, []).append(each)
    for searches, group in groups.items():
        seats = [each.seat for each in group if each.seat is not None]
        states = [each.state for each in group if each.state is not None]
        for seat, root in zip(
            seats, searches.roots(states, [seat.search_seed for seat in seats]), strict=True
        ):
            seat.decide(root)
