"""Exact values against rules of thumb that are proven, and against slow obvious programs."""

from __future__ import annotations

import contextlib
import functools
import json
import operator

import numpy as np
import pytest

from tests import exact
from tests.pages.results import Reader
from tests.random_games import random_game, roots
from uctree import CHANCE, OVER, Game, UctreeError
from uctree.games import connect_four, nim, pig, tic_tac_toe
from uctree.solver import solve

pytestmark = pytest.mark.quick

# --- games whose values are known ----------------------------------------------------------------


def test_tic_tac_toe_is_a_draw():
    solution = solve("tic_tac_toe")
    assert solution.value.tolist() == [0, 0]
    assert solution.states == 5478 - 958  # published: all states, and those that are over
    assert not solution.cyclic
    assert solution.action == 0  # all nine are draws, and the first of equals is taken
    assert [value.tolist() for value in solution.action_values.values()] == [[0, 0]] * 9


def test_a_won_position_is_seen_as_won():
    game = tic_tac_toe()
    solution = solve(game, game.play([0, 3, 1, 4]))
    assert solution.action == 2
    assert solution.value.tolist() == [1, -1]
    assert solution.action_values[8].tolist() == [-1, 1]


@pytest.mark.parametrize("misere", [False, True])
def test_nim_is_won_as_sprague_and_grundy_say(misere):
    game = nim((2, 3, 4), misere=misere)
    solution = solve(game)
    compared = 0
    for *heaps, player in np.ndindex(3, 4, 5, 2):
        wins = functools.reduce(operator.xor, heaps) != 0
        if misere and max(heaps) == 1:
            wins = not wins
        state = game.start()
        state["heaps"], state["to_play"] = heaps, player
        with contextlib.suppress(ValueError):  # near the start only one of the two can be to play
            assert solution.value_of(state)[player] == (1 if wins else -1), heaps
            compared += 1
    assert compared == solution.states > 100


def test_connect_four_on_five_columns_and_four_rows_is_a_draw():
    solution = solve(connect_four(rows=4, cols=5))
    assert solution.value.tolist() == [0, 0]
    losing = [action for action, value in solution.action_values.items() if value[0] < 0]
    assert losing == [0, 4]


def test_pig_has_the_value_of_an_independent_iteration():
    target = 8
    win = np.full((target, target, target), 0.5)  # [mine, other's, turn]: who is to move wins
    for _ in range(200):
        for mine, other, turn in np.ndindex(win.shape):
            if mine + turn >= target:
                win[mine, other, turn] = 1.0
                continue
            roll = (1 - win[other, mine, 0]) / 6
            for face in range(2, 7):
                roll += (win[mine, other, turn + face] if mine + turn + face < target else 1) / 6
            win[mine, other, turn] = max(roll, 1 - win[other, mine + turn, 0])
    game = pig(target)
    solution = solve(game)
    assert solution.cyclic
    assert solution.value[0] == pytest.approx(2 * win[0, 0, 0] - 1, abs=1e-10)
    state = game.start()
    state["scores"], state["turn_total"] = (3, 5), 2
    assert solution.value_of(state)[0] == pytest.approx(2 * win[3, 5, 2] - 1, abs=1e-10)


# --- random games against recursion --------------------------------------------------------------


def value_by_recursion(game, state):
    """max^n with chance, as one would write it down."""
    player = game.to_play(state)
    if player == OVER:
        return np.zeros(game.num_players)

    def after(action):
        following, reward = game.step(state, action)
        return reward + game.discount * value_by_recursion(game, following)

    if player == CHANCE:
        return sum(p * after(outcome) for outcome, p in game.outcomes(state))
    values = [after(action) for action in game.legal(state)]
    return max(values, key=lambda value: value[player])  # the first of equals


@pytest.mark.parametrize(
    "shape", ["alone, with dice", "two, known range", "three", "three, with dice"]
)
def test_random_games_have_the_value_of_plain_recursion(shape):
    game = random_game(shape)
    for root in roots(game)[:3]:
        for _ in range(12):  # down to where recursion takes no time
            if not game.is_over(root):
                root, _reward = game.step(root, game.legal(root)[0])
            if root["place"] % 30 >= 16:
                break
        solution = solve(game, root)
        assert solution.value == pytest.approx(value_by_recursion(game, root), abs=1e-12)


# --- circles -------------------------------------------------------------------------------------

Ring = np.dtype([("place", np.int8), ("to_play", np.int8)])


def ring_game(pays_at_two=1.0, pays_each_step=0.0):
    """Two players walk on a ring of five; at place 2 who moves may end the episode."""

    def legal(state, actions):
        actions[0], actions[1], actions[2] = 0, 1, 2
        return 3 if state.place == 2 else 2

    def step(state, action, reward):
        player = state.to_play
        reward[player] += pays_each_step
        if action == 2:
            reward[player], reward[1 - player] = pays_at_two, -pays_at_two
            state.to_play = OVER
            return
        state.place = (state.place + (1 if action == 0 else 4)) % 5
        state.to_play = 1 - player

    return Game(Ring, legal, step, num_players=2, num_actions=3, name="ring")


def test_endless_play_is_worth_nothing():
    solution = solve(ring_game(pays_at_two=-1.0))  # nobody wants to end it
    assert solution.cyclic
    assert solution.states == solution.endless == 10
    assert solution.value.tolist() == [0, 0]


def test_a_win_is_found_where_play_can_go_in_circles():
    game = ring_game()
    solution = solve(game)
    state = game.start()
    state["place"], state["to_play"] = 2, 1
    assert solution.value_of(state).tolist() == [-1, 1]
    assert solution.value.tolist() == [0, 0]  # each keeps away from the neighbours of place 2
    state["place"] = 1
    assert solve(game, state).action == 1  # away from 2, where the other would win


def test_values_do_not_depend_on_where_the_solver_starts():
    """S (max) to R or X; R (min) to D, X or a loss; D to R or a win; X (max) to D or Z; Z to X."""
    # At S the solver meets R before X. While R is not known to lose, D, X and Z seem worth 0.5, and
    # X and Z, which lead to each other, would keep that.
    s, r, d, x, z, loss, win = range(7)
    choices = [(r, x), (d, x, loss), (r, win), (d, z), (x,)]
    mover = np.array([0, 1, CHANCE, 0, 1], np.int8)
    first = np.cumsum([0, *map(len, choices)])
    after = np.array([place for leads in choices for place in leads], np.int32)
    paid = np.array([{loss: (-1.0, 1.0), win: (1.0, -1.0)}.get(a, (0.0, 0.0)) for a in after])
    after[after >= loss] = -1
    game = exact.looping_game(1)
    game.data = (mover, first, after, paid, np.full(len(after), 0.5))
    values = {s: 0, r: -1, d: 0, x: 0, z: 0}
    for root in values:
        solution = solve(game, exact.looping_state(game, root))
        for place in values if root == s else (root,):
            state = exact.looping_state(game, place)
            assert solution.value_of(state).tolist() == [values[place], -values[place]]
            assert solution.is_endless(state) == (place in (s, x, z))
    assert "(5 states; play can go in circles, which matters in 3)\n" in str(
        solve(game, exact.looping_state(game, s))
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repetition_value": (0.5, -0.5), "seed": 1},
        {"repetition_value": (-1.5, 1.5), "seed": 2, "share_of_chance": 0.1},
        {"pays": -0.25, "seed": 3},
        {"pays": 0.25, "seed": 4, "repetition_value": (0.25, -0.25)},
        {"discount": 0.9, "pays": 0.5, "seed": 5},
        {"num_players": 1, "seed": 6, "num_places": 8},
        {"num_players": 1, "pays": -1.0, "seed": 7},
        {"num_players": 1, "discount": 0.95, "pays": -0.5, "seed": 8},
    ],
    ids=str,
)
def test_values_of_play_in_circles_are_those_of_all_strategies(options):
    num_games, num_places = 200, options.get("num_places", 6)
    game = exact.looping_game(num_games, **options)
    solution, compared, endless = solve(game), 0, 0
    for first in range(1, num_games * num_places, num_places):
        values = exact.values_by_enumeration(game, first, num_places)
        for place, value in enumerate(values, first):
            state = exact.looping_state(game, place)
            with contextlib.suppress(ValueError):  # a place that play cannot reach
                assert solution.value_of(state)[0] == pytest.approx(value, abs=1e-9), place
                compared += 1
                endless += solution.is_endless(state)
    assert compared > 400
    assert (endless == 0) == ("discount" in options)
    assert solution.endless >= endless


def test_several_players_are_solved_where_never_ending_play_does_not_matter():
    game = exact.looping_game(1, num_players=3, discount=0.5, seed=16)
    solution = solve(game)
    assert solution.cyclic
    for place in range(7):
        state = exact.looping_state(game, place)
        with contextlib.suppress(ValueError):  # a place that play cannot reach
            values = {a: exact_return(solution, state, a) for a in game.legal(state)}
            if game.to_play(state) == CHANCE:
                value = sum(p * values[a] for a, p in game.outcomes(state))
            else:
                value = max(values.values(), key=lambda value: value[game.to_play(state)])
            assert solution.value_of(state) == pytest.approx(value, abs=1e-9)


def exact_return(solution, state, action):
    after, reward = solution.game.step(state, action)
    return reward + solution.game.discount * solution.value_of(after)


def test_several_players_who_may_go_on_for_ever_are_refused():
    with pytest.raises(UctreeError, match=r"values of 6 of its 7 states are not defined"):
        solve(exact.looping_game(1, num_players=3, seed=1))


def test_never_ending_play_must_pay_both_together_what_ends_pay():
    game = exact.looping_game(20, repetition_value=(0.5, 0.0))
    with pytest.raises(UctreeError, match=r"ends pay the players 0 together.*\[0.5, 0.0\]"):
        solve(game)


def test_rewards_that_come_and_go_for_ever_are_refused():
    game = exact.looping_game(1)
    mover, first = np.zeros(2, np.int8), np.array([0, 2, 3])
    after = np.array([1, -1, 0], np.int32)
    paid = np.array([[1.0, -1.0], [-2.0, 2.0], [-1.0, 1.0]])
    game.data = (mover, first, after, paid, np.ones(3))
    with pytest.raises(UctreeError, match="depend on rewards whose sum need not have a limit"):
        solve(game)


def test_values_that_grow_without_end_are_refused():
    with pytest.raises(UctreeError, match=r"are not defined.*discount below 1"):
        solve(ring_game(pays_each_step=1.0))


# --- edges ---------------------------------------------------------------------------------------


def test_a_game_that_is_too_large_says_what_to_do():
    with pytest.raises(UctreeError, match=r"more than 1,000 states.*raise max_states="):
        solve(connect_four(rows=4, cols=5), max_states=1000)


def test_a_bound_that_is_none_is_refused():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        solve(tic_tac_toe(), max_states=0)


def test_an_episode_that_is_over_is_worth_nothing_more():
    game = tic_tac_toe()
    solution = solve(game, game.play([0, 3, 1, 4, 2]))
    assert (solution.action, solution.action_values, solution.states) == (None, {}, 0)
    assert solution.value.tolist() == [0, 0]


def test_at_a_chance_state_outcomes_have_values_and_no_action_is_best():
    game = pig(8)
    solution = solve(game, game.play([0]))
    assert solution.action is None
    assert list(solution.action_values) == [0, 1, 2, 3, 4, 5]
    mean = np.mean(list(solution.action_values.values()), axis=0)
    assert solution.value == pytest.approx(mean, abs=1e-10)


def test_a_state_that_cannot_follow_has_no_value_here():
    game = tic_tac_toe()
    solution = solve(game, game.play([0]))
    with pytest.raises(ValueError, match="cannot follow"):
        solution.value_of(game.play([1, 2]))


def test_plain_python_finds_the_same(monkeypatch):
    game = nim((1, 2))
    compiled = solve(game)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plain = solve(game)
    assert (plain.value == compiled.value).all()
    assert plain.states == compiled.states
    assert solve(ring_game()).value.tolist() == [0, 0]


def test_a_solution_is_printed_with_board_values_and_the_best_actions():
    game = tic_tac_toe()
    assert str(solve(game, game.play([0, 4, 8]))).splitlines() == [
        "X . .",
        ". O .",
        ". . X",
        "",
        "tic_tac_toe, player 1 to move; best: 2, 4, 6, 8",
        "value +0 for player 0, +0 for player 1 (153 states)",
        "",
        "action  player 0  player 1",
        *(f"     {cell}        +0        +0" for cell in (2, 4, 6, 8)),
        "     3        +1        -1",
        "     7        +1        -1",
    ]
    over = solve(game, game.play([0, 1, 4, 2, 8]))
    assert str(over).endswith("\ntic_tac_toe: the episode is over, there is nothing to solve")
    assert over.best_actions == []
    chance = solve("pig(6)", pig(6).play([0]))
    assert "chance to move\nvalue " in str(chance)


def test_a_solution_goes_through_json():
    data = json.loads(json.dumps(solve(nim((2, 1)), None).to_json()))
    assert (data["value"], data["action"], data["best_actions"]) == ([1, -1], 2, [2])
    assert data["action_values"][0] == {"action": 0, "value": [-1, 1]}
    assert data["states"] > 0


def test_a_notebook_shows_a_solution_and_text_cannot_become_markup():
    game = Game(
        [("to_play", np.int8)], _one, _end, num_players=1, num_actions=1, name="<b>",
        show=lambda state: "<i>", show_action=lambda state, action: "<u>",
    )  # fmt: skip
    page = solve(game)._repr_html_()
    Reader(page)
    assert page.startswith(
        "<pre>&lt;i&gt;</pre><p>&lt;b&gt;, player 0 to move; best: &lt;u&gt;</p>"
    )
    assert "<tr><td>&lt;u&gt;</td><td>+1</td></tr>" in page


def _one(state, actions):
    actions[0] = 0
    return 1


def _end(state, action, reward):
    reward[0] = 1.0
    state.to_play = OVER
