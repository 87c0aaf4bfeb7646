"""Selection rules as options: what they store, which numbers they refuse, rules of one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uctree import selection
from uctree.selection import Rule

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: selection.ucb1(c=-1.0), "c must be a number of at least 0; got -1"),
        (lambda: selection.ucb1_tuned(c=math.nan), "c must be a number of at least 0; got nan"),
        (lambda: selection.puct(c_base=0.0), "c_base must be above 0; got 0"),
        (lambda: selection.puct(fpu="best"), "fpu must be one of .*; got 'best'"),
        (lambda: selection.puct(normalise="span"), "normalise must be one of .*; got 'span'"),
        (lambda: selection.one_loop(mode="loop"), "mode must be one of .*; got 'loop'"),
        (lambda: selection.one_loop(kappa=0.0), "leaves no curvature to correct for"),
        (lambda: selection.rave(selection.gumbel()), "has no score to mix"),
        (lambda: selection.grave(ref=-1), "ref must be at least 0; got -1"),
        (lambda: selection.rave(equivalence=0.0), "equivalence must be above 0; got 0"),
        (lambda: selection.gumbel(num_considered=0), "num_considered must be at least 1; got 0"),
        (lambda: selection.dirichlet(alpha=0.0), "alpha must be above 0; got 0"),
        (lambda: selection.dirichlet(fraction=1.5), "fraction must be between 0 and 1; got 1.5"),
        (lambda: selection.widening(rounding="up"), 'rounding must be "floor" or "ceil"; got'),
        (lambda: selection.widening(most=0), "most must be at least 1; got 0"),
        (lambda: selection.adaptive_widening(most=0), "most must be at least 1; got 0"),
        (lambda: selection.adaptive_widening(weight=0.0), "weight must be a number above 0; got 0"),
        (lambda: selection.thompson(mean=math.inf), "mean must be a number; got inf"),
        (lambda: selection.thompson(variance=-1.0), "variance must be a number above 0; got -1"),
        (lambda: selection.outcome_widening(k=0.0), "k above 0 and alpha between 0 and 1; got k=0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rule("mine"), "the rule mine needs either score= or choose="),
        (lambda: Rule("mine", lambda q: q, choose=lambda q: 0), "needs either score= or choose="),
        (lambda: Rule("mine", lambda q: q, scale="half"), "a rule's scale is one of .*got 'half'"),
        (lambda: Rule("mine", lambda q, wins: q), "score of the rule mine has an argument 'wins'"),
        (lambda: Rule("mine", lambda q: q, width=lambda q: q), "width of the rule mine has an arg"),
    ],
)
def test_a_rule_of_ones_own_is_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_functions_take_their_arguments_by_name_in_any_order():
    rule = Rule("mine", lambda visits, q: q + visits)
    arguments = dict.fromkeys(selection.SCORE_ARGUMENTS, 0.0) | {"q": 0.5, "visits": 3}
    assert rule.bound("score")(*arguments.values()) == 3.5
    assert rule.asks_for("visits")
    assert not rule.asks_for("mean_square")


def test_other_numbers_are_the_same_functions():
    assert selection.puct(c=1.0).functions() == selection.puct(c=2.0).functions()
    assert selection.puct(c=1.0) != selection.puct(c=2.0)
    assert selection.puct(fpu="parent").functions() != selection.puct().functions()


def test_with_noise_at_the_root_its_edges_without_visits_are_worth_the_root():
    rule = selection.puct(fpu="parent_sqrt", fpu_value=0.2)
    plain = selection.without_reduction(rule)
    values = np.array(plain.parameters)
    worth = plain.bound("unvisited")(0.4, 0.64, values)
    assert worth == 0.4
    assert rule.bound("unvisited")(0.4, 0.64, np.array(rule.parameters)) == pytest.approx(0.24)


def test_noise_falls_from_its_fraction_to_the_last_one():
    start, middle, end = (
        selection.dirichlet(fraction=0.25, end=0.05, step=step, total=100).fraction
        for step in (0, 50, 200)
    )
    assert (start, middle, end) == (0.25, pytest.approx(0.15), 0.05)


@pytest.mark.parametrize("most", [2.5, math.nan, True])
@pytest.mark.parametrize("widen", [selection.widening, selection.adaptive_widening])
def test_a_number_of_edges_is_whole(widen, most):
    with pytest.raises(TypeError, match=f"most must be a whole number; got {most!r}"):
        widen(most=most)
