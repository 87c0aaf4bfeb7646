"""Grids: what may vary, how values are read, and what is refused."""

from __future__ import annotations

import itertools

import pytest

from uctree import UctreeError
from uctree.arena.agents import make_agent
from uctree.arena.grids import read_grid, read_vary, split_values

pytestmark = pytest.mark.quick


def agents(vary, base=""):
    grid = read_grid(vary, base)
    return [setting.agent({"num_simulations": 10}) for setting in grid.settings]


def test_several_options_make_the_full_product_in_their_order():
    grid = read_grid({"selection.puct.c": "0.5,2", "solver": "true,false"})
    assert [setting.name for setting in grid.settings] == [
        "c=0.5, solver=True", "c=0.5, solver=False", "c=2, solver=True", "c=2, solver=False",
    ]  # fmt: skip


def test_parameters_of_one_rule_are_put_together():
    assert agents({"selection.puct.c": [1, 2], "selection.puct.fpu": ["parent"]}) == [
        "search(num_simulations=10, selection=puct(c=1, fpu='parent'))",
        "search(num_simulations=10, selection=puct(c=2, fpu='parent'))",
    ]


def test_a_parameter_is_put_into_the_common_rule():
    found = agents({"selection.puct.c": "1,2"}, "selection=puct(3, fpu='parent'), choice=lcb")
    assert found[1] == "search(num_simulations=10, selection=puct(c=2, fpu='parent'), choice='lcb')"


def test_numbers_words_and_rules_mean_the_same_in_text_and_in_python():
    for vary in (
        {"selection": "ucb1(),rave(ucb1(0.1))", "solver": "true,false"},
        {"selection": ["ucb1()", "rave(ucb1(0.1))"], "solver": [True, False]},
    ):
        options = [make_agent(text).options for text in agents(vary)]
        assert [option["selection"].name for option in options] == ["ucb1"] * 2 + ["rave(ucb1)"] * 2
        assert [option["solver"] for option in options] == [True, False] * 2


@pytest.mark.parametrize(
    "vary",
    [
        {"selection.one_loop.mode": "kernel,off"},
        {"in_flight": "virtual,unobserved"},
        {"threads": "1,2"},
        {"reuse": "true,false"},
        {"selection.puct.c_base": "inf,100"},
        {"selection.rave.equivalence": "none,100"},
        {"root_selection.gumbel.num_considered": "4,8"},
        {"stop": "decided(),value_gap()"},
        {"max_memory": "'1MB','2MB'"},
        {"num_simulations": "100,200"},
    ],
    ids=lambda vary: next(iter(vary)),
)
def test_any_option_of_a_search_may_vary(vary):
    budget = {} if "num_simulations" in vary else {"num_simulations": 10}
    agents = [make_agent(setting.agent(budget)) for setting in read_grid(vary).settings]
    settings = [(agent.num_simulations, agent.reuse, agent.options) for agent in agents]
    assert len(settings) > 1
    assert all(one != other for one, other in itertools.combinations(settings, 2))


def test_a_budget_in_the_grid_is_found():
    assert read_grid({"num_simulations": "1,2"}).budget == "num_simulations"
    assert read_grid({"solver": "true,false"}, "seconds=0.1").budget == "seconds"
    assert read_grid({"solver": "true,false"}).budget is None


def test_values_are_split_at_commas_outside_of_brackets():
    assert split_values("a, b(1, (2, 3)), 'c,d'") == ["a", "b(1, (2, 3))", "'c,d'"]


@pytest.mark.parametrize(
    ("vary", "base", "message"),
    [
        ({}, "", "no option varies; give one, as selection.puct.c=0.5,1,2"),
        ({"selection.puct.c": "1"}, "", "a grid of one setting has nothing to compare: c=1"),
        ({"selection.puct.c": "1,,2"}, "", "selection.puct.c: a value is missing"),
        ({"selection.puct.c": "1,1"}, "", "selection.puct.c: 1 is given twice"),
        ({"selection.puctt.c": "1,2"}, "", "unknown 'puctt'; did you mean puct"),
        ({"selection.puct.cc": "1,2"}, "", r"no parameter 'cc'; did you mean c\? the signature is"),
        ({"selection.puct": "1,2"}, "", "puct has no parameter ''; .*signature is puct"),
        ({"solver.puct.c": "1,2"}, "", "solver has no rules; .*options with rules: selection"),
        ({"selection": "ucb1(),puct()", "selection.puct.c": "1"}, "", "puct.c cannot both vary"),
        ({"selection.puct.c": "1", "selection.ucb1.c": "1"}, "", "puct and ucb1 at once"),
        ({"selection.puct.c": "1,2"}, "selection=ucb1()", "selection=ucb1.. is common to all"),
        ({"solver": "true,false"}, "solver=True", "solver both varies and is common"),
        ({"solver": "true,false"}, "solver=", "cannot read the common options 'solver='"),
        ({"num_simulations": "0,5"}, "", "simulations must be whole numbers of at least 1; got 0"),
        ({"num_simulations": "ten,20"}, "", "simulations must be whole numbers"),
        ({"seconds": "0.1,0"}, "", "seconds must be numbers above 0; got 0"),
        ({"reuse": "maybe,true"}, "", "reuse must be true or false"),
        ({"solver": [object(), True]}, "", "a value is a number or text"),
    ],
)
def test_what_makes_no_grid_is_refused(vary, base, message):
    with pytest.raises(UctreeError, match=message):
        read_grid(vary, base)


@pytest.mark.parametrize(
    ("texts", "message"),
    [(["solver"], "cannot read 'solver'"), (["a=1", "a=2"], "a is given twice")],
)
def test_text_that_does_not_say_what_varies_is_refused(texts, message):
    with pytest.raises(UctreeError, match=message):
        read_vary(texts)
