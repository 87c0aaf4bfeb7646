"""N in a row: runs in all directions, on boards of all sizes, against a walk over the board."""

from __future__ import annotations

import numpy as np
import pytest

from tests.games.variants import compiled
from uctree import Game
from uctree.game import StateView, make_rng
from uctree.games import n_in_a_row
from uctree.games.n_in_a_row import longest_run, placement_rewards


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"rows": 3, "cols": 4, "length": 3},
        {"rows": 20, "cols": 5, "length": 4, "num_players": 4},
        {"rows": 6, "cols": 70, "num_players": 3},
    ],
    ids=str,
)
def test_a_stone_wins_if_its_longest_run_is_long_enough(parameters: dict[str, int]) -> None:
    game = compiled(n_in_a_row, **parameters)
    num_players, rows, cols = game.game.observation_shape
    for seed in range(100):
        recorded = game.episode(seed)
        board = np.zeros((rows, cols), int)
        for ply, action in enumerate(recorded.actions):
            row, col = divmod(action, cols)
            board[row, col] = ply % num_players + 1
            won = longest_run(board, row, col) >= parameters.get("length", 5)
            assert won == (recorded.rewards[ply, ply % num_players] == 1)
            assert won == bool(recorded.rewards[ply].any())
            assert won <= (ply == len(recorded.actions) - 1)
        assert (board == recorded.state["board"]).all()


def test_the_longest_run_is_counted_in_all_four_directions() -> None:
    board = np.array(
        [
            [1, 2, 2, 2, 0],
            [0, 1, 2, 1, 2],
            [0, 2, 1, 0, 2],
            [2, 0, 0, 1, 2],
        ]
    )
    assert longest_run(board, 1, 1) == 4  # down to the right
    assert longest_run(board, 2, 1) == 4  # down to the left
    assert longest_run(board, 0, 2) == 3  # along the row
    assert longest_run(board, 2, 4) == 3  # along the column
    assert longest_run(board, 1, 3) == 2
    assert longest_run(board, 0, 4) == 0


@pytest.mark.parametrize("length", [5, 27])
def test_runs_are_seen_anywhere_on_the_largest_board(length: int) -> None:
    game = n_in_a_row(100, 100, length, 3)
    start = game.start()
    directions = {1: range(101 - length), 100: range(0, 10001 - 100 * length, 100),
                  101: range(0, 10001 - 101 * length, 101),
                  99: range(99, 99 + 99 * (101 - length), 99)}  # fmt: skip
    for stride, firsts in directions.items():
        for first in list(firsts)[:: 1 + length // 9]:
            stones = [first + i * stride for i in range(length)]
            # Any stone may be the last one: a run is completed at an end or in the middle.
            stones = stones[first % length :] + stones[: first % length]
            assert wins_with(game, start, stones) == [False] * (length - 1) + [True]


def wins_with(game: Game, start: np.record, stones: list[int]) -> list[bool]:
    """Whether player 1 wins by each of these stones, alone on the board."""
    state = StateView(game.copy(start))
    wins = []
    for stone in stones:
        reward = np.zeros(game.num_players)
        state.to_play = 1
        game.rules.step(state, stone, reward)
        wins.append(bool(reward.any()))
        assert reward.tolist() in ([0, 0, 0], [-0.5, 1, -0.5])
    return wins


def test_lines_do_not_go_on_beyond_the_edge() -> None:
    game = n_in_a_row(5, 5, 3, 3)
    for stones in ([3, 4, 5], [15, 20, 1], [8, 14, 15], [6, 10, 19]):
        assert wins_with(game, game.start(), stones) == [False] * 3


def test_a_full_board_without_a_run_pays_nothing() -> None:
    game = n_in_a_row(3, 3, 3)
    state = game.start()
    for action in (0, 1, 2, 4, 3, 5, 7, 6, 8):
        assert not game.is_over(state)
        state, reward = game.step(state, action)
        assert (reward == 0).all()
    assert game.is_over(state)


def test_a_playout_is_the_steps_that_random_actions_would_take() -> None:
    game = n_in_a_row(6, 6, 4, 3)
    for seed in range(20):
        reward, at_once = np.zeros(3), np.zeros(3)
        state, copy = StateView(game.start()), StateView(game.start())
        rng, same = make_rng(seed), make_rng(seed)
        with np.errstate(over="ignore"):
            while state.to_play >= 0:
                game.rules.step(state, game.rules.random_action(state, rng), reward)
            game.rules.playout(copy, same, at_once)
        assert (reward == at_once).all()
        assert rng[0] == same[0]


def test_n_in_a_row_is_shown_with_its_coordinates() -> None:
    game = n_in_a_row(3, 4, 3)
    state = game.play([0, 5, 11])
    assert game.show(state) == "  a b c d\n3 X . . .\n2 . O . .\n1 . . . X"
    assert game.show_action(state, 1) == "b3"
    assert game.read_action(state, "C1") == 10
    large = n_in_a_row(100, 100)
    assert large.show_action(large.start(), 99) == "cv100"


# --- places --------------------------------------------------------------------------------------


def runs_of(board: np.ndarray, player: int) -> list[int]:
    """The lengths of all runs of a player in all four directions, the longest first."""
    own, turned = board == player + 1, (board == player + 1)[:, ::-1]
    offsets = range(-board.shape[0], board.shape[1])
    lines = [*own, *own.T, *map(own.diagonal, offsets), *map(turned.diagonal, offsets)]
    text = " ".join("".join("x" if cell else " " for cell in line) for line in lines)
    return sorted(map(len, text.split()), reverse=True)


def places_of(board: np.ndarray, winner: int | None, pays: tuple[float, ...]) -> list[float]:
    """What the players get: the winner is first, then those with the larger lists of runs."""
    keys = [(player == winner, runs_of(board, player)) for player in range(len(pays))]
    ordered = sorted(keys, reverse=True)
    shares = [[pay for pay, each in zip(pays, ordered, strict=True) if each == key] for key in keys]
    return [sum(share) / len(share) for share in shares]


@pytest.mark.parametrize(
    ("parameters", "pays"),
    [
        ({"rows": 6, "cols": 5, "length": 4, "num_players": 3}, (1.0, -0.2, -1.0)),
        ({"rows": 3, "cols": 4, "length": 4, "num_players": 3}, (1.0, -0.2, -1.0)),
        ({"rows": 4, "cols": 4, "length": 4, "num_players": 2}, (1.0, -1.0)),
    ],
    ids=str,
)
def test_places_are_paid_by_the_runs_on_the_board(
    parameters: dict[str, int], pays: tuple[float, ...]
) -> None:
    """At every end, draws included; compiled rules pay the same in lock step."""
    game = compiled(n_in_a_row, **parameters, rewards="placement")
    wins = draws = 0
    for seed in range(60):
        episode = game.episode(seed)
        board, last = episode.state["board"], episode.actions[-1]
        row, col = divmod(last, parameters["cols"])
        won = longest_run(board, row, col) >= parameters["length"]
        winner = int(board[row, col]) - 1 if won else None
        assert episode.rewards[-1] == pytest.approx(places_of(board, winner, pays))
        assert (episode.rewards[:-1] == 0).all()
        assert episode.rewards.sum() == pytest.approx(sum(pays))
        wins, draws = wins + won, draws + (not won)
    assert wins > 5 or parameters["rows"] == 3
    assert draws > 5 or parameters["rows"] == 6


def test_equal_players_share_their_places() -> None:
    assert placement_rewards([1, 1, 1], (1.0, -0.2, -1.0)) == pytest.approx([-0.2 / 3] * 3)
    game = n_in_a_row(1, 3, 3, 3, rewards="placement")
    _, reward = game.step(game.play([0, 2]), 1)  # one stone each: nobody is better
    assert reward.tolist() == pytest.approx([-0.2 / 3] * 3)
    game = n_in_a_row(2, 3, 3, 3, rewards="placement")
    _, reward = game.step(game.play([0, 2, 1, 5, 3]), 4)
    # Player 2 has the column in the middle, a run of 2; the others have single stones.
    assert reward.tolist() == pytest.approx([-0.6, -0.6, 1.0])


def test_a_playout_pays_places_as_steps_do() -> None:
    game = n_in_a_row(6, 6, 4, 3, rewards="placement")
    for seed in range(20):
        reward, at_once = np.zeros(3), np.zeros(3)
        state, copy = StateView(game.start()), StateView(game.start())
        rng, same = make_rng(seed), make_rng(seed)
        with np.errstate(over="ignore"):
            while state.to_play >= 0:
                game.rules.step(state, game.rules.random_action(state, rng), reward)
            game.rules.playout(copy, same, at_once)
        assert (reward == at_once).all()
        assert reward.any()


def test_places_are_for_two_or_three_players() -> None:
    with pytest.raises(ValueError, match="2 or 3 players; got num_players=4"):
        n_in_a_row(num_players=4, rewards="placement")
    with pytest.raises(ValueError, match="got 'score'"):
        n_in_a_row(rewards="score")
