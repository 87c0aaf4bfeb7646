"""Composes and compiles the kernel for a game and the options of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from uctree import selection as rules
from uctree.continuous import proposals
from uctree.continuous.refine import stages_of
from uctree.engine import frames, machine
from uctree.engine.bindings import game_bindings
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.identity import rules_fingerprint
from uctree.engine.looks import look_at
from uctree.engine.options import Options
from uctree.engine.queue import EvaluationQueue
from uctree.engine.recent import MOST_KERNELS, table_of
from uctree.engine.storage import OneTree, Storage, one_tree_arrays
from uctree.engine.workspace import Arrays, Workspace, arrays_of, keeps_best
from uctree.game import Game
from uctree.kernels import context, scoring
from uctree.kernels.backups import gather_nothing
from uctree.kernels.batching import step_batch
from uctree.kernels.context import Batch
from uctree.kernels.playouts import play_steps
from uctree.kernels.widening import widens_by_draws, widens_by_visits
from uctree.selection import Rule, Widening
from uctree.tree import Layout, Tree

# --- composing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Composition:
    """A game, the options of its search, and the kernel that runs it."""

    game: Game
    options: Options
    layout: Layout
    arrays: Arrays
    kernel: Kernel
    rules: str | None  # `rules_fingerprint` of the game when the kernel was made, by byte code
    # Workers of earlier searches, for reuse: a short search would spend most of its time on making
    # them.
    idle_workers: list[Any] = field(default_factory=list, compare=False, repr=False)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The options by their names, defaults filled in."""
        options = self.options
        manifest = {each.name: getattr(options, each.name) for each in fields(options)}
        if options.root_selection == options.selection:
            manifest["root_selection"] = None
        return manifest


def compose(
    game: Game, options: Options, *, many: bool = False, state: np.record | None = None
) -> Composition:
    """The kernel for these options, from memory, from disk, or compiled now.

    Args:
        many: whether the kernel searches many trees, whose records may be smaller.
        state: where the first search begins, if that is known.
    """
    if options.check:
        look_at(game, state)
    layout = options.layout(game, many=many)
    widening = options.widening
    # Whatever `bindings` and the dtypes below depend on; tests/engine/test_compose.py compares.
    key = (
        options.selection.functions(), options.root_selection.functions(),
        options.root_selection != options.selection, options.backup.gather,
        options.evaluator.value_leaf, options.evaluator.functions, options.evaluator.number,
        options.evaluator.max_plies is None, layout, options.root_noise is not None,
        widening is not None, widening is not None and widening.most is not None,
        widening is not None and widening.adapts,
        options.chance if isinstance(options.chance, str) else "widening",
        None if options.proposal is None else options.proposal.key,
        None if options.refine is None else options.refine.key,
        options.opponents, options.ties, options.in_flight, options.sees_range(game),
        options.shares_tree, options.debug, interpreted(),
    )  # fmt: skip
    known = table_of(game, "kernels", MOST_KERNELS)
    found = known.get(key)
    if found is None or found[1].is_stale:
        arrays = arrays_of(game, options, layout)
        example = Tree(game, game.start(), layout, num_root_edges=1, capacity=1)
        work = Workspace(game, options, arrays, example.state)
        queue = EvaluationQueue(game, options.evaluator, arrays.path, 1, options.leaves, 1)
        storage = OneTree(example, one_tree_arrays(game, options))
        batch = batch_of(storage, work, queue, np.zeros((1, 1), np.uint64))
        bound = bindings(game, options, layout) | frames.readers(batch)
        arguments = (frames.Frame(batch).words, queue.logits, queue.values, game.data)
        label = f"{game.name}: {options.selection.name}, {options.evaluator.name}"
        kernel = compile_kernel(step_batch, bound, arguments, label=label, debug=options.debug)
        found = arrays, kernel, rules_fingerprint(game, by_source=False)
        known.put(key, found)
    return Composition(game, options, layout, *found)


def batch_of(storage: Storage, work: Workspace, queue: EvaluationQueue, rngs: np.ndarray) -> Batch:
    """The trees of a storage, with the working memory of one thread."""
    key_bytes, key_words = work.key_views
    return Batch(
        **(storage.root_arrays | storage.tree_arrays()),
        rngs=rngs,
        queues=queue.queues,
        states=work.states,
        works=work.work,
        key_bytes=key_bytes,
        key_words=key_words,
        key_ranges=work.key_ranges,
        lock=work.lock,
        paths=queue.paths,
        slots=queue.slots,
        stack=queue.stack,
        answers=queue.answers,
        asked=queue.asked,
        questions=queue.questions,
        rewards=queue.rewards,
        turns=queue.turns,
        leaves=queue.leaves,
        controls=queue.control,
        requested_states=queue.requested_states,
        observations=queue.observations,
        request_keys=queue.request_keys,
        request_table=queue.request_table,
        cache_entries=queue.cache_entries,
        cache_logits=queue.cache_logits,
        cache_values=queue.cache_values,
    )


def bindings(game: Game, options: Options, layout: Layout | None = None) -> dict[str, Any]:
    """The bindings of the kernels of a search, for trees of `layout` or the default one."""
    layout = options.layout(game) if layout is None else layout
    widens_outcomes = isinstance(options.chance, Widening)
    has_range = not options.sees_range(game)
    of_game = game_bindings(game, options.evaluator, notes_actions=layout.amaf)
    return (
        {"OBSERVES": False}
        | of_game
        | layout.bindings()
        | machine.primitives()
        | {
            "PARANOID": options.opponents == "paranoid",
            "SEES_RANGE": not has_range,
            "value_leaf": options.evaluator.value_leaf,
            "RULE": _bound_rule(options.selection, has_range),
            "ROOT_RULE": _bound_rule(options.root_selection, has_range),
            "ROOT_DIFFERS": options.root_selection != options.selection,
            "CHOOSES": options.selection.choose is not None,
            "ROOT_CHOOSES": options.root_selection.choose is not None
            and options.root_selection != options.selection,
            "SCORES": options.root_selection.choose is None or options.selection.choose is None,
            "amaf_share": _amaf_share(options),
            "gather": options.backup.gather,
            "GATHERS": options.backup.gather is not gather_nothing,
            "KNOWS_OUTCOMES": not widens_outcomes and not options.open_loop,
            "WIDENS_OUTCOMES": widens_outcomes,
            "pick_outcome": scoring.due_outcome
            if options.chance == "proportional"
            else scoring.draw_outcome,
            "propose": proposals.propose_nothing,
            "improve": proposals.propose_nothing,
            "REFINES": options.refine is not None,
            "REFINES_PLAYOUTS": options.refine is not None and options.refine.whole,
            "REFINES_REPLIES": options.refine is not None and options.refine.num_choices > 1,
            "REFINES_BEST": options.refine is not None and options.refine.best,
            "NUM_BLOCKS": num_blocks(game, options),
            "WIDENS": options.widening is not None,
            "widens": widens_by_draws
            if options.widening is not None and options.widening.adapts
            else widens_by_visits,
            "HAS_EXACT": options.solver and game.rules.exact is not None,
            "SORTS": options.widening is not None and options.evaluator.gives_priors,
            "HAS_UNVISITED_EDGES": layout.pending
            or not (layout.lazy or layout.dim)
            or options.refine is not None,
            "RANDOM_TIES": options.ties == "random",
            "HAS_NOISE": options.root_noise is not None,
            "HALVES_ROOT": options.is_gumbel,
            "IS_UNOBSERVED": options.in_flight == "unobserved",
            "HAS_THREADS": options.shares_tree,
            "KEEPS_BEST": keeps_best(game),
            "KEEPS_PLAYOUTS": keeps_best(game) and of_game["play_on"] is play_steps,
        }
        | ({} if options.proposal is None else options.proposal.bindings(game))
        | ({} if options.refine is None else options.refine.bindings())
    )


def num_blocks(game: Game, options: Options) -> int:
    """How many nodes get an edge in one simulation, if actions are vectors."""
    if options.refine is None:
        return 1
    return 1 + 2 * options.refine.times * stages_of(game)


def _bound_rule(rule: Rule, has_range: bool) -> context.Rule:
    """The functions of a rule as kernels call them."""
    return context.Rule(
        width=rule.bound("width"),
        score=rule.bound("score"),
        unvisited=rule.bound("unvisited"),
        total=rule.bound("total"),
        scale=scoring.scale_kernel(rule.scale, has_range),
        blend=scoring.blend_nothing if rule.amaf is None else scoring.blend_amaf,
        unvisited_first=scoring.yes if rule.unvisited_first else scoring.no,
        choose=rule.bound("choose"),
    )


def _amaf_share(options: Options) -> Callable[..., float]:
    for rule in (options.selection, options.root_selection):
        if rule.amaf is not None:
            return rule.amaf.share
    return rules.rave_share
