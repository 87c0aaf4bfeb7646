"""A search in a learned model as a result that can be printed, drawn and asked."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from uctree.engine.driver import BatchedSearch
from uctree.errors import IllegalAction
from uctree.evaluators import Evaluator
from uctree.game import Game, State
from uctree.kernels.answers import HIDDEN_STATE
from uctree.kernels.records import NONE
from uctree.learn.options import Options, fill_in
from uctree.learn.selfplay import search_options
from uctree.result import SearchResult
from uctree.tree import Tree


def search_model(
    game: Game, evaluator: Evaluator, options: Options, state: State | None = None, *,
    num_simulations: int | None = None, seed: int = 0,
) -> SearchResult:  # fmt: skip
    """The result of a search in a learned model from a state of the game, without noise.

    Below the root nobody knows which actions are legal, so lines of play may hold illegal ones.
    """
    root = game.start() if state is None else game.copy(state)
    budget = num_simulations or fill_in(options, game).num_simulations or 1
    began = time.perf_counter()
    batch = BatchedSearch(game, 1, evaluator=evaluator, **search_options(options, iteration=0))
    loaded = time.perf_counter()
    batch.reset([0], [root], num_simulations=budget, seed=seed, noise=False)
    batch.run()
    tree = batch.tree(0)
    imagined = imagined_game(game, root, tree)
    tree.game = imagined
    return SearchResult(
        imagined, (tree,), "simulations", budget, time.perf_counter() - loaded, seed,
        batch.composition.manifest | {"tree": None}, batch.options.choice,
        compile_seconds=loaded - began, cached=batch.composition.kernel.cached, began=loaded,
    )  # fmt: skip


def imagined_game(game: Game, root: np.record, tree: Tree) -> Game:
    """A game of the hidden states of a tree; its steps are looked up in the tree."""
    actions = game.legal(root)
    behind = dict(_steps(tree))

    def legal(state: Any, listed: Any) -> int:
        for place, action in enumerate(actions if state.row == 0 else range(game.num_actions)):
            listed[place] = action
        return len(actions) if state.row == 0 else game.num_actions

    def step(state: Any, action: Any, reward: Any) -> None:
        place = int(state.row), int(action)
        if place not in behind:
            raise IllegalAction(
                f"the search did not ask the model what is behind {show_action(state, action)}"
            )
        row, to_play, paid = behind[place]
        state.row, state.to_play = row, to_play
        for player, part in enumerate(paid):
            reward[player] += part

    def show(state: Any) -> str:
        return game.show(root) if int(state.row) == 0 else "(a hidden state of the model)"

    def show_action(state: Any, action: Any) -> str:
        return str(game.show_action(root, action))

    made = Game(
        HIDDEN_STATE, legal, step, num_players=game.num_players, num_actions=game.num_actions,
        name=game.name, payoff_range=game.payoff_range, discount=game.discount,
        zero_sum=game.zero_sum, key_fields=("row",), show=show, show_action=show_action,
    )  # fmt: skip
    # As in a plan, only steps that were asked about are known.
    made.labels = lambda state, action: int(action)
    return made


def _steps(tree: Tree) -> Any:
    """What is behind the actions that were taken: by (row, action) a row, a player, rewards."""
    rewards = np.asarray(tree.edges["reward"])
    waiting = [(0, 0)]  # a node and its row
    while waiting:
        node, row = waiting.pop()
        first, count = int(tree.edges["first"][node]), int(tree.edges["num_edges"][node])
        for edge in range(first, first + count) if first != NONE else ():
            record = tree.edges[edge]
            if record["row"] == NONE:
                continue
            paid = rewards[edge]
            if tree.game.zero_sum:
                paid = np.array([paid[0], -paid[0]])
            after = int(record["row"])
            yield (row, int(record["action"])), (after, int(record["mover"]), paid)
            waiting.append((edge, after))
