"""Go: captures, ko, suicide, repetition and area by hand, and OpenSpiel in lock step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import uctree
from tests.games.openspiel import follow, load_game, spiel_perft
from tests.games.variants import compiled
from uctree import OVER, BrokenGame, Game, IllegalAction
from uctree.engine.bindings import bound_rule
from uctree.engine.compile import compile_kernel
from uctree.evaluators import playout
from uctree.game import StateView, make_rng
from uctree.games.go import AROUND, COLUMNS, go, shape_table
from uctree.games.nim import nim
from uctree.kernels.binding import UNBOUND
from uctree.selection import puct, rave

random_action = UNBOUND


def placed(game: Game, to_play: int, *rows: str) -> np.record:
    """The state with these stones, the top row first, and nothing else behind it."""
    size = len(rows)
    state = game.start()
    view = StateView(state)
    with np.errstate(over="ignore"):
        for row, line in enumerate(reversed(rows)):
            for col, point in enumerate(line.split()):
                if point != ".":
                    view.to_play = ".XO".index(point) - 1
                    game.rules.step(view, row * size + col, np.zeros(2))
    view.to_play = to_play
    return state


def played(game: Game, moves: str, state: np.record | None = None) -> tuple[np.record, np.ndarray]:
    """The state after these moves and what the last one paid."""
    state = game.start() if state is None else state
    reward = np.zeros(2)
    for move in moves.split():
        state, reward = game.step(state, game.read_action(state, move))
    return state, reward


def moves_of(game: Game, state: np.record) -> set[str]:
    return {game.show_action(state, action) for action in game.legal(state)}


def board_of(game: Game, state: np.record) -> list[str]:
    return [line.strip("0123456789 ") for line in game.show(state).splitlines()[:-1]]


# --- captures ------------------------------------------------------------------------------------


def test_a_stone_without_liberties_is_captured() -> None:
    game = go(3)
    state = placed(game, 0, ". X .", "X O .", ". X .")
    state, _ = played(game, "C2", state)
    assert board_of(game, state) == [". X .", "X . X", ". X ."]


def test_several_chains_are_captured_at_once() -> None:
    game = go(4)
    state = placed(game, 0, "X O . O", ". X O X", "X X X .", ". . . .")
    state, _ = played(game, "C4", state)
    assert board_of(game, state) == ["X . X .", ". X . X", "X X X .", ". . . ."]


def test_a_long_chain_is_captured_in_the_corner() -> None:
    game = go(4)
    state = placed(game, 1, "X X O .", "X X O .", "X . O .", "O O . .")
    state, _ = played(game, "B2", state)
    assert board_of(game, state) == [". . O .", ". . O .", ". O O .", "O O . ."]
    assert "A2" in moves_of(game, state)
    assert int(state["num_empty"]) == 16 - 6


def test_a_stone_may_go_where_it_captures_though_it_has_no_liberty() -> None:
    game = go(3)
    state = placed(game, 1, ". X O", "O O X", ". . X")
    assert "A3" in moves_of(game, state)
    state, _ = played(game, "A3", state)
    assert board_of(game, state) == ["O . O", "O O X", ". . X"]


# --- suicide -------------------------------------------------------------------------------------


def test_suicide_of_one_stone_is_illegal() -> None:
    game = go(3)
    rows = (". X .", "X . X", ". X .")
    assert {"A1", "A3", "B2", "C1", "C3"}.isdisjoint(moves_of(game, placed(game, 1, *rows)))
    assert {"A1", "A3", "B2", "C1", "C3"} < moves_of(game, placed(game, 0, *rows))


def test_suicide_of_a_chain_is_illegal() -> None:
    game = go(3)
    rows = (". O X", "O O X", "X X .")
    assert "A3" not in moves_of(game, placed(game, 1, *rows))
    assert "A3" in moves_of(game, placed(game, 0, *rows))
    state, _ = played(game, "A3", placed(game, 0, *rows))
    assert board_of(game, state) == ["X . X", ". . X", "X X ."]


def test_a_chain_may_lose_all_but_one_of_its_liberties() -> None:
    game = go(3)
    state = placed(game, 1, ". O .", "O O X", "X X .")
    assert "A3" in moves_of(game, state)


# --- ko and repetition ---------------------------------------------------------------------------

KO = (". X O .", "X O . O", ". X O .", ". . . .")


def test_a_ko_is_not_taken_back_at_once() -> None:
    game = go(4)
    state, _ = played(game, "C3", placed(game, 0, *KO))
    assert board_of(game, state) == [". X O .", "X . X O", ". X O .", ". . . ."]
    assert "B3" not in moves_of(game, state)
    with pytest.raises(IllegalAction):
        played(game, "B3", state)


def test_a_ko_is_taken_back_after_a_move_elsewhere() -> None:
    game = go(4)
    state, _ = played(game, "C3 A1 D1", placed(game, 0, *KO))
    assert "B3" in moves_of(game, state)
    state, _ = played(game, "B3", state)
    assert board_of(game, state) == [". X O .", "X O . O", ". X O .", "O . . X"]
    assert not game.is_over(state)
    assert "C3" not in moves_of(game, state)


def test_a_pass_lifts_the_ko() -> None:
    game = go(4)
    state, _ = played(game, "C3 pass", placed(game, 0, *KO))
    assert "B3" in moves_of(game, state)
    state, _ = played(game, "D1", state)
    assert "B3" in moves_of(game, state)


def test_two_stones_are_taken_back_at_once() -> None:
    game = go(4)
    # White takes one stone by making a chain of two, which black may take back.
    state = placed(game, 1, ". O X .", "O X . X", ". O O X", ". . X .")
    state, _ = played(game, "C3", state)
    assert board_of(game, state) == [". O X .", "O . O X", ". O O X", ". . X ."]
    assert int(state["ko"]) == 16


def test_a_repeated_board_is_a_draw() -> None:
    game = go(2)
    moves = "B1 A1 A2 pass B2 A1 B1"  # the board after the second ply again
    for ply in range(7):
        state, _ = played(game, " ".join(moves.split()[:ply]))
        assert not game.is_over(state)
    state, reward = played(game, moves)
    assert game.is_over(state)
    assert reward.tolist() == [0, 0]


def test_a_pass_repeats_the_board_and_play_continues() -> None:
    game = go(3)
    state, _ = played(game, "B2 pass A1 pass")
    assert not game.is_over(state)


# --- the end and its score -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "lead"),
    [
        (3 * [". . ."], 0),
        ((". . .", ". X .", ". . ."), 9),
        ((". X O", ". X O", ". X O"), 3),
        (("X . O", "X . O", "X . O"), 0),
        ((". X .", "X X O", ". O ."), 1),
        (("X X X", "X . X", "X X X"), 9),
        ((". O .", "O O O", ". . X"), -5),
    ],
)
def test_area_is_stones_and_what_they_alone_surround(rows: tuple[str, ...], lead: int) -> None:
    for komi, paid in ((lead - 0.5, 1), (lead, 0), (lead + 0.5, -1)):
        game = go(3, komi)
        for to_play in (0, 1):
            state, reward = played(game, "pass pass", placed(game, to_play, *rows))
            assert game.is_over(state)
            assert reward.tolist() == [paid, -paid]


def test_a_winding_region_belongs_to_the_player_who_surrounds_it() -> None:
    game = go(5, 3.5)
    rows = (". . . . .", "O O O O .", ". . . . .", ". O O O O", ". . . . .")
    state, reward = played(game, "pass pass", placed(game, 0, *rows))
    assert set(state["area"][:25].tolist()) == {2}
    assert reward.tolist() == [-1, 1]
    rows = (". . . . X", *rows[1:])
    state, reward = played(game, "pass pass", placed(game, 0, *rows))
    assert (state["area"][:25] == 3).sum() == 16


def test_an_episode_ends_after_twice_as_many_plies_as_points() -> None:
    lengths = [len(compiled(go, size=3).episode(seed).actions) for seed in range(300)]
    assert max(lengths) == 18 == go(3).max_plies


def test_two_by_two_without_komi_is_a_draw() -> None:
    game = go(2, 0)
    values: dict[bytes, float] = {}

    def value(state: np.record) -> float:
        """The value for the player to move, by trying everything."""
        key = game.key(state)
        if key not in values:
            results = []
            for action in game.legal(state):
                after, reward = game.step(state, action)
                over = game.is_over(after)
                results.append(reward[game.to_play(state)] if over else -value(after))
            values[key] = max(results)
        return values[key]

    assert value(game.start()) == 0


# --- what is derived -----------------------------------------------------------------------------


def test_chains_liberties_and_empty_points_are_those_of_the_board() -> None:
    game = go(5)
    for seed in range(10):
        state = game.start()
        for action in game.random_episode(seed).actions:
            state, _ = game.step(state, action)
            board = state["board"][:25].reshape(5, 5)
            num_empty = int(state["num_empty"])
            empty = state["empty"][:num_empty]
            assert sorted(empty.tolist()) == np.flatnonzero(board.ravel() == 0).tolist()
            assert (state["where"][empty] == np.arange(num_empty)).all()
            for chain in chains_of(board):
                heads = {int(state["head"][row * 5 + col]) for row, col in chain}
                assert len(heads) == 1
                beside = [point for stone in chain for point in around(stone)]
                pairs = sum(board[point] == 0 for point in beside)
                assert state["liberties"][heads.pop()] == pairs


def around(point: tuple[int, int]) -> list[tuple[int, int]]:
    row, col = point
    near = [(row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)]
    return [(r, c) for r, c in near if 0 <= r < 5 and 0 <= c < 5]


def chains_of(board: np.ndarray) -> list[set[tuple[int, int]]]:
    """The chains of stones, and each empty point by itself."""
    chains: list[set[tuple[int, int]]] = []
    for point in np.ndindex(5, 5):
        if any(point in chain for chain in chains):
            continue
        chain, new = {point}, [point]
        while new and board[point]:
            for near in around(new.pop()):
                if board[near] == board[point] and near not in chain:
                    chain.add(near)
                    new.append(near)
        chains.append(chain)
    return chains


def test_the_key_tells_the_boards_of_the_past_apart() -> None:
    game = go(3)
    # The same board in another order: another board would be a repetition.
    one, _ = played(game, "A1 B2 C3")
    other, _ = played(game, "C3 B2 A1")
    assert (one["board"] == other["board"]).all()
    assert one["hash"] == other["hash"]
    assert game.key(one) != game.key(other)
    assert game.key(one) == game.key(played(game, "A1 B2 C3")[0])


# --- random actions ------------------------------------------------------------------------------


def draw_many(states: Any, rng: Any, drawn: Any, data: Any) -> int:
    for i in range(len(drawn)):
        drawn[i] = random_action(states[0], rng, data)
    return 0


def test_plain_random_actions_are_legal() -> None:
    game = go(3)
    rng = make_rng(2)
    for seed in range(5):
        state = game.start()
        for action in game.random_episode(seed).actions:
            legal = game.legal(state)
            with np.errstate(over="ignore"):
                drawn = {game.rules.random_action(StateView(state), rng) for _ in range(20)}
            assert drawn <= set(legal)
            state, _ = game.step(state, action)


# --- heuristic playouts --------------------------------------------------------------------------


def drawn_moves(game: Game, state: np.record, num_draws: int = 60) -> set[str]:
    """The actions that playouts draw in a state."""
    rng = make_rng(5)
    with np.errstate(over="ignore"):
        drawn = [int(game.rules.random_action(StateView(state), rng)) for _ in range(num_draws)]
    return {game.show_action(state, action) for action in drawn}


def after(game: Game, last: str, to_play: int, *rows: str) -> np.record:
    """The state with these stones, of which the last one was put on the point `last`."""
    state = placed(game, to_play, *rows)
    state["last"] = COLUMNS.index(last[0]) + (int(last[1:]) - 1) * len(rows)
    assert state["board"][state["last"]] == 2 - to_play
    return state


def heuristic_episode(game: Game, seed: int) -> list[tuple[np.record, int]]:
    """The states and actions of one playout from the start."""
    rng, state, taken = make_rng(seed), game.start(), []
    while not game.is_over(state):
        with np.errstate(over="ignore"):
            action = int(game.rules.random_action(StateView(state), rng))
        taken.append((state, action))
        state, _ = game.step(state, action)
    return taken


def is_own_eye(board: np.ndarray, row: int, col: int, stone: int) -> bool:
    """By hand: own stones on all sides, and no two corners that are hostile or off the board."""
    padded = np.pad(board, 1, constant_values=3)
    around = padded[row : row + 3, col : col + 3]
    sides, corners = around.ravel()[1::2], around.ravel()[[0, 2, 6, 8]]
    hostile = (corners == 3 - stone).sum() + (corners == 3).any()
    return bool(np.isin(sides, (stone, 3)).all()) and hostile < 2


def test_heuristic_playouts_are_legal_fill_no_eye_and_pass_last() -> None:
    game = go(5, playouts="heuristic")
    passes = 0
    for seed in range(12):
        for state, action in heuristic_episode(game, seed):
            legal = game.legal(state)
            assert action in legal
            board, stone = state["board"][:25].reshape(5, 5), int(state["to_play"]) + 1
            if action < 25:
                assert not is_own_eye(board, *divmod(action, 5), stone)
            else:
                # Points left out are eyes, or half of the time a stone that could be captured.
                passes += 1
                open_points = [a for a in legal[:-1] if not is_own_eye(board, *divmod(a, 5), stone)]
                for point in open_points:
                    after_it, _ = game.step(state, point)
                    assert lone_liberties(game, after_it, point) < 2
    assert passes >= 12


def lone_liberties(game: Game, state: np.record, point: int) -> int:
    """How many liberties the chain on a point has."""
    board = state["board"][:25].reshape(5, 5)
    chain = next(each for each in chains_of(board) if divmod(point, 5) in each)
    return len({near for stone in chain for near in around(stone) if board[near] == 0})


def test_a_stone_that_can_be_captured_is_captured() -> None:
    game = go(5, playouts="heuristic")
    rows = (". . . . .", ". . X . .", ". X O . .", ". . X . .", ". . . . .")
    assert drawn_moves(game, after(game, "C3", 0, *rows)) == {"D3"}


def test_a_chain_in_danger_extends_if_that_helps() -> None:
    game = go(5, playouts="heuristic")
    rows = (". . . . .", ". . O . .", ". O X . .", ". . O . .", ". . . . .")
    assert drawn_moves(game, after(game, "C2", 0, *rows)) == {"D3"}


def test_a_chain_in_danger_may_capture_instead() -> None:
    game = go(5, playouts="heuristic")
    # The white stone on D3 has one liberty, E3; the black one on C3 has one, C4.
    rows = (". . . . .", ". . . X .", ". O X O .", ". . O X .", ". . . . .")
    assert drawn_moves(game, after(game, "C2", 0, *rows)) == {"E3", "C4"}


def test_a_chain_that_cannot_be_rescued_is_left() -> None:
    game = go(5, playouts="heuristic")
    # Running to A1 leaves one liberty, B1.
    rows = (". . . . .", ". . . . .", "O . . . .", "X O . . .", ". . . . .")
    assert "A1" not in drawn_moves(game, after(game, "A3", 0, *rows))


def test_playouts_answer_the_last_stone_with_a_shape() -> None:
    game = go(7, playouts="heuristic")
    # White pushed past a black stone: black plays hane around it.
    rows = 2 * (7 * ". ",) + (". . . . . . .", ". . X O . . .") + 3 * (7 * ". ",)
    drawn = drawn_moves(game, after(game, "D4", 0, *rows), num_draws=200)
    assert drawn <= {"C3", "C5", "D3", "D5", "E3", "E4", "E5"}
    assert {"D3", "D5"} <= drawn


def test_playouts_pass_if_only_eyes_are_left() -> None:
    game = go(3, playouts="heuristic")
    state = placed(game, 0, ". X .", "X X X", ". X .")
    assert drawn_moves(game, state) == {"pass"}


def test_shapes_are_the_same_turned_mirrored_and_in_other_colours() -> None:
    bits = np.unpackbits(shape_table().view(np.uint8), bitorder="little").astype(bool)
    assert 0 < bits.sum() < 4**8 / 4
    grid = np.full((3, 3), -1)
    for i, place in enumerate(AROUND):
        grid[place] = i
    codes = np.arange(4**8)
    points = codes[:, None] >> 2 * np.arange(8) & 3
    swapped = np.array([0, 2, 1, 3])[points]
    for turns in range(4):
        for turned in (np.rot90(grid, turns), np.rot90(grid, turns).T):
            order = [turned[place] for place in AROUND]
            for seen in (points, swapped):
                others = (seen[:, order] << 2 * np.arange(8)).sum(axis=1)
                assert (bits[others] == bits).all()


@pytest.mark.parametrize(
    ("rows", "is_shape"),
    [
        (("XOX", "...", "..."), True),  # hane between two stones
        (("XO.", "...", "..."), True),
        (("XO.", "O..", "..."), True),  # a cut
        ((".X.", "O.O", "..."), True),
        (("OX.", "X.O", "###"), True),  # at the edge
        (("...", "...", "..."), False),
        (("OOO", "O.O", "OOO"), False),
        (("...", "X..", "..."), False),
    ],
)
def test_shapes_are_those_of_hane_cut_and_edge(rows: tuple[str, ...], is_shape: bool) -> None:
    code = sum(".XO#".index(rows[row][col]) << 2 * i for i, (row, col) in enumerate(AROUND))
    assert bool(shape_table()[code >> 5] >> (code & 31) & 1) == is_shape


def test_compiled_and_plain_playouts_draw_the_same() -> None:
    game = go(5, playouts="heuristic")
    states, rng, drawn = np.zeros(1, game.dtype), make_rng(1), np.zeros(1, np.int64)
    arguments = (states, rng, drawn, game.data)
    bound = {"random_action": bound_rule(game, "random_action")}
    draw = compile_kernel(draw_many, bound, arguments, label="go: heuristic actions").call
    for seed in range(10):
        for state, _ in heuristic_episode(game, seed):
            states[0] = state
            plain = make_rng(seed)
            rng[0] = plain[0]
            draw(*arguments)
            with np.errstate(over="ignore"):
                assert game.rules.random_action(StateView(state), plain) == drawn[0]
            assert rng[0] == plain[0]


def test_heuristic_playouts_pass_the_doctor() -> None:
    report = uctree.check(
        go(3, playouts="heuristic"), heuristic=True, episodes=20, num_simulations=0
    )
    assert report.findings == ()


def logits_of(game: Game, state: np.record) -> dict[str, float]:
    logits = np.zeros(game.num_actions)
    game.rules.priors(StateView(state), logits)
    return {game.show_action(state, a): float(logits[a]) for a in game.legal(state)}


def test_priors_like_captures_and_shapes_and_no_own_eyes() -> None:
    game = go(5)
    rows = (". X . . .", "X X . . .", ". X O . .", ". . X . .", ". . . . .")
    logits = logits_of(game, after(game, "C3", 0, *rows))
    quiet = logits["E5"]
    assert max(logits, key=lambda move: logits[move]) in ("D3", "C4")
    assert logits["A5"] < quiet - 3
    assert logits["pass"] < quiet


def test_priors_steer_a_search_with_playouts() -> None:
    game = go(5, playouts="heuristic")
    rows = (". . . . .", ". . X . .", ". X O . .", ". . X . .", ". . . . .")
    state = after(game, "C3", 0, *rows)
    options: dict[str, Any] = {"num_simulations": 30, "selection": puct()}
    with_priors = uctree.search(game, state, evaluator=playout(priors=True), **options)
    assert game.show_action(state, with_priors.action) == "D3"
    alone = uctree.search(game, state, evaluator=playout(), **options)
    capture = game.read_action(state, "D3")
    assert with_priors.policy()[capture] > alone.policy()[capture]


def test_priors_go_with_all_moves_as_first() -> None:
    game = go(5, playouts="heuristic")
    result = uctree.search(
        game, game.start(), num_simulations=200, selection=rave(puct()),
        evaluator=playout(priors=True),
    )  # fmt: skip
    assert result.simulations == 200


def test_a_game_without_priors_cannot_give_them() -> None:
    game = nim()
    with pytest.raises(ValueError, match=r"needs the game's priors, and nim.* has none"):
        uctree.search(game, game.start(), num_simulations=1, evaluator=playout(priors=True))


# --- for people and networks ---------------------------------------------------------------------


def test_points_are_named_by_letter_and_number_from_the_bottom() -> None:
    game = go(9)
    state, _ = played(game, "A1 J9 e3")
    assert game.show(state).splitlines()[0] == "9 . . . . . . . . O"
    assert game.show(state).splitlines()[6] == "3 . . . . X . . . ."
    assert game.show(state).splitlines()[8:] == ["1 X . . . . . . . .", "  A B C D E F G H J"]
    assert game.show_action(state, 80) == "J9"
    assert game.show_action(state, 81) == "pass"
    assert game.read_action(state, "PASS") == 81
    for text in ("I5", "A10", "A0", "J", "", "K1", "A1"):
        with pytest.raises(IllegalAction, match="is not a legal action here"):
            game.read_action(state, text)
    large = go(19)
    assert large.show(large.start()).splitlines()[-1] == "   " + " ".join(COLUMNS)


def test_planes_show_stones_ko_pass_and_colour() -> None:
    game = go(4)
    state, _ = played(game, "C3", placed(game, 0, *KO))
    black, white = game.observation(state, 0), game.observation(state, 1)
    # Rows as in actions, the first at the bottom of the shown board.
    assert (black[0] == [[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]]).all()
    assert (black[1] == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]]).all()
    assert (black[:2] == white[1::-1]).all()
    assert np.argwhere(white[2]).tolist() == [[2, 1]]
    assert not white[3].any()
    assert white[4].all()
    assert not black[4].any()
    after, _ = played(game, "pass", state)
    assert game.observation(after, 0)[3].all()
    assert not game.observation(after, 0)[2].any()


def test_states_of_another_size_are_refused() -> None:
    with pytest.raises(BrokenGame, match="expected one record of go"):
        go(5).legal(go(4).start())


# --- OpenSpiel -----------------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize(
    ("size", "num_episodes"), [(2, 2000), (3, 2000), (9, 1000), (13, 60), (19, 40)]
)
def test_episodes_are_as_openspiel_plays_them(size: int, num_episodes: int) -> None:
    spiel = load_game(f"go(board_size={size},komi=7.5)")
    draws = 0
    for seed in range(num_episodes):
        recorded = compiled(go, size=size).episode(seed)
        follow(recorded, spiel.new_initial_state())
        assert recorded.state["to_play"] == OVER
        draws += not recorded.rewards.any()
    # With half a point of komi only a repeated board is a draw.
    assert draws > 10 or size > 3


@pytest.mark.peer
@pytest.mark.parametrize(("size", "depth"), [(2, 8), (3, 5), (6, 4), (9, 3)])
def test_sequences_are_as_many_as_in_openspiel(size: int, depth: int) -> None:
    start = load_game(f"go(board_size={size},komi=7.5)").new_initial_state()
    for plies in range(1, depth + 1):
        assert compiled(go, size=size).perft(plies) == spiel_perft(start, plies)
