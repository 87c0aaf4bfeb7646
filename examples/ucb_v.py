"""A rule of one's own: UCB-V, two plain functions that are compiled into the search.

UCB-V (Audibert, Munos and Szepesvari 2009) explores by the variance that was seen: an action whose
returns hardly differ needs few visits. Values are scaled to [0, 1], so that its b is 1.
"""

from __future__ import annotations

import math

import uctree
from uctree.selection import Rule


def log_visits(parent_visits):
    """What is the same for all edges of a node; computed once."""
    return math.log(max(1, parent_visits))


def ucb_v_score(q, mean_square, visits, width, parameters):
    """Q + √(2 ζ V ln N / n) + 3 c ζ ln N / n, where V is the variance of the returns."""
    zeta, c = parameters[0], parameters[1]
    share = zeta * width / visits
    variance = max(0.0, mean_square - q * q)
    return q + math.sqrt(2.0 * variance * share) + 3.0 * c * share


def ucb_v(zeta: float = 1.2, c: float = 1.0) -> Rule:
    """The rule. Other numbers need no new compilation."""
    return Rule("ucb_v", score=ucb_v_score, width=log_visits, parameters=(zeta, c))


def main() -> None:
    game = uctree.games.connect_four()
    state = game.play([3, 2, 3, 2, 3])  # three in a column: the other player has to block it
    for rule in (uctree.selection.ucb1_tuned(), ucb_v(), ucb_v(c=0.1)):
        result = uctree.search(game, state, num_simulations=20_000, seed=1, selection=rule)
        share = result.policy().max()
        print(f"{rule.name}{rule.parameters}: action {result.action}, {share:.1%} of the visits")


if __name__ == "__main__":
    main()
