"""Memory that runs out: the search says so, and the tree stays sound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import uctree
from tests.planning.counting import counting
from uctree import evaluators, games, selection
from uctree.engine.driver import BatchedSearch
from uctree.engine.soundness import fault_of
from uctree.tree import Tree


class Failing:
    """NumPy, except that one of its allocations fails."""

    def __init__(self, number):
        self.countdown = number

    def __getattr__(self, name):
        usual = getattr(np, name)
        if name not in ("empty", "zeros", "repeat", "full", "concatenate"):
            return usual

        def allocate(*arguments, **options):
            self.countdown -= 1
            if self.countdown == 0:
                raise MemoryError("Unable to allocate 8 EiB")
            return usual(*arguments, **options)

        return allocate


def values(states):
    return np.zeros((len(states), 2))


WIDE = selection.ucb1(c=2**0.5)  # the tree grows often

OPTIONS = {
    "plain": {"selection": WIDE},
    "transpositions": {"selection": WIDE, "transpositions": True},
    "proofs": {"selection": WIDE, "solver": True},
    "pruned": {"selection": WIDE, "max_memory": 20_000},
    "batches": {"evaluator": evaluators.python(values, leaves=4)},
}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def fails_at(number, monkeypatch, search):
    """Whether `search` runs out of memory, if the allocation of this number fails."""
    message, failing = "", Failing(number)
    with monkeypatch.context() as patch:
        patch.setattr("uctree.tree.np", failing)
        patch.setattr("uctree.engine.storage.np", failing)
        try:
            search()
        except MemoryError as error:
            message = str(error)
    if message:
        assert "not enough memory for a tree of tic_tac_toe; bound it with max_memory=" in message
    assert (failing.countdown <= 0) == bool(message)  # no failure is overlooked
    return bool(message)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_tree_is_sound_wherever_memory_runs_out(name, monkeypatch):
    game, options = games.tic_tac_toe(), OPTIONS[name]
    num_failures = 0
    for number in itertools.count(1):
        tree = uctree.search(game, num_simulations=20, **options).tree
        before = tree.simulations

        def search(tree=tree):
            uctree.search(game, tree=tree, num_simulations=150, **options)

        if not fails_at(number, monkeypatch, search):
            break
        num_failures += 1
        fresh = Tree(game, tree.state, tree.layout, 1, 1).head
        assert fault_of(tree, fresh) == ""
        assert before <= tree.simulations < before + 150
        again = uctree.search(game, tree=tree, num_simulations=30, **options)
        assert again.tree.root.visits == again.tree.simulations
    assert num_failures > 3


def test_many_trees_that_cannot_grow_stay_as_they_are(monkeypatch):
    evaluator = evaluators.python(values)
    storage = BatchedSearch(games.tic_tac_toe(), 2, evaluator=evaluator)._storage
    storage._arrays["heads"]["used"] = storage._arrays["heads"]["capacity"]
    before, heads = dict(storage.tree_arrays()), storage._arrays["heads"].copy()
    with monkeypatch.context() as patch:
        patch.setattr("uctree.engine.storage.np", Failing(1))
        with pytest.raises(MemoryError):
            storage.grow(0)
    assert all(storage.tree_arrays()[name] is array for name, array in before.items())
    assert (storage._arrays["heads"] == heads).all()
    storage.grow(0)
    assert storage.tree_arrays()["edges"].shape[1] == 2 * before["edges"].shape[1]


# --- other allocations ---------------------------------------------------------------------------

PRIORS = evaluators.python(lambda states: (np.zeros((len(states), 9)), values(states)), leaves=4,
                           priors=True)  # fmt: skip


def searching(tmp_path):
    """Two searches of one game, as a first and a later one do it."""
    game = games.tic_tac_toe()
    for options in ({}, {"evaluator": PRIORS, "threads": 1}, {"refine": None, "ties": "random"}):
        for seed in (1, 2):
            uctree.search(game, num_simulations=12, seed=seed, **options)


def asking(tmp_path):
    game = games.tic_tac_toe()
    for seed in (1, 2):
        uctree.search(game, num_simulations=8, seed=seed, evaluator=PRIORS)


def many_trees(tmp_path):
    game = games.tic_tac_toe()
    batch = BatchedSearch(game, 3, evaluator=PRIORS)
    batch.reset(range(3), [game.start()] * 3, num_simulations=6, seed=1)
    batch.run()


def walk():
    """Right or down on a board of 33 by 33 places: many states, and little to do in each."""

    def legal(state, actions):
        count = 0
        for axis in range(2):
            if state.place[axis] < 32:
                actions[count] = axis
                count += 1
        return count

    def step(state, action, reward):
        state.place[action] += 1
        if state.place[0] == state.place[1] == 32:
            reward[0] = 1.0
            state.to_play = uctree.OVER

    fields = [("place", np.int8, 2), ("to_play", np.int8)]
    return uctree.Game(fields, legal, step, num_players=1, num_actions=2, max_plies=64)


def solving(tmp_path):
    assert uctree.solve(walk()).states > 1024  # so that the table grows


def loading(tmp_path):
    tree = uctree.search("tic_tac_toe", num_simulations=50).tree
    tree.save(tmp_path / "a.tree")
    assert uctree.Tree.load(tmp_path / "a.tree").simulations == 50


def solving_circles(tmp_path):
    """A game in which play goes in circles, so that its states become a graph."""
    solution = uctree.solve(games.pig(3))
    assert solution.cyclic


def planning(tmp_path):
    """A plan whose tree is saved with its answers, and continued."""
    path = tmp_path / "plan.tree"
    uctree.plan(counting(), 1, num_simulations=20, seed=1).tree.save(path)
    assert uctree.plan(counting(), 1, num_simulations=10, tree=path).tree.simulations == 30


def saving_pages(tmp_path):
    path = tmp_path / "a.html"
    result = uctree.search("tic_tac_toe", num_simulations=50, transpositions=True)
    path.write_text("earlier")
    try:
        result.save(path)
    except MemoryError:
        assert path.read_text() == "earlier"
        raise
    assert path.read_text().startswith("<!doctype html>")


WORK = {
    "a workspace": ("uctree.engine.workspace", searching),
    "a queue": ("uctree.engine.queue", asking),
    "a queue for many trees": ("uctree.engine.queue", many_trees),
    "a table of states": ("uctree.solver", solving),
    "a graph of states": ("uctree.solver", solving_circles),
    "a tree file": ("uctree.engine.treefile", loading),
    "a tree file of a plan": ("uctree.engine.treefile", planning),
    "the outline of a page": ("uctree.pages.outline", saving_pages),
}


@pytest.mark.parametrize("name", WORK)
def test_memory_that_runs_out_is_an_error_and_the_next_call_is_right(name, monkeypatch, tmp_path):
    module, work = WORK[name]
    num_failures, failing = 0, Failing(1)
    while failing.countdown <= 0 or num_failures == 0:
        failing = Failing(num_failures + 1)
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.np", failing)
            try:
                work(tmp_path)
            except MemoryError:
                assert failing.countdown <= 0
            else:
                assert failing.countdown > 0  # no failure is overlooked
                break
        num_failures += 1
        if num_failures % 7 == 1:
            work(tmp_path)
    assert num_failures > 0
