"""Dots and boxes: boxes, turns and payoffs by hand, exact values, and OpenSpiel in lock step."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

from tests.perft import CompiledGame
from uctree import Game, IllegalAction
from uctree._compile import UNBOUND, compile_kernel
from uctree.evaluators import rule
from uctree.game import StateView, make_rng
from uctree.games.dots_and_boxes import box_table, dots_and_boxes

random_action = UNBOUND


@functools.cache
def compiled(rows: int, cols: int, pays: str) -> CompiledGame:
    return CompiledGame(dots_and_boxes(rows, cols, pays))


def played(game: Game, lines: str) -> tuple[np.record, list[list[float]]]:
    """The state after these lines and what each of them paid."""
    state = game.start()
    rewards = []
    for line in lines.split():
        state, reward = game.step(state, game.read_action(state, line))
        rewards.append(reward.tolist())
    return state, rewards


# --- the rules -----------------------------------------------------------------------------------


def test_players_take_turns_until_a_box_is_closed() -> None:
    game = dots_and_boxes(1, 2)
    state = game.start()
    players = []
    for line in ("a1-b1", "a2-b2", "a1-a2", "b1-b2", "b1-c1", "b2-c2", "c1-c2"):
        players.append(game.to_play(state))
        state, _ = game.step(state, game.read_action(state, line))
    # Player 1 closes the left box with the fourth line and draws the fifth as well.
    assert players == [0, 1, 0, 1, 1, 0, 1]
    assert game.is_over(state)
    assert state["score"].tolist() == [0, 2]


def test_every_box_pays_who_closes_it_at_once() -> None:
    game = dots_and_boxes(1, 2, "boxes")
    _, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-b2 b1-c1 b2-c2 c1-c2")
    assert rewards == [[0, 0], [0, 0], [0, 0], [0, 1], [0, 0], [0, 0], [0, 1]]


def test_one_line_may_close_two_boxes() -> None:
    game = dots_and_boxes(1, 2, "boxes")
    state, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-c1 b2-c2 c1-c2 b1-b2")
    assert rewards[-1] == [2, 0]
    assert game.is_over(state)
    assert state["owner"].tolist() == [1, 1, 0]


def test_a_win_pays_at_the_end_alone() -> None:
    game = dots_and_boxes(1, 2, "win")
    _, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-b2 b1-c1 b2-c2 c1-c2")
    assert rewards == 6 * [[0, 0]] + [[-1, 1]]


def test_as_many_boxes_for_both_are_a_draw() -> None:
    game = dots_and_boxes(1, 2, "win")
    state, rewards = played(game, "a1-b1 a2-b2 a1-a2 b1-c1 b1-b2 b2-c2 c1-c2")
    assert state["score"].tolist() == [1, 1]
    assert rewards[-1] == [0, 0]


def test_the_boxes_beside_a_line_are_known() -> None:
    # Two boxes in a row: three lines down, the middle one between them, 2 is the outside.
    expected = [[2, 0], [2, 1], [0, 2], [1, 2], [2, 0], [0, 1], [1, 2]]
    assert box_table(1, 2).tolist() == expected
    for rows, cols in ((3, 5), (4, 2)):
        sides = np.bincount(box_table(rows, cols).ravel())
        assert sides.tolist() == rows * cols * [4] + [2 * (rows + cols)]


# --- exact values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "cols", "margin"), [(1, 1, -1), (1, 2, 0), (1, 3, -1), (2, 2, 2)], ids=str
)
def test_the_exact_margin_is_as_known(rows: int, cols: int, margin: int) -> None:
    game = dots_and_boxes(rows, cols, "boxes")
    margins: dict[bytes, float] = {}

    def solve(state: np.record) -> float:
        """How many boxes more player 0 will get from here on, by trying everything."""
        if game.is_over(state):
            return 0.0
        key = game.key(state)
        if key not in margins:
            results = []
            for action in game.legal(state):
                after, reward = game.step(state, action)
                results.append(reward[0] - reward[1] + solve(after))
            margins[key] = max(results) if game.to_play(state) == 0 else min(results)
        return margins[key]

    assert solve(game.start()) == margin
    # Boxes of the past are not in the key: for each set of lines one entry a player.
    assert len(margins) < 2 ** (game.num_actions + 1)


# --- plain, compiled and pickled -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "cols", "pays"), [(2, 2, "boxes"), (2, 2, "win"), (5, 5, "win")], ids=str
)
def test_compiled_and_plain_rules_agree(rows: int, cols: int, pays: str) -> None:
    game = dots_and_boxes(rows, cols, pays)
    for seed in range(30):
        recorded = compiled(rows, cols, pays).episode(seed)
        state = game.start()
        for ply, action in enumerate(recorded.actions):
            assert game.to_play(state) == recorded.players[ply]
            assert game.legal(state) == recorded.choices[ply]
            state, reward = game.step(state, action)
            assert (reward == recorded.rewards[ply]).all()
        assert game.is_over(state)
        assert state.tobytes() == recorded.state.tobytes()
        for player in range(2):
            assert (game.observation(state, player) == recorded.planes[player]).all()


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_returns_are_in_the_range_that_is_stated(pays: str) -> None:
    game = dots_and_boxes(2, 2, pays)
    for seed in range(500):
        rewards = compiled(2, 2, pays).episode(seed).rewards
        returns = rewards.sum(axis=0)
        assert game.payoff_range is not None
        assert (game.payoff_range[:, 0] <= returns).all()
        assert (returns <= game.payoff_range[:, 1]).all()
        assert returns.sum() == (4 if pays == "boxes" else 0)
        assert len(rewards) == game.max_plies == 12


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_a_playout_is_the_steps_that_random_actions_would_take(pays: str) -> None:
    game = dots_and_boxes(3, 2, pays)
    for seed in range(40):
        state = game.play(game.random_episode(seed).actions[: seed % 17])
        reward, at_once = np.zeros(2), np.zeros(2)
        stepwise, copy = StateView(game.copy(state)), StateView(game.copy(state))
        rng, same = make_rng(seed), make_rng(seed)
        with np.errstate(over="ignore"):
            while stepwise.to_play >= 0:
                game.rules.step(stepwise, game.rules.random_action(stepwise, rng), reward)
            game.rules.playout(copy, same, at_once)
        assert (reward == at_once).all()
        assert rng[0] == same[0]


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_compiled_playouts_pay_what_plain_ones_pay(pays: str) -> None:
    game = dots_and_boxes(2, 2, pays)
    for seed in range(50):
        reward = np.zeros(2)
        with np.errstate(over="ignore"):
            game.rules.playout(StateView(game.start()), make_rng(seed), reward)
        assert (compiled(2, 2, pays).playout(seed) == reward).all()


@pytest.mark.parametrize("pays", ["boxes", "win"])
def test_a_pickled_game_plays_the_same_episode(pays: str) -> None:
    game = dots_and_boxes(2, 3, pays)
    copy = pickle.loads(pickle.dumps(game))
    assert repr(copy) == repr(game)
    assert copy.random_episode(3).actions == game.random_episode(3).actions


def draw_many(states: Any, rng: Any, drawn: Any, data: Any) -> int:
    for i in range(len(drawn)):
        drawn[i] = random_action(states[0], rng, data)
    return 0


def test_random_actions_are_uniform_over_the_legal_ones() -> None:
    game = dots_and_boxes(2, 2)
    states, rng, drawn = np.zeros(1, game.dtype), make_rng(1), np.zeros(20_000, np.int64)
    arguments = (states, rng, drawn, game.data)
    bound = {"random_action": rule(game, "random_action")}
    draw = compile_kernel(draw_many, bound, arguments, label="dots and boxes: random actions").call
    for seed in range(12):
        states[0] = game.play(game.random_episode(seed).actions[:seed])
        legal = game.legal(states[0])
        draw(*arguments)
        counts = np.bincount(drawn, minlength=12)
        assert counts[legal].sum() == len(drawn)
        expected = len(drawn) / len(legal)
        # A chi-square of n degrees has mean n and variance 2n.
        excess = ((counts[legal] - expected) ** 2 / expected).sum() - (len(legal) - 1)
        assert excess < 5 * np.sqrt(2 * len(legal))


# --- for people and networks ---------------------------------------------------------------------


def test_lines_are_shown_between_named_dots() -> None:
    game = dots_and_boxes(2, 2)
    state, _ = played(game, "a3-b3 a2-b2 a3-a2 b3-b2 b2-b1")
    assert game.show(state).splitlines() == [
        "3 +---+   +",
        "  | O |",
        "2 +---+   +",
        "      |",
        "1 +   +   +",
        "  a   b   c",
    ]
    assert game.show_action(state, 0) == "a3-b3"
    assert game.show_action(state, 11) == "c2-c1"
    assert game.read_action(state, "C1 - c2") == 11
    for text in ("a3-b3", "a3-c3", "a1-b2", "a1", "a4-a3", "d1-d2", "", "1-2"):
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            game.read_action(state, text)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (3, 2), (25, 25)])
def test_actions_are_read_as_they_are_shown(rows: int, cols: int) -> None:
    game = dots_and_boxes(rows, cols)
    state = game.start()
    shown = [game.show_action(state, action) for action in range(game.num_actions)]
    assert len(set(shown)) == game.num_actions
    for action in range(0, game.num_actions, 1 + game.num_actions // 20):
        assert game.read_action(state, shown[action]) == action


def test_planes_show_lines_turn_and_lead() -> None:
    lines = "a3-b3 a2-b2 a3-a2 b3-b2"
    state, _ = played(dots_and_boxes(2, 2, "win"), lines)
    planes = dots_and_boxes(2, 2, "win").observation(state, 1)
    assert np.argwhere(planes[0]).tolist() == [[0, 0], [1, 0]]
    assert np.argwhere(planes[1]).tolist() == [[0, 0], [0, 1]]
    assert planes[2].all()
    assert (planes[3] == 0.25).all()
    other = dots_and_boxes(2, 2, "win").observation(state, 0)
    assert (other[:2] == planes[:2]).all()
    assert not other[2].any()
    assert (other[3] == -0.25).all()
    state, _ = played(dots_and_boxes(2, 2, "boxes"), lines)
    assert (dots_and_boxes(2, 2, "boxes").observation(state, 1) == planes[:3]).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rows": 0}, "rows and cols must be from 1 to 25; got rows=0, cols=2"),
        ({"cols": 26}, "rows and cols must be from 1 to 25; got rows=2, cols=26"),
        ({"pays": "money"}, 'pays must be "boxes" or "win"; got \'money\''),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dots_and_boxes(**parameters)


# --- OpenSpiel -----------------------------------------------------------------------------------


def peer(rows: int, cols: int, pays: str) -> Any:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    margin = "true" if pays == "boxes" else "false"
    return pyspiel.load_game(
        f"dots_and_boxes(num_rows={rows},num_cols={cols},utility_margin={margin})"
    )


@pytest.mark.peer
@pytest.mark.parametrize(
    ("rows", "cols", "pays"),
    [(2, 2, "boxes"), (2, 2, "win"), (3, 4, "win"), (5, 5, "win"), (7, 7, "boxes")],
    ids=str,
)
def test_1000_episodes_are_as_openspiel_plays_them(rows: int, cols: int, pays: str) -> None:
    spiel = peer(rows, cols, pays)
    for seed in range(1000):
        recorded = compiled(rows, cols, pays).episode(seed)
        state = spiel.new_initial_state()
        for ply, action in enumerate(recorded.actions):
            assert not state.is_terminal()
            assert state.current_player() == recorded.players[ply]
            assert sorted(recorded.choices[ply]) == state.legal_actions()
            state.apply_action(action)
        assert state.is_terminal()
        returns = recorded.rewards.sum(axis=0)
        if pays == "boxes":  # OpenSpiel pays the margin
            returns = np.array([returns[0] - returns[1], returns[1] - returns[0]])
        assert state.returns() == returns.tolist()


def test_any_line_may_follow_any_other() -> None:
    known = (12, 132, 1320, 11880, 95040, 665280, 3991680)
    for depth, sequences in enumerate(known, start=1):
        assert compiled(2, 2, "boxes").perft(depth) == sequences


@pytest.mark.peer
def test_sequences_are_as_many_as_in_openspiel() -> None:
    def count(state: Any, depth: int) -> int:
        legal = state.legal_actions()
        return len(legal) if depth == 1 else sum(count(state.child(a), depth - 1) for a in legal)

    start = peer(2, 2, "win").new_initial_state()
    for depth in range(1, 6):
        assert compiled(2, 2, "win").perft(depth) == count(start, depth)
