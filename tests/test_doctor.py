"""The doctor names what is wrong with broken games, and finds nothing wrong with good ones."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import uctree.games
from tests import broken_games
from tests.broken_games import BROKEN, heap_game, rule_of
from uctree import Game
from uctree.doctor import RULES, Report, check
from uctree.games import nim, tic_tac_toe

ROOT = Path(__file__).parent.parent

# Small games are quick to check; those not named here are checked as they come.
SMALL = {
    "connect_four": {"rows": 4, "cols": 4},
    "n_in_a_row": {"rows": 4, "cols": 4, "length": 3},
    "nim": {"heaps": (1, 2, 3)},
    "pig": {"target": 10},
    "twenty48": {"max_tile": 16},
}
EXPECTED = {"nim": {"perspective"}}  # misere: who moves last loses, which looks like a mistake


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


@cache
def report_of(name: str) -> Report:
    # A search is compiled for one game below; here it would take most of the time.
    return check(BROKEN[name](), num_simulations=0)


@pytest.fixture(scope="module")
def good() -> Report:
    return check(tic_tac_toe())


# --- broken games --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_game_is_found_out(name):
    report = report_of(name)
    expected = rule_of(BROKEN[name])
    assert expected in {finding.rule for finding in report.findings}, str(report)
    assert report.ok == (RULES[expected][0] == "warning") or name == "heuristic_is_nan"


def test_every_broken_game_names_a_rule_that_exists():
    assert {rule_of(factory) for factory in BROKEN.values()} <= set(RULES)
    assert len(BROKEN) >= 25


def test_the_way_to_a_breach_is_the_shortest():
    finding = report_of("writes_out_of_bounds").findings[0]
    assert finding.actions == (0, 0, 0, 0)
    finding = report_of("nothing_is_legal").findings[0]
    assert len(finding.actions) == 3  # two and two and two leave one
    finding = report_of("counter_overflows").findings[0]
    assert len(finding.actions) == 4


def test_repeating_the_actions_shows_the_breach():
    game = BROKEN["divides_by_zero"]()
    (finding,) = report_of("divides_by_zero").findings
    with pytest.raises(ZeroDivisionError):
        game.play(finding.actions)


def test_what_does_not_compile_is_told_with_its_line():
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
    assert "Compiled code was not run" in str(report)


def test_a_start_that_raises_is_a_finding():
    def start(state):
        state.left = 10**6

    report = check(heap_game(start=start))
    assert [finding.rule for finding in report.findings] == ["overflow"]
    assert report.episodes == 0


def test_wise_draws_are_no_finding():
    def draw(state, rng):
        return 0

    assert check(heap_game(random_action=draw), wise=True, num_simulations=0).findings == ()


# --- good games ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", uctree.games.__all__)
def test_no_built_in_game_is_called_wrong(name):
    report = check(small(name), episodes=40, num_simulations=0)
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
        """Says that who is to play has won where that player is lost, and the reverse."""
        wins = -1.0 if state.left % 3 else 1.0
        reward[state.to_play], reward[1 - state.to_play] = wins, -wins

    report = check(heap_game(start=begin, playout=playout), wise=True, episodes=20)
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


# --- the report ----------------------------------------------------------------------------------


def test_a_report_is_a_line_for_each_rule(good):
    lines = str(good).splitlines()
    assert re.fullmatch(
        r"tic_tac_toe: ok   \(200 episodes, [\d,]+ plies, solved: 4,520 states, [\d.]+ s\)",
        lines[0],
    )
    assert [line.split()[1] for line in lines[2:]] == list(good.checked)
    assert all(line.split()[0] == "ok" for line in lines[2:])


def test_a_finding_is_told_with_actions_and_cure():
    text = str(report_of("nothing_is_legal"))
    assert text.startswith("heap: not ok")
    assert re.search(r"\n  FAIL  legal-count ", text)
    assert re.search(
        r"\nerror: legal-count\n  legal returned 0; expected 1 to 2\n  after the actions \[", text
    )
    assert RULES["legal-count"][2] in text


def test_a_report_goes_through_json():
    report = report_of("nothing_is_legal")
    known = json.loads(json.dumps(report.to_json()))
    assert known == report.to_json()
    assert known["ok"] is False
    assert known["findings"][0]["rule"] == "legal-count"
    assert known["findings"][0]["actions"] == list(report.findings[0].actions)


def test_the_page_on_the_doctor_has_every_rule():
    text = (ROOT / "docs" / "doctor.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)` ", text, re.M)) == set(RULES)


def test_nothing_is_printed_and_no_state_is_left(capsys):
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    check(tic_tac_toe(), episodes=3, num_simulations=0)
    assert (np.random.get_state()[1] == before).all()
    assert capsys.readouterr().out == ""
