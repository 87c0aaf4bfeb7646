"""The doctor names what is wrong with broken games, and finds nothing wrong with good ones."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import uctree.games
from tests import broken_games
from tests.broken_games import BROKEN, NEED_MACHINE_CODE, heap_game, report_of, rule_of
from uctree import Game
from uctree.doctor.checkup import check
from uctree.doctor.contract import RULES, Report
from uctree.games import nim, tic_tac_toe

ROOT = Path(__file__).parents[2]

# Small games are quick to check; those not named here are checked as they come.
SMALL = {
    "backgammon": {"hyper": True},
    "checkers": {"quiet": 6},
    "chess": {"fen": "4k2r/8/8/8/8/8/P7/4K2R w Kk - 95 1"},
    "connect_four": {"rows": 4, "cols": 4},
    "kalah": {"pits": 3, "seeds": 2},
    "n_in_a_row": {"rows": 4, "cols": 4, "length": 3},
    "nim": {"heaps": (1, 2, 3)},
    "pig": {"target": 10},
    "twenty48": {"max_tile": 16},
}
SLOW = {"backgammon", "checkers", "chess"}  # in plain Python
EXPECTED = {
    "chess": {"never-pays"},  # by random play from that start
    "nim": {"perspective"},  # misere: the last to move loses, which looks like a mistake
}


def small(name: str) -> Game:
    """A built-in game, on a small board where its factory takes a size."""
    factory = getattr(uctree.games, name)
    options = SMALL.get(name)
    if options is None and "size" in inspect.signature(factory).parameters:
        options = {"size": 5}
    try:
        return factory(**options or {})
    except ValueError:
        return factory()


@pytest.fixture(scope="module")
def good() -> Report:
    return check(tic_tac_toe())


# --- broken games --------------------------------------------------------------------------------


def ways_to_check():
    """Each broken game and whether it is compiled; those that plain Python sees through are too,
    by `make slow`."""
    for name, factory in BROKEN.items():
        if rule_of(factory) in NEED_MACHINE_CODE:
            yield pytest.param(name, True, id=name)
        else:
            yield pytest.param(name, False, id=name)
            yield pytest.param(name, True, id=f"{name}, compiled", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "compiled"), list(ways_to_check()))
def test_a_broken_game_is_found_out(name, compiled):
    report = report_of(name, compiled)
    expected = rule_of(BROKEN[name])
    assert expected in {finding.rule for finding in report.findings}, str(report)
    assert report.ok == (RULES[expected][0] == "warning") or name == "heuristic_is_nan"


def test_what_does_not_compile_is_reported_with_its_line():
    (finding,) = report_of("uses_a_dict").findings
    assert "step does not compile" in finding.message
    assert re.search(r"broken_games\.py, line \d+:  state.to_play = follows", finding.message)


def test_a_divergence_shows_both_results():
    (finding,) = report_of("small_integers_wrap").findings
    assert "field 'total' after step is -56 in plain Python and 200 in compiled" in finding.message
    assert finding.actions == (0,)


def test_rounding_alone_is_a_warning():
    def begin(state):
        state.left = 7
        state.parts[0], state.parts[1], state.parts[2] = 2.0**24, 1.0, 1.0

    def adding(state, action, reward):
        state.sum = state.parts[0] + state.parts[1] + state.parts[2]
        broken_games.step(state, action, reward)

    game = heap_game(start=begin, step=adding, more=[("parts", "f4", (3,)), ("sum", "f4")])
    report = check(game, episodes=5, num_simulations=0)
    assert [(f.rule, f.severity) for f in report.findings] == [("diverges", "warning")]


def test_dangerous_games_are_not_run_compiled():
    report = report_of("writes_out_of_bounds")
    assert "diverges" not in report.checked
    assert "Compiled code was skipped" in str(report)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(TypeError, match="no option 'wise', which is now called heuristic"):
        check("nim", wise=True)
    with pytest.raises(TypeError, match="check has no option 'episode'"):
        check("nim", episode=3)


def test_heuristic_draws_are_no_finding():
    def draw(state, rng):
        return 0

    assert check(heap_game(random_action=draw), heuristic=True, num_simulations=0).findings == ()


def test_hidden_randomness_is_no_divergence():
    for name in ("step_rolls_dice", "step_remembers"):
        assert "diverges" not in {finding.rule for finding in report_of(name).findings}


def test_symmetric_seats_need_a_player_who_begins():
    def start(state):
        broken_games.start(state)
        state.to_play = -1

    game = broken_games.coin_game((0.5, 0.5), (0, 1), start=start, symmetric_seats=True)
    report = check(game, episodes=25, num_simulations=0)
    assert report.ok
    (finding,) = (each for each in report.findings if each.rule == "seat-symmetry")
    assert "no player moves in the start" in finding.message


def test_games_that_keep_what_they_state_have_no_finding():
    def invariant(state, data):
        return state.left <= data[0][0]

    game = heap_game(symmetric_seats=True, invariant=invariant, data=(np.array([7]),))
    report = check(game, episodes=25, num_simulations=0)
    assert report.findings == (), str(report)
    assert {"invariant", "seat-symmetry"} <= set(report.checked)


# --- good games ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", uctree.games.__all__)
def test_no_built_in_game_is_called_wrong(name):
    report = check(small(name), episodes=8 if name in SLOW else 40, num_simulations=0)
    assert report.ok, str(report)
    assert {finding.rule for finding in report.findings} <= EXPECTED.get(name, set()), str(report)


def test_the_tic_tac_toe_of_the_readme_is_right():
    text = (ROOT / "README.md").read_text()
    block = next(code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "legal" in code)
    space = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), space)
    report = check(space["tic_tac_toe"], num_simulations=0)
    assert report.findings == (), str(report)


def test_a_small_game_is_solved_and_searched(good):
    assert good.ok
    assert good.findings == ()
    assert good.states == 4520
    assert "search-against-exact" in good.checked


def test_a_playout_that_misleads_is_seen_by_a_search():
    def begin(state):
        state.left = 200

    def playout(state, rng, reward):
        """Pays the player to move for a lost state, and the reverse."""
        wins = -1.0 if state.left % 3 else 1.0
        reward[state.to_play], reward[1 - state.to_play] = wins, -wins

    report = check(heap_game(start=begin, playout=playout), heuristic=True, episodes=20)
    assert [finding.rule for finding in report.findings] == ["search-against-exact"], str(report)
    assert report.states is not None


def test_what_no_walk_meets_the_solver_meets():
    def begin(state):
        state.left = 24

    def rare(state, action, reward):
        state.run = state.run + 1 if action == 1 else 0
        if state.run == 12:  # one episode in thousands takes two every time
            state.left = state.board[state.run]
        broken_games.step(state, action, reward)

    game = heap_game(start=begin, step=rare, more=[("run", "i1"), ("board", "i1", (3,))])
    report = check(game, episodes=10)
    assert [finding.rule for finding in report.findings] == ["out-of-bounds"], str(report)
    assert "after the actions [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]" in str(report)


def test_the_same_seed_gives_the_same_report():
    reports = [check(nim((1, 2)), seed=3, num_simulations=0) for _ in range(2)]
    assert reports[0].findings == reports[1].findings
    assert reports[0].plies == reports[1].plies


def test_nothing_is_printed_and_no_state_is_left(capsys):
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    check(tic_tac_toe(), episodes=3, num_simulations=0)
    assert (np.random.get_state()[1] == before).all()
    assert capsys.readouterr().out == ""
