"""The search of a session: begun, watched while it runs, ended from outside, continued."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

import uctree
from uctree.arena.agents import read_search_options
from uctree.engine.history import Sample
from uctree.engine.options import check_names, resolve
from uctree.errors import UctreeError
from uctree.game import Game
from uctree.result import SearchResult
from uctree.selection import Rule
from uctree.stopping import Stop, as_stops
from uctree.studio.messages import MOST_SIMULATIONS, Settings
from uctree.studio.turns import Turns
from uctree.tree import Tree

MOST_TO_EXCLUDE = 1_000  # simulations for each action of the root, until all have an edge
TREE_BYTES = 256_000_000  # of a session; beyond it the tree is pruned
MOST_PLAYOUTS = 1_000  # of a leaf: a search ends between two simulations only
# What the studio decides itself, or what could harm its process.
NOT_HERE = ("check", "debug", "max_memory")

turns = Turns()
compiling = threading.Lock()  # one session at a time compiles, the others take the result


def _fewest(visits: int) -> float:
    return -float(visits)


# All actions of the root get equally many visits.
EVEN = Rule("even", _fewest)


def options_of(game: Game, settings: Settings) -> dict[str, Any]:
    """The options of a search by the settings of a session; UctreeError if they are wrong."""
    try:
        options = read_search_options(settings.options)
        check_names(options)
        for name in NOT_HERE:
            if name in options:
                raise UctreeError(f"the studio sets {name}= itself; omit it")
        if settings.even:
            options["root_selection"] = EVEN
        resolved = resolve(game, **options)
    except UctreeError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise UctreeError(f"options of the search: {error}") from error
    if resolved.threads > (os.cpu_count() or 1):
        raise UctreeError(f"threads={resolved.threads}, and this machine has {os.cpu_count()}")
    if resolved.evaluator.num_playouts > MOST_PLAYOUTS:
        raise UctreeError(
            f"num_playouts={resolved.evaluator.num_playouts:,}, and the studio takes at most "
            f"{MOST_PLAYOUTS:,}: between two simulations alone it can be stopped"
        )
    if resolved.is_gumbel and settings.num_simulations is None:
        raise UctreeError("root_selection=gumbel() needs a number of simulations; give it")
    return options


class Thinking:
    """The search of the state that a session looks at.

    The functions of `watch` are called in the thread of the search, between two pieces of it, so
    that they may read the tree.
    """

    def __init__(
        self, is_wanted: Callable[[], bool], watch: Callable[[SearchResult], None]
    ) -> None:
        self._is_wanted, self._watch = is_wanted, watch
        # One object for all searches: a search with another stop would be composed anew.
        self._stop = Stop("studio", self._begin, interval=None)
        self.result: SearchResult | None = None  # the latest one
        self._trees: tuple[Tree, ...] = ()
        self._past: list[Moment] = []  # of the searches that the current one continues
        self._before = 0  # simulations of those
        self._has_turn = False
        self._prepared: tuple[Game, dict[str, Any]] | None = None

    def forget(self) -> None:
        """Begin with an empty tree, because the state or the options changed."""
        self.result, self._trees, self._past, self._before = None, (), [], 0

    @property
    def simulations(self) -> int:
        """How many simulations the tree has."""
        return self._before + (0 if self.result is None else self.result.simulations)

    def search(
        self, game: Game, state: np.record, options: dict[str, Any], *, seed: int,
        num_simulations: int | None, seconds: float | None,
        excluded: Collection[int] = (),
    ) -> SearchResult:  # fmt: skip
        """The result of searching until the budget is used up or nobody wants to wait.

        It continues the tree of an earlier search, unless `forget` was called in between.

        Args:
            excluded: actions of the state that are not searched.
        """
        given = options | {
            "max_memory": TREE_BYTES, "stop": (*as_stops(options.get("stop")), self._stop),
        }  # fmt: skip
        left = MOST_SIMULATIONS - self.simulations
        if left <= 0:
            raise UctreeError(
                f"the tree has {MOST_SIMULATIONS:,} simulations, which is the most in the studio"
            )
        self._keep_past()
        self._prepare(game, state, given)
        if excluded and not self._trees:
            self._trees = _trees_without(game, state, given | {"stop": None}, excluded, seed)
            self._before = sum(tree.simulations for tree in self._trees)
        self._has_turn = turns.take(self._is_wanted)
        try:
            self.result = uctree.search(
                game, state, seed=seed, tree=self._trees or None, seconds=seconds,
                num_simulations=min(left, num_simulations or left), **given,
            )  # fmt: skip
        finally:
            if self._has_turn:
                turns.give()
        resolved = resolve(game, **options)
        if self.result.status != "terminal" and not resolved.is_gumbel:
            self._trees = self.result.trees
        return self.result

    def _prepare(self, game: Game, state: np.record, given: dict[str, Any]) -> None:
        """Compile the search if it is new."""
        if self._prepared is not None and self._prepared[0] is game and self._prepared[1] == given:
            return
        with compiling:
            uctree.search(game, state, num_simulations=1, **(given | {"stop": None}))
        self._prepared = game, given

    def _begin(self) -> Callable[[SearchResult, int | None], bool]:
        def reached(result: SearchResult, remaining: int | None) -> bool:
            self.result = result
            self._watch(result)
            self._has_turn = self._has_turn and turns.pass_on(self._is_wanted)
            return not (self._has_turn and self._is_wanted())

        return reached

    # The root over time.

    def samples(self) -> list[tuple[int, Sample]]:
        """Moments of the current search: the simulations of the tree, and the root's edges."""
        if self.result is None or not self.result.samples:
            return []
        moments = self.result.samples[0].moments
        return [(self._before + sample.simulations, sample) for sample in moments]

    @property
    def before(self) -> int:
        """The simulations of the tree when the current search began."""
        return self._before

    def _keep_past(self) -> None:
        """Keep the history of the last search, which the next one continues."""
        if self.result is not None and self._trees:
            self._past = thinned([*self._past, *moments(self.result, self._before)])
            self._before = self.simulations
        else:
            self._past, self._before = [], 0
        self.result = None

    def history(self, rows: np.ndarray) -> dict[str, Any]:
        """Visits and values of the root's edges `rows` over all simulations of the tree."""
        assert self.result is not None
        result = self.result
        found = names_of(result)
        names = [found[row] for row in rows]
        both = thinned([*self._past, *moments(result, self._before)])
        nothing = (0, [0.0] * result.game.num_players)
        return {
            "simulations": [moment[0] for moment in both],
            "actions": names,
            "visits": [[moment[1].get(name, nothing)[0] for name in names] for moment in both],
            "q": [[moment[1].get(name, nothing)[1] for name in names] for moment in both],
        }


def _trees_without(
    game: Game, state: np.record, given: dict[str, Any], excluded: Collection[int], seed: int
) -> tuple[Tree, ...]:
    """Small trees whose roots have all legal actions but those that are excluded."""
    if game.is_continuous:
        raise UctreeError(f"the actions of {game.name} are vectors, none of which can be excluded")
    legal = game.legal(state)
    left = set(legal) - set(excluded)
    if not left:
        raise UctreeError("all actions are excluded; leave at least one")
    num_simulations = len(legal)
    while num_simulations <= MOST_TO_EXCLUDE * len(legal):
        trees = uctree.search(
            game, state, num_simulations=num_simulations, seed=seed, **given
        ).trees
        if all(len(tree.root.edges) == len(legal) for tree in trees):
            break
        num_simulations *= 2
    for tree in trees:
        edges = tree.root.edges
        tree.drop(tree.root, [edge for edge in edges if tree.action(edge) not in left])
    return trees


Moment = tuple[int, dict[int, tuple[int, list[float]]]]  # simulations; visits and q by action
MOST_MOMENTS = 120


def moments(result: SearchResult, before: int) -> list[Moment]:
    """The history of a search, `before` simulations added to its own."""
    names = names_of(result)
    return [
        (
            before + int(row["simulations"]),
            {
                name: (int(visits), [round(float(value), 6) for value in q])
                for name, visits, q in zip(names, row["visits"], row["q"], strict=True)
                if visits
            },
        )
        for row in result.history
    ]


def thinned(found: list[Moment]) -> list[Moment]:
    """At most MOST_MOMENTS of them, every second one until they are few enough; the last stays."""
    while len(found) > MOST_MOMENTS:
        found = [*found[:-1:2], found[-1]]
    return found


def names_of(result: SearchResult) -> list[int]:
    """The numbers by which a tab knows the root's edges: actions, or the places of vectors."""
    if result.game.is_continuous:
        return list(range(len(result.edges)))
    return [int(action) for action in result.edges["action"]]
