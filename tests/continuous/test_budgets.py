"""Studies of solvers by budget: runs in a file, summaries."""

from __future__ import annotations

import pytest

from uctree import UctreeError, games
from uctree.continuous import budgets

LOSS = games.loss_game()


def test_a_study_goes_on_where_it_was_broken_off(tmp_path):
    file = tmp_path / "runs.jsonl"
    first = budgets.study(LOSS, ["ascent"], [100, 300], range(2), file=file)
    file.write_text("\n".join(file.read_text().splitlines()[:3]) + '\n{"solver": "asc')
    again = budgets.study(LOSS, ["ascent"], [100, 300], range(2), file=file)
    assert again == first
    assert all(run.evaluations <= run.budget for run in first)


def test_a_solver_that_takes_more_than_its_budget_has_no_regret():
    assert budgets.run(LOSS, "backward", 1000, 0).regret is None
    assert budgets.run(LOSS, "backward", 10**7, 0).worst < 1e-9


def test_the_first_budget_is_the_one_that_nearly_all_seeds_need():
    runs = [
        budgets.Run("x", budget, seed, budget, (worst, 0.0), (0.0,), ())
        for budget, worst in ((10, 5.0), (100, 0.5), (1000, 0.005))
        for seed in range(4)
    ]
    found = budgets.summaries(runs)
    assert budgets.first_budgets(found) == {"x": [100, 1000, 1000]}
    assert budgets.draw(found, "x").count("<circle") == 3  # one for each budget


def test_a_study_goes_on_after_a_torn_line_and_refuses_another_game(tmp_path):
    file = tmp_path / "runs.jsonl"
    whole = budgets.study(LOSS, ["ascent"], [50, 100], range(2), file=file)
    complete = file.read_text()
    file.write_text(complete[:-20])
    assert budgets.study(LOSS, ["ascent"], [50, 100], range(2), file=file) == whole
    assert file.read_text() == complete
    with pytest.raises(UctreeError, match="holds runs of another game"):
        budgets.study(games.loss_game(3), ["ascent"], [50], range(1), file=file)
    file.write_text("something else\n")
    with pytest.raises(UctreeError, match="was not written by a study"):
        budgets.study(LOSS, ["ascent"], [50], range(1), file=file)
    assert file.read_text() == "something else\n"
