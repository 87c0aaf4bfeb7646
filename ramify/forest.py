"""Forest: many trees of one game, grown together, so that their leaves are valued in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ramify import gumbel
from ramify._compile import Kernel, compile_kernel, interpreted
from ramify.compose import Options, Workspace, checked_options, compose, desk_of
from ramify.errors import BrokenGame, RamifyError
from ramify.evaluators import DONE, GROW, WAITING
from ramify.exchange import Trees
from ramify.game import Game, State, make_rng
from ramify.tree import NONE, Tree, empty_table, num_values

IDLE, FRESH, GROWING = 0, 1, 2  # what a tree of a forest does


@dataclass(frozen=True)
class Root:
    """What a search found out about a root, edge by edge."""

    actions: np.ndarray  # [edges], int32
    visits: np.ndarray  # [edges], int64
    q: np.ndarray  # [edges, players]; 0 where an edge was never taken
    priors: np.ndarray | None  # [edges], as the evaluator gave them
    noise: np.ndarray | None  # [edges], Gumbel noise, or priors with Dirichlet noise
    value: np.ndarray  # [players], the mean of all simulations
    raw: np.ndarray | None  # [players], what the evaluator said, where Gumbel's rule needs it
    to_play: int
    parameters: tuple[float, ...]  # of Gumbel's rule
    proven: np.ndarray | None  # [players], the exact value, where all of it is proven
    keeps: np.ndarray | None  # [edges], bool: which are proven to lead to that value

    def improved(self) -> np.ndarray:
        """The improved policy over the edges, to learn from [Eq. 31]."""
        return self._by_gumbel(0)

    def gumbel_choice(self) -> int:
        """The edge to play after Gumbel's search [Eq. 33]."""
        return int(self._by_gumbel(1)[0])

    def _by_gumbel(self, what: int) -> np.ndarray:
        if self.raw is None or self.priors is None:
            raise ValueError("only a search with root_selection=gumbel improves its policy")
        noise = np.zeros(len(self.visits)) if self.noise is None else self.noise
        out = np.zeros(len(self.visits))
        _gumbel_kernel(interpreted()).call(
            what, np.ascontiguousarray(self.q[:, self.to_play]), self.priors, self.visits,
            float(self.raw[self.to_play]), noise, np.array(self.parameters[:3]), out,
        )  # fmt: skip
        return out


def read_gumbel(
    what: int, q: np.ndarray, prior: np.ndarray, visits: np.ndarray, raw: float,
    noise: np.ndarray, parameters: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """The improved policy, or the edge to play in front."""
    count = out.shape[0]
    if what == 1:
        most = np.int64(0)
        for i in range(count):
            most = max(most, visits[i])
        out[0] = gumbel.choose_root(count, q, prior, visits, raw, noise, most, parameters, out)
        return
    completion = gumbel.mixed_value(count, q, prior, visits, raw)
    total = gumbel.improve(
        count, q, prior, visits, completion, parameters[0], parameters[1], parameters[2], out
    )
    for i in range(count):
        out[i] /= total


@cache
def _gumbel_kernel(is_interpreted: bool) -> Kernel:
    one = np.zeros(1)
    example = (0, one, one, np.zeros(1, np.int64), 0.0, one, one, one)
    return compile_kernel(read_gumbel, {}, example, label="gumbel's policy")


class Forest:
    """Searches many states at once; who values the leaves is asked for all trees together.

    >>> from ramify import evaluators, games
    >>> def judge(states):
    ...     return np.zeros((len(states), 2))
    >>> game = games.tic_tac_toe()
    >>> forest = Forest(game, 3, evaluator=evaluators.python(judge))
    >>> forest.plant(range(3), [game.start()] * 3, num_simulations=20)
    >>> forest.run()
    >>> [int(forest.root(tree).visits.sum()) for tree in range(3)]
    [20, 20, 20]
    """

    def __init__(self, game: Game, num_trees: int, **options: Any) -> None:
        """
        Args:
            options: what a search is made of, as in `search`: `evaluator`, `selection`,
                `root_selection`, `root_noise`, `leaves`, `solver` and the like.
        """
        if num_trees < 1:
            raise ValueError(f"num_trees must be at least 1; got {num_trees}")
        if game.is_continuous:
            raise ValueError(f"a forest is for actions that are numbers; those of {game.name} are "
                             "vectors: search its states one by one")  # fmt: skip
        self.game, self.num_trees = game, num_trees
        self.options: Options = checked_options(game, **options)
        self.composition = compose(game, self.options, many=True)
        example = Tree(game, game.start(), self.composition.layout, 1, 1)
        if self.options.sees_range(game):
            example.forget_range(seen=True)
        self._blank_edge, self._blank_head = example.edges[0].copy(), example.head[0].copy()
        self._work = Workspace(
            game, self.options, self.composition.arrays, example, np.zeros(1, np.uint64)
        )
        longest = len(self._work.path)
        self._desk = desk_of(game, self.options, self.composition.arrays, num_trees, longest)
        self._room = self.options.leaves * (game.num_actions + 1)
        if self.composition.layout.appends:
            self._room *= 8
        self._rngs = [np.random.default_rng(0)] * num_trees
        self._phase = np.zeros(num_trees, np.int8)
        self._budget = np.zeros(num_trees, np.int64)
        self._has_noise = np.ones(num_trees, bool)
        self._make_arrays()

    def _make_arrays(self) -> None:
        trees, layout = self.num_trees, self.composition.layout
        capacity = 1024 + self._room
        heads = np.repeat(self._blank_head[None], trees).reshape(trees, 1)
        heads["capacity"], heads["room"], heads["may_grow"] = capacity, self._room, 1
        most = max(1, self.game.num_actions, self.game.max_outcomes)
        table = empty_table(256 if layout.shared else 0)
        self._trees = Trees(
            heads, np.empty((trees, capacity), self._blank_edge.dtype),
            np.zeros(trees, self.game.dtype), np.zeros((trees, most, num_values(self.game))),
            np.repeat(table[None], trees, axis=0),
            np.zeros((trees, self._work.work["noise"].shape[1])),
            np.zeros((trees, 1), np.int64), np.zeros((trees, 1), np.uint64),
        )  # fmt: skip

    # Searching.

    def plant(
        self, trees: Sequence[int], states: Sequence[State], *, num_simulations: int, seed: int = 0,
        noise: bool = True,
    ) -> None:  # fmt: skip
        """Let trees begin anew, each from a state in which a player acts.

        Args:
            seed: of the noise of these roots and of what is random below them.
            noise: whether the roots get the noise that the options ask for.
        """
        if num_simulations < 1:
            raise ValueError(f"num_simulations must be at least 1; got {num_simulations}")
        given, index = self._trees, np.asarray(trees, np.int64)
        records = [self.game.copy(state) for state in states]
        for tree, state in zip(index, records, strict=True):
            if state["to_play"] < 0:
                raise ValueError("a tree is planted where a player acts; got a state where chance "
                                 "does, or one that is over")  # fmt: skip
            given.roots[tree] = state
            given.rngs[tree] = make_rng(seed + int(tree) - int(index[0]))
        head = self._blank_head.copy()
        head["capacity"], head["room"], head["may_grow"] = given.edges.shape[1], self._room, 1
        given.heads[index, 0] = head
        given.heads["root_player"][index, 0] = given.roots["to_play"][index]
        given.edges[index, 0] = self._blank_edge
        given.root_squares[index] = 0.0
        if self.composition.layout.shared:
            given.tables[index] = empty_table(given.tables.shape[1])
        generator = np.random.default_rng([seed % 2**64, 0, 0])
        for tree in index:
            self._rngs[tree] = generator
        self._desk.desks["settled"][index] = 0
        self._phase[index], self._budget[index] = FRESH, num_simulations
        self._has_noise[index] = noise
        if not self.composition.layout.priors:  # nothing is valued before the first simulation
            self._begin(index)
        else:
            given.heads["remaining"][index, 0] = 1

    def _begin(self, index: np.ndarray) -> None:
        """Let trees whose roots are valued use their budgets."""
        heads = self._trees.heads
        for name in ("simulations", "since_root", "depth_sum"):
            heads[name][index, 0] = 0
        heads["remaining"][index, 0] = self._budget[index]
        self._phase[index] = GROWING
        if self.options.is_gumbel:
            self._draw_gumbel(index)
        elif self.options.root_noise is not None:
            for tree in index:
                priors = self._root_block(tree)["prior"].astype(float)
                if self._has_noise[tree]:
                    priors = self.options.root_noise.draw(priors, self._rngs[tree])
                self._trees.noises[tree, : len(priors)] = priors

    def _draw_gumbel(self, index: np.ndarray) -> None:
        """Noise for the roots, and the schedules of their sequential halving."""
        rule, trees = self.options.root_selection, self._trees
        counts = trees.edges["num_edges"][index, 0].astype(np.int64)
        scale, considered = rule.parameters[4], int(rule.parameters[3])
        widest = int(self._budget.max())
        if widest > trees.schedules.shape[1]:
            old = trees.schedules
            wide = np.repeat(old[:, -1:], widest, axis=1)
            wide[:, : old.shape[1]] = old
            self._trees = trees = _with(trees, schedules=wide)
        for generator in {id(self._rngs[tree]): self._rngs[tree] for tree in index}.values():
            mine = [i for i, tree in enumerate(index) if self._rngs[tree] is generator]
            noise = gumbel.gumbel_noise(generator, (len(mine), counts[mine].max()), scale)
            trees.noises[index[mine], : noise.shape[1]] = noise * self._has_noise[index[mine], None]
        if rule.noise is not None:
            for tree in index:
                actions = self._root_block(tree)["action"]
                trees.noises[tree, : len(actions)] = np.array(rule.noise)[actions]
        for tree, count in zip(index, counts, strict=True):
            row = _schedule(min(considered, int(count)), int(self._budget[tree]))
            trees.schedules[tree, : len(row)] = row
            trees.schedules[tree, len(row) :] = row[-1]

    def step(self) -> np.ndarray:
        """Value one batch of leaves; the trees whose budgets are used up by now."""
        try:
            status = self._call()
            if status == WAITING:
                self._desk.answer()
        except RamifyError:
            raise
        except Exception as error:
            name = self.options.evaluator.name
            raise RamifyError(
                f"the evaluator {name} raised {type(error).__name__}: {error}"
            ) from error
        return self._ended()

    def _ended(self) -> np.ndarray:
        """The trees that are done; those whose roots were valued go on."""
        heads = self._trees.heads
        still = (heads["remaining"][:, 0] <= 0) & (self._desk.desks["waiting"] == 0)
        fresh = np.flatnonzero(still & (self._phase == FRESH))
        done = np.flatnonzero(still & (self._phase == GROWING))
        self._phase[done] = IDLE
        if len(fresh):
            self._begin(fresh)
        return done

    def run(self) -> None:
        """Let all trees use up their budgets."""
        while (self._phase != IDLE).any():
            self.step()

    def _call(self) -> int:
        """Call the kernel until it needs answers or has nothing to do, with room for its trees."""
        while True:
            status = self._desk.call(self.composition.kernel, self._trees, self._work)
            if status != GROW:
                break
            self._grow()
        if status not in (DONE, WAITING):
            from ramify.mcts import trouble

            number = int(self._desk.control["tree"][0])
            raise BrokenGame(trouble(self.composition, self._work, self.tree(number), status))
        return status

    def _grow(self) -> None:
        """Twice the room for every tree, and for the table of shared nodes where it is full."""
        old = self._trees
        number = int(self._desk.control["tree"][0])
        head = old.heads[number, 0]
        if head["used"] + head["room"] > head["capacity"] or not self.composition.layout.shared:
            edges = np.empty((self.num_trees, 2 * old.edges.shape[1]), old.edges.dtype)
            size = int(old.heads["used"].max()) * edges.dtype.itemsize
            # As bytes: NumPy copies records field by field, ten times slower.
            edges.view(np.uint8)[:, :size] = old.edges.view(np.uint8)[:, :size]
            old.heads["capacity"] = edges.shape[1]
            self._trees = _with(old, edges=edges)
            return
        tables = np.repeat(empty_table(2 * old.tables.shape[1])[None], self.num_trees, axis=0)
        for each in range(self.num_trees):
            tree = self.tree(each)
            tree.move_table(tables[each])
        self._trees = _with(old, tables=tables)

    # Reading.

    def _root_block(self, tree: int) -> np.ndarray:
        """The records of a root's edges."""
        edges = self._trees.edges[tree]
        first, count = int(edges["first"][0]), int(edges["num_edges"][0])
        return edges[max(0, first) : max(0, first) + (0 if first == NONE else count)]

    def root(self, tree: int) -> Root:
        """What was found out about the root of a tree."""
        block, layout, view = self._root_block(tree), self.composition.layout, self._view(tree)
        edges = view.root.edges
        has_noise = self.options.is_gumbel or self.options.root_noise is not None
        proven, after = view.proven_values(range(1))[0], view.proven_values(edges)
        is_proven = not np.isnan(proven).any()
        return Root(
            actions=block["action"].astype(np.int32),
            visits=view.edge_visits(edges),
            q=view.mean_values(edges),
            priors=view.priors(edges),
            noise=self._trees.noises[tree, : len(block)].copy() if has_noise else None,
            value=view.mean_values(range(1))[0],
            raw=view.raw_value if layout.raw else None,
            to_play=int(view.state["to_play"]),
            parameters=self.options.root_selection.parameters,
            proven=proven if is_proven else None,
            keeps=(after == proven).all(axis=1) if is_proven else None,
        )

    def _view(self, tree: int) -> Tree:
        """A tree that looks at the forest's arrays; the next `plant` changes it."""
        view = Tree.__new__(Tree)
        given = self._trees
        view.game, view.layout = self.game, self.composition.layout
        view.state = given.roots[tree]
        view.edges, view.head = given.edges[tree], given.heads[tree]
        view.root_squares, view.table = given.root_squares[tree], given.tables[tree]
        view.root_noise = None
        return view

    def tree(self, tree: int) -> Tree:
        """One of the trees, as a copy of its own."""
        view = self._view(tree)
        block, used = self._root_block(tree), int(view.head["used"][0])
        copy = Tree(self.game, self.game.copy(view.state), view.layout, len(block), used)
        copy.edges[:], copy.head[:] = view.edges[:used], view.head
        copy.head["capacity"] = used
        copy.root_squares[:] = view.root_squares[: len(copy.root_squares)]
        copy.table = view.table.copy()
        if self.options.is_gumbel or self.options.root_noise is not None:
            copy.root_noise = self._trees.noises[tree, : len(block)].copy()
        return copy

    def is_settled(self, tree: int) -> bool:
        """Whether the root of a tree is proven."""
        return bool(self._desk.desks["settled"][tree])


@cache
def _schedule(considered: int, num_simulations: int) -> np.ndarray:
    return gumbel.halving_schedule(considered, num_simulations)


def _with(trees: Trees, **arrays: np.ndarray) -> Trees:
    return Trees(**(vars(trees) | arrays))
