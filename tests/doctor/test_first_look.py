"""The look at a game before it is compiled: broken games are refused, and nothing else changes."""

from __future__ import annotations

import os
import re
import sys
import time

import numpy as np
import pytest

import uctree
import uctree.games
from tests.broken_games import BROKEN, heap_game, legal, rule_of, step
from uctree import BrokenGame
from uctree.doctor.contract import RULES
from uctree.doctor.first_look import first_breach, refuse_broken
from uctree.engine import disk_cache, looks
from uctree.engine.disk_cache import clear_cache, has_mark, save_mark
from uctree.engine.recent import Recent

pytestmark = pytest.mark.quick

# What a search of such a game would get wrong. The others are warnings, need compiled code, many
# episodes or a person's eye, or a search sees them itself.
SEEN = sorted(
    name
    for name, factory in BROKEN.items()
    if rule_of(factory)
    in {
        "raises", "overflow", "out-of-bounds", "hidden-randomness", "data-changed",
        "to-play-range", "legal-count", "legal-range", "legal-duplicate", "legal-changes-state",
        "changes-state", "chance-count", "chance-range", "chance-probabilities", "reward-finite",
        "zero-sum", "payoff-range", "key-fields", "observe-shape", "observe-finite",
        "priors-range", "invariant",
    }
)  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_a_broken_game_is_refused_with_rule_actions_and_cure(name):
    rule = rule_of(BROKEN[name])
    with pytest.raises(BrokenGame) as caught:
        refuse_broken(BROKEN[name]())
    message = str(caught.value)
    assert message.startswith(f"heap: {rule}: "), message
    assert RULES[rule][2] in message
    assert "check=False" in message


def test_the_line_and_the_index_are_named():
    with pytest.raises(BrokenGame) as caught:
        refuse_broken(BROKEN["reads_out_of_bounds"]())
    message = str(caught.value)
    assert "index 7 is out of bounds for axis 0 with size 7" in message
    assert "broken_games.py, line" in message
    assert "state.seen = worth[state.left]" in message
    assert re.search(r"after the actions \[[01]\]", message)


@pytest.mark.parametrize("name", ["reads_out_of_bounds", "counter_overflows"])
def test_a_search_refuses_before_it_compiles(name):
    game = BROKEN[name]()
    for _ in range(2):
        with pytest.raises(BrokenGame, match=rule_of(BROKEN[name])):
            uctree.search(game, num_simulations=10)
    with pytest.raises(BrokenGame, match=rule_of(BROKEN[name])):
        uctree.solve(game)


@pytest.mark.parametrize("name", uctree.games.__all__)
def test_no_built_in_game_is_refused(name):
    assert first_breach(getattr(uctree.games, name)()) is None


def test_slow_rules_are_cut_by_the_clock():
    def slow(state, action, reward):
        time.sleep(0.02)
        step(state, action, reward)

    began = time.perf_counter()
    assert first_breach(heap_game(step=slow)) is None
    assert time.perf_counter() - began < 0.5


def test_a_slow_start_is_cut_by_the_clock():
    calls = []

    def slow(state):
        calls.append(1)
        time.sleep(0.1)
        state.left = 7

    assert first_breach(heap_game(start=slow)) is None
    assert len(calls) < 9


def picks(state, action, reward, data):
    """As `step`; reads the place that data say, which is there or not."""
    step(state, action, reward)
    state.seen[data[0][0]] = 1


def picking(index):
    return heap_game(step=picks, data=(np.array([index]),), more=[("seen", "i1", (3,))])


def scores(state, action, reward):
    state.score += 10
    step(state, action, reward)


def starting(score):
    """The heap with a score in int8, whose start is all that differs."""

    def start(state):
        state.left = 7
        state.score = score

    return heap_game(step=scores, start=start, more=[("score", "i1")])


@pytest.mark.parametrize(
    ("factory", "sound", "broken", "rule"),
    [(picking, 1, 5, "out-of-bounds"), (starting, 0, 100, "overflow")],
)
def test_other_data_and_another_start_are_looked_at_although_the_code_is_there(
    factory, sound, broken, rule
):
    assert uctree.search(factory(sound), num_simulations=10).simulations == 10
    for _ in range(2):
        with pytest.raises(BrokenGame, match=rule):
            uctree.search(factory(broken), num_simulations=10)
    with pytest.raises(BrokenGame, match=rule):
        uctree.solve(factory(broken))


def test_data_that_changed_in_place_are_looked_at():
    game = picking(1)
    uctree.search(game, num_simulations=10)
    game.data[0][0] = 5
    with pytest.raises(BrokenGame, match="out-of-bounds"):
        uctree.search(game, num_simulations=10)


def flagged(state, action, reward):
    """As `step`; reads beyond a field if the state says so, as no episode from the start does."""
    step(state, action, reward)
    if state.flag == 1:
        state.seen[5] = 1


def test_a_state_that_play_from_the_start_does_not_reach_is_looked_at():
    game = heap_game(step=flagged, more=[("flag", "i1"), ("seen", "i1", (3,))])
    state = game.start()
    state["flag"] = 1
    assert uctree.search(game, num_simulations=10).simulations == 10
    message = r"out-of-bounds: step(.|\n)*after the actions \[[01]\] from the given state"
    for search in (
        lambda: uctree.search(game, state, num_simulations=10),
        lambda: uctree.search(game, state, num_simulations=20, seed=1),
        lambda: uctree.search_many(game, [state], num_simulations=10),
        lambda: uctree.solve(game, state),
    ):
        with pytest.raises(BrokenGame, match=message):
            search()
    assert uctree.search(game, num_simulations=10).simulations == 10


@pytest.fixture
def looked_at(tmp_path, monkeypatch):
    """The games that were looked at, with a cache of their own."""
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(looks, "_seen", Recent(looks.MOST_REMEMBERED))
    games: list = []
    monkeypatch.setattr(looks, "refuse_broken", lambda game, state=None: games.append(game))
    return games


def test_one_look_at_a_game_is_enough_in_all_processes(looked_at, monkeypatch):
    for _ in range(2):
        game = heap_game()
        looks.look_at(game)
        looks.look_at(game)
    monkeypatch.setattr(looks, "_seen", Recent(looks.MOST_REMEMBERED))  # as another process
    looks.look_at(heap_game())
    assert len(looked_at) == 1
    looks.look_at(heap_game(max_plies=20))
    looks.look_at(heap_game(payoff_range=(-1, 1)))
    looks.look_at(starting(5))
    assert len(looked_at) == 4
    assert clear_cache() == 0  # no machine code
    monkeypatch.setattr(looks, "_seen", Recent(looks.MOST_REMEMBERED))
    looks.look_at(heap_game())
    assert len(looked_at) == 5


def test_rules_that_cannot_be_hashed_are_looked_at_once_a_game(looked_at):
    secret = object()

    def invariant(state):
        return secret is not None

    for _ in range(2):
        game = heap_game(invariant=invariant)
        looks.look_at(game)
        looks.look_at(game)
    assert len(looked_at) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="its folders have no mode")
def test_a_mark_in_a_folder_that_others_may_write_to_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    save_mark("seen")
    assert has_mark("seen")
    assert not has_mark("unseen")
    tmp_path.chmod(0o777)
    assert not has_mark("seen")
    save_mark("unseen")
    tmp_path.chmod(0o700)
    assert not has_mark("unseen")


def test_the_newest_marks_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disk_cache, "MAX_MARKS", 2)
    for i in range(4):
        save_mark(f"mark{i}")
        os.utime(tmp_path / f"mark{i}.mark", (i, i))
    assert [has_mark(f"mark{i}") for i in range(4)] == [False, False, True, True]


def test_the_look_can_be_skipped():
    """A search of the game does not meet what the look would find."""

    def twice(state, actions):
        if state.left == 7:
            return legal(state, actions)
        actions[0] = 0
        return 1.0

    game = heap_game(legal=twice)
    with pytest.raises(BrokenGame, match=r"legal-count: legal returned 1\.0"):
        uctree.search(game, num_simulations=10)
    assert uctree.search(game, num_simulations=10, check=False).simulations == 10
    with pytest.raises(BrokenGame, match="legal-count"):  # although its machine code is there
        uctree.search(game, num_simulations=10)
    with pytest.raises(TypeError, match="check must be True or False; got 1"):
        uctree.search(game, num_simulations=10, check=1)


def test_the_look_leaves_no_trace():
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    game = heap_game()
    assert first_breach(game) is None
    assert (np.random.get_state()[1] == before).all()


def test_a_search_may_cut_episodes_at_max_plies():
    assert first_breach(heap_game(max_plies=3)) is None
