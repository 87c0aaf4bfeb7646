"""Status numbers that kernels return; `engine.diagnostics` explains them."""

from __future__ import annotations

# No two are equal, and none is 1: minus a status must not be NONE. A test says so.
DONE = 0
BAD_COUNT = 2  # legal returned a count out of range, or wrote past the end
BAD_ACTION = 3  # an action out of range
BAD_TO_PLAY = 4
BAD_CHANCE = 5  # outcomes or probabilities that are no distribution
BAD_REWARD = 6
BAD_VALUE = 7  # an evaluator's value
NOT_ZERO_SUM = 8
ENDLESS_PLAYOUT = 9
NEED_CAPACITY = 10  # the tree is full
PAYS_EARLY = 11  # a reward before the end, which proofs do not allow
ROOT_SOLVED = 12  # the root is proven, so the search ends
BAD_CHOICE = 13  # a rule chose an edge that does not exist
BAD_SCORE = 14  # a rule's scores are NaN
WAITING = 15  # leaves wait to be evaluated in Python
ENDLESS_CHANCE = 16  # chance states that follow each other for ever
EDGE_CLOSED = 17  # a simulation was undone, because its edge cannot be taken

GUARD = -7  # behind the last action or outcome; rules that overwrite it wrote too many
