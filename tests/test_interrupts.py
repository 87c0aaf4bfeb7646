"""Ctrl-C at random moments, by a real signal: no search leaves anything half done."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import uctree
from tests.pressing import assert_nothing_stays, held, interrupted, keyboard, two_moments
from uctree import evaluators, games
from uctree.engine import interrupts
from uctree.engine.compose import compose
from uctree.engine.driver import BatchedSearch
from uctree.engine.options import resolve
from uctree.kernels.records import NONE

GAME = games.connect_four()
OFTEN = [pytest.param(5), pytest.param(200, marks=pytest.mark.slow)]


def judge(states):
    return np.zeros((len(states), 2), np.float32)


def judge_slowly(states):
    time.sleep(0.002)
    return judge(states)


@pytest.fixture(autouse=True, scope="module")
def _first_search():
    """A first search, which opens what stays open as long as the process."""
    uctree.search(GAME, num_simulations=1)


# --- blocks in which it waits --------------------------------------------------------------------


def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.001)


def raised(block):
    """Whether a function raised KeyboardInterrupt, and what it noted before."""
    done = []
    try:
        block(done.append)
    except KeyboardInterrupt:
        return True, done
    return False, done


def test_ctrl_c_waits_for_the_end_of_a_block():
    def block(note):
        with interrupts.postponed():
            ctrl_c()
            note("inside")
        note("after")

    assert raised(block) == (True, ["inside"])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Freed:
    """An object during whose destruction Ctrl-C is pressed."""

    def __del__(self):
        ctrl_c()


def wait():
    """Five seconds, in which a press that was lost and is sent again takes effect soon."""
    for _ in range(500):
        time.sleep(0.01)  # one long sleep would not be woken


@pytest.mark.parametrize("block", [interrupts.sent_again, interrupts.never_lost])
def test_ctrl_c_in_a_destructor_is_not_lost(block):
    hook = sys.unraisablehook

    def press(note):
        with block():
            Freed()
            wait()
            note("after")

    assert raised(press) == (True, [])
    assert sys.unraisablehook is hook


def test_ctrl_c_in_a_destructor_is_one_press():
    def press(note):
        with interrupts.sent_again(), interrupts.postponed():
            with interrupts.allowed(), contextlib.suppress(KeyboardInterrupt):
                Freed()
                wait()
            note("inside")
            assert not interrupts.was_forced()

    assert raised(press) == (False, ["inside"])


@pytest.mark.parametrize("safe", [interrupts.check, lambda: interrupts.allowed().__enter__()])
def test_ctrl_c_takes_effect_where_it_is_allowed_and_where_it_is_checked(safe):
    def block(note):
        with interrupts.postponed():
            ctrl_c()
            note("waits")
            safe()
            note("never")

    assert raised(block) == (True, ["waits"])


def test_ctrl_c_in_an_allowed_block_takes_effect_at_once():
    def block(note):
        with interrupts.postponed(), interrupts.allowed():
            ctrl_c()
            note("never")

    assert raised(block) == (True, [])


def test_the_end_of_an_inner_block_is_a_safe_point_only_where_ctrl_c_is_allowed():
    def postponed(note):
        with interrupts.postponed():
            with interrupts.postponed():
                ctrl_c()
            note("outer")

    def allowed(note):
        with interrupts.postponed(), interrupts.allowed():
            with interrupts.postponed():
                ctrl_c()
                note("inner")
            note("never")

    assert raised(postponed) == (True, ["outer"])
    assert raised(allowed) == (True, ["inner"])


def test_a_second_ctrl_c_does_not_wait():
    def block(note):
        with interrupts.postponed():
            ctrl_c()
            note(interrupts.was_forced())
            try:
                ctrl_c()
                note("never")
            finally:
                note(interrupts.was_forced())

    def cleaning(note):
        with interrupts.postponed():
            try:
                ctrl_c()
                interrupts.check()
            finally:
                ctrl_c()  # while what the first one stopped is cleaned up
                note("never")

    assert raised(block) == (True, [False, True])
    assert raised(cleaning) == (True, [])


def test_a_second_ctrl_c_waits_for_the_end_of_a_shielded_block():
    def alone(note):
        with interrupts.shielded():
            ctrl_c()
            ctrl_c()
            note("inside")
        note("never")

    def nested(note):
        with interrupts.postponed():
            with interrupts.shielded(), interrupts.shielded():
                ctrl_c()
                note("one waits")
            with interrupts.shielded():
                note("as before")
                ctrl_c()
                note("inside")
            note("never")

    assert raised(alone) == (True, ["inside"])
    assert raised(nested) == (True, ["one waits", "as before", "inside"])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_user_is_called_at_safe_points():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupts.postponed():
            ctrl_c()
            assert seen == []
            interrupts.check()
            assert seen == [signal.SIGINT]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts.postponed():
            ctrl_c()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_ctrl_c_alone():
    seen = []

    def run():
        with interrupts.postponed():
            seen.append(signal.getsignal(signal.SIGINT))
            interrupts.check()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


# --- one tree, or one for each thread ------------------------------------------------------------

MODES = {
    "one thread": {},
    "threads in one tree": {"threads": 2, "parallel": "tree"},
    "a tree per thread": {"threads": 2, "parallel": "root"},
    "batches": {"evaluator": evaluators.python(judge, leaves=8)},
    "slow batches": {"evaluator": evaluators.python(judge_slowly, leaves=8, cache=0)},
    "calls in threads": {"evaluator": evaluators.python(judge, leaves=8, concurrency=4, cache=0)},
}


def assert_sound(tree, num_waiting=8):
    """Whether visits add up in every node, and no simulation is under way."""
    edges = tree.edges[: 1 + tree.num_edges]
    if tree.layout.pending:
        assert not edges["pending"].any()
    visits, nodes = edges["visits"], np.flatnonzero(edges["first"] != NONE)[1:]
    assert tree.edge_visits(tree.root.edges).sum() == tree.simulations
    until = np.concatenate([[0], np.cumsum(visits, dtype=np.int64)])
    first, count = edges["first"][nodes], edges["num_edges"][nodes]
    own = visits[nodes] - (until[first + count] - until[first])
    # A node is valued once; again if simulations come to it at the same time.
    assert (own >= 0).all()
    assert (own <= num_waiting).all()


@pytest.mark.parametrize("num_moments", OFTEN)
@pytest.mark.parametrize("mode", MODES)
def test_a_search_ends_with_a_sound_tree_at_any_moment(mode, num_moments):
    options = MODES[mode] | {"seconds": 60}
    uctree.search(GAME, **options | {"seconds": None, "num_simulations": 20})
    rng, trees, before, total, results = random.Random(mode), None, held(), 0, 0
    for _ in range(num_moments):
        search = functools.partial(uctree.search, GAME, tree=trees, **options)
        result = interrupted(search, rng.uniform(0.0, 0.05))
        if result is not None:
            assert result.status == "interrupted"
            total, results = total + result.simulations, results + 1
            trees = result.trees
            assert sum(tree.simulations for tree in trees) == total
        for tree in trees or ():
            assert_sound(tree)
        total = sum(tree.simulations for tree in trees or ())  # if there was no result
        if total > 200_000:
            total, trees = 0, None
    assert results >= num_moments / 2  # Ctrl-C may come before the search begins
    assert_nothing_stays(before)


@pytest.mark.parametrize("num_moments", OFTEN)
@pytest.mark.parametrize("mode", MODES)
def test_a_second_ctrl_c_ends_a_search_at_any_moment_and_the_next_one_is_right(mode, num_moments):
    options, rng = MODES[mode], random.Random(mode)
    repeats = options.get("parallel") != "tree" and "slow" not in mode
    expected = uctree.search(GAME, num_simulations=200, **options).edges.tobytes()
    before = held()
    for _ in range(num_moments):
        began = time.monotonic()
        search = functools.partial(uctree.search, GAME, seconds=60, **options)
        result = interrupted(search, *two_moments(rng, 0.05))
        assert time.monotonic() - began < 10
        if result is not None:
            assert_sound(result.tree)
        found = uctree.search(GAME, num_simulations=200, **options)
        assert_sound(found.tree)
        assert not repeats or found.edges.tobytes() == expected
    assert_nothing_stays(before)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_ctrl_c_before_the_first_simulation_raises(concurrency):
    ended = []

    def slow(states):
        time.sleep(1.5)
        ended.append(len(states))
        return judge(states)

    evaluator, before = evaluators.python(slow, leaves=8, concurrency=concurrency), held()
    compose(GAME, resolve(GAME, evaluator=evaluator))
    assert interrupted(lambda: uctree.search(GAME, seconds=60, evaluator=evaluator), 0.2) is None
    assert not ended
    assert_nothing_stays(before)  # the function cannot be stopped, but its thread ends after it


def test_ctrl_c_while_a_python_function_is_slow_does_not_wait_for_it():
    calls = []

    def stuck(states):
        calls.append(len(states))
        if len(calls) > 3:
            time.sleep(5)
        return judge(states)

    evaluator = evaluators.python(stuck, leaves=8, cache=0)
    uctree.search(GAME, num_simulations=1, evaluator=evaluator)
    began = time.monotonic()
    result = interrupted(lambda: uctree.search(GAME, seconds=60, evaluator=evaluator), 0.3)
    assert time.monotonic() - began < 3
    assert result.status == "interrupted"
    assert 0 < result.simulations <= 24
    assert_sound(result.tree)


SECOND = """
import time
import uctree

def step(state, action, reward):
    state.left -= 1
    if state.left < 5:
        print("hangs", flush=True)
    while state.left < 5:
        time.sleep(0.01)
    state.to_play = 1 - state.to_play

def legal(state, actions):
    actions[0], actions[1] = 0, 1
    return 2

def start(state):
    state.left = 10

fields = [("left", "i2"), ("to_play", "i1")]
game = uctree.Game(fields, legal, step, start=start, num_players=2, num_actions=2)
uctree.search(game, seconds=60)
"""


def test_a_second_ctrl_c_ends_a_rule_that_hangs_in_plain_python():
    with subprocess.Popen(
        [sys.executable, "-c", SECOND], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "hangs\n"
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert errors.endswith("KeyboardInterrupt\n")
    assert "in step" in errors


# --- many trees ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def batch():
    made = BatchedSearch(GAME, 4, evaluator=evaluators.python(judge, leaves=4))
    made.reset(range(4), [GAME.start()] * 4, num_simulations=20)
    made.run()
    return made


@pytest.mark.parametrize("num_moments", OFTEN)
def test_a_batch_of_trees_is_sound_after_ctrl_c_at_any_moment(batch, num_moments):
    rng, before, num_cut = random.Random("batch"), held(), 0
    for seed in range(num_moments):

        def run(seed=seed):
            batch.reset(range(4), [GAME.start()] * 4, num_simulations=100_000, seed=seed)
            batch.run()
            return True

        assert interrupted(run, rng.uniform(0.0, 0.03)) is None
        for number in range(4):
            assert_sound(batch.tree(number), num_waiting=4)
        num_cut += batch.tree(0).simulations > 0
        batch.reset([1], [GAME.start()], num_simulations=50, seed=seed)
        others = batch.tree(0).simulations
        batch.run()
        assert batch.root(1).visits.sum() == 50
        assert batch.tree(0).simulations == others  # a tree that was stopped stays so
    assert num_cut > 0
    assert_nothing_stays(before)


@pytest.mark.parametrize("num_moments", OFTEN)
def test_a_batch_of_trees_starts_again_after_a_second_ctrl_c(num_moments):
    batch = BatchedSearch(GAME, 4, evaluator=evaluators.python(judge, leaves=4))

    def run(num_simulations):
        batch.reset(range(4), [GAME.start()] * 4, num_simulations=num_simulations, seed=1)
        batch.run()
        return [batch.root(number).visits.tolist() for number in range(4)]

    rng, before, expected = random.Random("again"), held(), run(50)
    for _ in range(num_moments):
        interrupted(lambda: run(100_000), *two_moments(rng, 0.03))
        assert run(50) == expected
    assert_nothing_stays(before)


def test_a_batch_with_a_compiled_evaluator_ends_soon_after_ctrl_c():
    batch = BatchedSearch(GAME, 4)
    batch.reset(range(4), [GAME.start()] * 4, num_simulations=2**30)
    began = time.monotonic()
    assert interrupted(batch.run, 0.3) is None
    assert time.monotonic() - began < 5  # to the end it would be an hour
    for number in range(4):
        assert batch.tree(number).simulations > 100
        assert_sound(batch.tree(number), num_waiting=1)


@pytest.mark.parametrize("evaluator", [None, evaluators.python(judge, leaves=4, concurrency=2)])
@pytest.mark.parametrize("num_moments", OFTEN)
def test_ctrl_c_ends_all_searches_of_many_states(evaluator, num_moments):
    options = {} if evaluator is None else {"evaluator": evaluator}
    uctree.search_many(GAME, [GAME.start()] * 2, num_simulations=5, **options)
    rng, before = random.Random("many"), held()
    for _ in range(num_moments):
        began = time.monotonic()
        assert interrupted(
            lambda: uctree.search_many(
                GAME, [GAME.start()] * 500, num_simulations=100_000, **options
            ),
            rng.uniform(0.0, 0.05),
        ) is None  # fmt: skip
        assert time.monotonic() - began < 10
    assert_nothing_stays(before)


# --- what a search keeps -------------------------------------------------------------------------


def test_the_threads_of_an_evaluator_end_with_its_search():
    before = held()
    for _ in range(20):
        evaluator = evaluators.python(judge, leaves=8, concurrency=4)
        uctree.search(GAME, num_simulations=50, evaluator=evaluator)
    assert_nothing_stays(before)
    evaluator = evaluators.python(judge, leaves=8, concurrency=4)
    for _ in range(2):  # the same one starts new threads
        uctree.search(GAME, num_simulations=50, evaluator=evaluator)
        uctree.search_many(GAME, [GAME.start()] * 3, num_simulations=20, evaluator=evaluator)
    assert_nothing_stays(before)


def test_an_evaluator_serves_several_searches_at_once():
    evaluator = evaluators.python(judge_slowly, leaves=8, concurrency=3, cache=0)
    found, before = [], held()

    def run(seed):
        found.append(uctree.search(GAME, num_simulations=200, seed=seed, evaluator=evaluator))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.simulations for result in found] == [200] * 4
    assert_nothing_stays(before)


def failing(states):
    raise ValueError("no")


ENDINGS = {
    "budget": lambda **options: uctree.search(GAME, num_simulations=200, **options),
    "seconds": lambda **options: uctree.search(GAME, seconds=0.05, **options),
    "an error in progress": lambda **options: uctree.search(
        GAME, seconds=5, progress=lambda _: 1 / 0, **options
    ),
    "many states": lambda **options: uctree.search_many(
        GAME, [GAME.start()] * 2, num_simulations=100, **options
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("mode", [*MODES, "a failing evaluator"])
def test_a_search_closes_all_that_it_opened(mode, ending):
    options = MODES.get(mode, {"evaluator": evaluators.python(failing, concurrency=2, leaves=4)})
    uctree.search_many(GAME, [], **options)
    before = held()
    for _ in range(3):
        try:
            ENDINGS[ending](**options)
        except (ZeroDivisionError, uctree.UctreeError):
            assert "error" in ending or "failing" in mode
    assert_nothing_stays(before)


def test_ctrl_c_between_short_searches_is_not_lost():
    thread, statuses = keyboard(0.2), []
    try:
        thread.start()
        while "interrupted" not in statuses[-1:] and len(statuses) < 100_000:
            statuses.append(uctree.search(GAME, num_simulations=10).status)
    except KeyboardInterrupt:
        statuses.append("raised")
    thread.join()
    assert statuses[-1] in ("interrupted", "raised")
    assert "interrupted" not in statuses[:-1]
