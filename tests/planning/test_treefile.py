"""Tree files of plans: they are continued, and forged ones are refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import uctree
from tests.planning.counting import counting
from uctree.engine import treefile
from uctree.errors import UctreeError
from uctree.planning.planner import Planner
from uctree.planning.problem import Problem, Step
from uctree.tree import Tree

pytestmark = pytest.mark.usefixtures("both_ways")


def watched(asked, **functions):
    """A problem of every kind of answer, and what it was asked."""

    def step(number, action):
        asked.append((number, action))
        if action == "fail":
            raise RuntimeError("no")
        if action == "roll":
            return Step(number, to_play=uctree.CHANCE)
        after = number + (action if isinstance(action, int) else 1)
        return Step(after, reward=0.25 * (after % 3), over=after > 12)

    given = {
        "actions": lambda number: [("add", 0.5), ("roll", 0.25), ("fail", 0.25)],
        "step": step, "value": lambda number: number / 16, "priors": True,
        "chance": lambda number: [(1, 0.5), (2, 0.5)],
    }  # fmt: skip
    return Problem(**given | functions)


def proposed(number, tried, k):
    asked = [each for each in ("add", "fail", 2, 3) if each not in tried]
    return asked[:k]


KINDS = {
    "priors": {},
    "key": {"key": lambda number: number},
    "proposals": {"actions": None, "priors": None, "propose": proposed},
}


@pytest.mark.parametrize("on_error", ["drop", "value"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_continues_a_tree_file_and_asks_nothing_twice(tmp_path, kind, on_error):
    asked = []
    problem = watched(asked, **KINDS[kind])
    options = {"on_error": on_error, "seed": 1}
    if on_error == "value":
        options["error_value"] = -1.0
    first = uctree.plan(problem, 1, num_simulations=120, **options)
    first.tree.save(tmp_path / "x.tree")
    known = list(asked)
    asked.clear()
    again = uctree.plan(problem, 1, num_simulations=1, tree=tmp_path / "x.tree", **options)
    assert again.tree.root.visits == first.tree.root.visits + again.simulations
    assert len(asked) <= 2  # one simulation: an action and its outcome
    more = uctree.plan(problem, 1, num_simulations=200, tree=tmp_path / "x.tree", **options)
    assert more.tree.root.visits == first.tree.root.visits + 200
    assert kind != "key" or not set(asked) & set(known)
    asked.clear()
    grown = tmp_path / "y.tree"
    more.tree.save(grown)
    uctree.plan(problem, 1, num_simulations=1, tree=grown, **options)
    assert len(asked) <= 2


def test_a_file_of_a_later_state_continues_there(tmp_path):
    problem, path = counting(), tmp_path / "x.tree"
    planner = Planner(problem, 1, num_simulations=30, seed=1)
    uctree.plan(planner)
    planner.advance("double")
    uctree.plan(planner).tree.save(path)
    assert uctree.plan(problem, 2, num_simulations=5, tree=path).simulations == 5
    with pytest.raises(UctreeError, match="a tree of another state, '2'"):
        uctree.plan(problem, 1, num_simulations=5, tree=path)
    with pytest.raises(UctreeError, match="was grown with other options"):
        uctree.plan(problem, 2, num_simulations=5, tree=path, solver=True)
    with pytest.raises(UctreeError, match=r"continue it with plan\(problem, start, tree="):
        Tree.load(path)


def test_states_that_are_no_json_data_need_dump_and_load(tmp_path):
    problem = Problem(
        actions=lambda state: [1, 2], step=lambda state, a: Step(state | {a}, over=len(state) > 1),
        value=lambda state: 0.0,
    )  # fmt: skip
    result = uctree.plan(problem, frozenset(), num_simulations=5, seed=1)
    with pytest.raises(UctreeError, match=r"need dump= and load=.*give plan a journal="):
        result.tree.save(tmp_path / "x.tree")
    assert not list(tmp_path.iterdir())


def forged_lines(change):
    """A change of the answers beside a tree."""

    def forge(arrays):
        lines = [json.loads(line) for line in arrays["answers"].tobytes().split(b"\n")]
        change(lines)
        text = "\n".join(map(json.dumps, lines))
        arrays["answers"] = np.frombuffer(text.encode(), np.uint8)

    return forge


def forged_edges(name, value):
    def forge(arrays):
        edges = arrays["edges"].copy()
        place = int(np.flatnonzero(edges["row"] > 0)[0])
        edges[name][place] = value
        arrays["edges"] = edges

    return forge


def forged_root(arrays):
    arrays["state"] = arrays["state"].copy()
    arrays["state"]["row"] = -1


FORGERIES = [
    (forged_lines(lambda lines: lines[0].update(problem="other")), "of another problem"),
    (forged_lines(lambda lines: lines.pop()), "does not lead to state|no state of its answers"),
    (forged_lines(lambda lines: lines[2].update(row=10**9)), "is not an answer to this problem"),
    (forged_lines(lambda lines: lines[2].update(index=-5)), "is not an answer to this problem"),
    (forged_lines(lambda lines: lines[2].update(to_play=7)), "is not an answer to this problem"),
    (forged_lines(lambda lines: lines[2].update(reward=[0.125])), "pays"),
    (forged_lines(lambda lines: lines.__delitem__(slice(1, None))), "no answer about its start"),
    (forged_edges("row", 10**6), "does not lead to state 1000000"),
    (forged_edges("row", -7), "does not lead to state -7"),
    (forged_edges("count", 50), "does not lead to state"),
    (forged_edges("mover", 1), "does not lead to state"),
    (forged_root, "its root is|do not take"),
    (lambda arrays: arrays.pop("answers"), "is not the tree of a plan"),
    (lambda arrays: arrays.update(answers=np.zeros(3)), "is not the tree of a plan"),
    (lambda arrays: arrays.update(answers=np.full(9, 255, np.uint8)), "is not an answer"),
]  # fmt: skip


@pytest.mark.parametrize(("forge", "what"), FORGERIES)
def test_a_forged_file_is_refused(tmp_path, forge, what):
    problem, path = counting(), tmp_path / "x.tree"
    uctree.plan(problem, 1, num_simulations=20, seed=1).tree.save(path)
    header, arrays = treefile.read(path)
    forge(arrays)
    treefile.write(path, header, arrays)
    with pytest.raises(UctreeError, match=what):
        uctree.plan(problem, 1, num_simulations=5, tree=path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_tree_that_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch, where, error):
    path = tmp_path / "plan.tree"
    first = uctree.plan(counting(), 1, num_simulations=10, seed=1)
    first.tree.save(path)
    before = path.read_bytes()
    second = uctree.plan(counting(), 1, num_simulations=20, tree=path)

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, where, fail)
        with pytest.raises(error):
            second.tree.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    second.tree.save(path)
    assert uctree.plan(counting(), 1, num_simulations=1, tree=path).tree.simulations == 31
