"""Results of plans: pages, notebooks, numbers and comparisons speak of the problem's actions."""

from __future__ import annotations

import json

import numpy as np
import pytest

import uctree
from tests.planning.test_calls import counting, step
from uctree import Problem, Step, UctreeError, games

pytestmark = pytest.mark.usefixtures("both_ways")


def propose(number, tried, k):
    return [name for name in ("add", "double") if name not in tried][:k]


PROBLEMS = {"listed": counting(), "proposed": counting(actions=None, propose=propose)}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_plan_is_saved_as_a_page_and_as_numbers(problem, tmp_path):
    result = uctree.plan(problem, 1, num_simulations=60, seed=1)
    result.save(tmp_path / "plan.html")
    result.save(tmp_path / "plan.json")
    page = (tmp_path / "plan.html").read_text()
    assert page.count('class="chosen"') == 1
    assert "<strong>add</strong>" in page
    saved = json.loads((tmp_path / "plan.json").read_text())
    assert saved["action"] == "add"
    assert [edge["action"] for edge in saved["edges"]] == ["add", "double"]
    assert saved["principal_variation"]["actions"] == ["add", "double", "double"]
    assert "add" in result._repr_html_()
    assert repr(result).startswith("<SearchResult of problem: action 'add'")


def test_a_page_of_a_plan_that_ended_early_asks_for_no_step_that_is_unknown(tmp_path):
    result = uctree.plan(PROBLEMS["listed"], 1, num_simulations=3, seed=1)
    result.save(tmp_path / "plan.html")
    assert "double" in (tmp_path / "plan.html").read_text()


def test_actions_that_are_no_json_data_are_written_as_text(tmp_path):
    moves = [frozenset({1}), ("buy", 2)]
    problem = Problem(
        actions=lambda n: moves, step=lambda n, a: Step(n + 1, float(a == moves[0]), over=n > 1)
    )
    result = uctree.plan(problem, 0, num_simulations=20, seed=1)
    saved = json.loads(json.dumps(result.to_json()))
    assert [edge["action"] for edge in saved["edges"]] == ["frozenset({1})", ["buy", 2]]


def test_plans_are_compared_by_their_actions():
    turned = counting(actions=lambda number: ["double", "add"])
    one = uctree.plan(counting(), 1, num_simulations=60, seed=1)
    other = uctree.plan(turned, 1, num_simulations=40, seed=1)
    comparison = uctree.compare(one, other)
    visits = dict(zip(["add", "double"], comparison.edges["visits"].tolist(), strict=True))
    assert visits["add"] == [one.edges["visits"][0], other.edges["visits"][1]]
    assert ": add" in str(comparison)
    assert [edge["action"] for edge in comparison.to_json()["edges"]] == ["add", "double"]
    with pytest.raises(UctreeError, match="plans from different states"):
        uctree.compare(one, uctree.plan(counting(), 2, num_simulations=10))


def test_the_page_of_a_game_is_what_it_was(tmp_path):
    result = uctree.search(games.tic_tac_toe(), num_simulations=50)
    result.save(tmp_path / "game.html")
    assert f'data-action="{result.action}" class="chosen"' in (tmp_path / "game.html").read_text()
    assert isinstance(result.to_json()["action"], int)


def test_costs_and_failures_are_seen():
    def costly(number, action):
        uctree.spent(usd=0.01, tokens=3)
        if action == "double":
            raise ConnectionError("no line")
        return step(number, action)

    seen = []
    result = uctree.plan(
        counting(step=costly), 1, num_simulations=20, on_error="drop", progress=seen.append
    )
    assert result.costs["usd"] == pytest.approx(0.01 * result.costs["tokens"] / 3)
    assert f"spent usd {result.costs['usd']:.6g}" in str(result)
    assert f"{result.num_failed} actions failed" in str(result)
    assert "double (failed: ConnectionError: no line)" in str(result)
    assert seen[-1].costs["tokens"] > 0
    assert result.to_json()["costs"] == result.costs


def test_a_plan_has_a_history():
    result = uctree.plan(counting(), 1, num_simulations=40, seed=1, retries=1)
    simulations = result.history["simulations"]
    assert (np.diff(simulations) > 0).all()
    assert simulations[-1] == 40
    assert len(simulations) > 20


def test_a_start_that_is_over_is_terminal(tmp_path):
    result = uctree.plan(counting(actions=lambda number: []), 1, num_simulations=20)
    assert (result.status, result.simulations, result.action) == ("terminal", 0, None)
    assert "The episode is over" in str(result)
    result.save(tmp_path / "over.html")
