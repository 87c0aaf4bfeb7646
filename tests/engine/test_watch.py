"""Nothing is stale within a process: what changed since it was compiled is compiled again."""

from __future__ import annotations

import types

import numpy as np
import pytest

import uctree
from uctree import selection
from uctree.engine.compile import compile_kernel
from uctree.engine.fingerprint import fingerprint
from uctree.engine.watch import MOST_BYTES

pytestmark = pytest.mark.quick

SOURCE = """
import helpers
import numpy as np

NUMBER, TABLE, ITEMS, LARGE = 1, np.arange(4), [1, 2, [3, 4]], np.zeros(200_000)

def deeper(n):
    return n + NUMBER

def make(closed):
    def inner(n):
        return closed
    return inner

closure = make(5)

def first(n):
    return LARGE[n]

def rule(n, extra=0):
    if n < 0:
        return abs(n) + LARGE[n]
    return deeper(n) + TABLE[n] + ITEMS[n] + helpers.add(n) + closure(n) + len(helpers.WORDS)
"""
HELPERS = "WORDS = ('a', 'b')\ndef add(n):\n    return n + OFFSET\nOFFSET = 7\n"


@pytest.fixture
def module(monkeypatch):
    """A user's module, which imports another one."""
    helpers, module = types.ModuleType("helpers"), types.ModuleType("users")
    monkeypatch.setitem(__import__("sys").modules, "helpers", helpers)
    exec(HELPERS, vars(helpers))
    exec(SOURCE, vars(module))
    return module


def other(n):
    return n - 1


CHANGES = {
    "a number": lambda module: setattr(module, "NUMBER", 2),
    "the type of a number": lambda module: setattr(module, "NUMBER", 1.0),
    "a number that is now a bool": lambda module: setattr(module, "NUMBER", True),
    "a function": lambda module: setattr(module, "deeper", other),
    "the code of a function": lambda module: setattr(module.deeper, "__code__", other.__code__),
    "a default": lambda module: setattr(module.rule, "__defaults__", (1,)),
    "an array": lambda module: setattr(module, "TABLE", np.arange(4)),
    "an array in place": lambda module: module.TABLE.__setitem__(2, 9),
    "a list in place": lambda module: module.ITEMS.append(5),
    "a list in a list": lambda module: module.ITEMS[2].__setitem__(0, 9),
    "a closure": lambda module: setattr(module.closure.__closure__[0], "cell_contents", 6),
    "a name of another module": lambda module: setattr(module.helpers, "WORDS", ("a",)),
    "a function of another module": lambda module: setattr(module.helpers, "add", other),
    "what it reads there": lambda module: setattr(module.helpers, "OFFSET", 8),
    "a name that is deleted": lambda module: delattr(module, "NUMBER"),
    "a builtin that is hidden": lambda module: setattr(module, "abs", other),
    "a large array": lambda module: setattr(module, "LARGE", np.ones(3)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_noticed(module, what):
    watch = fingerprint(module.rule, {}).watch
    assert not watch.has_changed()
    CHANGES[what](module)
    assert watch.has_changed()


def test_names_that_are_not_read_do_not_matter(module):
    watch = fingerprint(module.rule, {}).watch
    module.unrelated = module.helpers.unrelated = 3
    assert not watch.has_changed()


def test_a_large_array_is_not_compared_by_content(module):
    assert module.LARGE.nbytes > MOST_BYTES
    watch = fingerprint(module.rule, {}).watch
    module.LARGE[0] = 1
    assert not watch.has_changed()  # as docs/tutorial.md says
    assert watch.left_out == "an array of 1,600,000 bytes"
    with pytest.warns(UserWarning, match="reads an array of 1,600,000 bytes, too large to be"):
        compile_kernel(module.first, {}, (1,), label="large")
    module.LARGE.flags.writeable = False
    assert fingerprint(module.rule, {}).watch.left_out == ""


def test_an_array_of_a_megabyte_is_compared_by_content(module):
    module.LARGE = np.zeros(130_000)
    watch = fingerprint(module.rule, {}).watch
    assert not watch.has_changed()
    module.LARGE[-1] = 1
    assert watch.has_changed()


def test_a_long_list_is_not_compared(module):
    module.ITEMS, module.LARGE = list(range(3000)), np.zeros(3)
    assert fingerprint(module.rule, {}).watch.left_out == "a list of 3,000 items"


SCALE = 3.0


def scaled(n):
    return SCALE * n


def test_machine_code_follows_a_global_and_is_shared_by_equal_ones(monkeypatch):
    first = compile_kernel(scaled, {}, (1,), label="scaled")
    assert first.call(2) == 6.0
    monkeypatch.setitem(globals(), "SCALE", float("3.0"))  # equal, but another object
    assert first.is_stale
    again = compile_kernel(scaled, {}, (1,), label="scaled")
    assert again.cached
    assert again.call is first.call
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert again.is_stale
    assert compile_kernel(scaled, {}, (1,), label="scaled").call(2) == 8.0


# --- searches ------------------------------------------------------------------------------------

PAY, PAYS = 1.0, np.array([0.5])


def pay():
    return PAY


def legal(state, actions):
    actions[0] = 0
    return 1


def step(state, action, reward):
    reward[0] = pay() + PAYS[0]
    state.to_play = uctree.OVER


def one_step():
    dtype = np.dtype([("to_play", np.int8)])
    return uctree.Game(dtype, legal, step, num_players=1, num_actions=1, name="one step")


def value(game, **options):
    return uctree.search(game, num_simulations=3, **options).value[0]


@pytest.mark.usefixtures("both_ways")
def test_a_search_follows_globals_helpers_and_arrays(monkeypatch):
    game = one_step()
    assert value(game) == 1.5
    monkeypatch.setitem(globals(), "PAY", 2.0)
    assert value(game) == 2.5 == game.play([0]).to_play + game.random_episode().returns[0] + 2
    monkeypatch.setitem(globals(), "pay", lambda: 5.0)
    assert value(game) == 5.5
    monkeypatch.setattr(PAYS, "flat", [0.25])
    assert value(game) == 5.25
    searcher = uctree.Searcher(game)
    assert searcher.search(num_simulations=3).value[0] == 5.25
    monkeypatch.setitem(globals(), "pay", lambda: 6.0)
    assert uctree.Searcher(game).search(num_simulations=3).value[0] == 6.25


def test_the_doctor_and_the_solver_follow_globals(monkeypatch):
    game = one_step()
    PAYS[0] = 0.5
    assert uctree.solve(game).value[0] == 1.5
    assert uctree.check(game, num_simulations=20).ok
    monkeypatch.setitem(globals(), "PAY", 2.0)
    assert uctree.solve(game).value[0] == 2.5
    monkeypatch.setitem(globals(), "PAY", float("nan"))
    report = uctree.check(game, num_simulations=20)
    assert [finding.rule for finding in report.findings] == ["reward-finite"]
    with pytest.raises(uctree.BrokenGame, match="reward-finite"):
        uctree.solve(game)
    with pytest.raises(uctree.BrokenGame, match="reward-finite"):
        uctree.search(game, num_simulations=3)


BONUS = 0.0


def choose_first(q, visits):
    return q + BONUS - visits


def two_ways():
    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        reward[0] = action
        state.to_play = uctree.OVER

    dtype = np.dtype([("to_play", np.int8)])
    return uctree.Game(dtype, legal, step, num_players=1, num_actions=2, name="two ways")


@pytest.mark.usefixtures("both_ways")
def test_a_search_follows_what_rules_and_evaluators_read(monkeypatch):
    game, rule = two_ways(), selection.Rule("own", score=choose_first)
    assert uctree.search(game, num_simulations=100, selection=rule).edges["visits"].min() > 40
    monkeypatch.setitem(globals(), "choose_first", choose_first)
    monkeypatch.setattr(choose_first, "__code__", (lambda q, visits: q).__code__)
    assert uctree.search(game, num_simulations=100, selection=rule).edges["visits"].min() == 1
