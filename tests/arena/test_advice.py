"""Advice: measurements, dropped rules, and what the report says of noise."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import uctree
from uctree import UctreeError, games
from uctree.arena import Advice, advise, random_states
from uctree.arena.advice import fitting_rules, num_decisions, num_rules_at_budgets
from uctree.arena.references import Reference

NIM = games.nim(heaps=(2, 3, 4))


@pytest.fixture(scope="module")
def on_nim():
    """Two rules on nim, whose values are exact."""
    return advise(
        NIM, num_positions=25, rules=["ucb1()", "ucb1(c=0.5)"], budgets=[2, 30, 600], num_seeds=2
    )


def made(losses, *, rules=("a()", "b()"), budgets=(10, 100), doubtful=0, exact=True, decisions=1):
    """An advice from losses by rule and budget, one list over states each."""
    n = len(next(iter(losses.values())))
    references = [Reference({0: 1.0, 1: 0.0}, 1.0, 0.01, exact, i < doubtful) for i in range(n)]
    table = {key: np.array(each, float)[:, None] for key, each in losses.items()}
    return Advice(
        NIM, n, references, 1000, 0.01, 1, list(rules), list(budgets), table, "complete", {},
        decisions,
    )  # fmt: skip


# --- measurements --------------------------------------------------------------------------------


def test_more_simulations_agree_more_with_exact_values(on_nim):
    first = [row for row in on_nim.table if row.rule == "ucb1()"]
    assert [row.simulations for row in first] == [2, 30, 600]
    assert first[0].agreement < first[2].agreement
    assert first[0].agreement_interval[1] < first[2].agreement
    assert first[0].loss_interval[0] > first[2].loss
    assert on_nim.simulations > 2


def test_a_budget_that_never_errs_is_as_good_as_twice_the_simulations():
    found = advise(
        NIM, num_positions=15, rules=["ucb1(c=0.5)"], budgets=[2, 2_000, 4_000], num_seeds=1,
        solver=True,
    )  # fmt: skip
    assert found.simulations == 2_000
    assert "2,000 simulations are as good as 4,000" in str(found)


def test_a_short_reference_is_called_doubtful():
    game = games.connect_four()
    found = advise(
        game, num_positions=8, rules=["ucb1()"], budgets=[2], num_seeds=1, max_states=0,
        reference_simulations=10,
    )  # fmt: skip
    assert any(reference.doubtful for reference in found.references)
    assert "the reference is unreliable" in str(found)


def test_chance_games_are_measured_too():
    found = advise("pig(20)", num_positions=4, rules=["ucb1()"], budgets=[10, 100], num_seeds=1)
    assert all(reference.exact for reference in found.references)
    assert all(0 <= row.agreement <= 1 for row in found.table)


def test_the_same_seed_gives_the_same_advice():
    arguments = {"num_positions": 4, "rules": ["ucb1()"], "budgets": [5, 20], "num_seeds": 2}
    one, other = (advise(NIM, seed=1, **arguments).to_json() for _ in range(2))
    assert one == other
    assert advise(NIM, seed=2, **arguments).to_json() != one


def test_rules_are_dropped_as_budgets_grow():
    assert num_rules_at_budgets(12, 7) == [12, 12, 6, 3, 3, 3, 3]
    assert num_rules_at_budgets(2, 3) == [2, 2, 2]
    rules = ["ucb1()", "ucb1(c=0.5)", "ucb1(c=0.7)", "ucb1(c=100)"]
    found = advise(NIM, num_positions=12, rules=rules, budgets=[50, 100, 200], num_seeds=2)
    last = [row.rule for row in found.table if row.simulations == 200]
    assert len(last) == 3
    assert last[0] == "ucb1()"


def worthless(state, values):
    values[0], values[1] = 0.0, 0.0


def worthless_with_priors(state, values, priors):
    values[0], values[1] = 0.0, 0.0
    priors[:] = 1.0


def test_rules_that_do_not_fit_are_left_out_unless_they_were_given():
    assert "rave()" in fitting_rules(NIM, None, {})
    found = fitting_rules(NIM, None, {"evaluator": worthless})
    assert "rave()" not in found
    assert next(iter(found)) == "ucb1()"
    with pytest.raises(UctreeError, match=r"selection rave\(\): .*worthless has none"):
        fitting_rules(NIM, ["ucb1()", "rave()"], {"evaluator": worthless})


def test_with_priors_the_rules_are_those_that_use_them():
    found = fitting_rules(NIM, None, {"evaluator": worthless_with_priors})
    assert next(iter(found)) == "puct()"
    assert all(rule.startswith(("puct", "one_loop")) for rule in found)


# --- states --------------------------------------------------------------------------------------


def test_random_states_are_different_and_have_a_choice():
    game = games.connect_four()
    states = random_states(game, 10, seed=4)
    assert len({game.key(state) for state in states}) == 10
    assert all(len(game.legal(state)) > 1 for state in states)
    keys = [game.key(state) for state in random_states(game, 10, seed=4)]
    assert keys == [game.key(state) for state in states]


def test_random_states_follow_the_state_they_begin_at():
    game = games.tic_tac_toe()
    root = game.play([4, 0])
    first, *others = random_states(game, 6, root=root)
    assert game.key(first) == game.key(root)
    for state in others:
        assert not {0, 4} & set(game.legal(state))


def test_states_without_a_choice_are_left_out_and_reported():
    game = games.tic_tac_toe()
    over, last = game.play([0, 3, 1, 4, 2]), game.play([0, 1, 2, 4, 3, 5, 7, 6])
    found = advise(game, [game.start(), over, last], rules=["ucb1()"], budgets=[2], num_seeds=1)
    assert len(found.references) == 1
    assert "2 of 3 states offer no choice" in str(found)
    with pytest.raises(UctreeError, match="no player has a choice in any of the 1 states"):
        advise(game, [over], budgets=[2])


# --- the report ----------------------------------------------------------------------------------


def test_a_rule_that_surely_loses_less_is_suggested():
    n = 20
    found = made({("a()", 10): [0.5] * n, ("b()", 10): [0.1] * n,
                  ("a()", 100): [0.5] * n, ("b()", 100): [0.1] * n})  # fmt: skip
    assert (found.rule, found.simulations) == ("b()", 10)
    assert "b() loses less than a() by 0.4000" in str(found)


def test_a_difference_within_noise_keeps_the_first_rule():
    noise = [0.5, 0.0] * 10
    found = made({("a()", 10): noise, ("b()", 10): noise[::-1],
                  ("a()", 100): noise, ("b()", 100): [0.0, 0.49] * 10})  # fmt: skip
    assert found.rule == "a()"
    assert "within noise: b() loses less than a()" in str(found)


def test_one_state_alone_keeps_the_first_rule_and_knows_no_interval():
    found = made({("a()", 10): [0.5], ("b()", 10): [0.1], ("a()", 100): [0.5], ("b()", 100): [0.1]})
    assert (found.rule, found.simulations) == ("a()", 100)
    text = str(found)
    assert "within noise: b() loses less than a() by 0.4000 (95 %: unknown)" in text
    assert ": 1 state, 1 seed each; reference" in text
    assert "inf" not in text
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["rows"][0]["loss_interval"] is None


def test_the_largest_budget_is_suggested_unless_a_smaller_one_is_shown_to_be_as_good():
    noise = [0.1, 0.0] * 10
    losses = {("a()", 10): [1.0] * 20, ("a()", 100): noise, ("a()", 1000): noise[::-1]}
    found = made(losses, rules=["a()"], budgets=[10, 100, 1000])
    assert found.simulations == 1000
    assert "none below is shown to be as good: 1,000 simulations gain 0.0000 over 100" in str(found)


def test_the_smallest_budget_that_is_shown_to_be_as_good_is_suggested():
    late = [0.1, 0.0] * 10
    losses = {("a()", 10): [1.0] * 20, ("a()", 100): late, ("a()", 1000): late}
    found = made(losses, rules=["a()"], budgets=[10, 100, 1000])
    assert found.simulations == 100
    assert "100 simulations are as good as 1,000: 1,000 gain 0.0000" in str(found)


def test_as_good_means_within_the_tolerance_over_a_whole_episode():
    losses = {("a()", 10): [0.009, 0.007] * 10, ("a()", 100): [0.0] * 20}
    assert made(losses, rules=["a()"]).simulations == 10
    longer = made(losses, rules=["a()"], decisions=15)
    assert longer.simulations == 100
    assert longer.equivalence == pytest.approx(0.01 / 15)
    assert longer.to_json()["decisions"] == 15


def test_few_states_show_nothing_to_be_as_good():
    losses = {("a()", 10): [0.0] * 9, ("a()", 100): [0.0] * 9}
    assert made(losses, rules=["a()"]).simulations == 100


def test_decisions_are_those_of_one_player():
    assert num_decisions(games.tic_tac_toe()) == pytest.approx(3.5, abs=0.5)
    assert num_decisions(games.nim(heaps=(1,))) == 1


def test_a_rule_that_still_gains_asks_for_larger_budgets():
    found = made({("a()", 10): [1.0] * 20, ("a()", 100): [0.5] * 20}, rules=["a()"])
    assert found.simulations == 100
    assert "still gains at the largest budget" in str(found)


def test_few_states_and_doubtful_ones_are_reported():
    found = made({("a()", 10): [0.0] * 4}, rules=["a()"], doubtful=2, exact=False)
    text = str(found)
    assert "only 4 states: the intervals are unreliable" in text
    assert "in 2 of 4 states the two long searches disagree" in text
    assert "the reference is unreliable" in text


def test_a_reference_that_is_hardly_longer_than_the_searches_is_reported():
    losses = {("a()", 10): [0.0] * 20, ("a()", 500): [0.0] * 20}
    warning = "the reference of 1,000 simulations is hardly longer than the largest budget, 500"
    assert warning in str(made(losses, rules=["a()"], budgets=[10, 500], exact=False))
    assert warning not in str(made(losses, rules=["a()"], budgets=[10, 500], exact=True))
    assert "hardly longer" not in str(made(losses, rules=["a()"], budgets=[10, 300], exact=False))


def test_full_agreement_on_few_states_has_an_interval_with_a_width():
    (row,) = made({("a()", 10): [0.0] * 5}, rules=["a()"]).table
    assert row.agreement == 1
    assert row.agreement_interval[0] < 0.9


def test_the_call_can_be_copied(on_nim):
    namespace = {"uctree": uctree, "game": NIM, "state": NIM.start()}
    result = eval(on_nim.call, namespace)
    assert result.simulations == on_nim.simulations
    nested = made({("rave(ucb1(0.1))", 10): [0.0] * 3}, rules=["rave(ucb1(0.1))"])
    assert "selection=uctree.selection.rave(uctree.selection.ucb1(0.1))" in nested.call


def test_what_is_saved_can_be_read(on_nim, tmp_path):
    paths = on_nim.save(tmp_path)
    assert [path.name for path in paths] == ["table.md", "chart.svg", "advice.json"]
    assert json.loads(paths[2].read_text())["call"] == on_nim.call
    circles = [each for each in xml.parse(paths[1]).iter() if each.tag.endswith("circle")]
    assert len(circles) == 6
    assert on_nim.call in paths[0].read_text()


# --- interrupts and mistakes ---------------------------------------------------------------------


def interrupting(after):
    """A progress function that presses Ctrl-C when the budget `after` is measured."""

    def progress(now):
        if now.text.startswith(f"{after} simulations"):
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_measurement_gives_the_result_so_far():
    arguments = {"num_positions": 4, "rules": ["ucb1()"], "budgets": [2, 5, 20], "num_seeds": 1}
    found = advise(NIM, progress=interrupting(20), **arguments)
    assert found.status == "interrupted"
    assert [row.simulations for row in found.table] == [2, 5]
    assert "interrupted" in str(found)
    with pytest.raises(KeyboardInterrupt):
        advise(NIM, progress=interrupting(2), **arguments)


def test_progress_ends_at_its_total():
    seen = []
    advise(NIM, num_positions=3, rules=["ucb1()"], budgets=[2, 5], num_seeds=2,
           progress=seen.append)  # fmt: skip
    assert (seen[-1].done, seen[-1].total) == (42, 42)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budgets": []}, UctreeError, "budgets must be whole numbers"),
        ({"budgets": [0, 5]}, UctreeError, "budgets must be a whole number of at least 1; got 0"),
        ({"num_seeds": 0}, UctreeError, "num_seeds must be a whole number of at least 1; got 0"),
        ({"tolerance": 1.5}, UctreeError, "tolerance must be a share"),
        ({"num_positions": 0}, UctreeError, "number of positions must be at least 1"),
        ({"rules": ["pct()"]}, UctreeError, "unknown 'pct'; did you mean puct"),
        ({"selection": None}, TypeError, "advise sets selection itself"),
        ({"solvr": True}, TypeError, r"no option 'solvr'; did you mean solver\? It has root"),
        ({"reference_simulations": 0}, UctreeError, "reference_simulations must be a whole number"),
    ],
)
def test_mistakes_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        advise(NIM, **options)
