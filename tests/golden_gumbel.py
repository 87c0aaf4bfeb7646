"""Gumbel search's answers to the test vectors, and table models as games.

A table model is what mctx's `recurrent_fn` looks up: `next_state`, `reward` and `discount` by state
and action, `logits` and `value` by state, seen by the player to move. A positive discount makes it
a problem of one player, a negative one a zero-sum game of two who alternate; 0 ends the episode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import uctree
from uctree import selection
from uctree.kernels import gumbel

Input = dict[str, Any]
Answer = dict[str, Any]


# --- formulas ------------------------------------------------------------------------------------


def softmax(logits: Any) -> np.ndarray:
    weights = np.exp(np.asarray(logits, float) - np.max(logits))
    return weights / weights.sum()


def _sequence(given: Input) -> Answer:
    schedule = gumbel.halving_schedule(given["max_considered"], given["num_simulations"])
    return {"considered_visits": schedule}


def _table(given: Input) -> Answer:
    n = given["num_simulations"]
    return {"table": [gumbel.halving_schedule(m, n) for m in range(given["max_considered"] + 1)]}


def _options(given: Input) -> dict[str, Any]:
    return {
        "c_visit": given["c_visit"],
        "c_scale": given["value_scale"],
        "rescale": given.get("rescale", True),
    }


def _completed_q(given: Input) -> Answer:
    q, visits = np.array(given["q"], float), np.array(given["visits"])
    prior, raw_value = softmax(given["logits"]), given["raw_value"]
    options = _options(given)
    return {
        "mixed_value": gumbel.mixed_value(len(q), q, prior, visits, raw_value),
        "transformed_q": gumbel.transformed_q(q, prior, visits, raw_value, **options),
        "improved_policy": gumbel.improved_policy(q, prior, visits, raw_value, **options),
    }


def _interior_select(given: Input) -> Answer:
    policy, visits = np.array(given["improved_policy"]), np.array(given["visits"])
    share = 1.0 / (1 + visits.sum())
    return {
        "scores": [gumbel.interior_score(p, n, share) for p, n in zip(policy, visits, strict=True)],
        "argmax": gumbel.least_served(len(visits), policy, policy.sum(), visits),
    }


def _score_considered(given: Input) -> Answer:
    logits, noise = np.array(given["logits"], float), np.array(given["gumbel"], float)
    sigma, visits = np.array(given["transformed_q"], float), np.array(given["visits"])
    considered = given["considered_visit"]
    draws = np.zeros(len(visits))
    gumbel.write_draws(len(visits), noise, softmax(logits), draws)
    drawn = noise + (logits - logits.max())
    scores = [gumbel.root_score(*edge) for edge in zip(drawn, sigma, strict=True)]
    best = gumbel.best_considered(len(visits), visits, draws, considered, sigma)
    return {"scores": np.where(visits == considered, scores, -np.inf), "argmax": best}


def _topk(given: Input) -> Answer:
    noise, prior = np.array(given["gumbel"], float), softmax(given["logits"])
    return {"considered": gumbel.considered_edges(noise, prior, given["m"])}


def _improvement(given: Input) -> Answer:
    """What the improved policy is worth where the value of the prior completes the values."""
    q, prior = np.array(given["true_q"], float), softmax(given["logits"])
    visits, weights = np.array(given["visits"]), np.zeros(len(prior))
    edges = gumbel.Completed(len(q), q, prior, visits, prior @ q)
    total = gumbel.improve(edges, tuple(map(float, _options(given).values())), weights)
    return {"prior_value": prior @ q, "improved_value_completed_with_v": weights @ q / total}


def _regularised(given: Input) -> Answer:
    q, prior = np.array(given["q"], float), np.array(given["prior"], float)
    policy, alpha = gumbel.regularised_policy(q, prior, given["lam"])
    return {"alpha": alpha, "policy": policy}


# --- a table model as a game ---------------------------------------------------------------------
# `data` holds next_state, reward and discount by state and action, logits and value by state, which
# actions the root allows, and the depth at which the search goes no further.


def _legal(state, actions, data):
    allowed = data[5]
    count = 0
    for action in range(allowed.shape[0]):
        if state.depth > 0 or allowed[action]:
            actions[count] = action
            count += 1
    return count


def _step(state, action, reward, data):
    player = state.to_play
    pays = data[1][state.place, action]
    discount = data[2][state.place, action]
    state.place = data[0][state.place, action]
    state.depth += 1
    state.to_play = (player + 1) % reward.shape[0]
    if state.depth == data[6][0]:
        # Nothing below the depth limit is searched: its value is all that is left to come.
        pays += discount * data[4][state.place]
        state.to_play = uctree.OVER
    if discount == 0.0:
        state.to_play = uctree.OVER
    for other in range(reward.shape[0]):
        reward[other] += pays if other == player else -pays


def _evaluate(state, values, logits, data):
    for player in range(values.shape[0]):
        value = data[4][state.place]
        values[player] = value if player == state.to_play else -value
    for action in range(logits.shape[0]):
        logits[action] = data[3][state.place, action]


def table_game(model: Input, invalid: Any = None, max_depth: int | None = None) -> uctree.Game:
    """The game of a table model; `invalid` marks the actions that the root may not take."""
    discounts = np.array(model["discount"], float)
    factors = np.unique(discounts[discounts != 0.0])
    if len(factors) > 1:
        raise ValueError(f"a game has one discount; the model has {factors}")
    factor = float(factors[0]) if len(factors) else 1.0
    num_actions = discounts.shape[1]
    allowed = np.ones(num_actions, bool) if invalid is None else np.array(invalid) == 0
    data = (
        np.array(model["next_state"], np.int32), np.array(model["reward"], float), discounts,
        np.array(model["logits"], float), np.array(model["value"], float), allowed,
        np.array([-1 if max_depth is None else max_depth], np.int32),
    )  # fmt: skip
    return uctree.Game(
        [("place", np.int32), ("depth", np.int32), ("to_play", np.int8)], _legal, _step, data=data,
        name="table model", num_players=2 if factor < 0 else 1, num_actions=num_actions,
        zero_sum=factor < 0, discount=abs(factor),
    )  # fmt: skip


def search_table(
    model: Input, root: int, num_simulations: int, *, invalid: Any = None,
    max_depth: int | None = None, **options: Any,
) -> uctree.SearchResult:  # fmt: skip
    """What a search of a table model from the state `root` finds."""
    game = table_game(model, invalid, max_depth)
    state = game.start()
    state["place"] = root
    return uctree.search(
        game, state, num_simulations=num_simulations, evaluator=_evaluate, **options
    )


def gumbel_rules(
    max_considered: int, noise: Any, c_visit: float = 50.0, c_scale: float = 0.1,
    rescale: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """The rules of a search as mctx's gumbel_muzero_policy does it, with the noise given."""
    options = {"c_visit": c_visit, "c_scale": c_scale, "rescale": rescale}
    noise = tuple(float(g) for g in noise)
    return {
        "root_selection": selection.gumbel(num_considered=max_considered, noise=noise, **options),
        "selection": selection.gumbel_interior(**options),
    }


def muzero_rules(c: float = 1.25, c_base: float = 19652.0) -> dict[str, Any]:
    """The rules of a search as mctx's muzero_policy does it, without noise."""
    return {"selection": selection.puct(c, c_base, normalise="parent_and_siblings")}


def root_of(result: uctree.SearchResult) -> Answer:
    """Visits and values of the root's edges by action, and the value of the root, for its mover."""
    num_actions, mover = result.game.num_actions, result.tree.root.to_play
    visits = np.zeros(num_actions, np.int64)
    values: list[float | None] = [None] * num_actions
    for row in result.edges:
        visits[row["action"]] = row["visits"]
        if row["visits"] > 0:
            values[row["action"]] = float(row["q"][mover])
    return {
        "visit_counts": visits, "q_values": values, "root_value": float(result.value[mover])
    }  # fmt: skip


def _root_sigma(result: uctree.SearchResult, options: dict[str, Any]) -> np.ndarray:
    """σ of the root's edges by action; illegal ones count as never taken."""
    tree, mover = result.tree, result.tree.root.to_play
    edges, found = tree.root.edges, root_of(result)
    q = np.array([0.0 if value is None else value for value in found["q_values"]])
    prior = np.zeros(result.game.num_actions)
    prior[tree.edges["action"][edges.start : edges.stop]] = tree.priors(edges)
    return gumbel.transformed_q(q, prior, found["visit_counts"], tree.raw_value[mover], **options)


def _gumbel_search(given: Input) -> Answer:
    options = _options(given)
    result = search_table(
        given["model"], given["root_state"], given["num_simulations"],
        invalid=given.get("invalid_actions"), max_depth=given.get("max_depth"),
        **gumbel_rules(given["max_considered"], given["root_gumbel"], **options),
    )  # fmt: skip
    return root_of(result) | {
        "action": result.action,
        "improved_policy": result.improved_policy(),
        "transformed_q": _root_sigma(result, options),
    }


def _muzero_search(given: Input) -> Answer:
    result = search_table(
        given["model"], given["root_state"], given["num_simulations"],
        invalid=given.get("invalid_actions"), max_depth=given.get("max_depth"),
        **muzero_rules(given["c_init"], given["c_base"]),
    )  # fmt: skip
    return root_of(result)


FAMILIES: dict[str, Callable[[Input], Answer]] = {
    "seqhalving.sequence.": _sequence,
    "seqhalving.table.": _table,
    "gumbel.completed_q.": _completed_q,
    "gumbel.interior_select.": _interior_select,
    "gumbel.score_considered.": _score_considered,
    "gumbel.topk.": _topk,
    "gumbel.improvement.": _improvement,
    "regularised_policy.": _regularised,
    "gumbel.search.": _gumbel_search,
    "muzero.search.": _muzero_search,
}
