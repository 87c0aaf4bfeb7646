"""Options of a search in combination: what holds for those that fit, what is said of the others.

Few combinations are compiled, and other tests try what they are about on the same ones. Many more
run as plain Python, which takes no compilation.
"""

from __future__ import annotations

import inspect
import os
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uctree
from tests import random_games
from uctree import Game, backup, evaluators, games, selection
from uctree.engine.options import resolve

pytestmark = pytest.mark.quick

tried = settings(max_examples=8, deadline=None, derandomize=True, database=None)

# --- games and evaluators ------------------------------------------------------------------------


@cache
def game(name: str, compiled: bool = True) -> Game:
    """A game by its name; a search in plain Python has one of its own."""
    return {
        "tic-tac-toe": games.tic_tac_toe,
        "pig": lambda: games.pig(12),
        "three": lambda: games.n_in_a_row(3, 3, length=3, num_players=3),
        "many actions": lambda: games.n_in_a_row(7, 7, length=4),
        "coins": lambda: random_games.random_game("alone, with dice"),  # has a discount, no range
    }[name]()


def leaning(state, values, priors, rng):
    """Random values that add up to zero, and priors that are not all alike."""
    value = uctree.random_unit(rng) - 0.5
    values[0], values[1] = value, -value
    for action in range(priors.shape[0]):
        priors[action] = 1.0 + action % 3


def flat(state, values):
    values[0], values[1] = 0.25, -0.25


# --- combinations that fit -----------------------------------------------------------------------


@dataclass(frozen=True)
class Combination:
    """What is searched how; hypothesis varies numbers that are not compiled in."""

    game: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def shares_tree(self) -> bool:
        return self.options.get("parallel") == "tree"

    @property
    def is_gumbel(self) -> bool:
        rule = self.options.get("root_selection")
        return rule is not None and rule.at_root

    def search(self, state: np.record | None = None, **more: Any) -> uctree.SearchResult:
        state = game(self.game).start() if state is None else state
        return uctree.search(game(self.game), state, **self.options | more)


TREE = {"threads": 2, "parallel": "tree"}
UNOBSERVED = TREE | {"in_flight": "unobserved"}

COMBINATIONS = {
    "plain": Combination("tic-tac-toe"),
    "noise, soft, widening, shared, solver": Combination(
        "tic-tac-toe",
        {
            "evaluator": leaning,
            "root_noise": selection.dirichlet(),
            "backup": backup.soft_maximum(0.3),
            "widening": selection.widening(),
            "transpositions": True,
            "solver": True,
            "opponents": "paranoid",
            "ties": "random",
        },
    ),
    "three, tuned, maximum, solver, unobserved": Combination(
        "three",
        UNOBSERVED
        | {
            "selection": selection.ucb1_tuned(),
            "backup": backup.maximum(3),
            "solver": True,
        },
    ),
    "dice, priors, shared, widening, threads": Combination(
        "pig",
        TREE
        | {
            "evaluator": leaning,
            "root_noise": selection.dirichlet(),
            "widening": selection.widening(most=3),
            "chance": "proportional",
            "transpositions": True,
            "ties": "random",
        },
    ),
    "dice, grave, widening, outcomes, paranoid": Combination(
        "pig",
        {
            "selection": selection.grave(ref=5),
            "root_selection": selection.ucb1(2.0),
            "widening": selection.widening(),
            "chance": selection.outcome_widening(),
            "opponents": "paranoid",
        },
    ),
    "dice, open loop, soft": Combination(
        "pig",
        {
            "evaluator": flat,
            "selection": selection.puct(normalise="minmax"),
            "backup": backup.soft_maximum(0.3),
            "open_loop": True,
        },
    ),
}

each_combination = pytest.mark.parametrize("name", COMBINATIONS)


def roots(name: str) -> list[np.record]:
    """The start, and what random play comes to in which a player has something to decide."""
    states = [game(name).start()]
    for seed in range(3):
        actions = game(name).random_episode(seed).actions
        state = game(name).play(actions[: len(actions) // 2])
        if len(game(name).legal(state)) > 1 and game(name).to_play(state) >= 0:
            states.append(state)
    return states


def assert_sensible(result: uctree.SearchResult, num_simulations: int) -> None:
    """Whatever the options were: all simulations are there, and what is reported can be used."""
    edges = result.edges
    assert edges["visits"].sum() == result.simulations
    assert result.simulations == num_simulations or result.status == "solved"
    legal = result.game.legal(result.state)
    assert result.action in legal
    assert set(edges["action"].tolist()) <= set(legal)
    assert result.policy().sum() == pytest.approx(1.0, abs=1e-12)
    low, high = result.game.payoff_range.T
    for values in (edges["q"], result.value):
        assert (values >= low - 1e-9).all()
        assert (values <= high + 1e-9).all()


@each_combination
@tried
@given(
    place=st.integers(0, 3),
    num_simulations=st.integers(1, 300),
    seed=st.integers(0, 2**32),
    choice=st.sampled_from([None, "max", "lcb", "temperature"]),
    max_memory=st.sampled_from([None, "1MB", 40_000]),
    threads=st.integers(1, 3),
)
def test_what_fits_gives_a_sensible_result(
    name, place, num_simulations, seed, choice, max_memory, threads
):
    combination = COMBINATIONS[name]
    states = roots(combination.game)
    options = {
        "state": states[place % len(states)],
        "num_simulations": num_simulations,
        "seed": seed,
        "choice": choice,
        "max_memory": max_memory,
    }
    if combination.shares_tree:
        options["threads"] = 1 + threads  # one thread alone would be another composition
    elif not combination.is_gumbel:
        options |= {"threads": threads, "parallel": "root"}
    result = combination.search(**options)
    assert_sensible(result, num_simulations)
    if not combination.shares_tree:
        again = combination.search(**options)
        assert again.edges["visits"].tolist() == result.edges["visits"].tolist()
        assert again.action == result.action


@each_combination
def test_what_fits_can_be_printed_and_stored(name):
    result = COMBINATIONS[name].search(num_simulations=50)
    assert f"{result.simulations} simulations" in str(result)
    assert result.to_json()["simulations"] == result.simulations
    assert result.principal_variation().actions[0] in result.game.legal(result.state)


# --- any combination at all ----------------------------------------------------------------------

EVERY: dict[str, list[Any]] = {
    "selection": [
        None, selection.ucb1(), selection.ucb1_tuned(), selection.puct(),
        selection.puct(normalise="bounds"), selection.one_loop(), selection.rave(),
        selection.grave(), selection.gumbel_interior(), selection.gumbel(),
    ],
    "root_selection": [
        None, selection.ucb1(2.0), selection.puct(normalise="bounds"), selection.rave(),
        selection.gumbel(), selection.gumbel_interior(),
    ],
    "root_noise": [None, selection.dirichlet()],
    "backup": [None, backup.maximum(), backup.soft_maximum(0.1)],
    "evaluator": [None, evaluators.playout(2, max_plies=4), flat, leaning],
    "widening": [None, selection.widening(), selection.widening(most=2)],
    "chance": ["sample", "proportional", selection.outcome_widening()],
    "open_loop": [False, True],
    "transpositions": [False, True],
    "solver": [False, True],
    "opponents": ["maxn", "paranoid"],
    "ties": ["first", "random"],
    "in_flight": ["virtual", "unobserved"],
}  # fmt: skip
GAMES = ("tic-tac-toe", "pig", "three", "coins")
anything = st.fixed_dictionaries(
    {option: st.sampled_from(values) for option, values in EVERY.items()}
)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(name=st.sampled_from(GAMES), options=anything)
def test_what_does_not_fit_is_refused_with_a_word_on_what_to_do(name, options):
    try:
        resolve(game(name), **options)
    except ValueError as error:
        refused = str(error)
    else:
        return
    rules = [options["selection"], options["root_selection"]]
    named = [*options, "normalise=", *(rule.name for rule in rules if rule is not None)]
    assert any(name in refused for name in named)
    advice = ("choose one", "give", "use", "leave", "needs", "has none")
    assert any(word in refused for word in advice)


def fitting(searched: Game, options: dict[str, Any], order: list[str]) -> dict[str, Any]:
    """What is left of options once, in this order, those are left away that do not fit."""
    left = dict(options)
    for option in order:
        try:
            resolve(searched, **left)
        except ValueError:
            del left[option]
    return left


@pytest.mark.parametrize("name", ["tic-tac-toe", "pig", "three"])
@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(
    options=anything,
    order=st.permutations(list(EVERY)),
    num_simulations=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
def test_whatever_fits_gives_a_sensible_result_in_plain_python(
    name, options, order, num_simulations, seed
):
    with mock.patch.dict(os.environ, {"NUMBA_DISABLE_JIT": "1"}):
        searched = game(name, compiled=False)
        left = fitting(searched, options, order) | {"seed": seed}
        result, again = (
            uctree.search(searched, searched.start(), num_simulations=num_simulations, **left)
            for _ in range(2)
        )
    assert_sensible(result, num_simulations)
    assert again.edges["visits"].tolist() == result.edges["visits"].tolist()


@mock.patch.dict(os.environ, {"NUMBA_DISABLE_JIT": "1"})
def test_ucb1_works_before_the_rule_beside_it_has_seen_a_range():
    options = {
        "evaluator": leaning,
        "root_selection": selection.ucb1(),
        "selection": selection.puct(normalise="minmax"),
    }
    searched = game("tic-tac-toe", compiled=False)
    result = uctree.search(searched, num_simulations=30, seed=1, **options)  # no 0 times infinity
    assert_sensible(result, 30)


# --- combinations that make no sense -------------------------------------------------------------

SENSELESS = {
    "a network that is shown nothing": (
        "coins",
        {"evaluator": evaluators.network(leaning)},
        "the evaluator network needs observations, and ",
    ),
    "priors of a game without any": (
        "tic-tac-toe",
        {"evaluator": evaluators.playout(priors=True)},
        "evaluators.playout(priors=True) needs the game's priors, and tic_tac_toe has none",
    ),
    "gumbel below the root": (
        "tic-tac-toe",
        {"selection": selection.gumbel(), "evaluator": leaning},
        "selection=gumbel is for the root alone: give it as root_selection=",
    ),
    "noise for fewer actions": (
        "tic-tac-toe",
        {"root_selection": selection.gumbel(noise=(0.0, 1.0)), "evaluator": leaning},
        "gumbel(noise=) needs one number per action, 9; got 2",
    ),
    "gumbel without priors": (
        "tic-tac-toe",
        {"root_selection": selection.gumbel(), "selection": selection.ucb1()},
        "root_selection=gumbel needs priors to draw from: give an evaluator",
    ),
    "gumbel below the root without priors": (
        "tic-tac-toe",
        {"selection": selection.gumbel_interior()},
        "gumbel_interior needs an evaluator that gives priors",
    ),
    "rave without playouts": (
        "tic-tac-toe",
        {"selection": selection.rave(), "evaluator": flat},
        "rave(ucb1) learns from the actions of playouts, and the evaluator flat has none",
    ),
    "rave at the root without playouts": (
        "tic-tac-toe",
        {"root_selection": selection.rave(), "evaluator": flat},
        "rave(ucb1) learns from the actions of playouts, and the evaluator flat has none",
    ),
    "noise without priors": (
        "tic-tac-toe",
        {"root_noise": selection.dirichlet()},
        "root_noise is mixed into priors, and the evaluator playout gives none",
    ),
    "noise and gumbel": (
        "tic-tac-toe",
        {
            "root_noise": selection.dirichlet(),
            "root_selection": selection.gumbel(),
            "evaluator": leaning,
        },
        "root_noise and root_selection=gumbel are two kinds of noise",
    ),
    "most of the priors without priors": (
        "tic-tac-toe",
        {"widening": selection.widening(most=3)},
        "widening(most=) keeps the actions of the largest priors, and the evaluator playout gives",
    ),
    "widening and gumbel": (
        "tic-tac-toe",
        {
            "widening": selection.widening(),
            "selection": selection.gumbel_interior(),
            "evaluator": leaning,
        },
        "widening opens edges one by one, and gumbel_interior looks at all of them",
    ),
    "open loop and gumbel": (
        "tic-tac-toe",
        {"open_loop": True, "root_selection": selection.gumbel(), "evaluator": leaning},
        "open_loop=True has other edges at every visit, and gumbel looks at all of them",
    ),
    "open loop and priors": (
        "tic-tac-toe",
        {"open_loop": True, "evaluator": leaning},
        "open_loop=True has many states in one node, so priors of one state do not fit",
    ),
    "open loop and transpositions": (
        "tic-tac-toe",
        {"open_loop": True, "transpositions": True},
        "open_loop=True identifies nodes by actions, transpositions=True by states",
    ),
    "open loop and solver": (
        "tic-tac-toe",
        {"open_loop": True, "solver": True},
        "solver=True proves values of states, and open_loop=True has many states in one node",
    ),
    "open loop and widening": (
        "tic-tac-toe",
        {"open_loop": True, "widening": selection.widening()},
        "open_loop=True has other edges at every visit, so that widening cannot count",
    ),
    "open loop and outcome widening": (
        "pig",
        {"open_loop": True, "chance": selection.outcome_widening()},
        "open_loop=True draws outcomes anew at every visit; omit chance=",
    ),
    "open loop and a discount": (
        "coins",
        {"open_loop": True},
        "open_loop=True needs a game without discount; random has discount=0.95",
    ),
    "transpositions and outcome widening": (
        "pig",
        {"transpositions": True, "chance": selection.outcome_widening()},
        "outcome_widening moves edges, and transpositions=True needs them to stay",
    ),
    "solver and outcome widening": (
        "pig",
        {"solver": True, "chance": selection.outcome_widening()},
        "solver=True needs to see every outcome, and outcome_widening leaves some out",
    ),
    "solver and a discount": (
        "coins",
        {"solver": True},
        "solver=True needs a game without discount; random has discount=0.95",
    ),
    "solver and most of the actions": (
        "tic-tac-toe",
        {"solver": True, "widening": selection.widening(most=2), "evaluator": leaning},
        "solver=True needs to see every action, and widening(most=) leaves some out",
    ),
    "solver and paranoia of three": (
        "three",
        {"solver": True, "opponents": "paranoid"},
        'solver=True assumes that each player maximises its own payoff; use opponents="maxn"',
    ),
    "open loop and threads in one tree": (
        "pig",
        {"open_loop": True, "threads": 2, "parallel": "tree"},
        'threads that share a tree need them to stay: use parallel="root"',
    ),
    "outcome widening without chance": (
        "tic-tac-toe",
        {"chance": selection.outcome_widening()},
        "chance=outcome_widening() is for games of chance, and tic_tac_toe has none",
    ),
    "proportional outcomes without chance": (
        "tic-tac-toe",
        {"chance": "proportional"},
        'chance="proportional" is for games of chance, and tic_tac_toe has none',
    ),
    "bounds that are not known": (
        "coins",
        {"selection": selection.puct(normalise="bounds")},
        'normalise="bounds" needs a game that states its payoff_range; random does not',
    ),
}


@pytest.mark.parametrize("name", SENSELESS)
def test_what_makes_no_sense_is_told(name):
    where, options, message = SENSELESS[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        uctree.search(game(where), game(where).start(), num_simulations=10, **options)


@pytest.mark.parametrize("name", [n for n, case in SENSELESS.items() if "threads" not in case[1]])
def test_a_searcher_says_the_same_at_once(name):
    where, options, message = SENSELESS[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        uctree.Searcher(game(where), **options)


def test_every_reason_to_refuse_is_tried_here():
    """Counted in the source, so that a new one is not forgotten."""
    from uctree.engine import options

    table = inspect.getsource(options._conflicts).partition("cases = [")[2]
    reasons = table.count("\n        (\n")
    tried_twice = 1  # rave below the root and at it
    assert len(SENSELESS) - tried_twice == reasons


WRONG_KINDS = {
    "a name for a rule": ({"selection": "puct"}, "selection must come from uctree.selection"),
    "a number for a rule": ({"root_selection": 3}, "root_selection must come from"),
    "a name for a backup": ({"backup": "max"}, r"backup must come from uctree.backup"),
    "a number for noise": ({"root_noise": 0.25}, "root_noise must come from uctree.selection"),
    "a number for widening": ({"widening": 2}, "widening must come from uctree.selection"),
    "a number for an evaluator": ({"evaluator": 1}, "evaluator must come from uctree.evaluators"),
    "text for yes": ({"solver": "yes"}, "solver must be True or False; got 'yes'"),
    "one for yes": ({"transpositions": 1}, "transpositions must be True or False; got 1"),
    "nothing for no": ({"open_loop": None}, "open_loop must be True or False; got None"),
    "half a thread": ({"threads": 1.5}, "threads must be a whole number; got 1.5"),
    "text for a seed": ({"seed": "7"}, "seed must be a whole number; got '7'"),
    "half a simulation": ({"num_simulations": 0.5}, "num_simulations must be a whole number"),
    "a name for a tree": ({"tree": "a.tree"}, "tree must be a Tree"),
    "an unknown option": ({"simulations": 5}, r"'simulations'; did you mean num_simulations\?"),
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_what_is_of_the_wrong_kind_is_told(name):
    options, message = WRONG_KINDS[name]
    options, searched = {"num_simulations": 10} | options, game("tic-tac-toe")
    with pytest.raises(TypeError, match=message):
        uctree.search(searched, searched.start(), **options)


WRONG_NAMES = {
    "opponents": ({"opponents": "friends"}, "opponents must be 'maxn' or 'paranoid'; got"),
    "ties": ({"ties": "last"}, "ties must be 'first' or 'random'; got 'last'"),
    "in_flight": ({"in_flight": "loss"}, "in_flight must be 'virtual' or 'unobserved'; got"),
    "chance": ({"chance": "dice"}, r'chance must be "sample", "proportional" or selection\.'),
    "widening of actions": ({"chance": selection.widening()}, r"chance must be .*; got Widening"),
    "widening of outcomes": ({"widening": selection.outcome_widening()}, "is for chance=; use"),
    "parallel": ({"threads": 2, "parallel": "leaf"}, 'parallel must be "auto", "root" or "tree"'),
    "threads": ({"threads": 0}, "threads must be at least 1; got 0"),
    "choice": ({"choice": "best"}, "choice is one of .*; got 'best'"),
    "choice of gumbel": ({"choice": "gumbel"}, r"search with root_selection=selection\.gumbel"),
    "max_memory": ({"max_memory": "much"}, 'max_memory is bytes or text as "500MB"; got'),
}


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_a_name_that_is_none_is_told_with_those_there_are(name):
    options, message = WRONG_NAMES[name]
    with pytest.raises(ValueError, match=message):
        uctree.search(
            game("tic-tac-toe"), game("tic-tac-toe").start(), num_simulations=9, **options
        )
