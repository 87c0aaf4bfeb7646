"""Pig: roll a die as often as you dare; a one loses the turn."""

from __future__ import annotations

import numpy as np

from uctree.game import CHANCE, OVER, Game

ROLL, STOP = 0, 1
SIDES = 6


def pig(target: int = 100, num_players: int = 2) -> Game:
    """Pig: the first player with `target` points wins; actions ROLL and STOP, outcome `face - 1`.

    The winner gets 1, each of the others -1 / (num_players - 1).
    """
    if not 1 <= target <= 1_000_000:
        raise ValueError(f"target must be from 1 to 1,000,000 points; got {target}")
    if not 2 <= num_players <= 100:
        raise ValueError(f"num_players must be from 2 to 100; got {num_players}")
    loss = -1.0 / (num_players - 1)
    position = np.dtype(
        [
            ("scores", np.int32, num_players),
            ("turn_total", np.int32),  # at stake: added to the score by STOP, lost by a one
            ("turn", np.int8),  # whose turn it is, also while the die rolls
            ("to_play", np.int8),
        ]
    )

    def legal(state, actions):
        # A player with enough points can only stop, and wins.
        if state.scores[state.turn] + state.turn_total >= target:
            actions[0] = STOP
            return 1
        actions[0] = ROLL
        actions[1] = STOP
        return 2

    def chance(state, outcomes, probabilities):
        for face in range(SIDES):
            outcomes[face] = face
            probabilities[face] = 1.0 / SIDES
        return SIDES

    def step(state, action, reward):
        if state.to_play == CHANCE:
            if action == 0:
                pass_on(state)
            else:
                state.turn_total += action + 1
                state.to_play = state.turn
        elif action == ROLL:
            state.to_play = CHANCE
        else:
            player = state.turn
            state.scores[player] += state.turn_total
            pass_on(state)
            if state.scores[player] >= target:
                for other in range(num_players):
                    reward[other] = 1.0 if other == player else loss
                state.to_play = OVER

    def pass_on(state):
        state.turn_total = 0
        state.turn = (state.turn + 1) % num_players
        state.to_play = state.turn

    def observe(state, player, planes):
        for seat in range(num_players):
            planes[seat] = state.scores[(player + seat) % num_players] / target
        planes[num_players] = state.turn_total / target
        planes[num_players + 1] = state.turn == player

    def show(state):
        scores = ", ".join(f"player {i}: {score}" for i, score in enumerate(state.scores))
        if state.to_play == OVER:
            return scores
        doing = "rolls" if state.to_play == CHANCE else "to play"
        return f"{scores}; player {state.turn} {doing}, {state.turn_total} at stake"

    def show_action(state, action):
        if state.to_play == CHANCE:
            return str(action + 1)
        return "stop" if action == STOP else "roll"

    return Game(
        position,
        legal,
        step,
        num_players=num_players,
        num_actions=2,
        name=f"pig({target}, {num_players} players)",
        chance=chance,
        max_outcomes=SIDES,
        observe=observe,
        observation_shape=(num_players + 2,),
        payoff_range=(loss, 1),
        zero_sum=num_players == 2,
        show=show,
        show_action=show_action,
    )
