"""search(): one search from its options to its result; Searcher, which keeps its tree."""

from __future__ import annotations

import contextlib
import math
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from uctree import _machine, stopping, treefile
from uctree import choice as choices
from uctree._compile import Kernel, compile_kernel, interpreted
from uctree.backup import Backup
from uctree.choice import Choice
from uctree.compose import (
    Composition,
    Options,
    Workspace,
    as_trees,
    checked_options,
    compose,
    desk_of,
    num_blocks,
)  # fmt: skip
from uctree.continuous import Proposal
from uctree.errors import BrokenGame, UctreeError
from uctree.evaluators import (
    DONE,
    GROW,
    SETTLED,
    WAITING,
    Evaluator,
    num_bytes,
)  # fmt: skip
from uctree.exchange import Desk
from uctree.forest import Forest
from uctree.game import CHANCE, Game, State, StateViews, make_rng
from uctree.gumbel import consider, halving_schedule
from uctree.history import Samples
from uctree.refine import Refinement
from uctree.result import SearchResult
from uctree.selection import Noise, Rule, Widening
from uctree.stopping import AnyStops
from uctree.tree import FIRST_BLOCK, NONE, TABLE, Tree, empty_table
from uctree.trouble import told, trouble


@dataclass(frozen=True)
class Progress:
    """How far a search is; handed to `progress` every few hundredths of a second."""

    simulations: int
    num_simulations: int | None  # the budget, None where only time is limited
    seconds: float
    tree: Tree


def search(
    game: Game,
    state: State,
    *,
    num_simulations: int | None = None,
    seconds: float | None = None,
    selection: Rule | None = None,
    root_selection: Rule | None = None,
    root_noise: Noise | None = None,
    backup: Backup | None = None,
    evaluator: Evaluator | Callable[..., None] | None = None,
    widening: Widening | None = None,
    proposal: Proposal | Callable[..., None] | None = None,
    refine: Refinement | None = None,
    chance: str | Widening = "sample",
    open_loop: bool = False,
    transpositions: bool = False,
    solver: bool = False,
    opponents: str = "maxn",
    ties: str = "first",
    threads: int = 1,
    parallel: str = "auto",
    in_flight: str = "virtual",
    leaves: int | None = None,
    stop: AnyStops = None,
    choice: str | Choice | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    tree: Tree | tuple[Tree, ...] | None = None,
    max_memory: int | str | None = None,
    debug: bool = False,
) -> SearchResult:
    """What to do in `state`, found by simulations until the budget is used up.

    The search ends after `num_simulations` or `seconds`, whichever comes first, but not before the
    first simulation; Ctrl-C ends it at once with what was found so far. The same seed and number of
    simulations give the same tree.

    Args:
        selection: how edges are chosen; UCB1, or PUCT where the evaluator gives priors.
        root_selection: how the root's edges are chosen, if different.
        root_noise: noise in the root's priors, from `selection.dirichlet`.
        backup: how a node's value follows from what is below; the mean.
        evaluator: what a leaf is worth; one random playout. A plain function is compiled in.
        widening: opens edges one by one, from `selection.widening`.
        proposal: where to look for actions that are vectors, from `uctree.continuous`; at random. A
            plain function is compiled in.
        refine: how such actions are made better on the way, from `uctree.refine`; not at all.
        chance: how outcomes are taken: "sample", "proportional" (always the one most overdue), or
            `selection.outcome_widening`.
        open_loop: let nodes be sequences of actions, whatever chance does in between.
        transpositions: let states that are reached in several ways share one node.
        solver: prove values from the ends of episodes up, and stop once the root is proven.
        opponents: "maxn", each player wants the most; "paranoid", all are against the one to move.
        ties: "first" of equals, or "random".
        threads: how many search at once.
        parallel: "root", trees of their own that are added up, the same for the same seed; "tree",
            one tree; "auto" measures which fits.
        in_flight: what others see of simulations under way in one tree: "virtual" visits that
            count as losses, or "unobserved" ones that count as visits alone.
        leaves: how many leaves are valued at once by an evaluator that is asked in Python.
        stop: when to end before the budget is used up, from `uctree.stopping`.
        choice: how `result.action` is chosen, from `uctree.choice`; the most visited.
        progress: called with a `Progress` every few hundredths of a second.
        tree: the tree of an earlier search of the same state (or its `trees`), to go on from.
        max_memory: bytes, or text as "500MB"; when they are used up the least visited parts of the
            tree are given up, and the search goes on.
        debug: compile with bounds checks, to find out why a game crashes.
    """
    _check_budget(num_simulations, seconds)
    for name, number in (("seed", seed), ("threads", threads)):
        _check_whole(name, number)
    composing = {
        "selection": selection, "root_selection": root_selection, "root_noise": root_noise,
        "backup": backup, "evaluator": evaluator, "widening": widening, "proposal": proposal,
        "refine": refine,
        "chance": chance,
        "open_loop": open_loop, "transpositions": transpositions, "solver": solver,
        "opponents": opponents, "ties": ties, "in_flight": in_flight, "leaves": leaves,
        "debug": debug,
    }  # fmt: skip
    began = time.perf_counter()
    root = game.copy(state)
    num_legal = _num_choices(game, root)  # a game that is wrong at once says so in plain Python
    watch = stopping.watch(stop)
    given = _given_trees(tree)
    plan = _plan(game, root, composing, threads, parallel, given)
    options = plan.composition.options
    picked = choices.as_choice(choice, after_gumbel=options.is_gumbel)
    told = _told_options(options, plan, max_memory, stop, picked)
    told["tree"] = [t.simulations for t in given] or None
    if num_legal == 0:
        empty = Tree(game, root, plan.composition.layout, 0, 1)
        return SearchResult(game, (empty,), "terminal", 0, 0.0, seed, told, picked)
    _check_root(game, root, options, num_simulations)
    max_bytes = _bytes(max_memory)
    if max_bytes is not None:
        max_bytes //= plan.num_trees
    held = max((t.simulations for t in given), default=0)
    is_counted = seconds is None and not watch.stops
    if is_counted and held + (num_simulations or 0) > MOST_SIMULATIONS:
        raise ValueError(
            f"a tree counts to {MOST_SIMULATIONS:,} simulations; got num_simulations="
            f"{num_simulations:,}" + (f" on top of {held:,}" if held else "")
        )
    trees = _trees(plan, root, num_legal, num_simulations, max_bytes, given)
    drivers = [_Driver(plan, t, seed, i, max_bytes, num_simulations) for i, t in enumerate(trees)]
    loaded = time.perf_counter()

    def report(status: str) -> SearchResult:
        return SearchResult(
            game,
            tuple(driver.tree for driver in drivers),
            status,
            sum(driver.simulations for driver in drivers),
            time.perf_counter() - loaded,
            seed,
            told,
            picked,
            compile_seconds=loaded - began,
            cached=plan.composition.kernel.cached,
            profile=_profile(drivers, time.perf_counter() - loaded),
            began=loaded,
            samples=tuple(driver.samples for driver in drivers),
        )

    deadline = math.inf if seconds is None else loaded + seconds
    status = _Team(drivers).run(num_simulations, deadline, watch, progress, report)
    return report(status)


def _num_choices(game: Game, root: np.record) -> int:
    """How many edges the root will have; where actions are vectors 1, or 0 at the end."""
    if not game.is_continuous:
        return len(game.legal(root))
    if game.is_over(root):
        return 0
    game.box(root)
    return 1


def search_many(
    game: Game, states: Iterable[State], *, seed: int = 0, **options: Any
) -> list[SearchResult]:
    """One result per state, each as `search` gives it with a seed of its own.

    Where leaves are valued in Python and `num_simulations` is the only limit, all trees grow
    together, and whoever values leaves gets those of all in one batch. Ctrl-C then ends it without
    a result, and the seconds of a result count from when the first tree began.

    Args:
        seed: the i-th state is searched with seed + i.
        options: as in `search`.
    """
    given = list(states)
    together = _together(game, given, options)
    found: dict[int, SearchResult] = {}
    if together:
        found = dict(_search_together(game, given, together, seed, **options))
    return [
        found.get(i) or search(game, state, seed=seed + i, **options)
        for i, state in enumerate(given)
    ]


ALONE = ("seconds", "threads", "parallel", "stop", "progress", "tree", "max_memory")
MOST_TOGETHER = 256  # trees that grow together
MOST_RECORDS = 2**22  # that they may come to have


def _together(game: Game, states: list[State], options: dict[str, Any]) -> list[int]:
    """The numbers of the states that are searched in a forest, not one after the other."""
    evaluator = options.get("evaluator")
    if not isinstance(evaluator, Evaluator) or evaluator.outside is None or game.is_continuous:
        return []
    if any(name in options for name in ALONE) or "num_simulations" not in options:
        return []
    return [i for i, state in enumerate(states) if game.to_play(state) >= 0]


def _search_together(
    game: Game, states: list[State], numbers: list[int], seed: int, *, num_simulations: int,
    choice: str | Choice | None = None, **composing: Any,
) -> Iterator[tuple[int, SearchResult]]:  # fmt: skip
    """The results of these states, each with its number, as they are found."""
    _check_budget(num_simulations, None)
    _check_whole("seed", seed)
    began = time.perf_counter()
    fit = max(1, MOST_RECORDS // (num_simulations * max(1, game.num_actions)))
    forest = Forest(game, min(len(numbers), MOST_TOGETHER, fit), **composing)
    composition = forest.composition
    picked = choices.as_choice(choice, after_gumbel=forest.options.is_gumbel)
    told_options = _told_options(forest.options, _Plan(composition, 1, ""), None, None, picked)
    for number in numbers:
        _check_root(game, game.copy(states[number]), forest.options, num_simulations)
    loaded = time.perf_counter()
    searched = forest.search(
        [states[number] for number in numbers], num_simulations=num_simulations,
        seeds=[seed + number for number in numbers],
    )  # fmt: skip
    for i, grown in searched:
        tree, seconds = forest.tree(grown), time.perf_counter() - loaded
        status = "solved" if tree.proof(0) else "simulations"
        samples = Samples()
        samples.note(tree, tree.simulations, seconds)
        yield (
            numbers[i],
            SearchResult(
                game, (tree,), status, tree.simulations, seconds, seed + numbers[i],
                told_options | {"tree": None}, picked,
                compile_seconds=loaded - began, cached=composition.kernel.cached, began=loaded,
                samples=(samples,),
            ),
        )  # fmt: skip


class Searcher:
    """Searches an episode ply by ply and keeps what it learned.

    >>> from uctree import Searcher, games
    >>> searcher = Searcher(games.tic_tac_toe(), solver=True)
    >>> result = searcher.search(num_simulations=500)
    >>> searcher.advance(result.action)
    >>> searcher.tree.root.visits > 0
    True
    """

    def __init__(self, game: Game, **options: Any) -> None:
        """
        Args:
            options: as in `search`, except for the budget, `tree` and `seed`.
        """
        for name in ("num_simulations", "seconds", "tree", "seed"):
            if name in options:
                raise TypeError(f"{name} is given to Searcher.search, not to Searcher")
        if not isinstance(game, Game):
            raise TypeError(f"a Searcher searches a uctree.Game; got {game!r}")
        beyond = ("threads", "parallel", "stop", "choice", "max_memory")
        composing = {name: value for name, value in options.items() if name not in beyond}
        if checked_options(game, **composing).is_gumbel:
            raise ValueError(
                "root_selection=gumbel halves a fresh root and cannot use a tree that was kept; "
                "use search() for it, or another rule"
            )
        self.game = game
        self.options = options
        self.state = game.start()
        self._trees: tuple[Tree, ...] = ()

    @property
    def tree(self) -> Tree | None:
        """What is known of `state`, of the first thread; None before the first search."""
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
        """As `uctree.search`; it goes on from the tree where `state` is the one it belongs to.

        Args:
            state: the start of the episode, or what `advance` came to.
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
        """Take an action or outcome: what hangs below it becomes the tree."""
        after, _ = self.game.step(self.state, action)
        if self.options.get("open_loop") and self.game.to_play(self.state) == CHANCE:
            for tree in self._trees:  # nodes do not tell outcomes apart
                tree.state = after
                tree.head["root_player"] = after["to_play"]
        elif self._is_against_another(after):
            self._trees = ()
        else:
            below = [tree.below(action) for tree in self._trees]
            self._trees = () if None in below else tuple(filter(None, below))
        self.state = after

    def _is_against_another(self, after: np.record) -> bool:
        """Whether the tree was grown against a player who is not to move any more."""
        changed = self.game.to_play(after) != self.game.to_play(self.state)
        return self.options.get("opponents") == "paranoid" and changed and not self.game.zero_sum


# --- planning ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """What is searched how, and by how many threads."""

    composition: Composition
    threads: int
    parallel: str  # "root", "tree", or "" for one thread

    @property
    def num_trees(self) -> int:
        return self.threads if self.parallel == "root" else 1


MOST_SIMULATIONS = 2**31 - 2  # visits are 32 bits wide
DEAR = 50e-6  # seconds for a simulation from which on threads share a tree


def _plan(
    game: Game, root: np.record, composing: dict[str, Any], threads: int, parallel: str,
    trees: tuple[Tree, ...],
) -> _Plan:  # fmt: skip
    """The kernel to run; which way threads go is measured where nobody says."""
    if threads < 1:
        raise ValueError(f"threads must be at least 1; got {threads}")
    if parallel not in ("auto", "root", "tree"):
        raise ValueError(f'parallel must be "auto", "root" or "tree"; got {parallel!r}')
    if threads == 1:
        return _Plan(_composition(game, composing), 1, "")
    options = checked_options(game, **composing)
    if options.evaluator.outside is not None:
        raise ValueError(
            f"the evaluator {options.evaluator.name} is asked in Python; search with leaves= in "
            "place of threads=, so that it gets batches"
        )
    if parallel == "auto":
        parallel = "root"
        if trees:
            parallel = "tree" if trees[0].layout.pending else "root"
        elif not (options.is_gumbel or options.layout(game).appends or game.is_over(root)):
            parallel = "tree" if _cost(game, root, options) > DEAR else "root"
    if parallel == "root" and options.is_gumbel:
        raise ValueError(
            f"root_selection={options.root_selection.name} halves one root; use threads=1 with it, "
            'or parallel="tree"'
        )
    composing = composing | {"shares_tree": parallel == "tree"}
    return _Plan(_composition(game, composing), threads, parallel)


_compositions: weakref.WeakKeyDictionary[Game, dict[Any, Composition]]
_compositions = weakref.WeakKeyDictionary()


def _composition(game: Game, composing: dict[str, Any]) -> Composition:
    """The composition for options as they were given; a short search is mostly this otherwise."""
    known = _compositions.setdefault(game, {})
    try:
        key = tuple(composing.values()), len(composing), interpreted()
        if key not in known:
            known[key] = compose(game, checked_options(game, **composing))
        return known[key]
    except TypeError:  # something that cannot be a key; the checks will say what
        return compose(game, checked_options(game, **composing))


def _cost(game: Game, root: np.record, options: Options, most: int = 64) -> float:
    """Seconds a simulation takes, from a few of them."""
    plan = _Plan(compose(game, options), 1, "")
    most_edges = max(game.num_actions, game.max_outcomes)
    tree = Tree(game, root, plan.composition.layout, most_edges, 1024)
    driver = _Driver(plan, tree, 0, 0, None, most)
    began = time.perf_counter()
    driver.run(most, began + 0.01)
    return (time.perf_counter() - began) / max(1, driver.simulations)


def _trees(
    plan: _Plan, root: np.record, num_legal: int, num_simulations: int | None,
    max_bytes: int | None, given: tuple[Tree, ...],
) -> tuple[Tree, ...]:  # fmt: skip
    """The trees to search: those given, or new ones."""
    composition = plan.composition
    if given:
        for tree in given:
            _check_tree(composition, root, tree)
            if not composition.options.sees_range(composition.game):
                tree.forget_range()
        if len(given) != plan.num_trees:
            raise ValueError(
                f"the search was begun with {len(given)} trees and now has {plan.num_trees}; go on "
                "with the same threads= and parallel="
            )
        return given
    share = -(-(num_simulations or 4096) // plan.num_trees)
    guess = 3 * min(share, 4_000_000)
    if max_bytes is not None:
        guess = 1  # the driver knows how much fits
    trees = tuple(
        Tree(composition.game, root, composition.layout, num_legal, guess)
        for _ in range(plan.num_trees)
    )
    if composition.options.sees_range(composition.game):
        for tree in trees:
            tree.forget_range(seen=True)
    return trees


def _told_options(
    options: Options, plan: _Plan, max_memory: Any, stop: Any, choice: Choice
) -> dict[str, Any]:
    """The options of a search by the names that `search` knows them by, defaults filled in."""
    told = {name: value for name, value in vars(options).items() if name != "shares_tree"}
    if options.root_selection == options.selection:
        told["root_selection"] = None
    return told | {
        "threads": plan.threads, "parallel": plan.parallel or "auto", "max_memory": max_memory,
        "stop": stop, "choice": choice,
    }  # fmt: skip


# --- driving -------------------------------------------------------------------------------------


@cache
def _consider_kernel(is_interpreted: bool) -> Kernel:
    one = np.zeros(1)
    example = (np.zeros(1, np.uint64), 1.0, False, 1, one, one, one, np.zeros(1, np.int64), one)
    return compile_kernel(consider, {}, example, label="gumbel's root")


class _Driver:
    """Lets one tree be searched, in pieces of a few hundredths of a second."""

    PIECE_SECONDS = 0.02
    FIRST_PIECES = 2048  # simulations after which a piece is at most as long as all before it

    def __init__(
        self, plan: _Plan, tree: Tree, seed: int, stream: int, max_bytes: int | None,
        num_simulations: int | None,
    ) -> None:  # fmt: skip
        self.composition = plan.composition
        self.tree = tree
        self.max_bytes = max_bytes
        self.before = tree.simulations
        self.cancelled = False
        self.pruned_at = -1
        self.piece, self.rate = 1, 0.0
        self.samples = Samples()
        self.asked_seconds = 0.0  # spent by whoever values leaves in Python
        self.seed, self.stream = seed, stream
        options = plan.composition.options
        num_workers = plan.threads if options.shares_tree and not interpreted() else 1
        # A tree that is searched again goes on with fresh random numbers.
        streams = (self.before + (stream + worker << 40) for worker in range(num_workers))
        self.works = [
            Workspace(
                tree.game, options, plan.composition.arrays, tree, make_rng(seed, stream=number)
            )
            for number in streams
        ]
        for number, work in enumerate(self.works):
            work.lock = self.works[0].lock
            work.work["worker"] = 1 + number
        self.pool = ThreadPoolExecutor(num_workers) if num_workers > 1 else None
        self.desk = None
        if options.evaluator.outside is not None:
            arrays = plan.composition.arrays
            self.desk = desk_of(tree.game, options, arrays, 1, len(self.works[0].path))
        tree.head["room"] = num_workers * options.leaves * (tree.game.num_actions + 1)
        if tree.layout.dim:  # the largest block may double
            used = int(tree.head["used"][0])
            blocks = 4 * max(FIRST_BLOCK, int(tree.edges["num_edges"][:used].max()))
            tree.head["room"] = num_blocks(tree.game, options) * blocks
        elif tree.layout.appends:  # blocks double, and a path has many of them
            tree.head["room"] *= 8
        self._grow(len(tree.edges))
        self.is_begun = False
        self.num_simulations = num_simulations

    @property
    def simulations(self) -> int:
        """Those of this search; from the tree, so that an interrupt cannot lose any."""
        return self.tree.simulations - self.before

    def run(
        self, until: int | None, deadline: float, look: Callable[[], None] | None = None
    ) -> str:
        """Simulate until there are so many; why it ended, "" where there are.

        Else "seconds", "solved", "full" or "cancelled".
        """
        if not self.is_begun:
            self.is_begun = True
            self._value_root()
            self._prepare_root()
        while until is None or self.simulations < until:
            now = time.perf_counter()
            if self.cancelled:
                return "cancelled"
            if now >= deadline and self.tree.simulations > 0:  # there is something to choose from
                return "seconds"
            before = self.simulations
            left = MOST_SIMULATIONS - self.tree.simulations
            if left <= 0:
                return "full"
            if until is not None:
                left = min(left, until - before)
            piece = min(left, max(self.piece, self.composition.options.leaves))
            if self.rate and deadline < math.inf:
                piece = min(piece, max(1, int(self.rate * (deadline - now))))
            if self._simulate(piece, most=left) == SETTLED:
                return "solved"
            clock, done = time.perf_counter(), self.simulations
            self.rate = (done - before) / max(1e-6, clock - now)
            # Short searches, too, shall be seen at several moments: pieces grow no faster than so.
            longest = min(8 * self.piece, max(self.FIRST_PIECES, done))
            self.piece = max(1, min(longest, int(self.rate * self.PIECE_SECONDS)))
            self.samples.note(self.tree, done, clock)
            if look is not None:
                look()
        return ""

    def close(self) -> None:
        """Give back what is not needed any more."""
        self._give_up_waiting()
        if self.pool is not None:
            self.pool.shutdown()
        self.tree.resize(0)

    def _value_root(self) -> None:
        """With priors the root is valued once, outside the budget."""
        tree = self.tree
        if tree.has_priors and tree.edges["first"][0] == NONE and tree.root.to_play != CHANCE:
            counts = {name: tree.head[name].copy() for name in ("simulations", "since_root")}
            try:
                while tree.edges["first"][0] == NONE and tree.head["simulations"] == self.before:
                    if self._simulate(1, self.works[:1]) == SETTLED:
                        break
            finally:
                for name, count in counts.items():
                    tree.head[name] = count

    def _prepare_root(self) -> None:
        """Draw the noise of the root, and make the schedule of sequential halving."""
        options, tree = self.composition.options, self.tree
        tree.root_noise = None
        edges = tree.root.edges
        priors = tree.priors(edges)
        if options.is_gumbel:
            assert priors is not None
            self._halve_root(edges, priors)
        elif options.root_noise is not None and priors is not None and tree.root.to_play != CHANCE:
            rng = np.random.default_rng([self.seed % 2**64, self.before, self.stream])
            tree.root_noise = noise = options.root_noise.draw(priors, rng)
            for work in self.works:
                work.show_noise(noise)

    def _halve_root(self, edges: range, priors: np.ndarray) -> None:
        """Draw Gumbel noise for the root's edges, and list those that are considered."""
        rule, tree = self.composition.options.root_selection, self.tree
        noise, scratch = np.zeros(len(edges)), np.zeros(len(edges))
        if rule.noise is not None:
            noise[:] = np.array(rule.noise)[tree.edges["action"][edges.start : edges.stop]]
        considered = min(int(rule.parameters[3]), len(edges))
        schedule = halving_schedule(considered, self.num_simulations or 1)
        # One more, which is never taken, stands for all that are not considered.
        listed, draws = np.zeros(considered + 1, np.int64), np.zeros(considered + 1)
        with np.errstate(over="ignore"):
            count = _consider_kernel(interpreted()).call(
                self.works[0].rng, float(rule.parameters[4]), rule.noise is not None, len(edges),
                noise, priors, scratch, listed, draws,
            )  # fmt: skip
        tree.root_noise = noise
        for work in self.works:
            work.schedule = schedule
            work.show_list(listed[:count], draws[:count])
        if self.desk is not None:
            self.desk.desks["num_listed"] = count

    def _simulate(
        self, num_simulations: int, works: list[Workspace] | None = None, most: int | None = None
    ) -> int:
        """Run the kernel for so many simulations or until it needs more room.

        Args:
            most: how many may be under way by then, where leaves wait for answers.
        """
        tree, works = self.tree, works or self.works
        try:
            if self.desk is not None:
                most = num_simulations if most is None else most
                statuses = [self._exchange(self.desk, works[0], num_simulations, most)]
            else:
                tree.head["remaining"] = num_simulations
                statuses = self._call_kernels(works)
        except BaseException:
            self._give_up_waiting()
            raise
        for work, status in zip(works, statuses, strict=True):
            if status not in (DONE, GROW, SETTLED):
                raise BrokenGame(trouble(self.composition, work, tree, status))
        if SETTLED in statuses:
            return SETTLED
        if GROW in statuses:
            if self.desk is not None:
                self.desk.control["holds"] = 0
            is_full = int(tree.head["used"][0] + tree.head["room"][0]) > len(tree.edges)
            self._grow((2 if is_full else 1) * len(tree.edges))
            return GROW
        return DONE

    def _call_kernels(self, works: list[Workspace]) -> list[int]:
        """The kernel's status in each thread, once all have ended."""
        if len(works) == 1:
            return [self._call_kernel(works[0])]
        assert self.pool is not None
        futures = [self.pool.submit(self._call_kernel, work) for work in works]
        wait(futures)
        return [future.result() for future in futures]

    def _exchange(self, desk: Desk, work: Workspace, num_simulations: int, most: int) -> int:
        """The kernel's status after so many simulations; those that wait for answers stay.

        Fewer where a piece's time is over: what the last ones took says little of these, as some
        wait for answers and others do not.
        """
        tree, until = self.tree, self.tree.simulations + num_simulations
        deadline = time.perf_counter() + self.PIECE_SECONDS
        # One batch beyond, which stays. Not more: simulations that need no answer do not wait.
        most = min(most, num_simulations + self.composition.options.leaves)
        tree.head["remaining"] = most - desk.num_waiting
        trees = as_trees(tree, work)
        while True:
            status = desk.call(self.composition.kernel, trees, work)
            if desk.desks["settled"][0]:
                return SETTLED
            if status == GROW or (status == DONE and desk.control["holds"][0]):
                # Edges move when memory runs out, so nobody may be on the way meanwhile.
                desk.control["holds"] = 1
                if desk.num_waiting == 0:
                    return GROW
            elif status != WAITING:
                return status
            elif tree.simulations >= until or time.perf_counter() >= deadline:
                return DONE
            if not desk.is_answered:
                try:
                    began = time.perf_counter()
                    desk.answer()
                    self.asked_seconds += time.perf_counter() - began
                except Exception as error:
                    name = self.composition.options.evaluator.name
                    raise UctreeError(
                        f"the evaluator {name} raised {type(error).__name__}: {error}"
                    ) from error

    def _give_up_waiting(self) -> None:
        """Nobody is under way any more."""
        if self.tree.layout.pending:
            self.tree.edges["pending"][: int(self.tree.head["used"][0])] = 0
        if self.desk is not None:
            self.desk.forget_waiting()

    def _call_kernel(self, work: Workspace) -> int:
        kernel, tree = self.composition.kernel, self.tree
        arrays: list[Any] = list(work.arguments(tree))
        if kernel.interpreted:
            arrays = [
                a.view(np.recarray) if isinstance(a, np.ndarray) and a.dtype.names else a
                for a in arrays
            ]
            arrays[2] = StateViews(work.states)
        try:
            with np.errstate(over="ignore"):
                return int(kernel.call(*arrays))
        except Exception as error:
            if work.lock[0] == work.work["worker"][0]:  # nobody else could go on
                tree.head["remaining"] = 0
                work.lock[0] = 0
            what = f"a rule or evaluator raised {type(error).__name__}: {error}"
            raise BrokenGame(told(self.composition.game, work, tree, what)) from error

    # Memory.

    def _grow(self, wanted: int) -> None:
        """Make room for `wanted` edges, as far as memory goes; beyond, give up what is least."""
        tree = self.tree
        room = int(tree.head["room"][0]) + 2 * tree.game.max_outcomes + 64
        used = int(tree.head["used"][0])
        wanted = max(wanted, used + room)
        most = self._most_edges()
        if wanted <= most or used + room <= most:
            tree.resize(min(wanted, most))
            tree.head["may_grow"] = 1
        else:
            self._prune(most, room)
        if tree.layout.shared and 2 * int(tree.head["num_nodes"][0]) > len(tree.table):
            tree.move_table(empty_table(2 * len(tree.table)))

    def _most_edges(self) -> int:
        """How many edges fit into memory twice: where a tree is copied there are two."""
        tree = self.tree
        most = np.iinfo(np.int32).max
        if self.max_bytes is None:
            return most
        overhead = tree.head.nbytes + tree.root_squares.nbytes
        each = tree.edges.dtype.itemsize
        if tree.layout.shared:  # the table is at most four times as large as it has nodes
            each += 4 * TABLE.itemsize + 4
        most = min(most, (self.max_bytes // 2 - overhead) // each)
        least = 1 + len(tree.root_squares)
        if most < least:
            needed = 2 * (overhead + least * each)
            raise ValueError(f"max_memory is {self.max_bytes} bytes; the root alone needs {needed}")
        return most

    def _prune(self, most: int, room: int) -> None:
        """Give up the least visited half of the tree, or stop growing where that is not enough."""
        tree = self.tree
        tree.resize(most)
        tree.head["may_grow"] = 0
        # Where one simulation needs more room than pruning gives, pruning again does not help.
        if most < 4 * room or self.pruned_at == tree.simulations:
            return
        self.pruned_at = tree.simulations
        kept = tree.copy(0, most, budget=most // 2)
        if int(kept.head["used"][0]) + room <= most:
            tree.edges, tree.table = kept.edges, kept.table
            tree.head["capacity"] = len(kept.edges)  # a tree that was given may have been larger
            tree.head["used"], tree.head["num_nodes"] = kept.head["used"], kept.head["num_nodes"]
            tree.head["may_grow"] = 1


class _Team:
    """Runs drivers side by side, each on a tree of its own."""

    def __init__(self, drivers: list[_Driver]) -> None:
        self.drivers = drivers

    def run(
        self,
        num_simulations: int | None,
        deadline: float,
        watch: stopping.Watch,
        progress: Callable[[Progress], None] | None,
        report: Callable[[str], SearchResult],
    ) -> str:
        """Why the search ended: its status."""
        began = time.perf_counter()

        def look() -> None:
            if progress is not None:
                elapsed = time.perf_counter() - began
                tree = self.drivers[0].tree
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
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            for driver in self.drivers:
                driver.cancelled = True
                driver.close()

    @property
    def simulations(self) -> int:
        return sum(driver.simulations for driver in self.drivers)

    def _next_look(self, num_simulations: int | None, watch: stopping.Watch) -> int | None:
        """How many simulations there shall be before somebody looks whether to stop."""
        if not watch.stops:
            return num_simulations
        done = self.simulations
        looks = [] if num_simulations is None else [num_simulations]
        if watch.interval is not None:
            looks.append((done // watch.interval + 1) * watch.interval)
        if watch.reads_clock:
            rate = sum(driver.rate for driver in self.drivers)
            looks.append(done + max(32, int(rate * _Driver.PIECE_SECONDS)))
        return min(looks)

    def _advance(self, until: int | None, deadline: float, look: Callable[[], None]) -> str:
        """Let every tree have its share of `until` simulations."""
        if len(self.drivers) == 1:
            return self.drivers[0].run(until, deadline, look)
        shares = [
            None if until is None else (until + len(self.drivers) - 1 - i) // len(self.drivers)
            for i in range(len(self.drivers))
        ]
        pool = ThreadPoolExecutor(len(self.drivers))
        futures = [
            pool.submit(driver.run, share, deadline)
            for driver, share in zip(self.drivers, shares, strict=True)
        ]
        try:
            while wait(futures, timeout=_Driver.PIECE_SECONDS).not_done:
                look()
                if any(_is_decisive(future) for future in futures):
                    self._cancel(futures)
        except BaseException:
            self._cancel(futures)
            raise
        finally:
            pool.shutdown(wait=False)
        statuses = [future.result() for future in futures]
        return next((why for why in ("solved", "full", "seconds") if why in statuses), "")

    def _cancel(self, futures: list[Future[str]]) -> None:
        """End all threads, and wait for them whatever the user presses meanwhile."""
        for driver in self.drivers:
            driver.cancelled = True
        while not all(future.done() for future in futures):
            with contextlib.suppress(KeyboardInterrupt):
                wait(futures)


def _is_decisive(future: Future[str]) -> bool:
    """Whether a thread found what makes the others needless: an error, or a proof."""
    if not future.done():
        return False
    return future.exception() is not None or future.result() == "solved"


def _profile(drivers: list[_Driver], seconds: float) -> dict[str, float] | None:
    """Seconds in each part of the simulations, by the share of those that were timed."""
    if drivers[0].desk is not None:  # what is outside takes most of it, and is timed as a whole
        asked = sum(driver.asked_seconds for driver in drivers)
        return {"evaluation": asked, "tree": max(0.0, seconds - asked)}
    works = [work for driver in drivers for work in driver.works]
    times = [sum(part) for part in zip(*(w.work["times"][0].tolist() for w in works), strict=True)]
    if not _machine.has_clock() or sum(times) == 0:
        return None
    names = ("selection", "game", "evaluation", "backup")
    return {name: seconds * spent / sum(times) for name, spent in zip(names, times, strict=True)}


# --- checks --------------------------------------------------------------------------------------


def _check_budget(num_simulations: int | None, seconds: float | None) -> None:
    if num_simulations is None and seconds is None:
        raise ValueError("a search needs a budget: give num_simulations=, seconds= or both")
    if num_simulations is not None:
        _check_whole("num_simulations", num_simulations)
    if num_simulations is not None and num_simulations < 1:
        raise ValueError(f"num_simulations must be at least 1; got {num_simulations}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds must be above 0; got {seconds}")


def _check_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number; got {value!r}")


def _given_trees(tree: Any) -> tuple[Tree, ...]:
    given = () if tree is None else (tree,) if isinstance(tree, Tree) else tree
    if not isinstance(given, tuple) or not all(isinstance(each, Tree) for each in given):
        raise TypeError(
            f"tree must be a Tree, or the trees of a result: result.tree or result.trees; got "
            f"{type(tree).__name__}"
        )
    return given


def _check_tree(composition: Composition, root: np.record, tree: Tree) -> None:
    if tree.game is not composition.game:
        mine = treefile.describe_game(composition.game)
        if treefile.describe_game(tree.game) != mine:
            raise ValueError(
                f"the tree belongs to {tree.game.name}, another game than {composition.game.name}"
            )
        tree.game = composition.game
    if tree.game.key(tree.state) != tree.game.key(root):
        raise ValueError("the tree was grown from another state; search without tree=")
    if tree.layout != composition.layout:
        differ = [
            f"{name}={before!r} (now {now!r})"
            for (name, before), now in zip(
                vars(tree.layout).items(), vars(composition.layout).values(), strict=True
            )
            if before != now
        ]
        raise ValueError(
            f"the tree was grown with other options: its records keep {', '.join(differ)}; "
            "search with those options, or without tree="
        )
    if composition.options.is_gumbel and tree.root.visits > 1:
        raise ValueError(
            f"root_selection={composition.options.root_selection.name} halves a fresh root; "
            "search without tree="
        )


def _check_root(game: Game, root: np.record, options: Options, num_simulations: int | None) -> None:
    if options.is_gumbel and num_simulations is None:
        raise ValueError(
            f"root_selection={options.root_selection.name} spends a known number of simulations; "
            "give num_simulations="
        )
    if options.opponents == "paranoid" and game.to_play(root) == CHANCE:
        raise ValueError(
            'opponents="paranoid" are against the player to move, and chance is to play here; take '
            "an outcome first"
        )
    if options.open_loop and game.to_play(root) == CHANCE:
        raise ValueError(
            "open_loop=True needs a root where a player acts, and chance is to play here; take an "
            "outcome first"
        )


def _bytes(amount: int | str | None) -> int | None:
    """What `max_memory` says."""
    if amount is None:
        return None
    wanted = num_bytes(amount, "max_memory")
    if wanted < 1:
        raise ValueError(f"max_memory must be a positive number of bytes; got {amount}")
    return wanted
