"""Lines of metrics: sound ones are read, others are left out with a warning."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from uctree.learn.metrics import Learning, RatedLadder, sound_rows


class Run:
    def __init__(self, rows, num_players=2):
        self.rows, self.warnings = rows, []
        self.game = SimpleNamespace(num_players=num_players)

    def metrics(self, kind):
        return self.rows

    def warn(self, text):
        self.warnings.append(text)


GOOD = {"kind": "learning", "iteration": 1, "steps": 5, "value_loss": 0.5, "time": 0.0}


@pytest.mark.parametrize(
    "change", [{"steps": "many"}, {"steps": -1}, {"value_loss": 1e300}, {"iteration": None}]
)
def test_a_damaged_line_is_left_out_and_named(change):
    run = Run([GOOD, GOOD | change])
    rows = sound_rows(run, "learning", Learning)
    assert [row["steps"] for row in rows] == [5]
    assert len(run.warnings) == 1
    assert "1 lines of metrics.jsonl of the kind 'learning' are damaged" in run.warnings[0]


def test_numbers_that_are_missing_are_none():
    row = sound_rows(Run([{"iteration": 2, "steps": 0}]), "learning")[0]
    assert row["policy_loss"] is row["turn_loss"] is None


@pytest.mark.parametrize(
    ("games", "message"),
    [
        ({}, "no games against random"),
        ({"random": {"points": []}}, "games"),
        ({"random": {"points": [[0.0, 0.0]]}}, "no points"),
        ({"random": {"points": [[1.0, 0.0]]}, "stranger": {"points": [[1.0, 0.0]]}}, "stranger"),
        ({"random": {"points": [[1.0, 0.0]]}, "past": {"points": [[1.0, 0.0]]}}, "past is None"),
    ],
)
def test_a_ladder_without_games_or_points_is_left_out(games, message):
    run = Run([{"iteration": 3, "games": games}])
    assert sound_rows(run, "ladder", RatedLadder) == []
    assert message in run.warnings[0]


def test_the_rows_of_a_model_are_read_where_there_are_some():
    returns = dict.fromkeys(("mean_return", "opponent_return", "difference"), 1.0) | {
        "games": 2, "return_interval": None, "opponent_interval": None, "difference_interval": None
    }  # fmt: skip
    line = {"iteration": 1, "games": {"random": returns}, "strength": 2.0,
            "model": [{"k": 0, "positions": 4, "value": 0.0}]}  # fmt: skip
    (row,) = sound_rows(Run([line], num_players=1), "ladder")
    assert row["model"][0]["value"] == 0.0
    assert row["model"][0]["reward"] is None
    assert row["diagnosis"] is None
