"""Status numbers that kernels return; `engine.diagnostics` explains them."""

from __future__ import annotations

DONE = 0
NEED_CAPACITY = 10  # the tree is full; no status is 1, because minus a status must not be NONE
BAD_COUNT = 2  # legal returned a count out of range, or wrote past the end
BAD_ACTION = 3  # an action out of range
BAD_TO_PLAY = 4
BAD_CHANCE = 5  # outcomes or probabilities that are no distribution
BAD_REWARD = 6
BAD_VALUE = 7  # an evaluator's value
NOT_ZERO_SUM = 8
ENDLESS_PLAYOUT = 9
PAYS_EARLY = 11  # a reward before the end, which proofs do not allow
BAD_CHOICE = 13  # a rule chose an edge that does not exist
BAD_SCORE = 14  # a rule's scores are NaN
ROOT_SOLVED = 12  # the root is proven, so the search ends
EDGE_CLOSED = 17  # a simulation was undone, because its edge cannot be taken
WAITING = 15  # leaves wait to be evaluated in Python
ENDLESS_CHANCE = 16  # chance states that follow each other for ever

GUARD = -7  # behind the last action or outcome; rules that overwrite it wrote too many
