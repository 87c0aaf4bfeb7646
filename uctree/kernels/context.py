"""The arguments of kernels: named tuples, read by name.

In machine code a `Batch` and a `Search` are pointers, and a field that a function does not read
costs nothing: see `engine.frames`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """The functions of a selection rule, bound when a search is composed."""

    width: Any  # (parent_visits, span, parameters) -> float
    score: Any  # (q, prior, visits, width, mean_square, total, parameters, rng) -> float
    unvisited: Any  # (node_value, visited_prior, parameters) -> float
    total: Any  # (prior, visits, parent_visits, parameters) -> float
    scale: Any  # the unit of values; see `scoring.scale_none`
    blend: Any  # mixes in all-moves-as-first values; see `scoring.blend_nothing`
    unvisited_first: Any  # () -> bool, whether edges without visits win a tie
    choose: Any  # the index of an edge, for rules that look at all edges at once


class Decision(NamedTuple):
    """The node at which a rule selects an edge."""

    node: int
    player: int  # to move
    value: float  # of the node, for that player
    num_edges: int  # considered by the rule, from the node's first edge on
    num_untried: int  # legal actions that have no edge yet
    num_legal: int  # actions that share the prior if the evaluator gives none
    amaf_node: int  # the node whose all-moves-as-first statistics are used


class Play(NamedTuple):
    """The arguments of a playout."""

    actions: np.ndarray  # see `bindings.action_array`
    probabilities: np.ndarray  # [outcomes]
    reward: np.ndarray  # [players], of a step
    returns: np.ndarray  # [players], summed over the steps
    rng: np.ndarray  # [1], uint64
    played: np.ndarray  # [1 + players * actions], see `playouts.note_played`
    data: Any  # of the game


class Search(NamedTuple):
    """One tree, and the working memory of one thread."""

    tree: Any  # record, see `tree.head_dtype`
    edges: np.ndarray  # [capacity] records, see `tree.edge_dtype`
    root_squares: np.ndarray  # [edges of the root, values]
    table: np.ndarray  # [places], hash table of shared nodes
    untried: np.ndarray  # [capacity], log-priors of actions without an edge
    untried_actions: np.ndarray  # [capacity], these actions
    queue: Any  # record, see `batching.QUEUE`
    path: np.ndarray  # [depth] records: the edges of the simulation
    work: Any  # record, see `workspace.work_dtype`
    states: Any  # [3]: the root, the leaf, a scratch state
    key_bytes: np.ndarray  # [3, bytes of a state]
    key_words: np.ndarray  # [3, bytes - 7], the eight bytes that start at each byte
    key_ranges: np.ndarray  # [ranges, 2], which bytes belong to the key
    rng: np.ndarray  # [1], uint64
    lock: np.ndarray  # [1], held by the thread that changes a shared tree
    data: Any  # of the game


# The fields of a `Search` but `data`: an array of the batch, and the indices of its part.
SEARCH_FIELDS = {
    "tree": ("heads", "number", "first"),
    "edges": ("edges", "number"),
    "root_squares": ("root_squares", "number"),
    "table": ("tables", "number"),
    "untried": ("untried", "number"),
    "untried_actions": ("untried_actions", "number"),
    "queue": ("queues", "number"),
    "path": ("paths", "slot"),
    "work": ("works", "first"),
    "states": ("states",),
    "key_bytes": ("key_bytes",),
    "key_words": ("key_words",),
    "key_ranges": ("key_ranges",),
    "rng": ("rngs", "number"),
    "lock": ("lock",),
}


class Batch(NamedTuple):
    """Many trees, and the queue of their leaves; a row of an array belongs to a tree."""

    heads: np.ndarray  # [trees, 1]
    blank_head: np.ndarray  # [1], the head of a tree after a reset
    edges: np.ndarray  # [trees, capacity]
    untried: np.ndarray  # [trees, capacity]
    untried_actions: np.ndarray  # [trees, capacity]
    roots: Any  # [trees], states
    root_squares: np.ndarray  # [trees, edges of the root, values]
    tables: np.ndarray  # [trees, places]
    noises: np.ndarray  # [trees, actions]: Gumbel noise, or priors with Dirichlet noise
    given_noise: np.ndarray  # [actions], empty if noise is drawn
    considered: np.ndarray  # [trees, considered edges], see `gumbel.list_considered`
    draws: np.ndarray  # [trees, considered edges], see `gumbel.write_draws`
    rngs: np.ndarray  # [trees, 1]
    queues: np.ndarray  # [trees]
    states: Any
    works: np.ndarray  # [1]
    key_bytes: np.ndarray
    key_words: np.ndarray
    key_ranges: np.ndarray
    lock: np.ndarray
    paths: np.ndarray  # [slots, depth]
    slots: np.ndarray  # [slots], simulations that wait for their leaf's value
    stack: np.ndarray  # [slots], the slots of a tree: those that wait, then those that are free
    answers: np.ndarray  # [slots], see `batching.answer_dtype`
    asked: np.ndarray  # [slots], the slots whose questions are new
    questions: np.ndarray  # [3, rows], to a model, see `batching.ask_model`
    rewards: np.ndarray  # [rows, players], answers of a model, as its `turns`
    turns: np.ndarray  # [rows], how many seats on the next player sits; the number of players: OVER
    leaves: Any  # [slots], states
    controls: np.ndarray  # [1]
    requested_states: Any  # [rows]
    observations: np.ndarray  # [rows, ...]
    request_keys: np.ndarray  # [rows, 2]
    request_table: np.ndarray  # [places], the row of a key
    cache_entries: np.ndarray  # [entries]
    cache_logits: np.ndarray  # [entries, actions]
    cache_values: np.ndarray  # [entries, players]
