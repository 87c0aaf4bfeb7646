"""Which edge a simulation takes at a node, in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree.kernels.binding import UNBOUND
from uctree.kernels.context import Decision, Search
from uctree.kernels.expansion import likeliest_edge, new_action, next_untried, open_actions
from uctree.kernels.gumbel import considered_visits
from uctree.kernels.records import (
    HAS_AMAF,
    HAS_ANSWERS,
    HAS_BOUNDS,
    HAS_PENDING,
    HAS_PROOFS,
    IS_LAZY,
    IS_SPARSE,
    MOVER,
    NO_EDGES,
    NONE,
    SHARES_NODES,
    value_for,
    visits_of_node,
)
from uctree.kernels.rules import DISCOUNT, IS_CONTINUOUS
from uctree.kernels.scoring import OPEN_LOOP, best_edge, chosen_edge, index_amaf_edges, won_edge
from uctree.kernels.status import BAD_SCORE, DONE
from uctree.kernels.widening import count_open, first_taken
from uctree.selection import inverse

# Bound when a search is composed.
RULE = ROOT_RULE = UNBOUND  # see `context.Rule`
ROOT_DIFFERS = CHOOSES = ROOT_CHOOSES = UNBOUND
SCORES = UNBOUND  # some edges are scored one by one
WIDENS = UNBOUND
widens = UNBOUND  # whether a node gets another edge; see `kernels.widening`

NO_LEGAL_EDGE = 100  # no edge has a legal action, and there is no capacity for another


def select(search: Search, node: int, player: int, state: Any) -> int:
    """The edge that the rule takes at a node, made if it is new; minus a status on an error."""
    edges, work = search.edges, search.work
    if HAS_PROOFS and not HAS_BOUNDS and edges[node].proof == MOVER:
        edge = won_edge(search, node, player)
        if edge != NONE:
            return edge
    if OPEN_LOOP:
        status = open_actions(search, node, state)
        if status != DONE:
            return -status
    num_untried = np.int64(0)
    if IS_LAZY:
        record = edges[np.uint64(node)]
        num_untried = np.int64(record.num_legal - record.num_edges)
    value = node_value(search, node, player)
    if ROOT_CHOOSES and node == 0:
        return chosen_edge(
            search, node, player, value, considered(search), work.root_parameters, ROOT_RULE
        )
    if CHOOSES and (not SCORES or node != 0 or not ROOT_DIFFERS):
        edge = chosen_edge(search, node, player, value, NO_EDGES, work.parameters, RULE)
        if IS_SPARSE and edge == NONE:
            return likeliest_edge(search, node)
        return edge
    if SCORES:
        return scored_edge(search, node, player, state, value, num_untried)
    return -np.int64(BAD_SCORE)


def scored_edge(
    search: Search, node: int, player: int, state: Any, value: float, num_untried: int
) -> int:
    """The edge with the best score, made if it is new; minus a status on an error."""
    edges, work = search.edges, search.work
    amaf_node = node
    if HAS_AMAF and work.amaf_nodes[player] != NONE:
        amaf_node = np.int64(work.amaf_nodes[player])
        if amaf_node != node:
            index_amaf_edges(search, amaf_node)
    num_edges = np.int64(edges[np.uint64(node)].num_edges)
    num_legal = np.int64(work.count) if OPEN_LOOP else num_edges + num_untried
    if WIDENS:
        num_open = count_open(edges, node)
        if widens(search, node, player, num_open):
            if IS_CONTINUOUS:
                edge = new_action(search, node, player, state)
                if edge != NONE:
                    return edge
            elif not IS_LAZY and num_open < num_edges:
                return np.int64(edges[node].first) + num_open
            if IS_LAZY and num_untried > 0:
                edge = next_untried(search, node, state)
                if edge != NONE:
                    return edge
        num_edges, num_untried = num_open, NO_EDGES
    while True:
        edge = score_edges(
            search, Decision(node, player, value, num_edges, num_untried, num_legal, amaf_node)
        )
        if edge != NONE:
            return edge
        if num_untried == 0:
            return fallback_edge(search, node, state)
        edge = next_untried(search, node, state)
        if edge != NONE:
            return edge
        num_untried = NO_EDGES  # no capacity for another edge: use the existing ones


def score_edges(search: Search, decision: Decision) -> int:
    """The best of a node's first edges by the rule of the root or the one below it."""
    work = search.work
    if not CHOOSES and (not ROOT_DIFFERS or decision.node != 0):
        return best_edge(search, decision, RULE, work.parameters)
    if ROOT_DIFFERS and not ROOT_CHOOSES:
        return best_edge(search, decision, ROOT_RULE, work.root_parameters)
    return NONE


def fallback_edge(search: Search, node: int, state: Any) -> int:
    """The edge to take if none has a score, as when all are lost; minus a status on an error."""
    edges, work = search.edges, search.work
    first = np.int64(edges[node].first)
    if HAS_ANSWERS:
        first = first_taken(search, node)
        if first == NONE:
            return -np.int64(NO_LEGAL_EDGE)
    if not HAS_PROOFS and not OPEN_LOOP:
        return -np.int64(BAD_SCORE)
    if WIDENS:
        if IS_LAZY and edges[node].num_edges < edges[node].num_legal:
            edge = next_untried(search, node, state)
            if edge != NONE:
                return edge
        if not IS_LAZY:
            num_open = count_open(edges, node)
            if num_open < edges[node].num_edges:
                return first + num_open
    if OPEN_LOOP:
        for edge in range(first, first + edges[node].num_edges):
            if work.legal_stamp[edges[edge].action] == work.stamp:
                return np.int64(edge)
        return -np.int64(NO_LEGAL_EDGE)
    return first


def considered(search: Search) -> int:
    """The number of visits of the edge that sequential halving takes now at the root."""
    number = np.int64(search.tree.since_root)
    if HAS_PENDING:
        number += search.edges[0].pending - 1  # those in flight count, this one does not
    return considered_visits(search.queue, number)


def node_value(search: Search, node: int, player: int) -> float:
    """V(s): the mean return seen at a node, without the reward of the edge that leads there."""
    tree, edges = search.tree, search.edges
    path, work = search.path, search.work
    visits = visits_of_node(edges, node)
    if visits == 0:
        return 0.0
    if SHARES_NODES:
        return value_for(tree, edges[node].value_sum, player)
    value = value_for(tree, edges[np.uint64(node)].value_sum, player) * inverse(visits)
    if not OPEN_LOOP and work.depth > 0:
        reward = path[np.uint64(work.depth - 1)].reward
        value = (value - value_for(tree, reward, player)) / DISCOUNT
    return value
