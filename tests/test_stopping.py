"""When a search ends before its budget is used up."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pytest

import uctree
from tests.hand_made_trees import grown, result_of
from tests.small_games import dice_game, heap_game
from uctree import stopping
from uctree.result import described
from uctree.stopping import Stop, agreed, deadline, decided, kl_gain, proven, value_gap, watch

pytestmark = pytest.mark.quick


def visited(*visits, values=(0.0, 0.0, 0.0), **fields):
    """A result whose root has these visits and values, all returns of an action alike."""
    lines = {(a,): (n, values[a]) for a, n in enumerate(visits)}
    return result_of(grown(heap_game(), lines), **fields)


def checked(stop, *results, remaining=None):
    """The stops reached at these results, one check after the other."""
    watching = watch(stop)
    return [watching.reached(result, remaining) for result in results]


def never():
    return lambda result, remaining: False


# --- formulas ------------------------------------------------------------------------------------


def test_a_lead_is_safe_only_if_it_is_larger_than_what_is_left():
    assert stopping.cannot_be_overtaken(np.array([9, 70, 20]), remaining=49)
    assert not stopping.cannot_be_overtaken(np.array([9, 70, 20]), remaining=50)
    assert not stopping.cannot_be_overtaken(np.array([5, 5]), remaining=0)


def test_an_action_without_a_rival_cannot_be_overtaken():
    assert stopping.cannot_be_overtaken(np.array([1]), remaining=1000)
    assert not stopping.cannot_be_overtaken(np.array([]), remaining=0)


def test_visits_that_keep_their_shares_have_no_gain():
    gain = stopping.divergence_gain(np.array([600, 400]), np.array([300, 200]))
    assert gain == pytest.approx(0.0, abs=1e-18)


def test_the_gain_is_infinite_where_there_is_nothing_to_compare():
    zeros = np.zeros(2, int)
    assert stopping.divergence_gain(np.array([5, 5]), zeros) == math.inf
    assert stopping.divergence_gain(np.array([5, 1]), np.array([5, 0])) == math.inf
    assert stopping.divergence_gain(np.array([5, 5]), np.array([5, 5])) == math.inf


# --- each stop -----------------------------------------------------------------------------------


def test_a_search_is_decided_when_the_rest_cannot_change_the_most_visited():
    result = visited(600, 300, 100)
    assert checked(decided(), result, remaining=299) == ["decided"]
    assert checked(decided(), result, remaining=300) == [None]


def test_without_a_budget_of_simulations_nothing_is_decided():
    assert checked(decided(), visited(10**6, 0, 0), remaining=None) == [None]


def test_one_legal_action_is_decided_at_the_first_check():
    game = heap_game()
    lines = {(0,): (1000, 1.0)}
    alone = result_of(grown(game, lines, game.play([2, 2, 1])))
    assert checked(decided(), alone, remaining=10**6) == ["decided"]


def test_legal_actions_without_an_edge_are_rivals():
    result = result_of(grown(heap_game(), {(0,): (1000, 0.0)}))
    assert checked(decided(), result, remaining=1000) == [None]
    assert checked(decided(), result, remaining=999) == ["decided"]


def test_at_a_chance_root_there_is_nothing_to_decide():
    game = dice_game()
    result = result_of(grown(game, {(0,): (900, [1.0]), (1,): (100, [1.0])}, game.play([0])))
    for stop in (decided(), value_gap(), agreed(after=1)):
        assert checked(stop, result, remaining=0) == [None]


def test_a_gap_between_values_ends_a_search():
    # A radius of 5 standard errors is 5 · √((1e-8 + 1/N³) / N), 0.002 for 50 visits.
    far = visited(1000, 50, 50, values=(0.8, 0.2, 0.1))
    assert checked(value_gap(), far) == ["value_gap"]
    near = visited(1000, 50, 50, values=(0.8, 0.7999, 0.1))
    assert checked(value_gap(), near) == [None]


def test_a_wider_gap_can_be_asked_for():
    result = visited(1000, 50, 50, values=(0.8, 0.7, 0.1))
    assert checked(value_gap(z=5.0), result) == ["value_gap"]
    assert checked(value_gap(z=500.0), result) == [None]


def test_an_action_never_tried_may_be_better():
    assert checked(value_gap(), visited(1000, 50, 0, values=(0.8, 0.2, 0.0))) == [None]
    few = result_of(grown(heap_game(), {(0,): (1000, 0.8), (1,): (50, 0.0)}))
    assert checked(value_gap(), few) == [None]


def test_a_gap_does_not_count_while_another_action_has_the_most_visits():
    assert checked(value_gap(), visited(300, 1000, 50, values=(0.8, 0.2, 0.1))) == [None]


def test_visits_that_stop_moving_end_a_search():
    looks = [visited(250, 0, 0), visited(300, 150, 50), visited(450, 225, 75)]
    assert checked(kl_gain(1e-6), *looks) == [None, None, "kl_gain"]
    moving = [visited(300, 150, 50), visited(330, 330, 90)]
    assert checked(kl_gain(1e-6), *moving) == [None, None]
    assert checked(kl_gain(1.0), *moving) == [None, "kl_gain"]


def test_a_stop_remembers_nothing_of_another_search():
    stop = kl_gain(1e-6)
    assert checked(stop, visited(300, 150, 50)) == [None]
    assert checked(stop, visited(600, 300, 100)) == [None]


def test_visits_of_several_trees_are_compared_by_action():
    game = heap_game()

    def look(*visits):
        first = grown(game, {(a,): (n, 0.0) for a, n in reversed(list(enumerate(visits))) if n})
        return result_of(first, grown(game, {(0,): (1, 0.0)}))

    assert checked(kl_gain(1e-5), look(299, 200, 0), look(599, 400, 0)) == [None, "kl_gain"]
    assert checked(kl_gain(1e-5), look(299, 200, 0), look(599, 399, 1)) == [None, None]


def test_a_search_continues_until_visits_and_values_agree():
    stop = agreed(after=1000)
    differ = visited(600, 400, 0, values=(0.1, 0.2, 0.0))
    agree = visited(700, 550, 0, values=(0.2, 0.1, 0.0))
    early = visited(300, 200, 0, values=(0.2, 0.1, 0.0))
    assert checked(stop, early, differ, agree) == [None, None, "agreed"]


def test_a_proof_ends_a_search():
    lines = {(0,): (200, 0.5), (1,): (50, 0.0)}
    open_, won, solved = (
        result_of(grown(heap_game(), lines, proofs=proofs))
        for proofs in ({0: 0.0}, {0: 1.0, "root": ("mover", 1.0)}, {0: 1.0, "root": 1.0})
    )
    assert checked(proven(), open_) == [None]
    assert checked(proven(), won) == ["solved"]
    assert checked(proven(), solved) == ["solved"]


def test_a_deadline_is_a_moment():
    now = time.time()
    result = visited(1, 0, 0)
    for past in (now - 1, datetime.fromtimestamp(now - 1), datetime.fromtimestamp(now - 1, UTC)):
        assert checked(deadline(past), result) == ["deadline"]
    later = datetime.now(UTC) + timedelta(hours=1)
    assert checked(deadline(later), result) == [None]


# --- several stops -------------------------------------------------------------------------------


def test_the_first_of_several_stops_that_is_reached_ends_the_search():
    result = visited(1000, 50, 50, values=(0.8, 0.2, 0.1))
    both = [decided() | value_gap(), [decided(), value_gap()], (decided(), [value_gap()])]
    for stop in both:
        assert checked(stop, result, remaining=10**6) == ["value_gap"]
        assert checked(stop, result, remaining=10) == ["decided"]


def test_stops_are_joined_in_any_way():
    a, b, c = decided(), value_gap(), proven()
    assert (a | b | c).stops == (a | [b, c]).stops == ([a, b] | c).stops == (a, b, c)
    assert ((a | b) | (c | a)).stops == (a, b, c, a)


def test_without_a_stop_nothing_ends_a_search():
    watching = watch(None)
    assert (watching.interval, watching.reads_clock) == (None, False)
    assert watching.reached(visited(1000, 0, 0), 0) is None
    assert watch([]).interval is None


def counting(interval, seen, name="counting"):
    """A stop that is never reached and records when it was checked."""

    def begin():
        def reached(result, remaining):
            seen.append(result.simulations)
            return False

        return reached

    return Stop(name, begin, interval)


def test_stops_are_checked_at_fixed_numbers_of_simulations():
    often, seldom, always = [], [], []
    stops = [counting(100, often), counting(250, seldom), counting(None, always)]
    watching = watch(stops)
    assert (watching.interval, watching.reads_clock) == (100, True)
    # A search pauses at multiples of 100, and wherever its time is up.
    pauses = [37, 100, 180, 200, 260, 300, 400, 500, 555]
    for simulations in pauses:
        watching.reached(visited(1, 0, 0, simulations=simulations), None)
    assert often == [100, 200, 300, 400, 500]
    assert seldom == [300, 500]  # the first looks at or after 250 and 500
    assert always == pauses


def test_a_stop_whose_multiple_was_missed_is_checked_at_the_next_pause():
    seen = []
    watching = watch(counting(100, seen))
    for simulations in (64, 128, 192, 256, 512):
        watching.reached(visited(1, 0, 0, simulations=simulations), None)
    assert seen == [128, 256, 512]


# --- searches ------------------------------------------------------------------------------------


def search(stop, **options):
    game = heap_game()
    options = {"num_simulations": 4000, "seed": 1} | options
    return uctree.search(game, game.start(), stop=stop, **options)


@pytest.mark.parametrize("seed", range(5))
def test_a_decided_search_plays_what_the_whole_search_plays(seed):
    whole, early = search(None, seed=seed), search(decided(interval=100), seed=seed)
    assert early.status == "decided"
    assert early.simulations < whole.simulations
    assert early.simulations % 100 == 0
    assert early.action == whole.action


def test_the_same_seed_stops_at_the_same_simulation_however_the_time_is_cut():
    stop = value_gap(z=8.0) | kl_gain(1e-9) | decided()
    options = {"num_simulations": 100_000}
    first = search(stop, **options)
    second = search(stop, **options, progress=lambda _: time.sleep(0.002))
    assert first.status == second.status != "simulations"
    assert first.simulations == second.simulations
    assert (first.tree.edges == second.tree.edges).all()


def test_a_deadline_ends_a_search():
    search(None)  # compiled before the clock runs
    result = search(deadline(time.time() + 0.2), num_simulations=10**10)
    assert result.status == "deadline"
    assert result.seconds < 5


def test_a_stop_of_ones_own_gets_what_is_left():
    seen = []

    def begin():
        def reached(result, remaining):
            seen.append((result.simulations, remaining))
            return result.simulations >= 900

        return reached

    stop = Stop("mine", begin, interval=300)
    assert search(stop).status == "mine"
    assert seen == [(300, 3700), (600, 3400), (900, 3100)]
    seen.clear()
    assert search(stop, num_simulations=None, seconds=30).status == "mine"
    assert seen == [(300, None), (600, None), (900, None)]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (decided, r"got the function decided; call it, as decided\(\)"),
        (lambda result, remaining: True, r"a function of your own goes into Stop\(name, begin\)"),
        ("decided", r"comes from uctree.stopping, as stopping.decided\(\).*got 'decided'"),
        ([decided(), 3], "got 3"),
    ],
)
def test_what_is_no_stop_is_refused(given, message):
    with pytest.raises(TypeError, match=message):
        watch(given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(value_gap, z=-1.0), "z must be a number of at least 0; got -1.0"),
        (partial(value_gap, z=math.nan), "z must be a number of at least 0; got nan"),
        (partial(kl_gain, -1e-6), "threshold must be a number of at least 0; got -1e-06"),
        (partial(agreed, after=0), "after is a number of simulations, at least 1; got 0"),
        (partial(decided, interval=0), "interval is a number of simulations.*; got 0"),
        (partial(decided, interval=2.5), "interval is a number of simulations.*; got 2.5"),
        (partial(deadline, 5.0), r"deadline takes a moment.*got 5.0.*give seconds="),
        (partial(deadline, math.inf), "deadline takes a moment"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_deadline_in_words_is_refused():
    with pytest.raises(TypeError, match="a datetime or seconds since the epoch; got 'noon'"):
        deadline("noon")


def test_a_stop_must_begin_with_a_function():
    with pytest.raises(TypeError, match=r"begin is a function without arguments.*got True"):
        Stop("mine", True)
    with pytest.raises(TypeError, match="begin is a function without arguments"):
        Stop("mine", lambda result, remaining: True)  # that is what begin should return
    with pytest.raises(TypeError, match=r"begin of the stop 'mine' must return a function.*None"):
        watch(Stop("mine", lambda: None))


def test_a_stop_is_data_that_goes_into_a_manifest():
    data = described(value_gap(z=3.0) | Stop("mine", never, interval=1000))
    assert data["stops"][0]["name"] == "value_gap"
    assert data["stops"][0]["parameters"] == [3.0]
    assert data["stops"][1] == {
        "name": "mine", "begin": "tests.test_stopping.never", "interval": 1000, "parameters": [],
    }  # fmt: skip
