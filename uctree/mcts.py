"""search(): configure, compile, drive, report; Searcher, which reuses its tree."""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uctree import specs, stopping
from uctree.engine import interrupts, machine
from uctree.engine.compile import interpreted
from uctree.engine.compose import Composition, compose
from uctree.engine.driver import MOST_SIMULATIONS, BatchedSearch, TreeSearch
from uctree.engine.history import Samples
from uctree.engine.identity import describe_game
from uctree.engine.legality import check_actions
from uctree.engine.looks import look_at
from uctree.engine.memory import num_bytes
from uctree.engine.options import (
    Options,
    default_backup,
    option_parameters,
    options_docstring,
    resolve,
    whole,
)
from uctree.engine.recent import table_of
from uctree.engine.storage import out_of_memory
from uctree.errors import UctreeError
from uctree.evaluators import Evaluator
from uctree.game import CHANCE, Game, State
from uctree.result import SearchResult
from uctree.tree import Tree


@dataclass(frozen=True)
class Progress:
    """How far a search is; passed to `progress` every few hundredths of a second."""

    simulations: int
    num_simulations: int | None  # the budget, None if only time is limited
    seconds: float
    tree: Tree
    costs: dict[str, float] | None = None  # of a plan, as booked by `spent`


# Which options decide whether a tree has these fields (`Layout`).
OPTIONS_OF_FIELDS = {
    "priors": "evaluator=", "lazy": "ties= and selection=", "squares": "selection=",
    "first_returns": "widening=", "raw": "selection=", "amaf": "selection=", "proofs": "solver=",
    "shared": "transpositions=", "pending": "parallel= and leaves=", "appends": "chance=",
    "open_loop": "open_loop=", "sparse": "root_selection=", "answers": "evaluator=",
}  # fmt: skip
DEFAULT_SIMULATIONS = 10_000  # of a search without a budget


def search(
    game: Game | str,
    state: State | None = None,
    *,
    num_simulations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    tree: Tree | tuple[Tree, ...] | None = None,
    **options: Any,
) -> SearchResult:
    """The result of searching `state` by simulations until the budget is used up.

    The search ends after `num_simulations` or `seconds`, whichever comes first, but not before the
    first simulation; Ctrl-C ends it at once with what was found so far. The same seed and number of
    simulations give the same tree.

    Args:
        game: a game, or its text, as `connect_four(rows=5)` or `my_game.py`.
        state: the start of the game if omitted.
        num_simulations: the budget in simulations; 10,000 if neither this nor `seconds` is given.
        seconds: the budget in seconds.
        seed: of all random numbers.
        progress: called with a `Progress` every few hundredths of a second.
        tree: the tree of an earlier search of the same state (or its `trees`), to continue.
    """
    began = time.perf_counter()
    game = specs.as_game(game)
    _refuse_model(options)
    if num_simulations is None and seconds is None:
        num_simulations = _default_simulations(options)
    num_simulations = checked_budget(num_simulations, seconds)
    seed = whole("seed", seed)
    root = game.start() if state is None else game.copy(state)
    num_legal = _num_choices(game, root)  # a broken game raises here, in plain Python
    given = _given_trees(tree)
    watch = stopping.watch(options.get("stop"))
    if game.num_players == 1 and num_simulations is not None and options.get("backup") is None:
        whole_tree = num_simulations + max((each.simulations for each in given), default=0)
        chosen = default_backup(game, options.get("evaluator"), whole_tree)
        options = options | {"backup": chosen}
    composition = _configure(game, root, options, given)
    resolved = composition.options
    continued = [each.simulations for each in given] or None
    if num_legal == 0:
        empty = Tree(game, root, composition.layout, 0, 1)
        return result_of(
            composition, (empty,), "terminal", simulations=0, seconds=0.0, seed=seed,
            continued=continued,
        )  # fmt: skip
    _check_root(game, root, resolved, num_simulations)
    _check_count(num_simulations, given, is_only_limit=seconds is None and not watch.stops)
    max_bytes = tree_bytes(resolved)
    with interrupts.postponed(), interrupts.armed():
        try:
            trees = _trees(composition, root, num_legal, num_simulations, max_bytes, given)
            searches = [
                TreeSearch(
                    composition, each, seed=seed, stream=i, max_bytes=max_bytes,
                    num_simulations=num_simulations,
                )
                for i, each in enumerate(trees)
            ]  # fmt: skip
        except MemoryError as error:
            raise out_of_memory(game) from error
        loaded = time.perf_counter()

        def report(status: str) -> SearchResult:
            elapsed = time.perf_counter() - loaded
            return result_of(
                composition, trees, status, simulations=sum(each.simulations for each in searches),
                seconds=elapsed, seed=seed, continued=continued, compile_seconds=loaded - began,
                profile=_profile(searches, elapsed), began=loaded,
                samples=tuple(each.samples for each in searches),
                best_seen=tuple(filter(None, (each.best_seen() for each in searches))),
            )  # fmt: skip

        deadline = math.inf if seconds is None else loaded + seconds
        status = _Team(searches).run(num_simulations, deadline, watch, progress, report)
        return report(status)


def result_of(
    composition: Composition, trees: tuple[Tree, ...], status: str, *, simulations: int,
    seconds: float, seed: int, continued: list[int] | None = None, **more: Any,
) -> SearchResult:  # fmt: skip
    """What a search of this composition found.

    Args:
        continued: the simulations of the trees that it continued.
        more: further fields of the result.
    """
    options = composition.manifest | {"tree": continued}
    return SearchResult(
        composition.game, trees, status, simulations, seconds, seed, options,
        composition.options.choice, cached=composition.kernel.cached, **more,
    )  # fmt: skip


def _describe_options(function: Callable[..., Any]) -> None:
    """Give a function that takes `**options` the signature and docstring of `Options`."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    signature = signature.replace(parameters=[*own, *option_parameters()])
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n{options_docstring()}\n    "


_describe_options(search)


def _num_choices(game: Game, root: np.record) -> int:
    """How many edges the root will have; 1 if actions are vectors; 0 if the episode is over."""
    if not game.is_continuous:
        return len(game.legal(root))
    if game.is_over(root):
        return 0
    game.box(root)
    return 1


# --- many states ---------------------------------------------------------------------------------


def search_many(
    game: Game | str, states: Iterable[State], *, seed: int = 0, **options: Any
) -> list[SearchResult]:
    """One result per state, each as `search` gives it with a seed of its own.

    With a Python evaluator and `num_simulations` as the only limit, all states are searched in one
    batch, and the evaluator gets the leaves of all trees at once; the seconds of a result then
    count from the start of the batch. Ctrl-C ends all searches by KeyboardInterrupt.

    The states of a batch share the evaluation cache. If `leaves` is above 1, their trees may thus
    differ from those of `search`: a leaf in the cache is backed up at once, others with their
    batch. With `cache=0` in the evaluator, or `leaves=1`, the trees are the same.

    Args:
        seed: the i-th state is searched with seed + i.
        options: as in `search`.
    """
    game, given, seed = specs.as_game(game), list(states), whole("seed", seed)
    _refuse_model(options)
    batched = _batched(game, given, options)
    found: dict[int, SearchResult] = {}
    if batched:
        found = _search_batch(game, given, batched, seed, **options)
    return [
        found.get(i) or _uninterrupted(search(game, state, seed=seed + i, **options))
        for i, state in enumerate(given)
    ]


def _uninterrupted(result: SearchResult) -> SearchResult:
    """The result; KeyboardInterrupt if Ctrl-C ended its search, so that it ends all searches."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


NOT_BATCHED = ("seconds", "threads", "parallel", "stop", "progress", "tree", "max_memory")
MOST_BATCHED = 256  # trees that are searched at the same time
MOST_RECORDS = 2**22  # of all these trees


def _batched(game: Game, states: list[State], options: dict[str, Any]) -> list[int]:
    """The numbers of the states that are searched in a batch."""
    evaluator = options.get("evaluator")
    if not isinstance(evaluator, Evaluator) or evaluator.batch is None or game.is_continuous:
        return []
    if any(name in options for name in NOT_BATCHED) or "num_simulations" not in options:
        return []
    return [i for i, state in enumerate(states) if game.to_play(state) >= 0]


def _search_batch(
    game: Game, states: list[State], numbers: list[int], seed: int, *, num_simulations: int,
    **options: Any,
) -> dict[int, SearchResult]:  # fmt: skip
    """The results of the states with these numbers."""
    num_simulations = checked_budget(num_simulations, None) or 1
    began = time.perf_counter()
    fit = max(1, MOST_RECORDS // (num_simulations * max(1, game.num_actions)))
    batch = BatchedSearch(game, min(len(numbers), MOST_BATCHED, fit), **options)
    for number in numbers:
        _check_root(game, game.copy(states[number]), batch.options, num_simulations)
    if batch.options.check:
        look_at(game, game.copy(states[numbers[0]]))
    loaded = time.perf_counter()
    found: dict[int, SearchResult] = {}
    with interrupts.postponed():
        for i, searched in batch.search(
            [states[number] for number in numbers], num_simulations=num_simulations,
            seeds=[seed + number for number in numbers],
        ):  # fmt: skip
            tree, seconds = batch.tree(searched), time.perf_counter() - loaded
            status = "solved" if tree.proof(0) else "simulations"
            samples = Samples()
            samples.note(tree, tree.simulations, seconds)
            found[numbers[i]] = result_of(
                batch.composition, (tree,), status, simulations=tree.simulations, seconds=seconds,
                seed=seed + numbers[i], compile_seconds=loaded - began, began=loaded,
                samples=(samples,), best_seen=None,
            )  # fmt: skip
    return found


class Searcher:
    """Searches an episode ply by ply and reuses the tree.

    >>> from uctree import Searcher, games
    >>> searcher = Searcher(games.tic_tac_toe(), solver=True)
    >>> result = searcher.search(num_simulations=500)
    >>> searcher.advance(result.action)
    >>> searcher.tree.root.visits > 0
    True
    """

    def __init__(self, game: Game | str, **options: Any) -> None:
        """
        Args:
            game: as in `search`.
            options: as in `search`, except for the budget, `tree` and `seed`.
        """
        for name in ("num_simulations", "seconds", "tree", "seed"):
            if name in options:
                raise TypeError(f"{name} is given to Searcher.search, not to Searcher")
        game = specs.as_game(game)
        if resolve(game, **options).is_gumbel:
            raise ValueError(
                "root_selection=gumbel halves a fresh root and cannot continue a tree; use "
                "search() for it, or another rule"
            )
        self.game = game
        self.options = options
        self.state = game.start()
        self._trees: tuple[Tree, ...] = ()

    @property
    def tree(self) -> Tree | None:
        """The tree of `state`, of the first thread; None before the first search."""
        return self._trees[0] if self._trees else None

    def search(
        self,
        state: State | None = None,
        *,
        num_simulations: int | None = None,
        seconds: float | None = None,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
    ) -> SearchResult:
        """As `uctree.search`; it continues the tree if `state` is its root.

        Args:
            state: the current state of the episode if omitted.
        """
        if state is not None and self.game.key(state) != self.game.key(self.state):
            self.state = self.game.copy(state)
            self._trees = ()
        result = search(
            self.game, self.state, num_simulations=num_simulations, seconds=seconds, seed=seed,
            progress=progress, tree=self._trees or None, **self.options,
        )  # fmt: skip
        if result.status != "terminal":
            self._trees = result.trees
        return result

    def advance(self, action: Any) -> None:
        """Take an action or outcome; its subtree becomes the tree."""
        after, _ = self.game.step(self.state, action)
        if self.options.get("open_loop") and self.game.to_play(self.state) == CHANCE:
            for tree in self._trees:  # nodes are the same for all outcomes
                tree.state = after
                tree.head["root_player"] = after["to_play"]
        elif self._is_against_another(after):
            self._trees = ()
        else:
            below = [tree.below(action) for tree in self._trees]
            self._trees = () if None in below else tuple(filter(None, below))
        self.state = after

    def _is_against_another(self, after: np.record) -> bool:
        """Whether a paranoid tree belongs to another player than the one to move."""
        changed = self.game.to_play(after) != self.game.to_play(self.state)
        return self.options.get("opponents") == "paranoid" and changed and not self.game.zero_sum


# --- configuring ---------------------------------------------------------------------------------

EXPENSIVE_SIMULATION = 50e-6  # seconds above which threads share a tree


def _refuse_model(given: dict[str, Any]) -> None:
    """Raise ValueError if the evaluator is a learned model, whose trees are not of the game."""
    model = getattr(given.get("evaluator"), "model", None)
    if model is not None:
        raise ValueError(
            "the evaluator is a learned model, which knows the legal actions of the root alone: "
            "below it, lines of the search may be illegal in the game. Search in the model with "
            "run.search(state), or play with it as learn.NetworkAgent"
        )


def _configure(
    game: Game, root: np.record, given: dict[str, Any], trees: tuple[Tree, ...]
) -> Composition:
    """The kernel to run; how threads search is measured if the options do not say."""
    if given.get("threads", 1) == 1 and given.get("parallel", "auto") in PARALLEL:
        return _composition(game, root, given)
    options = resolve(game, **given)
    if options.parallel not in PARALLEL:
        raise ValueError(f'parallel must be "auto", "root" or "tree"; got {options.parallel!r}')
    if options.threads == 1:
        return _composition(game, root, given)
    if options.evaluator.batch is not None:
        raise ValueError(
            f"the evaluator {options.evaluator.name} runs in Python; search with leaves= in "
            "place of threads=, so that it gets batches"
        )
    parallel = options.parallel
    if parallel == "auto":
        parallel = "root"
        if trees:
            parallel = "tree" if trees[0].layout.pending else "root"
        elif not (options.is_gumbel or options.layout(game).appends or game.is_over(root)):
            is_expensive = _cost(game, root, options) > EXPENSIVE_SIMULATION
            parallel = "tree" if is_expensive else "root"
    if parallel == "root" and options.is_gumbel:
        raise ValueError(
            f"root_selection={options.root_selection.name} halves one root; use threads=1 with it, "
            'or parallel="tree"'
        )
    return _composition(game, root, given | {"parallel": parallel})


PARALLEL = ("auto", "root", "tree")

MOST_COMPOSITIONS = 64  # of a game, kept in memory: a tuner tries any number of numbers


def _composition(game: Game, root: np.record, given: dict[str, Any]) -> Composition:
    """The composition for these options, cached, because composing is slow for short searches."""
    try:
        key = frozenset(given.items()), interpreted()
    except TypeError:  # an option is not hashable; the checks name it
        return compose(game, resolve(game, **given), state=root)
    known = table_of(game, "compositions", MOST_COMPOSITIONS)
    found: Composition | None = known.get(key)
    if found is None or found.kernel.is_stale:
        found = compose(game, resolve(game, **given), state=root)
        known.put(key, found)
    elif found.options.check:
        look_at(game, root)
    return found


def _cost(game: Game, root: np.record, options: Options, most: int = 64) -> float:
    """Seconds per simulation, measured on a few of them."""
    composition = compose(game, replace(options, threads=1))
    most_edges = max(game.num_actions, game.max_outcomes)
    tree = Tree(game, root, composition.layout, most_edges, 1024)
    trial = TreeSearch(composition, tree, seed=0, num_simulations=most)
    began = time.perf_counter()
    try:
        trial.run(most, began + 0.01)
        return (time.perf_counter() - began) / max(1, trial.simulations)
    finally:
        trial.close()


def _num_trees(options: Options) -> int:
    return options.threads if options.threads > 1 and options.parallel == "root" else 1


def _trees(
    composition: Composition, root: np.record, num_legal: int, num_simulations: int | None,
    max_bytes: int | None, given: tuple[Tree, ...],
) -> tuple[Tree, ...]:  # fmt: skip
    """The trees to search: those given, or new ones."""
    game, options = composition.game, composition.options
    num_trees = _num_trees(options)
    if given:
        for tree in given:
            _check_tree(composition, root, tree)
            if not options.sees_range(game):
                tree.forget_range()
            tree.rules = composition.rules
        if len(given) != num_trees:
            raise ValueError(
                f"the search was begun with {len(given)} trees and now has {num_trees}; continue "
                "with the same threads= and parallel="
            )
        return given
    share = -(-(num_simulations or 4096) // num_trees)
    guess = 3 * min(share, 4_000_000)
    if max_bytes is not None:
        guess = 1  # the storage finds out how much fits
    trees = tuple(Tree(game, root, composition.layout, num_legal, guess) for _ in range(num_trees))
    for tree in trees:
        tree.rules = composition.rules
    if options.sees_range(game):
        for tree in trees:
            tree.forget_range(seen=True)
    return trees


# --- driving -------------------------------------------------------------------------------------


class _Team:
    """Runs searches in parallel, each on its own tree."""

    def __init__(self, searches: list[TreeSearch]) -> None:
        self.searches = searches

    def run(
        self,
        num_simulations: int | None,
        deadline: float,
        watch: stopping.Watch,
        progress: Callable[[Progress], None] | None,
        report: Callable[[str], SearchResult],
    ) -> str:
        """Run until the search ends, and close it; returns its status."""
        began = time.perf_counter()

        def look() -> None:
            if progress is not None:
                elapsed = time.perf_counter() - began
                tree = self.searches[0].tree
                with interrupts.allowed():
                    progress(Progress(self.simulations, num_simulations, elapsed, tree))

        try:
            while True:
                until = self._next_look(num_simulations, watch)
                status = self._advance(until, deadline, look)
                if status:
                    return status
                if num_simulations is not None and self.simulations >= num_simulations:
                    return "simulations"
                left = None if num_simulations is None else num_simulations - self.simulations
                reached = watch.reached(report("running"), left)
                if reached is not None:
                    return reached
                interrupts.check()
        except KeyboardInterrupt:
            # A second Ctrl-C may have cut a simulation; and without one there is no result.
            if interrupts.was_forced() or not any(each.tree.simulations for each in self.searches):
                raise
            return "interrupted"
        finally:
            with contextlib.ExitStack() as stack:
                for each in self.searches:
                    stack.callback(each.close)

    @property
    def simulations(self) -> int:
        return sum(each.simulations for each in self.searches)

    def _next_look(self, num_simulations: int | None, watch: stopping.Watch) -> int | None:
        """The number of simulations at which the stopping rules are checked next."""
        if not watch.stops:
            return num_simulations
        done = self.simulations
        looks = [] if num_simulations is None else [num_simulations]
        if watch.interval is not None:
            looks.append((done // watch.interval + 1) * watch.interval)
        if watch.reads_clock:
            rate = sum(each.pieces.rate for each in self.searches)
            looks.append(done + max(32, int(rate * TreeSearch.PIECE_SECONDS)))
        return min(looks)

    def _advance(self, until: int | None, deadline: float, look: Callable[[], None]) -> str:
        """Run every tree's share of `until` simulations; why it ended, or ""."""
        if len(self.searches) == 1:
            return self.searches[0].run(until, deadline, look)
        shares = [
            None if until is None else (until + len(self.searches) - 1 - i) // len(self.searches)
            for i in range(len(self.searches))
        ]
        futures: list[Future[str]] = []
        with ThreadPoolExecutor(len(self.searches)) as pool:
            try:
                for each, share in zip(self.searches, shares, strict=True):
                    futures.append(pool.submit(each.run, share, deadline))
                while wait(futures, timeout=TreeSearch.PIECE_SECONDS).not_done:
                    look()
                    interrupts.check()
                    if any(_is_decisive(future) for future in futures):
                        self._cancel(futures)
            except BaseException:
                self._cancel(futures)
                raise
        statuses = [future.result() for future in futures]
        return next((why for why in ("solved", "full", "seconds") if why in statuses), "")

    def _cancel(self, futures: list[Future[str]]) -> None:
        """Stop all threads, and wait for them."""
        for each in self.searches:
            each.cancelled = True
        interrupts.wait_for(futures)


def _is_decisive(future: Future[str]) -> bool:
    """Whether a thread ended with an error or a proof, so that the others can stop."""
    if not future.done():
        return False
    return future.exception() is not None or future.result() == "solved"


def _profile(searches: list[TreeSearch], seconds: float) -> dict[str, float] | None:
    """Seconds in each part of the simulations, extrapolated from those that were timed."""
    if searches[0].composition.options.evaluator.batch is not None:  # timed as a whole
        asked = sum(each.driver.evaluation_seconds for each in searches)
        return {"evaluation": asked, "tree": max(0.0, seconds - asked)}
    times = [sum(part) for part in zip(*(each.part_times() for each in searches), strict=True)]
    total = sum(times)
    if not machine.has_clock() or total == 0:
        return None
    names = ("selection", "game", "evaluation", "backup")
    return {name: seconds * spent / total for name, spent in zip(names, times, strict=True)}


# --- checks --------------------------------------------------------------------------------------


def _default_simulations(options: dict[str, Any]) -> int:
    """The number of simulations if no budget is given; Python evaluators may be expensive."""
    evaluator = options.get("evaluator")
    if isinstance(evaluator, Evaluator) and evaluator.batch is not None:
        raise ValueError(
            f"the evaluator {evaluator.name} runs in Python, so the search needs a budget: give "
            "num_simulations=, seconds= or both"
        )
    return DEFAULT_SIMULATIONS


def checked_budget(num_simulations: int | None, seconds: float | None) -> int | None:
    """`num_simulations` as an int, or None."""
    if num_simulations is not None:
        num_simulations = whole("num_simulations", num_simulations)
        if num_simulations < 1:
            raise ValueError(f"num_simulations must be at least 1; got {num_simulations}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds must be above 0; got {seconds}")
    return num_simulations


def _given_trees(tree: Any) -> tuple[Tree, ...]:
    given = () if tree is None else (tree,) if isinstance(tree, Tree) else tree
    if not isinstance(given, tuple) or not all(isinstance(each, Tree) for each in given):
        raise TypeError(
            f"tree must be a Tree, or the trees of a result: result.tree or result.trees; got "
            f"{type(tree).__name__}"
        )
    return given


def _check_tree(composition: Composition, root: np.record, tree: Tree) -> None:
    is_edited = None not in (tree.rules, composition.rules) and tree.rules != composition.rules
    if tree.game is not composition.game:
        if is_edited or describe_game(tree.game) != describe_game(composition.game):
            raise ValueError(
                f"the tree belongs to {tree.game.name}, another game than {composition.game.name}"
                + (" (their rules differ)" if is_edited else "")
            )
        tree.game = composition.game
    elif is_edited:
        raise ValueError(
            f"the tree was grown by other rules of {tree.game.name}: they, or something that they "
            "read, changed since; search without tree=, or with a new Searcher"
        )
    if tree.game.key(tree.state) != tree.game.key(root):
        raise ValueError("the tree was grown from another state; search without tree=")
    if tree.layout != composition.layout:
        now = vars(composition.layout)
        differ = [name for name, before in vars(tree.layout).items() if before != now[name]]
        options = dict.fromkeys(OPTIONS_OF_FIELDS.get(name, name) for name in differ)
        raise ValueError(
            f"the tree was grown with other options, and its records differ: look at "
            f"{', '.join(options)}; search with the options of the tree, or without tree="
        )
    if composition.options.is_gumbel and tree.root.visits > 1:
        raise ValueError(
            f"root_selection={composition.options.root_selection.name} halves a fresh root; "
            "search without tree="
        )
    tree.state = root  # fields that are not part of the key may differ
    if tree.is_from_file:
        with interrupts.allowed():  # it replays the tree
            check_actions(tree)
        tree.is_from_file = False


def _check_root(game: Game, root: np.record, options: Options, num_simulations: int | None) -> None:
    if options.is_gumbel and num_simulations is None:
        raise ValueError(
            f"root_selection={options.root_selection.name} spends a known number of simulations; "
            "give num_simulations="
        )
    if options.opponents == "paranoid" and game.to_play(root) == CHANCE:
        raise ValueError(
            'opponents="paranoid" needs a root with a player to move; got a chance state: take an '
            "outcome first"
        )
    if options.open_loop and game.to_play(root) == CHANCE:
        raise ValueError(
            "open_loop=True needs a root with a player to move; got a chance state: take an "
            "outcome first"
        )


def tree_bytes(options: Options) -> int | None:
    """How many bytes each tree may take."""
    if options.max_memory is None:
        return None
    wanted = num_bytes(options.max_memory, "max_memory")
    if wanted < 1:
        raise ValueError(f"max_memory must be a positive number of bytes; got {options.max_memory}")
    return wanted // _num_trees(options)


def _check_count(
    num_simulations: int | None, given: tuple[Tree, ...], *, is_only_limit: bool
) -> None:
    held = max((tree.most_visits for tree in given), default=0)
    if is_only_limit and held + (num_simulations or 0) > MOST_SIMULATIONS:
        raise UctreeError(
            f"a tree counts to {MOST_SIMULATIONS:,} simulations; got num_simulations="
            f"{num_simulations:,}" + (f" on top of {held:,}" if held else "")
        )
