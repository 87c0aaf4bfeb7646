"""How wrong a learned model is after k steps, beside the episodes that were played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.game import Game
from uctree.learn.batched_play import BatchedGame, masked_softmax
from uctree.learn.latent import Imagination
from uctree.learn.replay import observe_states
from uctree.learn.targets import divergence, n_step_returns

MOST_STARTS = 1024  # positions from which the model is unrolled


@dataclass(frozen=True)
class Decisions:
    """The decisions of an episode, and what was paid from each to the next."""

    states: list[np.record]
    actions: list[int]
    rewards: np.ndarray  # [decisions, players]
    returns: np.ndarray  # [decisions, players], from each on


def decisions_of(game: Game, played: BatchedGame) -> Decisions:
    """The decisions of a game in which a network had every seat."""
    record = played.record
    plies = [each.ply for each in played.searched]
    rewards = np.array(record.episode.rewards, float)
    ends = [*plies[1:], len(rewards)]
    paid = [
        n_step_returns(rewards[ply:end], discount=game.discount)[0]
        for ply, end in zip(plies, ends, strict=True)
    ]
    found = np.array(paid).reshape(len(plies), game.num_players)
    states = [record.states[ply] for ply in plies]
    actions = [record.episode.actions[ply] for ply in plies]
    if game.view is not None:  # a network acts in the window
        actions = [
            game.view.to_local(state, action) for state, action in zip(states, actions, strict=True)
        ]
    return Decisions(states, actions, found, n_step_returns(found, discount=game.discount))


def model_errors(
    game: Game, model: Imagination, episodes: Sequence[Decisions], num_steps: int, seed: int = 0
) -> list[dict[str, Any]]:
    """The mean errors of a model after k = 0, 1, ..., `num_steps` steps, one row per k.

    Truth is what the network says of the true state for values and policies, and what was paid for
    rewards; `outcome` compares values with the returns of the episode. With k = 0 nothing was
    imagined yet. In a game with a window a line ends when the window moves: what is imagined and
    what is true would be of different cells. A row has

    - `positions`: how many were compared,
    - `reward`: |r - r'| of the last step, for the player who acted,
    - `value`: |V - V'| for the player to move, `outcome`: the same from the return,
    - `policy`: KL of the imagined policy from that of the true state, over its legal actions,
    - `illegal`: the share of the imagined policy on illegal actions,
    - `turn`: how often another player was expected to move.
    """
    starts = [
        (number, ply) for number, each in enumerate(episodes) for ply in range(len(each.states))
    ]
    order = np.random.default_rng(seed).permutation(len(starts))[:MOST_STARTS]
    chosen = [starts[i] for i in sorted(order.tolist())]
    known = _Known(game, model, episodes)
    at = np.array([known.first[number] + ply for number, ply in chosen])
    hidden = model.functions.initial(known.observations[at])[0]
    movers = known.to_play[at]
    logits, values = known.logits[at], known.values[at]
    rows = [known.compare(0, at, logits, values, movers, None)]
    for k in range(1, num_steps + 1):
        before, actions, acting = at + k - 1, known.actions[at + k - 1], movers
        hidden, rewards, logits, relative, *turns = model.functions.recurrent(hidden, actions)
        movers = model.next_players(acting, turns)
        paid = model.by_player(rewards, acting)
        error = np.abs(paid - known.rewards[before])[np.arange(len(at)), known.to_play[before]]
        goes_on = known.stop[at] > at + k
        values = model.by_player(relative, movers)
        rows.append(known.compare(
            k, (at + k)[goes_on], logits[goes_on], values[goes_on], movers[goes_on], error
        ))  # fmt: skip
        at, hidden, movers = at[goes_on], hidden[goes_on], movers[goes_on]
        if not len(at):
            break
    return rows


class _Known:
    """The positions of episodes one after the other, with what the network says of them."""

    def __init__(self, game: Game, model: Imagination, episodes: Sequence[Decisions]) -> None:
        counts = np.array([len(each.states) for each in episodes])
        self.first = np.cumsum(counts) - counts
        self.stop = np.repeat(self.first + counts, counts)
        states = [state for each in episodes for state in each.states]
        if game.view is not None:
            self.stop = _before_move(self.stop, np.array([game.view.center_of(s) for s in states]))
        batch = observe_states(game, states)
        self.observations, self.legal = batch.observations, batch.legal
        _, self.logits, relative = model.functions.initial(batch.observations)
        self.to_play = np.array([int(state["to_play"]) for state in states])
        self.values = model.by_player(relative, self.to_play)
        self.priors = masked_softmax(self.logits, self.legal)
        self.actions = np.concatenate([np.array(each.actions, np.int64) for each in episodes])
        self.rewards = np.concatenate([each.rewards for each in episodes])
        self.returns = np.concatenate([each.returns for each in episodes])

    def compare(
        self, k: int, at: np.ndarray, logits: np.ndarray, values: np.ndarray, movers: np.ndarray,
        reward_error: np.ndarray | None,
    ) -> dict[str, Any]:  # fmt: skip
        """The row of the states that the model imagines after k steps; `at` are the true ones."""
        reward = None if reward_error is None else float(reward_error.mean())
        row: dict[str, Any] = {"k": k, "positions": len(at), "reward": reward}
        if not len(at):
            empty = dict.fromkeys(("value", "outcome", "policy", "illegal", "turn"))
            return row | empty
        players, here = self.to_play[at], np.arange(len(at))
        everything = masked_softmax(logits, np.ones_like(self.legal[at]))
        imagined = masked_softmax(logits, self.legal[at])
        return row | {
            "value": float(np.abs(values - self.values[at])[here, players].mean()),
            "outcome": float(np.abs(values - self.returns[at])[here, players].mean()),
            "policy": float(divergence(self.priors[at], imagined).mean()),
            "illegal": float(np.where(self.legal[at], 0.0, everything).sum(axis=1).mean()),
            "turn": float((movers != players).mean()),
        }


def _before_move(stop: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """For each position where its episode ends, or the first later one with another window.

    >>> _before_move(np.array([3, 3, 3, 4]), np.array([[1, 1], [1, 1], [2, 1], [2, 1]])).tolist()
    [2, 2, 3, 4]
    """
    found = stop.copy()
    for place in range(len(stop) - 2, -1, -1):
        goes_on = stop[place] > place + 1
        if goes_on and (centers[place] != centers[place + 1]).any():
            found[place] = place + 1
        elif goes_on:
            found[place] = found[place + 1]
    return found
