"""Options of a run: checks, defaults of every game, descriptions."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import uctree
from tests.learn.episodes import LEARNABLE
from uctree import games, specs
from uctree.learn.options import CHANGEABLE, Options, describe_options, make_options

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_simulations": 0}, r"num_simulations=0: expected an integer of at least 1, or None"),
        ({"num_simulations": 2.5}, r"num_simulations=2.5: expected an integer"),
        ({"batch_size": "many"}, r"batch_size='many': expected an integer of at least 1 \(positi"),
        ({"seed": True}, r"seed=True: expected an integer of at least 0"),
        ({"c": float("nan")}, r"c=nan: expected a number of at least 0"),
        ({"max_hours": float("inf")}, r"max_hours=inf: expected a number above 0, or None"),
        ({"value_mix": 1.5}, r"value_mix=1.5: expected a number of at least 0 and at most 1"),
        ({"average_decay": 1.0}, r"average_decay=1.0: .* of at least 0 and below 1"),
        ({"schedule": "step"}, r"schedule='step': expected 'constant' or 'linear' or 'cosine'"),
        ({"symmetries": 1}, r"symmetries=1: expected True or False"),
        ({"num_sims": 3}, r"unknown option 'num_sims'; did you mean num_simulations\?"),
        ({"num_simulations": 5, "fast_simulations": 9}, r"fast_simulations=9 is more than num"),
        ({"replay_start": 9, "replay_window": 5}, r"replay_start=9 is more than replay_window=5"),
    ],
)
def test_a_wrong_option_is_refused_with_what_came_and_what_is_expected(game, given, message):
    with pytest.raises(uctree.UctreeError, match=message):
        make_options(game, **given)


@pytest.mark.parametrize("name", LEARNABLE)
def test_every_game_gets_options_that_are_complete(name):
    game = specs.built_in()[name]()
    options = make_options(game)
    for each in (
        "num_simulations", "fast_simulations", "temperature_cutover", "episodes_per_iteration",
        "replay_window", "replay_start", "schedule_iterations",
        "max_iterations",
    ):  # fmt: skip
        assert isinstance(getattr(options, each), int), each
    assert options.replay_start <= options.replay_window
    assert make_options(game, **msgspec.to_builtins(options)) == options


def test_what_is_given_is_not_decided_by_the_game(game):
    options = make_options(game, num_simulations=np.int64(7), temperature_cutover=0, c=2)
    assert (options.num_simulations, options.temperature_cutover) == (7, 0)
    assert isinstance(options.c, float)
    assert options.max_iterations == 100
    assert make_options(game, max_hours=1).max_iterations is None
    by_games = make_options(game, max_games=1000, episodes_per_iteration=100)
    assert (by_games.max_iterations, by_games.schedule_iterations) == (None, 10)


def test_options_do_not_change(game):
    with pytest.raises(AttributeError):
        make_options(game).c = 3.0


def test_every_option_is_described_in_one_line():
    rows = {row.name: row for row in describe_options()}
    assert list(rows) == [each.name for each in msgspec.structs.fields(Options)]
    assert set(rows) >= CHANGEABLE
    for row in rows.values():
        assert row.description
        assert "\n" not in row.description
    assert rows["batch_size"].type == "an integer of at least 1"
    assert rows["batch_size"].default == 256
