"""Kalah: sow the seeds of a pit; a last seed in the own store earns another turn."""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Game

LETTERS = "abcdefghijkl"  # the pits of a player, in the order of sowing


def kalah(pits: int = 6, seeds: int = 4) -> Game:
    """Kalah with up to 12 pits a player and 12 seeds a pit; action `pit` from the left.

    The player with more seeds at the end gets 1, the other -1, and a draw pays nothing.
    """
    if not (1 <= pits <= 12 and 1 <= seeds <= 12):
        raise ValueError(f"pits and seeds must be from 1 to 12; got pits={pits}, seeds={seeds}")
    side = pits + 1
    places = 2 * side
    total = 2 * pits * seeds
    # Places go around the board: the pits of player 0, their store, those of player 1, their store.
    position = np.dtype([("seeds", np.int16, places), ("to_play", np.int8)])

    def start(state):
        for player in range(2):
            for pit in range(pits):
                state.seeds[player * side + pit] = seeds

    def legal(state, actions):
        first = state.to_play * side
        count = 0
        for pit in range(pits):
            # Always written, counted if there is something to sow.
            actions[count] = pit
            count += state.seeds[first + pit] > 0
        return count

    def step(state, action, reward):
        player = state.to_play
        first = player * side
        store, other_store = first + pits, pits if player == 1 else places - 1
        place = first + action
        left = np.int64(state.seeds[place])
        state.seeds[place] = 0
        while left > 0:
            place = place + 1 if place + 1 < places else 0
            if place != other_store:
                state.seeds[place] += 1
                left -= 1
        if first <= place < store and state.seeds[place] == 1:
            opposite = 2 * pits - place
            if state.seeds[opposite] > 0:
                state.seeds[store] += 1 + state.seeds[opposite]
                state.seeds[place] = state.seeds[opposite] = 0
        if count_pits(state, 0) == 0 or count_pits(state, 1) == 0:
            finish(state, reward)
        elif place != store:
            state.to_play = 1 - player

    def count_pits(state, player):
        """The seeds in the pits of a player."""
        count = 0
        for pit in range(pits):
            count += state.seeds[player * side + pit]
        return count

    def finish(state, reward):
        """Move the remaining seeds to their owner's store, and pay the player with more."""
        for player in range(2):
            state.seeds[player * side + pits] += count_pits(state, player)
            for pit in range(pits):
                state.seeds[player * side + pit] = 0
        lead = state.seeds[pits] - state.seeds[places - 1]
        if lead != 0:
            reward[0] = 1.0 if lead > 0 else -1.0
            reward[1] = -reward[0]
        state.to_play = OVER

    def observe(state, player, planes):
        for i in range(places):
            planes[i] = state.seeds[(player * side + i) % places] / seeds
        planes[places] = state.to_play == player

    def show(state):
        width = len(str(total))
        rows = [[f"{state.seeds[player * side + pit]:>{width}}" for pit in range(pits)]
                for player in range(2)]  # fmt: skip
        names = [f"{letter:>{width}}" for letter in LETTERS[:pits]]
        margin = " " * width
        stores = [f"{state.seeds[player * side + pits]:>{width}}" for player in range(2)]
        return "\n".join(
            [
                f"{margin} {' '.join(reversed(names))}",
                f"{margin} {' '.join(reversed(rows[1]))}",
                f"{stores[1]} {' ' * (pits * (width + 1) - 1)} {stores[0]}",
                f"{margin} {' '.join(rows[0])}",
                f"{margin} {' '.join(names)}",
            ]
        )

    def show_action(state, action):
        return LETTERS[action]

    def read_action(state, text):
        return LETTERS[:pits].index(text.lower()) if len(text) == 1 else -1

    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=pits,
        name="kalah" if (pits, seeds) == (6, 4) else f"kalah({pits} pits, {seeds} seeds)",
        start=start,
        observe=observe,
        observation_shape=(places + 1,),
        payoff_range=(-1, 1),
        zero_sum=True,
        symmetric_seats=True,
        show=show,
        show_action=show_action,
        read_action=read_action,
    )
