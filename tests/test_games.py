"""Every game in `uctree.games`: its rules against known counts, against OpenSpiel and by hand."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import uctree.games
from tests.perft import CompiledGame, Recorded
from tests.record import GOLDEN, episode_text
from uctree import CHANCE, Game, IllegalAction
from uctree.game import StateView, make_rng
from uctree.games import (
    connect_four,
    loss_game,
    n_in_a_row,
    nim,
    pig,
    point_mass,
    tic_tac_toe,
    twenty48,
)
from uctree.games.n_in_a_row import longest_run

# Each game beside the same game in OpenSpiel, and how deep to count. With its defaults each has
# over a million sequences there, but for tic-tac-toe, which ends.
PEERS = {
    "tic_tac_toe": (tic_tac_toe, {}, "tic_tac_toe", 9),
    "connect_four": (connect_four, {}, "connect_four", 8),
    "connect_four_5x6": (
        connect_four, {"rows": 5, "cols": 6}, "connect_four(rows=5,columns=6)", 6,
    ),
    "gomoku": (n_in_a_row, {}, "gomoku", 3),
    "mnk": (n_in_a_row, {"rows": 3, "cols": 4, "length": 3}, "mnk(m=4,n=3,k=3)", 6),
    "nim": (nim, {}, "nim", 7),
    "nim_normal": (
        nim, {"heaps": (2, 4, 6), "misere": False}, "nim(pile_sizes=2;4;6,is_misere=false)", 6,
    ),
    "pig": (pig, {}, "pig(horizon=100000)", 13),
    "pig_3_players": (
        pig, {"target": 25, "num_players": 3}, "pig(players=3,winscore=25,horizon=100000)", 11,
    ),
    "twenty48": (twenty48, {}, "2048", 6),
    "twenty48_to_32": (twenty48, {"max_tile": 32}, "2048(max_tile=32)", 4),
}  # fmt: skip


# Those whose actions are vectors are looked at in test_continuous.py.
DISCRETE = [
    name for name in uctree.games.__all__ if not getattr(uctree.games, name)().is_continuous
]


@functools.cache
def compiled(factory: Any, **parameters: Any) -> CompiledGame:
    return CompiledGame(factory(**parameters))


# The scope makes pytest finish one game before the next, so that few workers compile the same one.
@pytest.fixture(scope="module", params=DISCRETE)
def factory(request: pytest.FixtureRequest) -> Any:
    return getattr(uctree.games, request.param)


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest) -> tuple[CompiledGame, Any, int]:
    """A compiled game, the same game of OpenSpiel, and how deep to count."""
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    factory, parameters, name, depth = PEERS[request.param]
    return compiled(factory, **parameters), pyspiel.load_game(name), depth


# --- all games -----------------------------------------------------------------------------------


def test_games_are_listed_in_order() -> None:
    assert sorted(uctree.games.__all__) == uctree.games.__all__


def test_compiled_and_plain_rules_agree(factory: Any) -> None:
    game = factory()
    for seed in range(20):
        recorded = compiled(factory).episode(seed)
        state = game.start()
        for ply, action in enumerate(recorded.actions):
            assert game.to_play(state) == recorded.players[ply]
            assert game.legal(state) == recorded.choices[ply]
            state, reward = game.step(state, action)
            assert (reward == recorded.rewards[ply]).all()
        assert game.is_over(state)
        assert state.tobytes() == recorded.state.tobytes()
        for player in range(game.num_players):
            assert (game.observation(state, player) == recorded.planes[player]).all()


def test_returns_and_lengths_are_as_the_game_states(factory: Any) -> None:
    game = factory()
    for seed in range(200):
        recorded = compiled(factory).episode(seed)
        returns = recorded.rewards.sum(axis=0)
        if game.payoff_range is not None:
            assert (game.payoff_range[:, 0] <= returns).all()
            assert (returns <= game.payoff_range[:, 1]).all()
        if game.zero_sum:
            assert (recorded.rewards.sum(axis=1) == 0).all()
        assert game.max_plies is None or len(recorded.actions) <= game.max_plies


def test_pickled_games_play_the_same_episode(factory: Any) -> None:
    game = factory()
    copy = pickle.loads(pickle.dumps(game))
    assert repr(copy) == repr(game)
    assert episode_text(copy) == episode_text(game)


def test_the_recorded_episode_is_played_again(factory: Any) -> None:
    path = GOLDEN / f"episode_{factory.__name__}.txt"
    assert episode_text(factory()) == path.read_text(), "run `make golden` if this is intended"


def test_actions_are_read_as_they_are_shown(factory: Any) -> None:
    game = factory()
    state = game.start()
    for action in game.random_episode(seed=1).actions[:12]:
        shown = [game.show_action(state, legal) for legal in game.legal(state)]
        assert len(set(shown)) == len(shown)
        assert game.read_action(state, game.show_action(state, action)) == action
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            game.read_action(state, "nonsense")
        state, _ = game.step(state, action)


@pytest.mark.parametrize("factory", [tic_tac_toe, connect_four, n_in_a_row])
def test_planes_begin_with_the_player_who_looks(factory: Any) -> None:
    game = factory()
    state = game.play(game.random_episode(seed=2).actions[:5])
    planes = game.observation(state, 0)
    assert planes[0].sum() == 3
    assert planes[1].sum() == 2
    assert (game.observation(state, 1) == planes[::-1]).all()


@pytest.mark.parametrize("factory", [n_in_a_row, twenty48])
def test_playouts_of_a_game_pay_what_its_steps_pay(factory: Any) -> None:
    game = compiled(factory)
    stepwise = np.array([game.episode(seed).rewards.sum(axis=0) for seed in range(2000)])
    at_once = np.array([game.playout(seed) for seed in range(2000)])
    error = np.sqrt((stepwise.var(axis=0) + at_once.var(axis=0)) / 2000)
    assert (abs(stepwise.mean(axis=0) - at_once.mean(axis=0)) < 4 * error).all()
    assert (abs(np.log(stepwise.std(axis=0) / at_once.std(axis=0))) < 0.1).all()


@pytest.mark.parametrize(
    ("factory", "parameters", "message"),
    [
        (connect_four, {"rows": 8, "cols": 7}, "at most 62; got rows=8, cols=7"),
        (connect_four, {"rows": 0}, "at most 62; got rows=0"),
        (loss_game, {"dim": 0}, "dim must be a whole number of at least 1; got 0"),
        (loss_game, {"dim": 1.5}, "dim must be a whole number of at least 1; got 1.5"),
        (n_in_a_row, {"rows": 101}, "from 1 to 100; got rows=101, cols=15"),
        (n_in_a_row, {"cols": 0}, "from 1 to 100; got rows=15, cols=0"),
        (n_in_a_row, {"length": 16}, "from 1 to 15 on a board of 15 x 15; got 16"),
        (n_in_a_row, {"rows": 100, "length": 28}, "from 1 to 27 on a board of 100 x 15; got 28"),
        (n_in_a_row, {"num_players": 5}, "must be 2, 3 or 4; got 5"),
        (n_in_a_row, {"num_players": 1}, "must be 2, 3 or 4; got 1"),
        (nim, {"heaps": ()}, r"sizes from 1 to 1000, at least one; got \(\)"),
        (nim, {"heaps": (3, 0)}, r"sizes from 1 to 1000, at least one; got \(3, 0\)"),
        (pig, {"target": 0}, "from 1 to 1,000,000 points; got 0"),
        (pig, {"num_players": 1}, "from 2 to 100; got 1"),
        (point_mass, {"stages": 0}, "stages must be a whole number from 1 to 127; got 0"),
        (point_mass, {"stages": 128}, "stages must be a whole number from 1 to 127; got 128"),
        (twenty48, {"max_tile": 1000}, "a power of two from 8 to 32768; got 1000"),
        (twenty48, {"max_tile": 65536}, "a power of two from 8 to 32768; got 65536"),
    ],
)
def test_parameters_out_of_range_are_refused(
    factory: Any, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        factory(**parameters)


# --- counts of sequences, and OpenSpiel in lock step ---------------------------------------------


def test_tic_tac_toe_has_255168_episodes() -> None:
    game = compiled(tic_tac_toe)
    sequences = [game.perft(depth) for depth in range(1, 10)]
    assert sequences == [9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872]
    # An episode ends where its sequence is not continued.
    going_on = [count // (9 - ply) for ply, count in enumerate(sequences[1:], start=1)]
    ended = [made - on for made, on in zip(sequences, going_on, strict=False)]
    assert sum(ended) + sequences[-1] == 255168


def test_connect_four_has_the_known_numbers_of_sequences() -> None:
    known = [7, 49, 343, 2401, 16807, 117649, 823536, 5673234]
    assert [compiled(connect_four).perft(depth) for depth in range(1, 9)] == known


def spiel_legal(state: Any) -> list[int]:
    """The legal actions or outcomes of a state of OpenSpiel."""
    if state.get_game().get_type().short_name != "2048" or state.is_chance_node():
        return state.legal_actions()
    # OpenSpiel 2.0.2 lists no move that merges into a tile the move before has merged, although it
    # makes such a move as it should. So the moves are asked for that change its board.
    if state.is_terminal():
        return []
    return [action for action in range(4) if str(state.child(action)) != str(state)]


def spiel_perft(state: Any, depth: int) -> int:
    actions = spiel_legal(state)
    if depth == 1:
        return len(actions)
    return sum(spiel_perft(state.child(action), depth - 1) for action in actions)


@pytest.mark.peer
def test_sequences_are_as_many_as_in_openspiel(peer: tuple[CompiledGame, Any, int]) -> None:
    game, spiel, depth = peer
    assert game.perft(depth) == spiel_perft(spiel.new_initial_state(), depth)


@pytest.mark.peer
def test_1000_episodes_are_as_openspiel_plays_them(peer: tuple[CompiledGame, Any, int]) -> None:
    game, spiel, _ = peer
    for seed in range(1000):
        follow(game.episode(seed), spiel.new_initial_state())


def follow(recorded: Recorded, spiel: Any) -> None:
    """Play a recorded episode in OpenSpiel, and compare at every ply."""
    # OpenSpiel's rewards after a chance ply are those of the ply before, its returns are not.
    returns = np.cumsum(recorded.rewards, axis=0).tolist()
    for ply, action in enumerate(recorded.actions):
        assert spiel.current_player() == recorded.players[ply]
        if recorded.players[ply] == CHANCE:
            outcomes, probabilities = zip(*spiel.chance_outcomes(), strict=True)
            assert recorded.choices[ply] == list(outcomes)
            assert almost_equal(recorded.probabilities[ply], probabilities)
        else:
            assert sorted(recorded.choices[ply]) == spiel_legal(spiel)
        spiel.apply_action(action)
        assert almost_equal(returns[ply], spiel.returns())
    assert spiel.is_terminal()


def almost_equal(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    # pytest.approx says the same, but took half the time of these tests.
    return all(abs(a - b) < 1e-12 for a, b in zip(ours, theirs, strict=True))


# --- n in a row ----------------------------------------------------------------------------------


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


# --- the other games -----------------------------------------------------------------------------


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


def test_tic_tac_toe_cells_are_counted_from_one() -> None:
    game = tic_tac_toe()
    state = game.play([4, 0, 8])
    assert game.show(state) == "O . .\n. X .\n. . X"
    assert game.read_action(state, "2 ") == 1
    with pytest.raises(IllegalAction, match="legal: 2, 3, 4, 6, 7, 8"):
        game.read_action(state, "9")


@pytest.mark.parametrize("misere", [True, False])
def test_nim_is_won_as_bouton_says(misere: bool) -> None:
    game = nim((3, 4, 2), misere)

    @functools.cache
    def wins(heaps: tuple[int, ...]) -> bool:
        """Whether who is to play can win, by trying everything."""
        state = game.start()
        state["heaps"] = heaps
        for action in game.legal(state):
            after, reward = game.step(state, action)
            if game.is_over(after):
                won = reward[0] == 1
            else:
                won = not wins(tuple(after["heaps"].tolist()))
            if won:
                return True
        return False

    for heaps in itertools.product(range(4), range(5), range(3)):
        if max(heaps) > 1 or (max(heaps) == 1 and not misere):
            assert wins(heaps) == (np.bitwise_xor.reduce(heaps) != 0)
        elif max(heaps) == 1:
            assert wins(heaps) == (sum(heaps) % 2 == 0)


def test_nim_shows_and_reads_heaps() -> None:
    game = nim((1, 3))
    state = game.start()
    assert game.show(state) == "heap 1: | 1\nheap 2: ||| 3"
    assert game.show_action(state, 5) == "heap 2, take 3"
    assert game.read_action(state, "2 3") == 5
    assert (game.observation(state, 0) == [[1, 0, 0], [1, 1, 1]]).all()


def test_a_one_loses_the_turn_of_pig_and_stopping_keeps_it() -> None:
    game = pig(target=10, num_players=3)
    state = game.play([0, 4, 0, 0])  # rolls a five, then a one
    assert game.show(state) == "player 0: 0, player 1: 0, player 2: 0; player 1 to play, 0 at stake"
    state = game.play([0, 4, 0, 4], state)  # five and five are enough
    assert [game.show_action(state, action) for action in game.legal(state)] == ["stop"]
    state, reward = game.step(state, 1)
    assert reward.tolist() == [-0.5, 1, -0.5]
    assert game.is_over(state)
    assert game.show(state) == "player 0: 0, player 1: 10, player 2: 0"


def test_pig_is_seen_from_the_seat_of_the_player() -> None:
    game = pig(target=20, num_players=3)
    state = game.play([0, 4, 1, 0, 3])  # player 0 has five, player 1 is at four
    expected = np.array([0, 0, 0.25, 0.2, 1], np.float32)
    assert (game.observation(state, 1) == expected).all()
    assert game.observation(state, 0)[[0, 4]].tolist() == [0.25, 0]


def twenty48_state(game: Game, board: list[list[int]]) -> np.record:
    """A state of 2048 with these tiles: all but one set, the last one added by chance."""
    state = game.start()
    tiles = [(4 * r + c, n) for r, row in enumerate(board) for c, n in enumerate(row) if n]
    last = next(cell for cell, number in tiles if number in (2, 4))
    for cell, number in tiles:
        if cell != last:
            exponent = number.bit_length() - 1
            state["lines"][0, cell // 4] |= exponent << (4 * (cell % 4))
            state["lines"][1, cell % 4] |= exponent << (4 * (cell // 4))
    return game.play([2 * last + (dict(tiles)[last] == 4)], state)


def tiles_of(game: Game, state: np.record) -> list[list[int]]:
    return [
        [0 if word == "." else int(word) for word in line.split()]
        for line in game.show(state).splitlines()
    ]


@pytest.mark.parametrize(
    ("action", "row", "after", "reward"),
    [
        ("left", [2, 2, 2, 2], [4, 4, 0, 0], 8),
        ("right", [2, 2, 2, 2], [0, 0, 4, 4], 8),
        ("left", [4, 2, 2, 0], [4, 4, 0, 0], 4),
        ("left", [2, 2, 4, 0], [4, 4, 0, 0], 4),
        ("right", [2, 2, 2, 0], [0, 0, 2, 4], 4),
        ("left", [2, 0, 0, 2], [4, 0, 0, 0], 4),
        ("right", [2, 0, 4, 0], [0, 0, 2, 4], 0),
        ("left", [0, 512, 512, 4], [1024, 4, 0, 0], 1024),
    ],
)
def test_equal_tiles_merge_once(action: str, row: list[int], after: list[int], reward: int) -> None:
    game = twenty48()
    empty = [0, 0, 0, 0]
    state = twenty48_state(game, [empty, row, empty, empty])
    state, paid = game.step(state, game.read_action(state, action))
    assert tiles_of(game, state) == [empty, after, empty, empty]
    assert paid.tolist() == [reward]
    turned = {"left": "up", "right": "down"}[action]
    state = twenty48_state(game, [[0, 0, tile, 0] for tile in row])
    state, paid = game.step(state, game.read_action(state, turned))
    assert tiles_of(game, state) == [[0, 0, tile, 0] for tile in after]
    assert paid.tolist() == [reward]


def test_2048_ends_with_its_largest_tile_or_without_a_move() -> None:
    game = twenty48(max_tile=32)
    state = twenty48_state(game, [[16, 16, 2, 0]] + 3 * [[0, 0, 0, 0]])
    state, reward = game.step(state, game.read_action(state, "l"))
    assert game.is_over(state)
    assert reward.tolist() == [32]
    stuck = [[2, 4, 2, 4], [4, 2, 4, 2], [2, 4, 2, 4], [4, 2, 4, 2]]
    assert game.is_over(twenty48_state(game, stuck))
    stuck[3][3] = 4
    assert game.legal(twenty48_state(game, stuck)) == [0, 1, 2, 3]


def test_2048_begins_with_two_tiles() -> None:
    game = twenty48()
    state = game.start()
    assert len(game.outcomes(state)) == 32
    state, _ = game.step(state, 1)
    assert game.to_play(state) == CHANCE
    state, _ = game.step(state, 8)
    assert game.to_play(state) == 0
    assert tiles_of(game, state)[:2] == [[4, 0, 0, 0], [2, 0, 0, 0]]


# --- symmetries ----------------------------------------------------------------------------------

SYMMETRIC = [
    name for name in uctree.games.__all__ if getattr(uctree.games, name)().symmetries is not None
]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_rules_do_not_change_under_a_symmetry(name: str) -> None:
    """Turned actions lead to turned observations, turned legal actions and the same rewards."""
    game = getattr(uctree.games, name)()
    action_tables, cell_tables = game.symmetries
    assert (action_tables[0] == np.arange(game.num_actions)).all()
    for k in range(1, len(action_tables)):
        turn = action_tables[k]
        rng = np.random.default_rng(k)
        state, turned = game.start(), game.start()
        if name == "othello":  # its start has two of the eight symmetries; the rules have all
            turned = turned_othello(turned, cell_tables[k])
        for _ in range(12):
            legal = game.legal(state)
            assert sorted(turn[legal]) == sorted(game.legal(turned))
            action = int(rng.choice(legal))
            state, reward = game.step(state, action)
            turned, turned_reward = game.step(turned, int(turn[action]))
            assert (reward == turned_reward).all()
            assert game.to_play(state) == game.to_play(turned)
            if game.is_over(state):
                break
            for player in range(game.num_players):
                planes = game.observation(state, player)
                flat = planes.reshape(len(planes), -1)
                expected = np.zeros_like(flat)
                expected[:, cell_tables[k]] = flat
                assert (game.observation(turned, player) == expected.reshape(planes.shape)).all()


def turned_othello(state: Any, cells: np.ndarray) -> Any:
    turned = state.copy()
    for field, words in (("stones", state["stones"]), ("moves", [state["moves"]])):
        values = [sum(1 << int(cells[i]) for i in range(64) if int(w) >> i & 1) for w in words]
        turned[field] = values if field == "stones" else values[0]
    return turned
