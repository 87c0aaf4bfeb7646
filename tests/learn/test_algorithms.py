"""The algorithm of a run, by its options."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from uctree import games  # noqa: E402
from uctree.learn.algorithms import make_algorithm  # noqa: E402
from uctree.learn.run import Run  # noqa: E402


@pytest.mark.parametrize(("name", "kind"), [("alphazero", "AlphaZero"), ("muzero", "MuZero")])
def test_a_run_has_the_algorithm_of_its_options(tmp_path, name, kind):
    with Run.begin(tmp_path, games.tic_tac_toe(), algorithm=name) as run:
        made = make_algorithm(run)
        made.read(run.replay.end)
        assert type(made).__name__ == kind
        assert set(made.state()) == ({"cursors"} if name == "muzero" else set())
