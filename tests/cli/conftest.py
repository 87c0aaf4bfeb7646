"""Commands that are run in this process, and games of a user's file."""

from __future__ import annotations

import io
import sys

import pytest

from uctree import cli

GAMES = '''
import numpy as np
import uctree

Position = np.dtype([("total", np.int16), ("to_play", np.int8)])


def race(goal=4) -> uctree.Game:
    """Add 1 or 2 in turn; the player who reaches the goal wins."""

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        player = state.to_play
        state.total += action + 1
        state.to_play = 1 - player
        if state.total >= goal:
            reward[player], reward[1 - player] = 1, -1
            state.to_play = uctree.OVER

    def show(state):
        return f"total {state.total} of {goal}"

    def show_action(state, action):
        return f"+{action + 1}"

    return uctree.Game(
        Position, legal, step, num_players=2, num_actions=2, name="race", payoff_range=(-1, 1),
        show=show, show_action=show_action,
    )


def coins(values=(1, 2)) -> uctree.Game:
    """Stake one of the values on a coin, three times; heads pay it."""
    stakes = np.array(values)

    def legal(state, actions):
        for i in range(len(stakes)):
            actions[i] = i
        return len(stakes)

    def chance(state, outcomes, probabilities):
        outcomes[0], outcomes[1] = 0, 1
        probabilities[0], probabilities[1] = 0.5, 0.5
        return 2

    def step(state, action, reward):
        if state.to_play == uctree.CHANCE:
            reward[0] = action * stakes[state.total % 10]
            state.to_play = uctree.OVER if state.total >= 30 else 0
        else:
            state.total += 10 + action - state.total % 10
            state.to_play = uctree.CHANCE

    def show_action(state, action):
        if state.to_play == uctree.CHANCE:
            return ("tails", "heads")[action]
        return f"stake {values[action]}"

    return uctree.Game(
        Position, legal, step, num_players=1, num_actions=len(values), name="coins",
        chance=chance, max_outcomes=2, payoff_range=(0, 3 * max(values)), show_action=show_action,
    )


def step(state, action, reward):
    state.to_play = uctree.OVER


def legal_that_does_not_compile(state, actions):
    if state.total > 100:
        actions = {}
    actions[0] = 0
    return 1


def legal_that_fails(state, actions):
    return 1 // int(state.total)


uncompilable = uctree.Game(
    Position, legal_that_does_not_compile, step, num_players=1, num_actions=1
)
failing = uctree.Game(Position, legal_that_fails, step, num_players=1, num_actions=1)
number = 7


def not_a_game():
    return 7
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("user") / "user_games.py"
    path.write_text(GAMES)
    return str(path)


@pytest.fixture
def run(capsys):
    """The output of a command that succeeds."""

    def run(*tokens: str) -> str:
        assert cli.main(tokens) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.fixture
def refused(capsys):
    """The message of a command that is refused."""

    def refused(*tokens: str) -> str:
        assert cli.main(tokens) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        return captured.err

    return refused


@pytest.fixture
def play(run, monkeypatch):
    """The output of `uctree play` with these lines typed."""

    def play(game: str, *typed: str, options: tuple[str, ...] = ()) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        return run("play", game, "--num-simulations", "200", "--seed", "1", *options)

    return play
