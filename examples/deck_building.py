"""A puzzle as an ordinary class with lists and dicts: which cards to buy in twelve turns.

    python examples/deck_building.py

Nothing is compiled and nothing is declared: `plan` finds `legal`, `step` and `clone`.
"""

from __future__ import annotations

import uctree

PRICES = {"silver": 3, "gold": 6, "village": 3, "province": 8}
COINS = {"copper": 1, "silver": 2, "gold": 3}


class DeckBuilding:
    """Each turn a hand of five cards from the top of the deck pays for one card; the hand and the
    new card then go below it. A village lets one look at two more cards. Provinces win."""

    def __init__(self, turns: int = 12) -> None:
        self.deck = ["copper"] * 7 + ["estate"] * 3
        self.shop = {"silver": 5, "gold": 3, "village": 2, "province": 4}
        self.turns = turns

    def hand(self) -> list[str]:
        return self.deck[: 5 + 2 * ("village" in self.deck[:5])]

    def legal(self) -> list[str]:
        if self.turns == 0:
            return []
        coins = sum(COINS.get(card, 0) for card in self.hand())
        return ["nothing"] + [card for card in PRICES if PRICES[card] <= coins and self.shop[card]]

    def step(self, card: str) -> float:
        hand = self.hand()
        self.deck = self.deck[len(hand) :] + hand
        self.turns -= 1
        if card == "nothing":
            return 0.0
        self.shop[card] -= 1
        self.deck.append(card)
        return float(card == "province")

    def clone(self) -> DeckBuilding:
        twin = DeckBuilding(self.turns)
        twin.deck, twin.shop = list(self.deck), dict(self.shop)
        return twin

    def __str__(self) -> str:
        return f"{self.turns} turns left; hand: {', '.join(self.hand())}"


def main() -> None:
    game = DeckBuilding()
    result = uctree.plan(game, num_simulations=2000, seed=1)
    print(result)
    best = result.best_episode()
    print(f"provinces: {best.returns:g}" if best else "no episode ended in the tree")


if __name__ == "__main__":
    main()
