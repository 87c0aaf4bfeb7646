"""Othello, breakthrough and hex: against known counts, OpenSpiel, plain Python and slow rules."""

from __future__ import annotations

import functools
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import uctree
from tests.perft import CompiledGame
from tests.test_games import compiled, follow, spiel_perft
from uctree import OVER, Game, IllegalAction
from uctree._compile import UNBOUND, compile_kernel
from uctree.evaluators import rule
from uctree.game import StateView, make_rng
from uctree.games.breakthrough import breakthrough
from uctree.games.hex import hex
from uctree.games.othello import othello

GAMES = {
    "othello": (othello, {}),
    "othello_6x6": (othello, {"size": 6}),
    "othello_4x4": (othello, {"size": 4}),
    "breakthrough": (breakthrough, {}),
    "breakthrough_5x4": (breakthrough, {"rows": 5, "cols": 4}),
    "breakthrough_6x10": (breakthrough, {"rows": 6, "cols": 10}),
    "hex": (hex, {}),
    "hex_3x3": (hex, {"size": 3}),
    "hex_19x19": (hex, {"size": 19}),
}

# Each game beside the same game in OpenSpiel, and a depth of about 100,000 sequences.
PEERS = {
    "othello": (othello, {}, "othello", 7),
    "breakthrough": (breakthrough, {}, "breakthrough", 4),
    "breakthrough_5x4": (
        breakthrough, {"rows": 5, "cols": 4}, "breakthrough(rows=5,columns=4)", 5,
    ),
    "breakthrough_6x10": (
        breakthrough, {"rows": 6, "cols": 10}, "breakthrough(rows=6,columns=10)", 3,
    ),
    "hex": (hex, {}, "hex", 3),
    "hex_3x3": (hex, {"size": 3}, "hex(board_size=3)", 8),
    "hex_4x4": (hex, {"size": 4}, "hex(board_size=4)", 5),
}  # fmt: skip


@pytest.fixture(params=GAMES)
def compiled_game(request: pytest.FixtureRequest) -> CompiledGame:
    factory, parameters = GAMES[request.param]
    return compiled(factory, **parameters)


@pytest.fixture(params=GAMES)
def game(request: pytest.FixtureRequest) -> Game:
    factory, parameters = GAMES[request.param]
    return factory(**parameters)


# --- all of them ---------------------------------------------------------------------------------


def test_compiled_and_plain_rules_agree(compiled_game: CompiledGame) -> None:
    game = compiled_game.game
    for seed in range(15 if game.num_actions < 300 else 3):
        recorded = compiled_game.episode(seed)
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


def test_returns_and_lengths_are_as_the_game_states(compiled_game: CompiledGame) -> None:
    game = compiled_game.game
    draws = 0
    for seed in range(300):
        recorded = compiled_game.episode(seed)
        returns = recorded.rewards.sum(axis=0).tolist()
        assert returns in ([1, -1], [-1, 1], [0, 0])
        assert (recorded.rewards[:-1] == 0).all()
        assert len(recorded.actions) <= game.max_plies
        draws += returns == [0, 0]
    assert (draws > 0) == game.name.startswith("othello")


def test_pickled_games_play_the_same_episode(game: Game) -> None:
    copy = pickle.loads(pickle.dumps(game))
    assert repr(copy) == repr(game)
    assert copy.random_episode(seed=3).actions == game.random_episode(seed=3).actions
    reward, same = np.zeros(2), np.zeros(2)
    if game.rules.playout is not None:
        with np.errstate(over="ignore"):
            game.rules.playout(StateView(game.start()), make_rng(1), reward)
            copy.rules.playout(StateView(copy.start()), make_rng(1), same)
        assert (reward == same).all()


def test_actions_are_read_as_they_are_shown(game: Game) -> None:
    state = game.start()
    for action in game.random_episode(seed=1).actions[:30]:
        shown = [game.show_action(state, legal) for legal in game.legal(state)]
        assert len(set(shown)) == len(shown)
        for legal, text in zip(game.legal(state), shown, strict=True):
            assert game.rules.read_action(StateView(state), text.upper()) == legal
        for nonsense in ("nonsense", "a", "1", "a0", ""):
            with pytest.raises(IllegalAction, match="is not a legal action here"):
                game.read_action(state, nonsense)
        state, _ = game.step(state, action)


def test_planes_begin_with_the_player_who_looks(game: Game) -> None:
    state = game.play(game.random_episode(seed=2).actions[:5])
    planes = [game.observation(state, player) for player in range(2)]
    assert (planes[0][:2] == planes[1][1::-1]).all()
    assert planes[0][0].sum() > 0
    text = "".join(line[line.find(" ") :] for line in game.show(state).splitlines())
    assert planes[0][0].sum() == text.count("X")
    assert planes[0][1].sum() == text.count("O")
    if len(planes[0]) == 3:  # the players have different aims
        assert (planes[0][2] == 0).all()
        assert (planes[1][2] == 1).all()


@pytest.mark.parametrize(
    ("factory", "parameters", "message"),
    [
        (othello, {"size": 7}, "must be 4, 6 or 8; got 7"),
        (othello, {"size": 10}, "must be 4, 6 or 8; got 10"),
        (breakthrough, {"rows": 2}, "rows must be at least 3, .*; got rows=2, cols=8"),
        (breakthrough, {"cols": 1}, "cols at least 2 .*; got rows=8, cols=1"),
        (breakthrough, {"rows": 9}, r"rows \* cols at most 64; got rows=9, cols=8"),
        (hex, {"size": 1}, "from 2 to 19; got 1"),
        (hex, {"size": 20}, "from 2 to 19; got 20"),
    ],
)
def test_parameters_out_of_range_are_refused(
    factory: Any, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        factory(**parameters)


@pytest.mark.parametrize("name", ["othello", "breakthrough", "hex"])
def test_a_search_finds_the_last_action_of_an_episode(name: str) -> None:
    factory, _ = GAMES[name]
    game = factory()
    for seed in range(5):
        recorded = compiled(factory).episode(seed)
        player = recorded.players[-1]
        state = game.play(recorded.actions[:-1])
        result = uctree.search(game, state, num_simulations=2000, seed=seed)
        _, reward = game.step(state, result.action)
        assert reward[player] == max(game.step(state, a)[1][player] for a in game.legal(state))


# --- random actions ------------------------------------------------------------------------------

random_action = UNBOUND


def draw_actions(states: Any, counts: Any, firsts: Any, rng: Any, num_draws: int, data: Any) -> int:
    for i in range(num_draws):
        action = random_action(states[0], rng, data)
        counts[action] += 1
        if i < len(firsts):
            firsts[i] = action
    return 0


def test_random_actions_are_uniform_over_the_legal_ones(game: Game) -> None:
    states = np.zeros(1, game.dtype)
    states[0] = game.start()
    firsts = np.zeros(50, np.int64)
    arguments = (states, np.zeros(game.num_actions, np.int64), firsts, make_rng(0), 0, game.data)
    bound = {"random_action": rule(game, "random_action")}
    kernel = compile_kernel(draw_actions, bound, arguments, label="random actions")
    actions = game.random_episode(seed=7).actions
    for ply in (0, len(actions) // 3, 2 * len(actions) // 3, len(actions) - 1):
        state = game.play(actions[:ply])
        states[0] = state
        counts = np.zeros(game.num_actions, np.int64)
        legal = game.legal(state)
        num_draws = 400 * len(legal)
        kernel.call(states, counts, firsts, make_rng(ply), num_draws, game.data)
        assert counts[legal].sum() == num_draws
        # Chi-square, whose mean is the degrees of freedom and its variance twice that.
        excess = ((counts[legal] - 400.0) ** 2 / 400.0).sum() - (len(legal) - 1)
        assert excess <= 4.5 * np.sqrt(2 * (len(legal) - 1))
        rng = make_rng(ply)
        with np.errstate(over="ignore"):
            plain = [game.rules.random_action(StateView(state), rng) for _ in firsts]
        assert (firsts == plain).all()


# --- counts of sequences, and OpenSpiel in lock step ---------------------------------------------


def test_othello_has_the_known_numbers_of_sequences() -> None:
    known = [4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288]
    assert [compiled(othello).perft(depth) for depth in range(1, 10)] == known


def test_breakthrough_has_the_known_numbers_of_sequences() -> None:
    known = [22, 484, 11132, 256036, 6182818]
    assert [compiled(breakthrough).perft(depth) for depth in range(1, 6)] == known


class SpielBreakthrough:
    """A state of OpenSpiel's breakthrough whose actions are ours."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def actions(self) -> dict[int, int]:
        """Ours to theirs: `12 * cell + 2 * direction + capture`, player 1 has directions 3 to 5."""
        return {
            3 * (theirs // 12) + theirs // 2 % 3: theirs for theirs in self.state.legal_actions()
        }

    def legal_actions(self) -> list[int]:
        return sorted(self.actions())

    def apply_action(self, action: int) -> None:
        self.state.apply_action(self.actions()[action])


@pytest.mark.peer
@pytest.mark.parametrize("name", PEERS)
def test_sequences_are_as_many_as_in_openspiel(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    factory, parameters, peer, depth = PEERS[name]
    start = pyspiel.load_game(peer).new_initial_state()
    assert compiled(factory, **parameters).perft(depth) == spiel_perft(start, depth)


@pytest.mark.peer
@pytest.mark.parametrize("name", PEERS)
def test_1000_episodes_are_as_openspiel_plays_them(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    factory, parameters, peer, _ = PEERS[name]
    game = compiled(factory, **parameters)
    spiel = pyspiel.load_game(peer)
    for seed in range(1000):
        start = spiel.new_initial_state()
        follow(game.episode(seed), SpielBreakthrough(start) if factory is breakthrough else start)


# --- othello -------------------------------------------------------------------------------------


def turned_by(board: np.ndarray, player: int, row: int, col: int) -> list[tuple[int, int]]:
    """The stones that a stone of `player` on an empty cell turns; walks in eight directions."""
    turned = []
    for down, right in itertools.product((-1, 0, 1), repeat=2):
        line = []
        r, c = row + down, col + right
        while 0 <= r < len(board) and 0 <= c < len(board) and board[r, c] == 1 - player:
            line.append((r, c))
            r, c = r + down, c + right
        if 0 <= r < len(board) and 0 <= c < len(board) and board[r, c] == player:
            turned += line
    return turned


@pytest.mark.parametrize("size", [4, 6, 8])
def test_stones_are_turned_as_walks_in_eight_directions_find_them(size: int) -> None:
    game = compiled(othello, size=size)
    middle = size // 2
    passes = 0
    for seed in range(40):
        recorded = game.episode(seed)
        board = np.full((size, size), -1)
        board[middle - 1 : middle + 1, middle - 1 : middle + 1] = [[1, 0], [0, 1]]
        player = 0
        for action, choices, seat in zip(
            recorded.actions, recorded.choices, recorded.players, strict=True
        ):
            assert seat == player
            cells = [divmod(cell, size) for cell in range(size * size)]
            open_cells = [cell for cell in cells if board[cell] == -1]
            moves = [r * size + c for r, c in open_cells if turned_by(board, player, r, c)]
            assert choices == (moves or [size * size])
            if action == size * size:
                passes += 1
            else:
                for cell in (*turned_by(board, player, *cells[action]), cells[action]):
                    board[cell] = player
            player = 1 - player
        lead = (board == 0).sum() - (board == 1).sum()
        assert recorded.rewards[-1].tolist() == [np.sign(lead), -np.sign(lead)]
    assert passes > 0


def test_the_second_player_wins_othello_on_4x4() -> None:
    game = othello(4)

    @functools.cache
    def best(key: bytes) -> float:
        """What the best play pays player 0."""
        state = states[key]
        player = game.to_play(state)
        worst = -1.0 if player == 0 else 1.0
        for action in game.legal(state):
            after, reward = game.step(state, action)
            states[game.key(after)] = after
            value = reward[0] if game.is_over(after) else best(game.key(after))
            worst = max(worst, value) if player == 0 else min(worst, value)
            if worst == (1.0 if player == 0 else -1.0):
                break
        return worst

    states = {game.key(game.start()): game.start()}
    # All four first moves are alike by symmetry.
    after, _ = game.step(game.start(), game.legal(game.start())[0])
    states[game.key(after)] = after
    assert best(game.key(after)) == -1


def test_othello_is_shown_with_its_coordinates() -> None:
    game = othello(4)
    state = game.play([game.read_action(game.start(), "B1")])
    assert game.show(state) == "  a b c d\n1 . X . .\n2 . X X .\n3 . X O .\n4 . . . ."
    assert game.rules.read_action(StateView(state), "Pass") == 16
    assert game.show_action(state, 16) == "pass"
    with pytest.raises(IllegalAction, match="'pass' is not a legal action here; legal: a1, c1, a3"):
        game.read_action(state, "pass")


# --- breakthrough --------------------------------------------------------------------------------


def test_pieces_go_straight_to_empty_cells_and_aslant_to_others_too() -> None:
    game = breakthrough(rows=5, cols=4)
    state = game.start()
    state["pieces"] = [1 << 5 | 1 << 8, 1 << 9 | 1 << 10]
    assert game.show(state) == "\n".join(
        [" 5 . . . .", " 4 . X . .", " 3 X O O .", " 2 . . . .", " 1 . . . .", "   a b c d"]
    )
    shown = sorted(game.show_action(state, action) for action in game.legal(state))
    assert shown == ["a3a2", "a3b2", "b4c3"]
    assert game.read_action(state, "b4xc3*") == 3 * 5 + 2
    state, _ = game.step(state, game.read_action(state, "B4-C3"))
    assert state["pieces"].tolist() == [1 << 8 | 1 << 10, 1 << 9]
    shown = sorted(game.show_action(state, action) for action in game.legal(state))
    assert shown == ["b3a4", "b3b4", "b3c4"]


@pytest.mark.parametrize("player", [0, 1])
def test_the_last_row_and_the_last_capture_win(player: int) -> None:
    game = breakthrough(rows=4, cols=3)
    state = game.start()
    state["to_play"] = player
    for own, other, text in (
        ([1 << 7, 1 << 3], [1 << 0, 1 << 11], ["b2b1", "a3a4"]),
        ([1 << 4, 1 << 7], [1 << 6, 1 << 5], ["b3a2", "b2c3"]),
    ):
        state["pieces"][player], state["pieces"][1 - player] = own[player], other[player]
        after, reward = game.step(state, game.read_action(state, text[player]))
        assert game.is_over(after)
        assert reward[player] == 1
        assert reward[1 - player] == -1


# --- hex -----------------------------------------------------------------------------------------


def is_connected(stones: set[int], size: int) -> bool:
    """Whether stones connect the first row with the last; a flood cell by cell."""
    found = {cell for cell in stones if cell < size}
    rest = list(found)
    while rest:
        row, col = divmod(rest.pop(), size)
        if row == size - 1:
            return True
        for r, c in ((row, col - 1), (row, col + 1), (row - 1, col), (row - 1, col + 1),
                     (row + 1, col - 1), (row + 1, col)):  # fmt: skip
            cell = r * size + c
            if 0 <= c < size and cell in stones and cell not in found:
                found.add(cell)
                rest.append(cell)
    return False


@pytest.mark.parametrize("size", [3, 4, 11, 19])
def test_the_first_connection_wins(size: int) -> None:
    game = compiled(hex, size=size)
    for seed in range(20):
        recorded = game.episode(seed)
        stones: tuple[set[int], set[int]] = (set(), set())
        for ply, action in enumerate(recorded.actions):
            player = ply % 2
            # Turned about its diagonal, the board of player 1 is one of player 0.
            stones[player].add(action if player == 0 else action % size * size + action // size)
            won = is_connected(stones[player], size)
            assert won == (recorded.rewards[ply, player] == 1)
            assert won == (ply == len(recorded.actions) - 1)


def exact_value(size: int, own: set[int], empty: list[int], num_own: int) -> float:
    """What player 0 gets on average if `num_own` of the empty cells become his."""
    fills = list(itertools.combinations(empty, num_own))
    return sum(2 * is_connected(own | set(fill), size) - 1 for fill in fills) / len(fills)


@pytest.mark.parametrize("size", [3, 4])
def test_playouts_of_hex_pay_what_random_play_pays(size: int) -> None:
    game = compiled(hex, size=size)
    exact = exact_value(size, set(), list(range(size * size)), (size * size + 1) // 2)
    assert exact == pytest.approx({3: 1 / 3, 4: 0}[size])
    at_once = np.array([game.playout(seed) for seed in range(20_000)])
    stepwise = np.array([game.episode(seed).rewards[-1] for seed in range(10_000)])
    assert (abs(at_once) == 1).all()
    assert (at_once.sum(axis=1) == 0).all()
    assert abs(at_once[:, 0].mean() - exact) < 4 / np.sqrt(20_000)
    assert abs(stepwise[:, 0].mean() - exact) < 4 / np.sqrt(10_000)


@pytest.mark.parametrize("size", [11, 19])
def test_playouts_of_hex_are_decided_on_large_boards(size: int) -> None:
    game = compiled(hex, size=size)
    at_once = np.array([game.playout(seed) for seed in range(10_000)])
    stepwise = np.array([game.episode(seed).rewards[-1] for seed in range(2_000)])
    assert (abs(at_once) == 1).all()
    assert (at_once.sum(axis=1) == 0).all()
    difference = at_once[:, 0].mean() - stepwise[:, 0].mean()
    assert abs(difference) < 4 * np.sqrt(1 / 10_000 + 1 / 2_000)


@pytest.mark.parametrize("num_plies", [3, 6, 9, 12])
def test_playouts_go_on_from_the_stones_there_are(num_plies: int) -> None:
    game = hex(4)
    episodes = (game.random_episode(seed).actions for seed in itertools.count())
    actions = next(actions for actions in episodes if len(actions) > num_plies)[:num_plies]
    state = game.play(actions)
    empty = game.legal(state)
    num_own = (len(empty) + 1 - game.to_play(state)) // 2
    exact = exact_value(4, set(actions[::2]), empty, num_own)
    rng = make_rng(1)
    total = 0.0
    for _ in range(1500):
        reward = np.zeros(2)
        view = StateView(game.copy(state))
        with np.errstate(over="ignore"):
            game.rules.playout(view, rng, reward)
        assert view.to_play == OVER
        assert reward.tolist() in ([1, -1], [-1, 1])
        total += reward[0]
    assert abs(total / 1500 - exact) < 4 * np.sqrt((1 - exact**2) / 1500) + 1e-9


def test_compiled_and_plain_playouts_agree() -> None:
    game = compiled(hex)
    for seed in range(50):
        reward = np.zeros(2)
        with np.errstate(over="ignore"):
            game.game.rules.playout(StateView(game.game.start()), make_rng(seed), reward)
        assert (reward == game.playout(seed)).all()


@pytest.mark.parametrize("size", [2, 3])
def test_the_first_player_wins_hex(size: int) -> None:
    game = hex(size)

    def wins(state: np.record) -> bool:
        """Whether who is to play can win."""
        player = game.to_play(state)
        for action in game.legal(state):
            after, reward = game.step(state, action)
            if reward[player] == 1 if game.is_over(after) else not wins(after):
                return True
        return False

    assert wins(game.start())


def test_equal_stones_have_equal_keys_in_hex() -> None:
    game = hex(5)
    for seed in range(20):
        actions = game.random_episode(seed).actions[:-1]
        actions = actions[: len(actions) // 2 * 2]
        turned = [a for pair in zip(actions[-2::-2], actions[::-2], strict=True) for a in pair]
        assert game.key(game.play(actions)) == game.key(game.play(turned))


def test_hex_is_shown_as_a_rhombus() -> None:
    game = hex(3)
    state = game.play([4, 0])
    assert game.show(state) == "   a b c\n 1 O . .\n  2 . X .\n   3 . . ."
    assert game.show_action(state, 5) == "c2"
    assert game.read_action(state, "B3") == 7
