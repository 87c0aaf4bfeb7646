"""Connect four: known counts, and heuristic playouts that win, block and end perfectly."""

from __future__ import annotations

import random

import numpy as np
import pytest

import uctree
from tests.games.variants import compiled
from uctree import IllegalAction, selection
from uctree.game import make_rng
from uctree.games import connect_four
from uctree.games.connect_four import ENDING

HEURISTIC = connect_four(playouts="heuristic")
SMALL = connect_four(rows=3, cols=4, playouts="heuristic")  # twelve cells: all of it is the ending


def drawn(actions, draws=60):
    """The columns, from 1, that heuristic playouts play after these."""
    state, rng = HEURISTIC.play(int(column) - 1 for column in actions), make_rng(1)
    with np.errstate(over="ignore"):
        return {int(HEURISTIC.rules.random_action(state, rng)) + 1 for _ in range(draws)}


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("121212", {1}),  # three in a column win
        ("142434", {4}),  # the opponent has three in a column
        ("223344", {1, 5}),  # three in a row with both ends open
        ("112233", {4}),
        ("11223", {4}),
        ("", {1, 2, 3, 4, 5, 6, 7}),
    ],
)
def test_a_heuristic_playout_wins_and_blocks(actions, expected):
    assert drawn(actions) == expected


def test_a_heuristic_playout_does_not_play_below_a_cell_where_the_other_side_wins():
    assert drawn("22337474") == {2, 3, 4, 6, 7}  # O has three in the second row, from 2 to 4


_EXACT: dict[bytes, float] = {}


def exact(state, game=SMALL):
    """The payoff of the player to move, by plain recursion; with a cache."""
    key = state.tobytes()
    if key not in _EXACT:
        best = -1.0
        for action in game.legal(state):
            after, reward = game.step(state, action)
            player = game.to_play(state)
            best = max(best, reward[player] if game.is_over(after) else -exact(after, game))
        _EXACT[key] = best
    return _EXACT[key]


def random_state(game, plies, rng):
    state = game.start()
    for _ in range(plies):
        if game.is_over(state):
            break
        state, _ = game.step(state, rng.choice(game.legal(state)))
    return state


def played_out(game, state):
    copy, reward = game.copy(state), np.zeros(2)
    with np.errstate(over="ignore"):
        game.rules.playout(copy, make_rng(0), reward)
    return reward


@pytest.mark.quick
def test_an_ending_is_played_perfectly():
    rng, seen = random.Random(1), set()
    for _ in range(40):
        state = random_state(SMALL, rng.randrange(3, 12), rng)
        if SMALL.is_over(state):
            continue
        player, value = SMALL.to_play(state), exact(state)
        reward = played_out(SMALL, state)
        assert reward[player] == value
        assert reward.sum() == 0
        seen.add(value)
    assert len(seen) > 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"transpositions": True},
        {"threads": 2, "parallel": "tree"},
        {"threads": 2, "parallel": "root"},
        {"selection": selection.rave(selection.ucb1(0.5))},
    ],
)
def test_the_solver_takes_what_the_game_knows_as_proven(options):
    rng = random.Random(3)
    for plies in (0, 1, 2, 3, 5):
        state = random_state(SMALL, plies, rng)
        result = uctree.search(SMALL, state, num_simulations=50, solver=True, **options)
        assert result.status == "solved"
        # Each action once, by each thread, and one that each had begun when the proof was found.
        assert result.simulations <= 2 * len(SMALL.legal(state)) + 2
        assert result.solved[SMALL.to_play(state)] == exact(state)
        after, reward = SMALL.step(state, result.action)
        player = SMALL.to_play(state)
        left = reward[player] if SMALL.is_over(after) else -exact(after)
        assert left == exact(state)


def test_without_the_solver_nothing_is_proven():
    result = uctree.search(SMALL, SMALL.start(), num_simulations=50)
    assert result.status == "simulations"
    assert result.solved is None


def test_the_doctor_finds_a_game_that_claims_too_much():
    def boast(state, values):
        values[state.to_play], values[1 - state.to_play] = 1.0, -1.0
        return state.taken > 256  # the last cell is taken

    honest = uctree.games.tic_tac_toe()
    lying = uctree.Game(
        honest.dtype, honest.rules.legal, honest.rules.step, num_players=2, num_actions=9,
        exact=boast, payoff_range=(-1, 1), zero_sum=True, name="boast",
    )  # fmt: skip
    report = uctree.check(lying, episodes=50)
    assert "exact-holds" in {finding.rule for finding in report.findings}


@pytest.mark.peer
def test_endings_are_those_of_a_perfect_player():
    bitbully = pytest.importorskip(
        "bitbully", reason="bitbully, of the dev extra, is not installed"
    )
    oracle, rng, seen = bitbully.BitBully(opening_book=None), random.Random(2), set()
    while len(seen) < 3 or rng.random() < 0.98:
        board, actions = bitbully.Board(), []
        while len(actions) < 42 - ENDING and not board.is_game_over():
            actions.append(rng.choice(board.legal_moves()))
            board.play(actions[-1])
        if board.is_game_over():
            continue
        state = HEURISTIC.play(actions)
        best = int(np.sign(max(oracle.score_all_moves(board).values())))
        assert played_out(HEURISTIC, state)[HEURISTIC.to_play(state)] == best
        seen.add(best)


def test_heuristic_playouts_are_the_same_compiled_and_in_plain_python():
    report = uctree.check(HEURISTIC, episodes=30, heuristic=True)
    assert report.ok, str(report)


@pytest.mark.quick
def test_connect_four_has_the_known_numbers_of_sequences() -> None:
    known = [7, 49, 343, 2401, 16807, 117649, 823536, 5673234]
    assert [compiled(connect_four).perft(depth) for depth in range(1, 9)] == known


def test_connect_four_columns_are_counted_from_one() -> None:
    game = connect_four()
    state = game.play([3, 3, 2])
    assert game.show(state).splitlines()[4:] == [
        ". . . O . . .",
        ". . X X . . .",
        "1 2 3 4 5 6 7",
    ]
    assert game.read_action(state, "7") == 6
    with pytest.raises(IllegalAction, match="legal: 1, 2, 3, 4, 5, 6, 7"):
        game.read_action(state, "0")
