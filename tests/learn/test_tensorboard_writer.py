"""Metrics for TensorBoard."""

from __future__ import annotations

import sys

import pytest

from uctree import games
from uctree.learn.run import Run
from uctree.learn.tensorboard_writer import TensorBoardWriter

pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")


def test_lines_of_metrics_are_written_for_tensorboard_too(tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Run.begin(tmp_path / "run", games.tic_tac_toe(), tensorboard=True) as run:
        run.log("learning", iteration=1, policy_loss=2.0)
        run.log("learning", iteration=2, policy_loss=1.5)
        run.log("ladder", iteration=2, exact={"search": 0.75}, games={"random": {"points": [[1]]}})
        run.log("damaged", text="has no iteration")
    events = EventAccumulator(str(run.folder / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"learning/policy_loss", "ladder/exact/search"}
    points = [(event.step, event.value) for event in events.Scalars("learning/policy_loss")]
    assert points == [(1, 2.0), (2, 1.5)]
    assert len(run.metrics("learning")) == 2


def test_without_the_option_nothing_is_written_for_tensorboard(tmp_path):
    with Run.begin(tmp_path / "run", games.tic_tac_toe()) as run:
        run.log("learning", iteration=1, policy_loss=2.0)
    assert not (run.folder / "tensorboard").exists()


def test_where_tensorboard_is_missing_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'uctree\[learn,tensorboard\]'"):
        TensorBoardWriter(tmp_path)
