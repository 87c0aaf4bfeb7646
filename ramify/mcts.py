"""The one search loop: descend, expand, evaluate, back up; and what drives it."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify import backup as backups
from ramify import evaluators
from ramify import selection as rules
from ramify._compile import UNBOUND, Kernel, compile_kernel
from ramify.backup import DISCOUNT, Backup, back_up
from ramify.choice import SearchResult
from ramify.errors import BrokenGame
from ramify.evaluators import (
    BAD_ACTION,
    BAD_CHANCE,
    BAD_COUNT,
    BAD_REWARD,
    BAD_TO_PLAY,
    BAD_VALUE,
    DONE,
    ENDLESS_PLAYOUT,
    GROW,
    GUARD,
    GUARD_AT,
    HAS_CHANCE,
    MAX_OUTCOMES,
    NOT_ZERO_SUM,
    NUM_ACTIONS,
    NUM_PLAYERS,
    Evaluator,
    chance,
    legal,
    step,
)  # fmt: skip
from ramify.game import CHANCE, ENDLESS, OVER, Game, State, StateViews, make_rng
from ramify.selection import Rule, best_edge, draw_outcome
from ramify.tree import (
    FIRST_BLOCK,
    HAS_PRIORS,
    LAZY_ABOVE,
    NONE,
    NUM_VALUES,
    ZERO_SUM,
    Tree,
    component,
    num_values,
    write_edge,
)  # fmt: skip

# Bound when a search is composed.
value_leaf = UNBOUND
width = score = unvisited = scale = UNBOUND
root_width = root_score = root_unvisited = root_scale = UNBOUND
ROOT_DIFFERS = UNBOUND
ROOM = UNBOUND  # the most edges one simulation makes, those of chance nodes aside

# Kernels hand on int64 and never a literal: Numba would compile the callee once for each type.
NO_EDGES = np.int64(0)

MAX_DEPTH = 4096  # a descent ends here at the latest, and its last node is valued again


# --- kernels: one simulation, in four steps -------------------------------------------------------


def simulate(
    head: np.ndarray, edges: np.ndarray, states: Any, actions: np.ndarray,
    probabilities: np.ndarray, logits: np.ndarray, path: np.ndarray, vectors: np.ndarray,
    root_squares: np.ndarray, rng: np.ndarray, parameters: np.ndarray, root_parameters: np.ndarray,
    limits: np.ndarray, data: Any, num_simulations: int,
) -> int:  # fmt: skip
    """Run up to `num_simulations` more simulations; DONE, GROW, or what is wrong with the game."""
    tree = head[0]
    returns, reward = vectors[0], vectors[1]
    for _ in range(num_simulations):
        if tree.used + ROOM > tree.capacity and tree.may_grow:
            return GROW
        drawn = rng[0]
        states[1] = states[0]
        status = descend(
            tree, edges, states[1], actions, probabilities, path, reward, rng, parameters,
            root_parameters, data,
        )  # fmt: skip
        depth = tree.depth
        for player in range(NUM_PLAYERS):
            returns[player] = 0.0
        if status == DONE and states[1].to_play != OVER:
            status = evaluate_leaf(
                tree, edges, path, depth, states, actions, probabilities, logits, reward, returns,
                rng, limits, data,
            )  # fmt: skip
        if HAS_CHANCE and status == GROW:
            # The simulation starts again in a larger tree, as if it had never begun.
            rng[0] = drawn
            take_back(edges, path, depth)
        if status != DONE:
            return status
        back_up(tree, edges, path, depth, returns, root_squares)
        tree.simulations += 1
        tree.depth_sum += depth
    return DONE


def take_back(edges: np.ndarray, path: np.ndarray, depth: int) -> None:
    """Forget the edge that a simulation made and did not get to count."""
    node = np.int64(0)
    for i in range(depth):
        edge = np.int64(path[i].edge)
        if not HAS_PRIORS and path[i].player != CHANCE and edges[edge].visits == 0:
            edges[node].num_edges -= 1
        node = edge


def descend(
    tree: Any, edges: np.ndarray, state: Any, actions: np.ndarray, probabilities: np.ndarray,
    path: np.ndarray, reward: np.ndarray, rng: np.ndarray, parameters: np.ndarray,
    root_parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Walk from the root to a leaf; `state` becomes the leaf's, `path` the edges taken."""
    node = np.int64(0)
    tree.depth = 0
    for depth in range(path.shape[0]):
        player = np.int64(state.to_play)
        if player < 0 or player >= NUM_PLAYERS:
            if player == OVER:
                break
            if not HAS_CHANCE or player != CHANCE:
                return BAD_TO_PLAY
        if edges[node].first == NONE:
            # With priors a leaf gets its edges when it is valued; without, when it is met again.
            if player != CHANCE and (HAS_PRIORS or (depth > 0 and edges[node].visits == 0)):
                break
            status = expand(tree, edges, node, state, actions, probabilities, data)
            if status != DONE:
                return status
            if edges[node].first == NONE:
                if HAS_CHANCE and tree.may_grow:
                    return GROW
                break  # no room
        if HAS_CHANCE and player == CHANCE:
            edge = draw_outcome(edges, node, rng)
        else:
            edge = select(
                tree, edges, node, player, state, actions, path, depth, parameters,
                root_parameters, data,
            )  # fmt: skip
            if edge < 0:
                return -edge
        record = path[depth]
        record.edge = edge
        record.player = player
        status = take(state, np.int64(edges[edge].action), reward, data)
        for j in range(NUM_VALUES):
            record.reward[j] = reward[j]
        tree.depth = depth + 1
        if status != DONE:
            return status
        node = np.int64(edge)
    return DONE


def take(state: Any, action: int, reward: np.ndarray, data: Any) -> int:
    """Step the state, and check what the step did."""
    for player in range(NUM_PLAYERS):
        reward[player] = 0.0
    step(state, action, reward, data)
    total = 0.0
    for player in range(NUM_PLAYERS):
        total += reward[player]
    if ZERO_SUM:
        if total != 0.0:  # so is a sum that is no number
            return NOT_ZERO_SUM
    elif not math.isfinite(total):
        return BAD_REWARD
    return DONE


def select(
    tree: Any, edges: np.ndarray, node: int, player: int, state: Any, actions: np.ndarray,
    path: np.ndarray, depth: int, parameters: np.ndarray, root_parameters: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """The edge the rule takes at a node, made if it is new; minus a status where that fails."""
    num_untried = np.int64(0)
    if not HAS_PRIORS:
        num_untried = np.int64(edges[node].num_legal - edges[node].num_edges)
    value = node_value(edges, node, player, path, depth)
    while True:
        if ROOT_DIFFERS and node == 0:
            edge = best_edge(
                tree, edges, node, player, value, num_untried, root_parameters,
                root_width, root_score, root_unvisited, root_scale,
            )  # fmt: skip
        else:
            edge = best_edge(
                tree, edges, node, player, value, num_untried, parameters,
                width, score, unvisited, scale,
            )  # fmt: skip
        if edge != NONE:
            return edge
        if num_untried == 0:
            return np.int64(edges[node].first)  # the rule's scores are no numbers
        edge = next_untried(tree, edges, node, state, actions, data)
        if edge != NONE:
            return edge
        num_untried = np.int64(0)  # no room for another edge: make do with those there are


def node_value(edges: np.ndarray, node: int, player: int, path: np.ndarray, depth: int) -> float:
    """V(s): the mean return seen at a node, which is its edge's without the reward of that edge."""
    visits = edges[node].visits
    if visits == 0:
        return 0.0
    value = component(edges[node].value_sum, player) / visits
    if depth > 0:
        value = (value - component(path[depth - 1].reward, player)) / DISCOUNT
    return value


def expand(
    tree: Any, edges: np.ndarray, node: int, state: Any, actions: np.ndarray,
    probabilities: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Give a node its edges, or its first ones; it stays without where there is no room."""
    if HAS_CHANCE and state.to_play == CHANCE:
        return expand_chance(tree, edges, node, state, actions, probabilities, data)
    count = np.int64(legal(state, actions, data))
    if count < 1 or count > NUM_ACTIONS or actions[GUARD_AT] != GUARD:
        return BAD_COUNT
    if HAS_PRIORS:
        status = make_edges(tree, edges, node, actions, NO_EDGES, count)
    else:
        status = make_edges(tree, edges, node, actions, NO_EDGES, block_size(count, NO_EDGES))
        edges[node].num_legal = count
        edges[node].num_edges = 0
    return status


def block_size(count: int, num_edges: int) -> int:
    """Room for the edges of a node with `count` legal actions that has used up `num_edges`."""
    if count <= LAZY_ABOVE:
        return count
    return min(count, max(FIRST_BLOCK, 2 * num_edges))


def make_edges(
    tree: Any, edges: np.ndarray, node: int, actions: np.ndarray, kept: int, size: int
) -> int:
    """Move a node to a fresh block of `size` edges: the first `kept` it has, then new ones."""
    if tree.used + size > tree.capacity:
        return DONE
    first = tree.used
    for i in range(kept):
        edges[first + i] = edges[edges[node].first + i]
    for i in range(kept, size):
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return BAD_ACTION
        write_edge(edges, first + i, actions[i])
    tree.used += size
    edges[node].first = first
    edges[node].num_edges = size
    return DONE


def next_untried(
    tree: Any, edges: np.ndarray, node: int, state: Any, actions: np.ndarray, data: Any
) -> int:
    """The next edge of a node in the order of `legal`; NONE where there is no room for it."""
    if HAS_PRIORS:
        return NONE  # all were made at once
    count, num_edges = np.int64(edges[node].num_legal), np.int64(edges[node].num_edges)
    if count > LAZY_ABOVE and num_edges >= FIRST_BLOCK and num_edges & (num_edges - 1) == 0:
        if legal(state, actions, data) != count or actions[GUARD_AT] != GUARD:
            return -BAD_COUNT
        first = edges[node].first
        size = block_size(count, num_edges)
        status = make_edges(tree, edges, node, actions, num_edges, size)
        if status != DONE:
            return -status
        if edges[node].first == first:
            return -GROW if HAS_CHANCE and tree.may_grow else NONE
    edges[node].num_edges = num_edges + 1
    return edges[node].first + num_edges


def expand_chance(
    tree: Any, edges: np.ndarray, node: int, state: Any, actions: np.ndarray,
    probabilities: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Give a chance node one edge for every outcome that can happen."""
    count = chance(state, actions, probabilities, data)
    if count < 1 or count > MAX_OUTCOMES:
        return BAD_CHANCE
    total = 0.0
    for i in range(count):
        if not probabilities[i] >= 0.0:
            return BAD_CHANCE
        total += probabilities[i]
    if not abs(total - 1.0) < 1e-9:
        return BAD_CHANCE
    if tree.used + count > tree.capacity:
        return DONE
    first = tree.used
    for i in range(count):
        if probabilities[i] > 0.0:
            write_edge(edges, tree.used, actions[i])
            edges[tree.used].prior = probabilities[i]
            tree.used += 1
    edges[node].first = first
    edges[node].num_edges = tree.used - first
    return DONE


def evaluate_leaf(
    tree: Any, edges: np.ndarray, path: np.ndarray, depth: int, states: Any, actions: np.ndarray,
    probabilities: np.ndarray, logits: np.ndarray, reward: np.ndarray, returns: np.ndarray,
    rng: np.ndarray, limits: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Value the leaf, and with priors give it its edges."""
    num_playouts = limits[0]
    max_plies = min(limits[1], limits[2] - depth)
    node = np.int64(path[depth - 1].edge) if depth > 0 else np.int64(0)
    expands = HAS_PRIORS and states[1].to_play != CHANCE and edges[node].first == NONE
    if expands:
        status = expand(tree, edges, node, states[1], actions, probabilities, data)
        if status != DONE:
            return status
        if HAS_CHANCE and tree.may_grow and edges[node].first == NONE:
            return GROW
    status = value_leaf(
        states, actions, probabilities, logits, reward, returns, rng, num_playouts, max_plies, data
    )
    if expands and status == DONE and edges[node].first != NONE:
        status = write_priors(edges, node, logits)
    return status


def write_priors(edges: np.ndarray, node: int, logits: np.ndarray) -> int:
    """Softmax of the log-priors over the legal actions; uniform where they leave nothing."""
    first, num_edges = edges[node].first, edges[node].num_edges
    largest = -math.inf
    for edge in range(first, first + num_edges):
        logit = logits[edges[edge].action]
        if not logit < math.inf:
            return BAD_VALUE
        largest = max(largest, logit)
    total = 0.0
    for edge in range(first, first + num_edges):
        logit = logits[edges[edge].action]
        weight = 1.0 if largest == -math.inf else math.exp(logit - largest)
        edges[edge].prior = weight
        total += weight
    for edge in range(first, first + num_edges):
        edges[edge].prior = float(edges[edge].prior) / total
    return DONE


# --- composing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Composition:
    """A game, its rules of search and their kernel."""

    game: Game
    selection: Rule
    root_selection: Rule
    evaluator: Evaluator
    backup: Backup
    kernel: Kernel


_compositions: weakref.WeakKeyDictionary[Game, dict[Any, Kernel]] = weakref.WeakKeyDictionary()


def _compose(
    game: Game, selection: Any, root_selection: Any, backup: Any, evaluator: Any, debug: bool
) -> _Composition:
    """The kernel for these rules, from memory, from disk, or compiled now."""
    if evaluator is None:
        evaluator = evaluators.playout()
    elif not isinstance(evaluator, Evaluator):
        evaluator = evaluators.compiled(evaluator)
    if selection is None:
        selection = rules.puct() if evaluator.gives_priors else rules.ucb1()
    if root_selection is None:
        root_selection = selection
    backup = backups.mean() if backup is None else backup
    for name, value, kind in (
        ("selection", selection, Rule),
        ("root_selection", root_selection, Rule),
        ("backup", backup, Backup),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} must come from ramify.{'backup' if kind is Backup else 'selection'}, "
                f"for instance {'backup.mean()' if kind is Backup else 'selection.ucb1()'}; "
                f"got {value!r}"
            )
    key = (
        _functions(selection), _functions(root_selection), evaluator.value_leaf,
        evaluator.functions, evaluator.max_plies is None, root_selection != selection, debug,
    )  # fmt: skip
    known = _compositions.setdefault(game, {})
    if key not in known:
        bound = _bindings(game, selection, root_selection, evaluator)
        example = Tree(game, game.start(), evaluator.gives_priors, num_root_edges=1, capacity=1)
        work = _Workspace(game, selection, root_selection, evaluator, example, make_rng(0))
        arguments = (example.head, example.edges, *work.arguments, 0)
        label = f"{game.name}: {selection.name}, {evaluator.name}"
        known[key] = compile_kernel(simulate, bound, arguments, label=label, debug=debug)
    return _Composition(game, selection, root_selection, evaluator, backup, known[key])


def _functions(rule: Rule) -> tuple[Any, ...]:
    return rule.width, rule.score, rule.unvisited, rule.scale


def _bindings(
    game: Game, selection: Rule, root_selection: Rule, evaluator: Evaluator
) -> dict[str, Any]:
    return evaluators.bindings(game, evaluator) | {
        "ROOM": game.num_actions,
        "HAS_PRIORS": evaluator.gives_priors,
        "SEES_RANGE": game.payoff_range is None,
        "value_leaf": evaluator.value_leaf,
        "ROOT_DIFFERS": root_selection != selection,
        "width": selection.width,
        "score": selection.score,
        "unvisited": selection.unvisited,
        "scale": _scale(game, selection),
        "root_width": root_selection.width,
        "root_score": root_selection.score,
        "root_unvisited": root_selection.unvisited,
        "root_scale": _scale(game, root_selection),
    }


def _scale(game: Game, rule: Rule) -> Callable[..., Any]:
    if rule.scale not in rules.SCALES:
        raise ValueError(f"a rule's scale is one of {', '.join(rules.SCALES)}; got {rule.scale!r}")
    stated = game.payoff_range is not None
    return rules.SCALES["unit" if rule.scale == "span" and not stated else rule.scale]


class _Workspace:
    """The arrays a kernel works on besides the tree."""

    def __init__(
        self, game: Game, selection: Rule, root_selection: Rule, evaluator: Evaluator, tree: Tree,
        rng: np.ndarray,
    ) -> None:  # fmt: skip
        largest = max(game.num_actions, game.max_outcomes)
        self.states = np.zeros(3, game.dtype)
        self.states[0] = tree.state
        # Behind the last action stand guards, so that a `legal` that writes too much is caught.
        self.actions = np.full(2 * largest + 1024, GUARD, np.int32)
        plies_left = _plies_left(game, tree.state)
        longest = ENDLESS if evaluator.max_plies is None else evaluator.max_plies
        self.path = np.zeros(min(MAX_DEPTH, plies_left), _path_dtype(num_values(game)))
        self.arguments = (
            self.states,
            self.actions,
            np.zeros(game.max_outcomes + 1024),  # probabilities
            np.zeros(game.num_actions if evaluator.gives_priors else 1),  # logits
            self.path,
            np.zeros((2, game.num_players)),  # returns, reward
            tree.root_squares,
            rng,
            np.array(selection.parameters, float),
            np.array(root_selection.parameters, float),
            np.array([evaluator.num_playouts, longest, plies_left]),
            game.data,
        )


def _path_dtype(num_values: int) -> np.dtype:
    return np.dtype(
        [("edge", np.int32), ("player", np.int32), ("reward", np.float64, (num_values,))]
    )


def _plies_left(game: Game, state: np.record) -> int:
    """How many plies may follow the root."""
    if game.max_plies is None:
        return ENDLESS
    ply = int(state["ply"]) if "ply" in (game.dtype.names or ()) else 0
    if ply >= game.max_plies:
        raise BrokenGame(
            f"the root is at ply {ply}, but {game.name} has max_plies={game.max_plies} and should "
            "be over by then"
        )
    return game.max_plies - ply


# --- driving -------------------------------------------------------------------------------------


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
    backup: Backup | None = None,
    evaluator: Evaluator | Callable[..., None] | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    tree: Tree | None = None,
    max_memory: int | str | None = None,
    debug: bool = False,
) -> SearchResult:
    """What to do in `state`, found by simulations until the budget is used up.

    The search ends after `num_simulations` or `seconds`, whichever comes first; Ctrl-C ends it at
    once with what was found so far. The same seed and number of simulations give the same tree.

    Args:
        selection: how edges are chosen; UCB1, or PUCT where the evaluator gives priors.
        root_selection: how the root's edges are chosen, if different.
        backup: how results enter the statistics; the mean.
        evaluator: what a leaf is worth; one random playout. A plain function is compiled in.
        progress: called with a `Progress` every few hundredths of a second.
        tree: the tree of an earlier search of the same state, to go on from.
        max_memory: bytes, or text as "500MB"; when they are used up the tree stops growing and its
            leaves are valued again.
        debug: compile with bounds checks, to find out why a game crashes.
    """
    root = game.copy(state)
    _check_budget(num_simulations, seconds)
    began = time.perf_counter()
    num_legal = len(game.legal(root))  # a game that is wrong at once says so in plain Python
    if num_legal == 0:
        return SearchResult(game, Tree(game, root, False, 0, 1), "terminal", 0, 0.0, seed)
    composition = _compose(game, selection, root_selection, backup, evaluator, debug)
    if tree is None:
        guess = 3 * min(num_simulations or 4096, 4_000_000)
        tree = Tree(game, root, composition.evaluator.gives_priors, num_legal, guess)
    else:
        _check_tree(composition, root, tree)
    driver = _Driver(composition, tree, seed, _bytes(max_memory))
    loaded = time.perf_counter()
    deadline = math.inf if seconds is None else loaded + seconds
    status = driver.run(num_simulations, deadline, progress)
    ended = time.perf_counter()
    return SearchResult(
        game,
        tree,
        status,
        driver.simulations,
        ended - loaded,
        seed,
        compile_seconds=loaded - began,
        cached=composition.kernel.cached,
    )


def search_many(
    game: Game, states: Iterable[State], *, seed: int = 0, **options: Any
) -> list[SearchResult]:
    """One result per state, each as `search` gives it with a seed of its own.

    Args:
        seed: the i-th state is searched with seed + i.
        options: as in `search`.
    """
    return [search(game, state, seed=seed + i, **options) for i, state in enumerate(states)]


class _Driver:
    """Calls the kernel in pieces of a few hundredths of a second until the budget is used up."""

    PIECE_SECONDS = 0.02

    def __init__(
        self, composition: _Composition, tree: Tree, seed: int, max_bytes: int | None
    ) -> None:
        self.composition = composition
        self.tree = tree
        self.max_bytes = max_bytes
        self.before = int(tree.head["simulations"][0])
        # A tree that is searched again goes on with fresh random numbers.
        rng = make_rng(seed, stream=self.before)
        self.work = _Workspace(
            composition.game, composition.selection, composition.root_selection,
            composition.evaluator, tree, rng,
        )  # fmt: skip
        self._grow(len(tree.edges))

    def run(
        self,
        num_simulations: int | None,
        deadline: float,
        progress: Callable[[Progress], None] | None,
    ) -> str:
        """Why the search ended: "simulations", "seconds" or "interrupted"."""
        began = time.perf_counter()
        piece, rate = 32, 0.0
        try:
            self._value_root()
            while num_simulations is None or self.simulations < num_simulations:
                now = time.perf_counter()
                if now >= deadline:
                    return "seconds"
                if num_simulations is not None:
                    piece = min(piece, num_simulations - self.simulations)
                if rate and deadline < math.inf:
                    piece = min(piece, max(1, int(rate * (deadline - now))))
                done = self._simulate(piece)
                spent = max(1e-6, time.perf_counter() - now)
                rate = done / spent
                piece = max(1, min(8 * piece, int(rate * self.PIECE_SECONDS)))
                if progress is not None:
                    elapsed = time.perf_counter() - began
                    progress(Progress(self.simulations, num_simulations, elapsed, self.tree))
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            self.tree.resize(0)
        return "simulations"

    @property
    def simulations(self) -> int:
        """Those of this search; from the tree, so that an interrupt cannot lose any."""
        return int(self.tree.head["simulations"][0]) - self.before

    def _value_root(self) -> None:
        """With priors the root is valued once, outside the budget."""
        tree = self.tree
        if tree.has_priors and tree.edges["first"][0] == NONE and tree.root.to_play != CHANCE:
            self._simulate(1)
            tree.head["simulations"] = 0

    def _simulate(self, num_simulations: int) -> int:
        """Run the kernel; the number of simulations it did."""
        before = self.simulations
        status = self._call_kernel(num_simulations)
        if status == GROW:
            self._grow(2 * len(self.tree.edges))
        elif status != DONE:
            raise BrokenGame(_trouble(self.composition, self.work, self.tree, status))
        return self.simulations - before

    def _call_kernel(self, num_simulations: int) -> int:
        kernel, tree = self.composition.kernel, self.tree
        head, edges = tree.head, tree.edges
        states: Any
        states, actions, probabilities, logits, path, *rest = self.work.arguments
        if kernel.interpreted:
            head, edges, path = (array.view(np.recarray) for array in (head, edges, path))
            states = StateViews(states)
        try:
            with np.errstate(over="ignore"):
                return int(
                    kernel.call(
                        head, edges, states, actions, probabilities, logits, path, *rest,
                        num_simulations,
                    )
                )  # fmt: skip
        except Exception as error:
            what = f"a rule or evaluator raised {type(error).__name__}: {error}"
            raise BrokenGame(_told(self.composition.game, self.work, tree, what)) from error

    def _grow(self, wanted: int) -> None:
        """Make room for `wanted` edges, as far as memory goes."""
        tree = self.tree
        room = 2 * max(tree.game.num_actions, tree.game.max_outcomes) + 64
        wanted = max(wanted, int(tree.head["used"][0]) + room)
        most = np.iinfo(np.int32).max
        if self.max_bytes is not None:
            overhead = tree.num_bytes - tree.edges.nbytes
            most = min(most, (self.max_bytes - overhead) // tree.edges.dtype.itemsize)
            least = 1 + len(tree.root_squares)
            if most < least:
                needed = overhead + least * tree.edges.dtype.itemsize
                raise ValueError(
                    f"max_memory is {self.max_bytes} bytes; the root alone needs {needed}"
                )
        tree.resize(min(wanted, most))
        tree.head["may_grow"] = len(tree.edges) < most


# --- checks and messages -------------------------------------------------------------------------


def _check_budget(num_simulations: int | None, seconds: float | None) -> None:
    if num_simulations is None and seconds is None:
        raise ValueError("a search needs a budget: give num_simulations=, seconds= or both")
    if num_simulations is not None and num_simulations < 1:
        raise ValueError(f"num_simulations must be at least 1; got {num_simulations}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds must be above 0; got {seconds}")


def _check_tree(composition: _Composition, root: np.record, tree: Tree) -> None:
    if tree.game is not composition.game:
        raise ValueError(
            f"the tree belongs to {tree.game.name}, another game than {composition.game.name}"
        )
    if tree.game.key(tree.state) != tree.game.key(root):
        raise ValueError("the tree was grown from another state; search without tree=")
    if tree.has_priors != composition.evaluator.gives_priors:
        raise ValueError(
            "the tree was grown with another kind of evaluator (with priors or without); "
            "search without tree="
        )


_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "b": 1}


def _bytes(amount: int | str | None) -> int | None:
    """A number of bytes from a number or from text as "500MB"."""
    if amount is None:
        return None
    if isinstance(amount, str):
        text = amount.strip().lower()
        unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if text.endswith(u)), "")
        try:
            amount = int(float(text.removesuffix(unit)) * _UNITS.get(unit, 1))
        except ValueError:
            raise ValueError(f'max_memory is bytes or text as "500MB"; got {amount!r}') from None
    if amount < 1:
        raise ValueError(f"max_memory must be positive; got {amount}")
    return amount


def _trouble(composition: _Composition, work: _Workspace, tree: Tree, status: int) -> str:
    """What is wrong with a game, in words, and where it showed."""
    game, evaluator = composition.game, composition.evaluator
    depth = int(tree.head["depth"][0])
    reward = work.path["reward"][depth - 1] if depth else None
    to_play = int(work.states["to_play"][1])
    what = {
        BAD_COUNT: f"legal returned a count outside 1 to {game.num_actions} in a state that is not "
        "over, or wrote more than that many actions. If the episode has ended, step must set "
        "to_play = ramify.OVER",
        BAD_ACTION: f"legal or random_action gave an action outside [0, {game.num_actions}), or "
        "legal gave none in a state that is not over",
        BAD_TO_PLAY: f"step set to_play to {to_play}; expected a player 0 to "
        f"{game.num_players - 1}, ramify.OVER, or ramify.CHANCE in a game that has chance=",
        BAD_CHANCE: f"chance must give 1 to {game.max_outcomes} outcomes whose probabilities "
        "add up to 1",
        BAD_REWARD: f"step paid {reward}; rewards must be finite",
        BAD_VALUE: f"{evaluator.name} gave a value or prior that is not a finite number",
        NOT_ZERO_SUM: "the game is declared zero_sum=True, but a reward or value does not add up "
        "to zero over the two players; mend it, or leave zero_sum away",
        ENDLESS_PLAYOUT: f"a playout was still going after {ENDLESS} plies; give the game "
        "max_plies=, or cut playouts with evaluators.playout(max_plies=...)",
    }[status]
    return _told(game, work, tree, what)


def _told(game: Game, work: _Workspace, tree: Tree, what: str) -> str:
    """What is wrong, and the way from the root to where it showed."""
    depth = int(tree.head["depth"][0])
    taken = [int(tree.edges["action"][edge]) for edge in work.path["edge"][:depth]]
    return (
        f"{game.name}: {what}.\n  It happened after the actions {taken} from the root, "
        f"in or below the state\n{_indented(game, work.states[1])}\n"
        "  Run with debug=True for bounds checks."
    )


def _indented(game: Game, state: np.void) -> str:
    try:
        text = game.show(state)
    except Exception:  # a broken state may not be showable
        text = str(state)
    return "\n".join(f"    {line}" for line in text.splitlines())
