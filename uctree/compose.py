"""From a game and the options of a search to the kernel that runs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import _machine, continuous, evaluators, exchange, scoring, simulation
from uctree import backup as backups
from uctree import selection as rules
from uctree._compile import Kernel, compile_kernel, interpreted
from uctree.backup import Backup
from uctree.continuous import Proposal
from uctree.errors import BrokenGame
from uctree.evaluators import Evaluator
from uctree.game import ENDLESS, Box, Game
from uctree.refine import Refinement, fitted, stages_of
from uctree.selection import Noise, Rule, Widening
from uctree.tree import Layout, Tree, num_values

MAX_DEPTH = 4096  # a descent ends here at the latest, and its last node is valued again


@dataclass(frozen=True)
class Options:
    """What a search is made of; checked to fit each other and the game."""

    selection: Rule
    root_selection: Rule
    root_noise: Noise | None
    backup: Backup
    evaluator: Evaluator
    widening: Widening | None
    proposal: Proposal | None  # None where actions are numbers
    refine: Refinement | None
    chance: str | Widening
    open_loop: bool
    transpositions: bool
    solver: bool
    opponents: str
    ties: str
    in_flight: str
    shares_tree: bool  # several threads search one tree
    leaves: int  # how many leaves of a tree are valued at once
    debug: bool

    @property
    def is_gumbel(self) -> bool:
        """Whether the root halves the actions it considers."""
        return self.root_selection.at_root

    def layout(self, game: Game, *, many: bool = False) -> Layout:
        """What the records of the tree must hold; of one of many trees that stay in a forest."""
        both = (self.selection, self.root_selection)
        amaf = any(rule.amaf is not None for rule in both)
        priors = self.evaluator.gives_priors
        together = amaf or priors or self.ties == "random" or self.transpositions or self.open_loop
        # Where threads share a tree, edges must stay where they are while a leaf is valued.
        together = together or self.shares_tree or game.is_continuous
        together = together or self.evaluator.outside is not None
        proofs = ("bounds" if game.zero_sum else "vectors") if self.solver else ""
        # Edges move as they are made, so nobody may wait on one meanwhile.
        sparse = many and self.is_gumbel and self.selection.sees_taken and self.leaves == 1
        sparse = sparse and not self.transpositions and game.rules.chance is None
        return Layout(
            priors=priors,
            lazy=sparse or not (together or any(rule.choose is not None for rule in both)),
            squares=game.is_continuous or any(rule.asks_for("mean_square") for rule in both),
            raw=priors and any(rule.asks_for("raw_value") for rule in both),
            amaf=amaf,
            proofs=proofs,
            shared=self.transpositions,
            pending=self.shares_tree or self.leaves > 1,
            appends=self.open_loop or isinstance(self.chance, Widening) or game.is_continuous,
            dim=game.dim,
            sparse=sparse,
        )

    def sees_range(self, game: Game) -> bool:
        """Whether the range of returns is the one seen in the search."""
        scales = (self.selection.scale, self.root_selection.scale)
        return game.payoff_range is None or "minmax" in scales


# --- checking ------------------------------------------------------------------------------------


def checked_options(
    game: Game,
    *,
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
    in_flight: str = "virtual",
    shares_tree: bool = False,
    leaves: int | None = None,
    debug: bool = False,
) -> Options:
    """The options with defaults filled in; an error where they make no sense together."""
    if evaluator is None:
        evaluator = evaluators.playout()
    elif not isinstance(evaluator, Evaluator):
        if not callable(evaluator):
            raise TypeError(
                "evaluator must come from uctree.evaluators, for instance evaluators.playout(), or "
                f"be a function of state and values; got {evaluator!r}"
            )
        evaluator = evaluators.compiled(evaluator)
    if selection is None:
        selection = _default_rule(root_selection, evaluator)
    if root_selection is None:
        root_selection = selection
        if root_noise is not None and isinstance(selection, Rule):
            root_selection = rules.without_reduction(selection)
    if game.is_continuous:
        widening = rules.widening() if widening is None else widening
        proposal = continuous.as_proposal(proposal)
        if isinstance(refine, Refinement):
            refine = fitted(refine, game)
    options = Options(
        selection=selection,
        root_selection=root_selection,
        root_noise=root_noise,
        backup=backups.mean() if backup is None else backup,
        evaluator=evaluator,
        widening=widening,
        proposal=proposal,  # type: ignore[arg-type]  # refused below where it is a function
        refine=refine,
        chance=chance,
        open_loop=open_loop,
        transpositions=transpositions,
        solver=solver,
        opponents=opponents,
        ties=ties,
        in_flight=in_flight,
        shares_tree=shares_tree,
        leaves=_num_leaves(leaves, evaluator),
        debug=debug,
    )
    _check_kinds(options)
    for reason in _conflicts(game, options):
        raise ValueError(reason)
    return options


def _num_leaves(leaves: int | None, evaluator: Evaluator) -> int:
    if leaves is None:
        return 1 if evaluator.outside is None else evaluator.outside.leaves
    if isinstance(leaves, bool) or not isinstance(leaves, (int, np.integer)) or leaves < 1:
        raise ValueError(f"leaves must be a whole number of at least 1; got {leaves!r}")
    if leaves > 1 and evaluator.outside is None:
        raise ValueError(
            f"leaves= is for evaluators that Python is asked for, and {evaluator.name} is compiled "
            "in: leave it away, or use threads="
        )
    return int(leaves)


def _default_rule(root_selection: Rule | None, evaluator: Evaluator) -> Rule:
    if isinstance(root_selection, Rule) and root_selection.at_root:
        c_visit, c_scale, rescale = root_selection.parameters[:3]
        return rules.gumbel_interior(c_visit=c_visit, c_scale=c_scale, rescale=bool(rescale))
    return rules.puct() if evaluator.gives_priors else rules.ucb1()


def _check_kinds(options: Options) -> None:
    for name, kind, example in (
        ("selection", Rule, "selection.ucb1()"),
        ("root_selection", Rule, "selection.gumbel()"),
        ("backup", Backup, "backup.maximum()"),
        ("root_noise", Noise, "selection.dirichlet()"),
        ("widening", Widening, "selection.widening()"),
        ("refine", Refinement, "refine.gradient()"),
    ):
        value = getattr(options, name)
        may_miss = name in ("root_noise", "widening", "refine")
        if not (isinstance(value, kind) or (value is None and may_miss)):
            raise TypeError(
                f"{name} must come from uctree.{example.partition('.')[0]}, for instance "
                f"{example}; got {value!r}"
            )
    for name, possible in (
        ("opponents", ("maxn", "paranoid")),
        ("ties", ("first", "random")),
        ("in_flight", ("virtual", "unobserved")),
    ):
        if getattr(options, name) not in possible:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, possible))}; got {getattr(options, name)!r}"
            )
    for name in ("open_loop", "transpositions", "solver", "debug"):
        if not isinstance(getattr(options, name), bool):
            raise TypeError(f"{name} must be True or False; got {getattr(options, name)!r}")
    outcomes = isinstance(options.chance, Widening) and options.chance.of_outcomes
    if not outcomes and options.chance not in ("sample", "proportional"):
        raise ValueError(
            'chance must be "sample", "proportional" or selection.outcome_widening(); got '
            f"{options.chance!r}"
        )
    if options.widening is not None and options.widening.of_outcomes:
        raise ValueError("widening=selection.outcome_widening() is for chance=; use widening()")


def _conflicts(game: Game, options: Options) -> list[str]:
    """What is wrong with options that are fine one by one."""
    selection, root, evaluator = options.selection, options.root_selection, options.evaluator
    amaf = selection.amaf is not None or root.amaf is not None
    chooses = selection.choose is not None or root.choose is not None
    learner = root if selection.amaf is None else selection
    whole = root.name if root.choose is not None else selection.name
    has_chance = game.rules.chance is not None
    widens_outcomes = isinstance(options.chance, Widening)
    most = options.widening is not None and options.widening.most is not None
    known = game.payoff_range is not None
    cases = [
        *_vector_conflicts(game, options),
        (
            evaluator.outside is not None
            and evaluator.outside.observes
            and game.rules.observe is None,
            f"the evaluator {evaluator.name} is shown observations, and {game.name} has none: give "
            "Game observe= and observation_shape=",
        ),
        (
            selection.at_root,
            f"selection={selection.name} is for the root alone: give it as root_selection=",
        ),
        (
            root.noise is not None and len(root.noise) != game.num_actions,
            f"gumbel(noise=) needs one number per action, {game.num_actions}; got "
            f"{len(root.noise or ())}",
        ),
        (
            options.is_gumbel and not evaluator.gives_priors,
            "root_selection=gumbel needs priors to draw from: give an evaluator that takes "
            "`logits` or `priors`",
        ),
        (
            selection.asks_for("raw_value") and not evaluator.gives_priors,
            f"{selection.name} needs an evaluator that gives priors: one that takes `logits` or "
            "`priors`",
        ),
        (
            amaf and not evaluator.plays_out,
            f"{learner.name} learns from what playouts play, and the evaluator "
            f"{evaluator.name} plays nothing: use evaluators.playout(), or another rule",
        ),
        (
            evaluator.plays_out and evaluator.gives_priors and game.rules.priors is None,
            f"evaluators.playout(priors=True) asks the game for priors, and {game.name} has none: "
            "give Game a function priors(state, logits), or leave priors= away",
        ),
        (
            options.root_noise is not None and not evaluator.gives_priors,
            f"root_noise is mixed into priors, and the evaluator {evaluator.name} gives none",
        ),
        (
            options.root_noise is not None and options.is_gumbel,
            "root_noise and root_selection=gumbel are two kinds of noise for the root; choose one",
        ),
        (
            most and not evaluator.gives_priors,
            "widening(most=) keeps the actions of the largest priors, and the evaluator "
            f"{evaluator.name} gives none",
        ),
        (
            options.widening is not None and chooses,
            f"widening opens edges one by one, and {whole} looks at all of them; choose one",
        ),
        (
            options.open_loop and chooses,
            f"open_loop=True has other edges at every visit, and {whole} looks at all of them; "
            "choose one",
        ),
        (
            options.open_loop and evaluator.gives_priors,
            "open_loop=True has many states in one node, so priors of one state do not fit; "
            "use an evaluator without priors",
        ),
        (
            options.open_loop and options.transpositions,
            "open_loop=True tells nodes apart by actions, transpositions=True by states; "
            "choose one",
        ),
        (
            options.open_loop and options.solver,
            "solver=True proves things of states, and open_loop=True has many states in one "
            "node; choose one",
        ),
        (
            options.open_loop and options.widening is not None,
            "open_loop=True has other edges at every visit, so that widening cannot count "
            "them; choose one",
        ),
        (
            options.open_loop and widens_outcomes,
            "open_loop=True draws outcomes anew at every visit; leave chance= away",
        ),
        (
            options.open_loop and game.discount != 1.0,
            f"open_loop=True needs a game without discount; {game.name} has "
            f"discount={game.discount}",
        ),
        (
            options.transpositions and widens_outcomes,
            "outcome_widening moves edges as they come, and transpositions=True needs them to "
            "stay; choose one",
        ),
        (
            options.solver and widens_outcomes,
            "solver=True needs to see every outcome, and outcome_widening leaves some out; "
            "choose one",
        ),
        (
            options.solver and game.discount != 1.0,
            f"solver=True needs a game without discount; {game.name} has discount={game.discount}",
        ),
        (
            options.solver and most,
            "solver=True needs to see every action, and widening(most=) leaves some out; "
            "choose one",
        ),
        (
            options.solver and options.opponents == "paranoid" and not game.zero_sum,
            "solver=True proves what players reach who each want the most; use "
            'opponents="maxn" with it',
        ),
        (
            options.shares_tree and (options.open_loop or widens_outcomes),
            "open_loop=True and outcome_widening move edges as they come, and threads that share a "
            'tree need them to stay: use parallel="root"',
        ),
        (
            widens_outcomes and not has_chance,
            f"chance=outcome_widening() is for games of chance, and {game.name} has none",
        ),
        (
            options.chance == "proportional" and not has_chance,
            f'chance="proportional" is for games of chance, and {game.name} has none',
        ),
        (
            "bounds" in (selection.scale, root.scale) and not known,
            'normalise="bounds" needs a game that states its payoff_range; '
            f'{game.name} does not: use "minmax"',
        ),
    ]
    return [reason for is_so, reason in cases if is_so]


def _vector_conflicts(game: Game, options: Options) -> list[tuple[bool, str]]:
    """What does not go with actions that are vectors, or needs them."""
    space = game.action_space
    if space is None:
        what = f"the actions of {game.name} are numbers"
        return [
            (options.proposal is not None, f"proposal= finds vectors, and {what}"),
            (options.refine is not None, f"refine= moves vectors, and {what}"),
        ]
    rules_given = (options.selection, options.root_selection)
    what = f"the actions of {game.name} are vectors of {space}"
    return [
        (options.transpositions, f"{what}, and such states hardly meet again: search without "
         "transpositions=True"),
        (options.open_loop, f"{what}: search without open_loop=True"),
        (options.solver, f"{what}, and nothing is proven of endless choices: search without "
         "solver=True"),
        (options.shares_tree, f'{what}, whose edges move as they come: use parallel="root"'),
        (options.evaluator.gives_priors, f"{what}, which cannot have a prior each; use an "
         "evaluator of state and values alone, and proposal= to say where to look"),
        (any(rule.amaf is not None or rule.choose is not None for rule in rules_given),
         f"{what}; select them with ucb1, ucb1_tuned or a rule of your own that has a score"),
        (options.proposal is not None and options.proposal.needs_box
         and not isinstance(space, Box), f"{options.proposal and options.proposal.name} fills "
         "boxes; for a Sphere use another proposal"),
    ]  # fmt: skip


# --- composing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Composition:
    """A game, how it is searched, and the kernel that does it."""

    game: Game
    options: Options
    layout: Layout
    arrays: Arrays
    kernel: Kernel


@dataclass(frozen=True)
class Arrays:
    """What a thread's arrays are made of."""

    work: np.dtype
    path: np.dtype
    key_ranges: np.ndarray


_known: weakref.WeakKeyDictionary[Game, dict[Any, tuple[Arrays, Kernel]]]
_known = weakref.WeakKeyDictionary()


def compose(game: Game, options: Options, *, many: bool = False) -> Composition:
    """The kernel for these options, from memory, from disk, or compiled now.

    Args:
        many: whether it is to search the trees of a forest; one whose leaves are valued in Python
            searches many as well.
    """
    layout = options.layout(game, many=many)
    many = many or options.evaluator.outside is not None
    widening = options.widening
    key = (
        options.selection.functions(), options.root_selection.functions(),
        options.root_selection != options.selection, options.backup.gather,
        options.evaluator.value_leaf, options.evaluator.functions,
        options.evaluator.max_plies is None, layout, options.root_noise is not None,
        widening is not None, widening is not None and widening.most is not None,
        options.chance if isinstance(options.chance, str) else "widening", options.open_loop,
        None if options.proposal is None else options.proposal.key,
        None if options.refine is None else options.refine.key,
        options.opponents, options.ties, options.in_flight, options.sees_range(game),
        options.debug, many, interpreted(),
    )  # fmt: skip
    known = _known.setdefault(game, {})
    if key not in known:
        arrays = arrays_of(game, options, layout)
        example = Tree(game, game.start(), layout, num_root_edges=1, capacity=1)
        work = Workspace(game, options, arrays, example, np.zeros(1, np.uint64))
        function: Callable[..., int] = simulation.simulate
        arguments = work.arguments(example)
        bound = bindings(game, options, layout)
        if many:
            desk, trees = desk_of(game, options, arrays, 1, 1), as_trees(example, work)
            framed = desk.arrays(trees, work)
            function, arguments = exchange.exchange, desk.arguments(trees, work)
            bound["array_at"] = _machine.array_reader(framed)
        label = f"{game.name}: {options.selection.name}, {options.evaluator.name}"
        kernel = compile_kernel(function, bound, arguments, label=label, debug=options.debug)
        known[key] = arrays, kernel
    return Composition(game, options, layout, *known[key])


def arrays_of(game: Game, options: Options, layout: Layout) -> Arrays:
    """What a thread's arrays are made of in a search with these options."""
    return Arrays(
        _work_dtype(game, options, layout),
        _path_dtype(num_values(game), options.transpositions),
        _key_ranges(game),
    )


def desk_of(
    game: Game, options: Options, arrays: Arrays, num_trees: int, longest: int
) -> exchange.Desk:
    """Where the simulations of so many trees wait; none is longer than `longest`."""
    evaluator = options.evaluator
    return exchange.Desk(
        game, evaluator.outside, evaluator.gives_priors, arrays.path, num_trees, options.leaves,
        longest,
    )  # fmt: skip


def as_trees(tree: Tree, work: Workspace) -> exchange.Trees:
    """One tree as the first of many."""
    return exchange.Trees(
        heads=tree.head[None],
        blank=tree.head,
        edges=tree.edges[None],
        untried=work.untried[None],
        roots=work.states[:1],
        root_squares=tree.root_squares[None],
        tables=tree.table[None],
        noises=work.noise[None],
        given_noise=np.zeros(0),
        lists=work.work["listed"].reshape(1, -1),
        draws=work.work["draws"].reshape(1, -1),
        schedules=work.schedule[None],
        rngs=work.rng[None],
    )


def bindings(game: Game, options: Options, layout: Layout | None = None) -> dict[str, Any]:
    """What the kernels of a search are bound to, for trees of a layout or the usual one."""
    layout = options.layout(game) if layout is None else layout
    widens_outcomes = isinstance(options.chance, Widening)
    return (
        {"OBSERVES": False}
        | evaluators.bindings(game, options.evaluator, notes_actions=layout.amaf)
        | layout.bindings()
        | _machine.primitives()
        | _rule_bindings(game, options.selection, "")
        | _rule_bindings(game, options.root_selection, "root_")
        | {
            "PARANOID": options.opponents == "paranoid",
            "SEES_RANGE": options.sees_range(game),
            "value_leaf": options.evaluator.value_leaf,
            "ROOT_DIFFERS": options.root_selection != options.selection,
            "CHOOSES": options.selection.choose is not None,
            "ROOT_CHOOSES": options.root_selection.choose is not None
            and options.root_selection != options.selection,
            "SCORES": options.root_selection.choose is None or options.selection.choose is None,
            "amaf_share": _amaf_share(options),
            "gather": options.backup.gather,
            "GATHERS": options.backup.gather is not backups.gather_nothing,
            "KNOWS_OUTCOMES": not widens_outcomes and not options.open_loop,
            "OPEN_LOOP": options.open_loop,
            "WIDENS_OUTCOMES": widens_outcomes,
            "pick_outcome": scoring.due_outcome
            if options.chance == "proportional"
            else scoring.draw_outcome,
            "propose": continuous.propose_nothing,
            "improve": continuous.propose_nothing,
            "REFINES": options.refine is not None,
            "REFINES_PLAYOUTS": options.refine is not None and options.refine.whole,
            "REFINES_REPLIES": options.refine is not None and options.refine.num_choices > 1,
            "REFINES_BEST": options.refine is not None and options.refine.best,
            "NUM_BLOCKS": num_blocks(game, options),
            "WIDENS": options.widening is not None,
            "HAS_EXACT": options.solver and game.rules.exact is not None,
            "SORTS": options.widening is not None and options.evaluator.gives_priors,
            "MADE_BEFORE_TAKEN": layout.pending
            or not (layout.lazy or layout.dim)
            or options.refine is not None,
            "RANDOM_TIES": options.ties == "random",
            "HAS_NOISE": options.root_noise is not None,
            "LISTS": options.is_gumbel,
            "IS_UNOBSERVED": options.in_flight == "unobserved",
            "HAS_THREADS": options.shares_tree,
        }
        | ({} if options.proposal is None else options.proposal.bindings(game))
        | ({} if options.refine is None else options.refine.bindings())
    )


def num_blocks(game: Game, options: Options) -> int:
    """How many nodes get an edge in one simulation, where actions are vectors."""
    if options.refine is None:
        return 1
    return 1 + 2 * options.refine.times * stages_of(game)


def _rule_bindings(game: Game, rule: Rule, prefix: str) -> dict[str, Any]:
    bound: dict[str, Any] = {
        "scale": scoring.scale_kernel(rule.scale, game.payoff_range is not None),
        "blend": scoring.blend_nothing if rule.amaf is None else scoring.blend_amaf,
        "unvisited_first": scoring.yes if rule.unvisited_first else scoring.no,
    }
    for kind in ("width", "score", "unvisited", "total", "choose"):
        bound[kind] = rule.bound(kind)
    return {prefix + name: value for name, value in bound.items()}


def _amaf_share(options: Options) -> Callable[..., float]:
    for rule in (options.selection, options.root_selection):
        if rule.amaf is not None:
            return rule.amaf.share
    return rules.rave_share


# --- workspaces ----------------------------------------------------------------------------------


class Workspace:
    """The arrays one thread works on besides the tree."""

    def __init__(
        self, game: Game, options: Options, arrays: Arrays, tree: Tree, rng: np.ndarray
    ) -> None:
        self.states = np.zeros(3, game.dtype)
        self.states[0] = tree.state
        self.rng = rng
        self.lock = np.zeros(1, np.int64)
        self.data = game.data
        self.schedule = np.zeros(1, np.int64)
        # No actions without an edge; else their log-priors, as precise as they come.
        is_outside = options.evaluator.outside is not None
        self.untried = np.zeros(0, np.float32 if is_outside else np.float64)
        self.key_ranges = arrays.key_ranges
        self.key_views = _key_views(self.states)
        plies_left = _plies_left(game, tree.state)
        self.path = np.zeros(min(MAX_DEPTH, plies_left), arrays.path)
        self.work = np.zeros(1, arrays.work)
        self.noise = np.zeros(self.work["noise"].shape[1])  # of all edges of the root
        self._fill(game, options, plies_left)

    def _fill(self, game: Game, options: Options, plies_left: int) -> None:
        work, evaluator = self.work[0], options.evaluator
        longest = ENDLESS if evaluator.max_plies is None else evaluator.max_plies
        work["actions"] = work["drawn"] = evaluators.action_room(game)
        if options.proposal is not None:
            work["proposal"][: len(options.proposal.parameters)] = options.proposal.parameters
        if options.refine is not None:
            work["refine"][: len(options.refine.parameters)] = options.refine.parameters
        work["limits"] = (evaluator.num_playouts, longest, plies_left)
        work["parameters"][: len(options.selection.parameters)] = options.selection.parameters
        root_parameters = options.root_selection.parameters
        work["root_parameters"][: len(root_parameters)] = root_parameters
        work["backup_parameter"] = options.backup.parameter
        work["ref_first"] = -1
        for rule in (options.root_selection, options.selection):
            if rule.amaf is not None:
                work["amaf_parameter"], work["amaf_ref"] = rule.amaf.parameter, rule.amaf.ref
        if options.widening is not None:
            given = options.widening
            most = game.num_actions if given.most is None else given.most
            work["widening"] = (given.k, given.alpha, given.ceil, most)
        if isinstance(options.chance, Widening):
            work["outcome_widening"] = (options.chance.k, options.chance.alpha)

    def show_noise(self, noise: np.ndarray) -> None:
        """Let kernels see priors of the root that have noise."""
        self.noise[: len(noise)] = self.work["noise"][0, : len(noise)] = noise

    def show_list(self, listed: np.ndarray, draws: np.ndarray) -> None:
        """Let kernels see which edges of the root are considered, and what was drawn for them."""
        self.work["listed"][0, : len(listed)] = listed
        self.work["draws"][0, : len(listed)] = draws
        self.work["num_listed"] = len(listed)

    def arguments(self, tree: Tree) -> tuple[Any, ...]:
        """What the kernel takes."""
        return (
            tree.head, tree.edges, self.states, self.path, self.work, tree.root_squares,
            self.schedule, tree.table, *self.key_views, self.key_ranges, self.rng, self.lock,
            self.untried, self.data,
        )  # fmt: skip


def _work_dtype(game: Game, options: Options, layout: Layout) -> np.dtype:
    """What one thread needs for one simulation, in one record: a kernel takes few arguments."""
    actions, players = game.num_actions, game.num_players
    largest = max(actions, game.max_outcomes)
    chooses = any(r.choose is not None for r in (options.selection, options.root_selection))
    room = evaluators.action_room(game)
    wide = largest if chooses or options.root_noise is not None else 1
    return np.dtype(
        [
            ("returns", float, (players,)),
            ("reward", float, (players,)),
            ("values", float, (players,)),
            ("more_values", float, (players,)),
            ("sample", float, (players,)),
            ("worker", np.int64),  # the thread's number, from 1 on: what the lock holds
            ("depth", np.int64),
            ("ending", np.int64),
            ("leaf_player", np.int64),
            ("count", np.int64),  # legal actions of the leaf
            ("timed", np.int64),
            ("clock", np.int64),
            ("times", np.int64, (4,)),
            ("stamp", np.int64),
            ("limits", np.int64, (3,)),  # playouts, plies of a playout, plies left
            ("parameters", float, (max(1, len(options.selection.parameters)),)),
            ("root_parameters", float, (max(1, len(options.root_selection.parameters)),)),
            ("backup_parameter", float),
            ("amaf_parameter", float),
            ("amaf_ref", np.int64),
            ("refs", np.int64, (players,)),
            ("ref_first", np.int64),
            ("widening", float, (4,)),
            ("outcome_widening", float, (2,)),
            ("actions", room.dtype, room.shape),
            ("drawn", room.dtype, room.shape),  # of playouts, which leave the leaf's actions alone
            ("proposal", float, (8,)),
            ("probabilities", float, (game.max_outcomes + 1024,)),
            ("logits", float, (actions if layout.priors else 1,)),
            ("played", np.int64, (1 + players * actions if layout.amaf else 1,)),
            ("ref_edges", np.int32, (actions if layout.amaf else 1,)),
            ("legal_stamp", np.int64, (actions if options.open_loop else 1,)),
            ("order", np.int32, (max(1, actions) if options.widening is not None else 1,)),
            ("q", float, (wide,)),
            ("prior", float, (wide,)),
            ("visits", np.int64, (wide,)),
            ("scratch", float, (wide,)),
            ("noise", float, (wide,)),
            ("listed", np.int64, (wide,)),  # edges that the root considers
            ("draws", float, (wide,)),  # of these edges
            ("num_listed", np.int64),
            # Of the leaf's actions, in their order.
            ("log_priors", float, (actions if layout.priors else 1,)),
            ("weights", float, (actions if layout.priors else 1,)),
            *([] if options.refine is None else options.refine.fields(game)),
        ]
    )


def _path_dtype(num_values: int, shares_nodes: bool) -> np.dtype:
    fields: list[Any] = [("edge", np.int32), ("player", np.int32)]
    if shares_nodes:
        fields.append(("node", np.int32))
    return np.dtype([*fields, ("reward", np.float64, (num_values,))])


def _key_ranges(game: Game) -> np.ndarray:
    """Where the bytes of the key fields are in a record: begin and end, side by side."""
    fields: Any = game.dtype.fields
    spans = sorted((fields[n][1], fields[n][1] + fields[n][0].itemsize) for n in game.key_fields)
    merged: list[list[int]] = []
    for begin, end in spans:
        if merged and merged[-1][1] == begin:
            merged[-1][1] = end
        else:
            merged.append([begin, end])
    return np.array(merged, np.int64).reshape(-1, 2)


def _key_views(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of states, and the eight bytes from every byte on as one number."""
    size = states.itemsize
    content = states.view(np.uint8).reshape(len(states), size)
    if size < 8:
        return content, np.zeros((1, 1), np.uint64)
    words: np.ndarray = np.ndarray(
        (len(states), size - 7), np.uint64, buffer=content, strides=(size, 1)
    )
    return content, words


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
