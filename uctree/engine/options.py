"""Every option of a search, declared once, and the checks that options fit together."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from uctree import evaluators, specs
from uctree import selection as rules
from uctree.backup import Backup, maximum, mean
from uctree.choice import Choice, as_choice
from uctree.continuous import proposals
from uctree.continuous.proposals import Proposal
from uctree.continuous.refine import Refinement, fitted
from uctree.evaluators import Evaluator
from uctree.game import Box, Game
from uctree.kernels import gumbel
from uctree.selection import Noise, Rule, Widening
from uctree.tree import Layout


def option(default: Any, help: str) -> Any:
    """A field of `Options`: its default, and a line for the docstring of `search`."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Every option of `search` except its budget, declared once.

    The signature and the docstring of `search`, the compiled kernel, the manifest and the options
    of `Searcher`, of agents and of the command line follow from these fields (`cli/app.py` says how
    an option is written that is no rule). The types are those after `resolve`: before it, None is a
    default that depends on other options.
    """

    selection: Rule = option(
        None, "how edges are chosen; UCB1, or PUCT if the evaluator gives priors."
    )
    root_selection: Rule = option(None, "how the root's edges are chosen, if different.")
    root_noise: Noise | None = option(
        None, "noise in the root's priors, from `selection.dirichlet`."
    )
    backup: Backup = option(
        None,
        "how a node's value is computed from those below; the mean, or for one player without "
        "chance who chooses vectors or plays long episodes, the maximum.",
    )
    evaluator: Evaluator = option(
        None, "the value of a leaf; one random playout. A plain function is compiled in."
    )
    widening: Widening | None = option(
        None, "opens edges one by one, from `selection.widening` or `adaptive_widening`."
    )
    proposal: Proposal | None = option(
        None,
        "how actions that are vectors are proposed, from `uctree.continuous`; at random. A plain "
        "function is compiled in.",
    )
    refine: Refinement | None = option(
        None, "how such actions are improved during the search, from `uctree.refine`; not at all."
    )
    chance: str | Widening = option(
        "sample",
        'how outcomes are taken: "sample", "proportional" (always the one most overdue), or '
        "`selection.outcome_widening`.",
    )
    open_loop: bool = option(
        False, "let a node be a sequence of actions, whatever the outcomes of chance in between."
    )
    transpositions: bool = option(
        False, "let states that are reached in several ways share one node."
    )
    solver: bool = option(
        False, "prove values from the ends of episodes up, and stop once the root is proven."
    )
    opponents: str = option(
        "maxn",
        '"maxn", each player wants the most; "paranoid", all play against the player to move.',
    )
    ties: str = option("first", '"first" edge of a tie, or a "random" one.')
    threads: int = option(1, "how many threads search.")
    parallel: str = option(
        "auto",
        '"root", a tree per thread, summed up, reproducible by the seed; "tree", one tree for all '
        'threads; "auto" measures which is better.',
    )
    in_flight: str = option(
        "virtual",
        'how simulations in flight count: as "virtual" visits that are losses, or as "unobserved" '
        "visits without a value.",
    )
    leaves: int = option(
        None, "how many leaves a Python evaluator evaluates at once; the evaluator's default."
    )
    stop: Any = option(None, "when to end before the budget is used up, from `uctree.stopping`.")
    choice: Choice = option(
        None, "how `result.action` is chosen, from `uctree.choice`; the most visited."
    )
    max_memory: int | str | None = option(
        None,
        'bytes, or text such as "500MB"; if that is too little, the least visited parts of the '
        "tree are pruned and the search continues.",
    )
    check: bool = option(
        True,
        "before a game is compiled, play a few episodes in plain Python, and refuse a broken game.",
    )
    debug: bool = option(False, "compile with bounds checks, to find out why a game crashes.")

    @property
    def shares_tree(self) -> bool:
        """Whether several threads search one tree."""
        return self.threads > 1 and self.parallel == "tree"

    @property
    def is_gumbel(self) -> bool:
        """Whether the root uses sequential halving."""
        return self.root_selection.at_root

    @property
    def log_prior_dtype(self) -> type:
        """The type of log-priors in a search: that of the evaluator's results."""
        return np.float64 if self.evaluator.batch is None else self.evaluator.number

    def layout(self, game: Game, *, many: bool = False) -> Layout:
        """What the records of the tree must hold; `many` for the trees of a batched search."""
        both = (self.selection, self.root_selection)
        amaf = any(rule.amaf is not None for rule in both)
        adapts = self.widening is not None and self.widening.adapts
        priors = self.evaluator.gives_priors
        together = amaf or priors or self.ties == "random" or self.transpositions or self.open_loop
        # If threads share a tree, edges must not move while a leaf is evaluated.
        together = together or self.shares_tree or game.is_continuous
        together = together or self.evaluator.batch is not None
        proofs = ("bounds" if game.zero_sum else "vectors") if self.solver else ""
        # Making edges moves others, so no simulation may be in flight meanwhile.
        sparse = many and self.is_gumbel and self.selection.sees_taken and self.leaves == 1
        sparse = sparse and not self.transpositions and game.rules.chance is None
        return Layout(
            priors=priors,
            lazy=sparse or not (together or any(rule.choose is not None for rule in both)),
            squares=adapts or game.is_continuous or any(r.asks_for("mean_square") for r in both),
            first_returns=adapts,
            raw=priors and any(rule.asks_for("raw_value") for rule in both),
            amaf=amaf,
            proofs=proofs,
            shared=self.transpositions,
            pending=self.shares_tree or self.leaves > 1,
            appends=self.open_loop or isinstance(self.chance, Widening) or game.is_continuous,
            dim=game.dim,
            sparse=sparse,
            answers=self.evaluator.answers,
            open_loop=self.open_loop,
        )

    def sees_range(self, game: Game) -> bool:
        """Whether the range of returns is taken from the search, not from the game."""
        scales = (self.selection.scale, self.root_selection.scale)
        return game.payoff_range is None or "minmax" in scales


# --- checking ------------------------------------------------------------------------------------


def resolve(game: Game, **given: Any) -> Options:
    """The options with defaults filled in; raises an error if they conflict."""
    check_names(given)
    options = Options(**given)
    evaluator = options.evaluator
    if evaluator is None:
        evaluator = evaluators.playout()
    elif not isinstance(evaluator, Evaluator):
        if not callable(evaluator):
            raise TypeError(
                "evaluator must come from uctree.evaluators, for instance evaluators.playout(), or "
                f"be a function of state and values; got {evaluator!r}"
            )
        evaluator = evaluators.compiled(evaluator)
    selection = options.selection or _default_rule(options.root_selection, evaluator)
    root_selection = options.root_selection
    if root_selection is None:
        root_selection = selection
        if options.root_noise is not None and isinstance(selection, Rule):
            root_selection = rules.without_reduction(selection)
    widening, proposal, refine = options.widening, options.proposal, options.refine
    if game.is_continuous:
        widening = rules.widening() if widening is None else widening
        proposal = proposals.as_proposal(proposal)
        if isinstance(refine, Refinement):
            refine = fitted(refine, game)
    options = replace(
        options,
        selection=selection,
        root_selection=root_selection,
        backup=options.backup or default_backup(game, evaluator),
        evaluator=evaluator,
        widening=widening,
        proposal=proposal,
        refine=refine,
        leaves=_num_leaves(options.leaves, evaluator),
        threads=_num_threads(options.threads),
        choice=as_choice(options.choice, after_gumbel=getattr(root_selection, "at_root", False)),
    )
    _check_kinds(options)
    for reason in _conflicts(game, options):
        raise ValueError(reason)
    return options


BUDGETS = ("num_simulations", "seconds")  # arguments of `search` itself
OPTION_NAMES = tuple(each.name for each in fields(Options))


def options_docstring() -> str:
    """The lines of `Args:` that describe the options."""
    lines = []
    for each in fields(Options):
        text = f"{each.name}: {each.metadata['help']}"
        wrapped = textwrap.wrap(text, 100, initial_indent=" " * 8, subsequent_indent=" " * 12)
        lines += wrapped
    return "\n".join(lines)


def option_parameters() -> list[inspect.Parameter]:
    """The options as parameters of a function that takes them by name."""
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(Options)
    ]


def check_names(given: Iterable[str]) -> None:
    """Refuse options that a search does not have."""
    for name in given:
        if name not in OPTION_NAMES:
            raise TypeError(specs.no_option(name, [*BUDGETS, *OPTION_NAMES]))


def whole(name: str, value: Any) -> int:
    """A whole number, from NumPy or not, as an int; TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number; got {value!r}")
    return int(value)


MOST_THREADS = 1024


def _num_threads(threads: Any) -> int:
    count = whole("threads", threads)
    if count < 1:
        raise ValueError(f"threads must be at least 1; got {count}")
    if count > MOST_THREADS:
        raise ValueError(
            f"threads must be at most {MOST_THREADS:,}; got {count:,}. More threads than cores "
            f"bring nothing, and this machine has {os.cpu_count()}"
        )
    return count


def _num_leaves(leaves: int | None, evaluator: Evaluator) -> int:
    if leaves is None:
        return 1 if evaluator.batch is None else evaluator.batch.leaves
    if isinstance(leaves, bool) or not isinstance(leaves, (int, np.integer)) or leaves < 1:
        raise ValueError(f"leaves must be a whole number of at least 1; got {leaves!r}")
    if leaves > 1 and evaluator.batch is None:
        raise ValueError(
            f"leaves= is for Python evaluators, and {evaluator.name} is compiled: omit it, or use "
            "threads="
        )
    return int(leaves)


def _default_rule(root_selection: Rule | None, evaluator: Evaluator) -> Rule:
    if isinstance(root_selection, Rule) and root_selection.at_root:
        given = root_selection.parameters
        return rules.gumbel_interior(
            c_visit=given[gumbel.C_VISIT],
            c_scale=given[gumbel.C_SCALE],
            rescale=bool(given[gumbel.RESCALE]),
        )
    return rules.puct() if evaluator.gives_priors else rules.ucb1()


USUAL_BUDGET = 10_000  # simulations, if nobody knows how many there will be
TRIED = 32  # visits after which the mean of playouts is hardly luck


def default_backup(game: Game, evaluator: Any, num_simulations: int | None = None) -> Backup:
    """The mean; for one player without chance, who can repeat what was best, sometimes the maximum.

    It is so with vectors, most of which are mere tries, and in episodes that are played out and too
    long for the tree to reach their ends [measured in docs/planning.md].

    Args:
        num_simulations: of the tree; None if that is not known.
    """
    if game.num_players > 1 or game.rules.chance is not None:
        return mean()
    if game.is_continuous:
        return maximum()
    plays_out = evaluator is None or getattr(evaluator, "plays_out", False)
    if game.max_plies is None or not plays_out:
        return mean()
    enough = (game.max_plies * game.num_actions) ** 2.5 / 32
    return maximum(TRIED) if (num_simulations or USUAL_BUDGET) < enough else mean()


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
    for name in ("open_loop", "transpositions", "solver", "check", "debug"):
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
    """The messages for options that conflict with each other or with the game."""
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
            evaluator.batch is not None and evaluator.batch.observes and game.rules.observe is None,
            f"the evaluator {evaluator.name} needs observations, and {game.name} has none: give "
            "Game observe= and observation_shape=",
        ),
        *[
            (
                evaluator.model is not None and bool(given),
                f"{name}= needs the rules of the game, and {evaluator.name} is a learned model, "
                "which knows no more than its answers: omit it",
            )
            for name, given in (
                ("solver", options.solver),
                ("transpositions", options.transpositions),
                ("open_loop", options.open_loop),
                ("widening", options.widening),
            )
        ],
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
            f"{learner.name} learns from the actions of playouts, and the evaluator "
            f"{evaluator.name} has none: use evaluators.playout(), or another rule",
        ),
        (
            evaluator.plays_out and evaluator.gives_priors and game.rules.priors is None,
            f"evaluators.playout(priors=True) needs the game's priors, and {game.name} has none: "
            "give Game a function priors(state, logits), or omit priors=",
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
            "open_loop=True identifies nodes by actions, transpositions=True by states; choose one",
        ),
        (
            options.open_loop and options.solver,
            "solver=True proves values of states, and open_loop=True has many states in one "
            "node; choose one",
        ),
        (
            options.open_loop and options.widening is not None,
            "open_loop=True has other edges at every visit, so that widening cannot count "
            "them; choose one",
        ),
        (
            options.open_loop and widens_outcomes,
            "open_loop=True draws outcomes anew at every visit; omit chance=",
        ),
        (
            options.open_loop and game.discount != 1.0,
            f"open_loop=True needs a game without discount; {game.name} has "
            f"discount={game.discount}",
        ),
        (
            options.transpositions and widens_outcomes,
            "outcome_widening moves edges, and transpositions=True needs them to stay; choose one",
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
            "solver=True assumes that each player maximises its own payoff; use "
            'opponents="maxn" with it',
        ),
        (
            options.shares_tree and (options.open_loop or widens_outcomes),
            "open_loop=True and outcome_widening move edges, and threads that share a tree need "
            'them to stay: use parallel="root"',
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
    """Conflicts of options that need actions to be vectors, or not to be."""
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
        (options.transpositions, f"{what}, so states hardly repeat: search without "
         "transpositions=True"),
        (options.open_loop, f"{what}: search without open_loop=True"),
        (options.solver, f"{what}, too many to prove anything: search without "
         "solver=True"),
        (options.shares_tree, f'{what}, whose edges move when some are added: use parallel="root"'),
        (options.evaluator.gives_priors, f"{what}, which cannot have a prior each; use an "
         "evaluator of state and values alone, and proposal= to propose actions"),
        (any(rule.amaf is not None or rule.choose is not None for rule in rules_given),
         f"{what}; select them with ucb1, ucb1_tuned or a rule of your own that has a score"),
        (options.proposal is not None and options.proposal.needs_box
         and not isinstance(space, Box), f"{options.proposal and options.proposal.name} fills "
         "boxes; for a Sphere use another proposal"),
    ]  # fmt: skip
