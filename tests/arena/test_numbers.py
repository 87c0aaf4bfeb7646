"""Numbers of NumPy are numbers, wherever a count, a seed or a budget is given."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import arena, games
from uctree.arena.records import read_games

two, one = np.int64(2), np.int64(1)
pytestmark = pytest.mark.usefixtures("both_ways")


def test_a_match_and_its_file(tmp_path):
    counts = {"num_games": two, "seed": one, "openings": one, "processes": one}
    arena.match("tic_tac_toe", ["random", "random"], path=tmp_path / "games", **counts)
    again = {name: int(count) for name, count in counts.items()}
    result = arena.match("tic_tac_toe", ["random", "random"], path=tmp_path / "games", **again)
    assert len(result.records) == len(read_games(tmp_path / "games")) == 2


@pytest.mark.parametrize(
    ("vary", "budget"),
    [
        ({"selection.ucb1.c": [np.float64(0.5), one]}, {"num_simulations": np.int64(5)}),
        ({"num_simulations": [np.int64(4), np.int64(6)]}, {}),
    ],
)
def test_an_ablation(tmp_path, vary, budget):
    found = arena.ablate(
        "nim", vary, num_games=two, seed=one, openings=one, processes=one, folder=tmp_path / "a",
        **budget,
    )  # fmt: skip
    assert found.status == "complete"


def test_advice():
    found = uctree.advise(
        "tic_tac_toe", budgets=[np.int64(5)], rules=["ucb1"], num_positions=two, num_seeds=one,
        seed=one, reference_simulations=np.int64(9), max_states=np.int64(0),
    )  # fmt: skip
    assert found.budgets == [5]


def test_a_plan(tmp_path):
    problem = uctree.Problem(
        actions=lambda state: [1, 2], step=lambda state, action: uctree.Step(state + action),
        value=lambda state: 0.0, num_players=one, max_actions=two, horizon=two,
    )  # fmt: skip
    plans = [
        uctree.plan(problem, 0, num_simulations=count(9), seed=count(2), in_flight=count(2),
                    journal=tmp_path / str(count))
        for count in (np.int64, int)
    ]  # fmt: skip
    assert (plans[0].edges == plans[1].edges).all()


def test_sizes_of_games():
    assert uctree.Sphere(two) == uctree.Sphere(2)
    assert games.point_mass(stages=two).max_plies == 2
    assert games.loss_game(dim=two).dim == 2
