"""The look at a game before it is compiled: broken games are refused, and nothing else changes."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import uctree
import uctree.games
from tests.broken_games import BROKEN, heap_game, legal, rule_of, step
from uctree import BrokenGame
from uctree.doctor.contract import RULES
from uctree.doctor.first_look import first_breach, refuse_broken
from uctree.engine.compile import compile_kernel

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
    game = getattr(uctree.games, name)()
    began = time.process_time()
    assert first_breach(game) is None
    assert time.process_time() - began < 0.5


def test_slow_rules_are_cut_by_the_clock():
    def slow(state, action, reward):
        time.sleep(0.02)
        step(state, action, reward)

    began = time.perf_counter()
    assert first_breach(heap_game(step=slow)) is None
    assert time.perf_counter() - began < 0.5


def double(n):
    return 2 * n


def test_code_from_the_cache_needs_no_look(tmp_path, monkeypatch):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    looks = []
    for _ in range(2):
        kernel = compile_kernel(double, {}, (1,), label="look", before=lambda: looks.append(1))
        assert kernel.call(4) == 8
    assert kernel.cached
    assert looks == [1]


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
