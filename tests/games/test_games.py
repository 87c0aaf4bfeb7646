"""All games in `uctree.games`: compiled against plain rules, OpenSpiel, recorded episodes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import uctree.games
from tests import chi_square
from tests.games.openspiel import (
    Translated,
    breakthrough_actions,
    checkers_actions,
    follow,
    kalah_actions,
    load_game,
    spiel_perft,
    ultimate_actions,
)
from tests.games.variants import BOARDS, DISCRETE, VARIANTS, Variant, compiled
from tests.record import GOLDEN, episode_text
from uctree import Game, IllegalAction
from uctree.doctor.walk import Case, Limits, look_at_seats, start_of, walk_at_random
from uctree.engine.bindings import bound_rule
from uctree.engine.compile import compile_kernel
from uctree.game import StateView, make_rng
from uctree.games import (
    breakthrough,
    checkers,
    connect_four,
    dots_and_boxes,
    go,
    hex,
    kalah,
    loss_game,
    n_in_a_row,
    nim,
    othello,
    pig,
    point_mass,
    tic_tac_toe,
    twenty48,
    ultimate_tic_tac_toe,
)
from uctree.kernels.binding import UNBOUND


# The scope makes pytest finish one game before the next, so that few workers compile the same one.
@pytest.fixture(scope="module", params=DISCRETE)
def factory(request: pytest.FixtureRequest) -> Any:
    return getattr(uctree.games, request.param)


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    return VARIANTS[request.param]


@pytest.fixture(scope="module", params=BOARDS)
def board(request: pytest.FixtureRequest) -> Variant:
    """Othello, breakthrough and hex in several sizes."""
    return BOARDS[request.param]


# --- all games -----------------------------------------------------------------------------------


def test_seats_are_symmetric_where_the_doctor_finds_them_so(variant: Variant) -> None:
    """The others have a goal, a border or a komi of one player's own."""
    game = variant.make()
    if game.num_players == 1:
        assert not game.symmetric_seats
        return
    game = copy.copy(game)
    game.symmetric_seats, declared = True, game.symmetric_seats
    case = Case(game, seed=0, limits=Limits(plies=1500, inspected=2))
    start = start_of(case)
    walk_at_random(case, start, 20)
    look_at_seats(case, start)
    assert ("seat-symmetry" not in case.findings) == declared


def test_games_are_listed_in_order() -> None:
    assert sorted(uctree.games.__all__) == uctree.games.__all__


@pytest.mark.quick
def test_compiled_and_plain_rules_agree(variant: Variant) -> None:
    game = variant.make()
    for seed in range(variant.num_episodes):
        recorded = variant.compiled().episode(seed)
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


@pytest.mark.quick
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


@pytest.mark.quick
def test_board_games_pay_a_winner_a_loser_or_nobody_at_the_end(board: Variant) -> None:
    game = board.make()
    draws = 0
    for seed in range(300):
        recorded = board.compiled().episode(seed)
        returns = recorded.rewards.sum(axis=0).tolist()
        assert returns in ([1, -1], [-1, 1], [0, 0])
        assert (recorded.rewards[:-1] == 0).all()
        assert len(recorded.actions) <= game.max_plies
        draws += returns == [0, 0]
    assert (draws > 0) == game.name.startswith("othello")


PICKLED = {
    **VARIANTS,
    "go_5x5": Variant(go, {"size": 5, "komi": 0.5}),
    "dots_and_boxes_2x3": Variant(dots_and_boxes, {"cols": 3}),
    "dots_and_boxes_2x3_win": Variant(dots_and_boxes, {"cols": 3, "pays": "win"}),
}


@pytest.mark.parametrize("name", PICKLED)
def test_pickled_games_play_the_same_episode(name: str) -> None:
    game = PICKLED[name].make()
    copy = pickle.loads(pickle.dumps(game))
    assert repr(copy) == repr(game)
    assert episode_text(copy) == episode_text(game)
    assert copy.random_episode(seed=3).actions == game.random_episode(seed=3).actions
    if game.rules.playout is not None:
        assert (played_out(game) == played_out(copy)).all()


def played_out(game: Game) -> np.ndarray:
    """The returns of the game's own playout from the start, in plain Python."""
    reward = np.zeros(game.num_players)
    data = (game.data,) if game.takes_data("playout") else ()
    with np.errstate(over="ignore"):
        game.rules.playout(StateView(game.start()), make_rng(1), reward, *data)
    return reward


@pytest.mark.quick
def test_the_recorded_episode_is_played_again(factory: Any) -> None:
    path = GOLDEN / f"episode_{factory.__name__}.txt"
    assert episode_text(factory()) == path.read_text(), "run `make golden` if this is intended"


@pytest.mark.quick
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


def test_actions_on_a_board_are_read_in_either_case(board: Variant) -> None:
    game = board.make()
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


@pytest.mark.parametrize("factory", [tic_tac_toe, connect_four, n_in_a_row])
def test_planes_begin_with_the_observer(factory: Any) -> None:
    game = factory()
    state = game.play(game.random_episode(seed=2).actions[:5])
    planes = game.observation(state, 0)
    assert planes[0].sum() == 3
    assert planes[1].sum() == 2
    assert (game.observation(state, 1) == planes[::-1]).all()


def test_planes_of_a_board_begin_with_the_observer(board: Variant) -> None:
    game = board.make()
    state = game.play(game.random_episode(seed=2).actions[:5])
    planes = [game.observation(state, player) for player in range(2)]
    assert (planes[0][:2] == planes[1][1::-1]).all()
    assert planes[0][0].sum() > 0
    text = "".join(line[line.find(" ") :] for line in game.show(state).splitlines())
    assert planes[0][0].sum() == text.count("X")
    assert planes[0][1].sum() == text.count("O")
    if len(planes[0]) == 3:  # the players have different goals
        assert (planes[0][2] == 0).all()
        assert (planes[1][2] == 1).all()


@pytest.mark.parametrize("factory", [n_in_a_row, twenty48])
def test_playouts_of_a_game_pay_what_its_steps_pay(factory: Any) -> None:
    game = compiled(factory)
    stepwise = np.array([game.episode(seed).rewards.sum(axis=0) for seed in range(2000)])
    at_once = np.array([game.playout(seed) for seed in range(2000)])
    error = np.sqrt((stepwise.var(axis=0) + at_once.var(axis=0)) / 2000)
    assert (abs(stepwise.mean(axis=0) - at_once.mean(axis=0)) < 4 * error).all()
    assert (abs(np.log(stepwise.std(axis=0) / at_once.std(axis=0))) < 0.1).all()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("factory", "parameters", "message"),
    [
        (connect_four, {"rows": 8, "cols": 7}, "at most 62; got rows=8, cols=7"),
        (connect_four, {"rows": 0}, "at most 62; got rows=0"),
        (loss_game, {"dim": 0}, "dim must be a whole number from 1 to 1000; got 0"),
        (loss_game, {"dim": 1.5}, "dim must be a whole number from 1 to 1000; got 1.5"),
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
        (othello, {"size": 7}, "must be 4, 6 or 8; got 7"),
        (othello, {"size": 10}, "must be 4, 6 or 8; got 10"),
        (breakthrough, {"rows": 2}, "rows must be at least 3, .*; got rows=2, cols=8"),
        (breakthrough, {"cols": 1}, "cols at least 2 .*; got rows=8, cols=1"),
        (breakthrough, {"rows": 9}, r"rows \* cols at most 64; got rows=9, cols=8"),
        (hex, {"size": 1}, "from 2 to 19; got 1"),
        (hex, {"size": 20}, "from 2 to 19; got 20"),
        (dots_and_boxes, {"rows": 0}, "rows and cols must be from 1 to 25; got rows=0, cols=2"),
        (dots_and_boxes, {"cols": 26}, "rows and cols must be from 1 to 25; got rows=2, cols=26"),
        (dots_and_boxes, {"pays": "money"}, 'pays must be "boxes" or "win"; got \'money\''),
        (go, {"size": 1}, "size must be from 2 to 19; got 1"),
        (go, {"size": 20}, "size must be from 2 to 19; got 20"),
        (go, {"komi": float("nan")}, "komi must be a finite number; got nan"),
        (go, {"komi": float("inf")}, "komi must be a finite number; got inf"),
        (go, {"playouts": "clever"}, 'playouts must be "uniform" or "heuristic"; got \'clever\''),
        (kalah, {"pits": 0}, "pits and seeds must be from 1 to 12; got pits=0, seeds=4"),
        (kalah, {"seeds": 13}, "pits and seeds must be from 1 to 12; got pits=6, seeds=13"),
        (
            connect_four,
            {"playouts": "perfect"},
            'must be "uniform" or "heuristic"; got \'perfect\'',
        ),
    ],
)
def test_parameters_out_of_range_are_refused(
    factory: Any, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        factory(**parameters)


@pytest.mark.parametrize("factory", [connect_four, go])
def test_the_old_word_for_heuristic_playouts_is_refused_with_a_hint(factory: Any) -> None:
    with pytest.raises(ValueError, match="got 'wise', which is now called \"heuristic\""):
        factory(playouts="wise")


@pytest.mark.parametrize("name", ["othello", "breakthrough", "hex"])
def test_a_search_finds_the_last_action_of_an_episode(name: str) -> None:
    game = BOARDS[name].make()
    for seed in range(5):
        recorded = BOARDS[name].compiled().episode(seed)
        player = recorded.players[-1]
        state = game.play(recorded.actions[:-1])
        result = uctree.search(game, state, num_simulations=2000, seed=seed)
        _, reward = game.step(state, result.action)
        assert reward[player] == max(game.step(state, a)[1][player] for a in game.legal(state))


# --- random actions ------------------------------------------------------------------------------

random_action = UNBOUND

DRAWING = {
    **BOARDS,
    "go_5x5": Variant(go, {"size": 5}),
    "dots_and_boxes": Variant(dots_and_boxes),
    "n_in_a_row": Variant(n_in_a_row),
}


def draw_actions(states: Any, counts: Any, firsts: Any, rng: Any, num_draws: int, data: Any) -> int:
    for i in range(num_draws):
        action = random_action(states[0], rng, data)
        counts[action] += 1
        if i < len(firsts):
            firsts[i] = action
    return 0


@pytest.mark.parametrize("name", DRAWING)
def test_random_actions_are_uniform_over_the_legal_ones(name: str) -> None:
    game = DRAWING[name].make()
    states, firsts = np.zeros(1, game.dtype), np.zeros(50, np.int64)
    arguments = (states, np.zeros(game.num_actions, np.int64), firsts, make_rng(0), 0, game.data)
    bound = {"random_action": bound_rule(game, "random_action")}
    kernel = compile_kernel(draw_actions, bound, arguments, label="random actions")
    for seed in range(6):
        actions = game.random_episode(seed).actions
        state = game.play(actions[: len(actions) * seed // 6])
        states[0] = state
        legal = game.legal(state)
        counts = np.zeros(game.num_actions, np.int64)
        num_draws = max(20_000, 400 * len(legal))
        kernel.call(states, counts, firsts, make_rng(seed), num_draws, game.data)
        assert counts[legal].sum() == num_draws
        assert chi_square.deviations(counts[legal]) <= 4.5
        rng = make_rng(seed)
        with np.errstate(over="ignore"):
            plain = [game.rules.random_action(StateView(state), rng) for _ in firsts]
        assert (firsts == plain).all()


# --- OpenSpiel -----------------------------------------------------------------------------------

# Each game beside the same game in OpenSpiel, and how deep to count; go and dots and boxes are
# compared in their own files.
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
    "checkers": (checkers, {}, "checkers", 6),
    "kalah": (kalah, {}, "mancala", 7),
    "ultimate_tic_tac_toe": (ultimate_tic_tac_toe, {}, "ultimate_tic_tac_toe", 3),
}  # fmt: skip


# Games whose actions have other numbers in OpenSpiel.
TRANSLATED = {
    "breakthrough": breakthrough_actions,
    "checkers": checkers_actions,
    "mancala": kalah_actions,
    "ultimate_tic_tac_toe": ultimate_actions,
}


def start_of_peer(peer: str) -> Any:
    start = load_game(peer).new_initial_state()
    actions = TRANSLATED.get(peer.split("(")[0])
    return start if actions is None else Translated(start, actions)


@pytest.mark.peer
@pytest.mark.parametrize("name", PEERS)
def test_sequences_are_as_many_as_in_openspiel(name: str) -> None:
    factory, parameters, peer, depth = PEERS[name]
    start = start_of_peer(peer)
    assert compiled(factory, **parameters).perft(depth) == spiel_perft(start, depth)


@pytest.mark.peer
@pytest.mark.parametrize("name", PEERS)
def test_1000_episodes_are_as_openspiel_plays_them(name: str) -> None:
    factory, parameters, peer, _ = PEERS[name]
    game = compiled(factory, **parameters)
    for seed in range(1000):
        follow(game.episode(seed), start_of_peer(peer))


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
