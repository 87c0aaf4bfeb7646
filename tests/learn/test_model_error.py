"""How wrong a model is: nothing for one that knows the world, and by hand for one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from uctree import games
from uctree.learn.latent import Functions, Imagination
from uctree.learn.model_error import Decisions, model_errors
from uctree.learn.replay import observe_states
from uctree.learn.targets import n_step_returns

GAME = games.tic_tac_toe()


def episode(seed):
    played = GAME.random_episode(seed)
    state, states = GAME.start(), []
    for action in played.actions:
        states.append(state)
        state, _ = GAME.step(state, action)
    rewards = np.array(played.rewards)
    return Decisions(states, list(played.actions), rewards, n_step_returns(rewards))


EPISODES = [episode(seed) for seed in range(20)]


class Knowing:
    """A model whose hidden state is the observation; it steps by looking up the episodes."""

    def __init__(self, wrong_after=99, reward_error=0.0):
        self.wrong_after, self.reward_error = wrong_after, reward_error
        self.after = {}
        for each in EPISODES:
            shown = observe_states(GAME, each.states).observations.reshape(len(each.states), -1)
            for i, action in enumerate(each.actions):
                last = i + 1 == len(each.states)
                paid = each.rewards[i]
                mover = int(each.states[i]["to_play"])
                behind = np.zeros_like(shown[0]) if last else shown[i + 1]
                self.after[shown[i].tobytes(), action] = behind, np.roll(paid, -mover)

    def read(self, hidden):
        logits = hidden[:, :9] * 2.0 - hidden[:, 9:18]
        return logits, np.stack([hidden.sum(1), -hidden.sum(1)], axis=1) / 20

    def initial(self, observations):
        hidden = observations.reshape(len(observations), -1)
        steps = np.zeros((len(hidden), 1), np.float32)
        return np.hstack([hidden, steps]), *self.read(hidden)

    def recurrent(self, hidden, actions):
        found = [
            self.after[row[:-1].tobytes(), int(action)]
            for row, action in zip(hidden, actions, strict=True)
        ]
        behind = np.array([each for each, _ in found])
        rewards = np.array([paid for _, paid in found]) + self.reward_error
        steps = hidden[:, -1:] + 1
        logits, values = self.read(behind)
        values = values + np.where(steps > self.wrong_after, 0.5, 0.0)
        return np.hstack([behind, steps]), rewards, logits, values


def errors_of(model, **given):
    functions = Functions(model.initial, model.recurrent, **given)
    return model_errors(GAME, Imagination(GAME, functions), EPISODES, 4)


def test_a_model_that_knows_the_world_makes_no_error():
    rows = errors_of(Knowing())
    assert [row["k"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0]["reward"] is None
    for row in rows:
        for name in ("value", "policy", "turn"):
            assert row[name] == pytest.approx(0, abs=1e-6)
        assert row["reward"] in (None, pytest.approx(0, abs=1e-6))
    # The share on illegal actions is that of the network itself.
    assert 0 < rows[0]["illegal"] < 1
    assert rows[0]["positions"] == sum(len(each.states) for each in EPISODES)
    assert rows[1]["positions"] == rows[0]["positions"] - len(EPISODES)


def test_errors_are_measured_at_the_step_at_which_they_are_made():
    rows = errors_of(Knowing(wrong_after=2, reward_error=0.25))
    assert [round(row["value"], 4) for row in rows] == [0, 0, 0, 0.5, 0.5]
    assert all(row["reward"] == pytest.approx(0.25) for row in rows[1:])
