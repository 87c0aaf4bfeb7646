"""Names of the game's rules and numbers in kernels; `engine.bindings` binds them."""

from __future__ import annotations

from uctree.kernels.binding import UNBOUND

# Bound when a search is composed: the rules, then what is known of the game.
legal = step = chance = heuristic = random_action = playout_to_end = evaluate_state = UNBOUND
give_priors = know_exactly = bounds = observe = UNBOUND
draw_action = find_bounds = project = play_on = UNBOUND  # one of the kernels below
IS_CONTINUOUS = DIM = UNBOUND  # whether actions are vectors, and their number of coordinates
NUM_PLAYERS = NUM_ACTIONS = MAX_OUTCOMES = GUARD_AT = DISCOUNT = UNBOUND
HAS_CHANCE = HAS_HEURISTIC = IS_ENDLESS_BAD = TAKES_PRIORS = UNBOUND
HAS_BATCH_EVALUATOR = UNBOUND  # leaves are evaluated in Python
# A learned model says what is behind edges, for all trees at once; below the root nobody knows
# which actions are legal.
IMAGINES = UNBOUND
NOTES_ACTIONS = UNBOUND  # playouts note the players' actions, for all-moves-as-first
