"""The commands `uctree games`, `check`, `new`, `bench` and `cache`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import uctree
from uctree import cli

pytestmark = pytest.mark.usefixtures("imports_are_undone")


def test_games_lists_every_built_in_game(run):
    output = run("games")
    for name in uctree.games.__all__:
        assert re.search(rf"^{name}\(", output, re.MULTILINE)
    assert re.search(r"connect_four\(rows=6, cols=7, playouts='uniform'\) +2 +7 +no +\S", output)


def test_games_loads_neither_numba_nor_rich():
    code = (
        "import sys; from uctree.cli import main; assert main(['games']) == 0; "
        "assert not {'numba', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


# --- check, new ----------------------------------------------------------------------------------


def test_new_writes_a_game_that_is_right_and_a_test_that_passes(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run("new", "climb").splitlines()[:2] == ["wrote climb.py", "wrote test_climb.py"]
    report = json.loads(run("check", "climb.py", "--episodes", "20", "--json"))
    assert report["ok"]
    command = [sys.executable, "-m", "pytest", "-q", "test_climb.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "3 passed" in done.stdout


def test_new_never_overwrites_and_needs_an_identifier(refused, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "climb.py").write_text("mine")
    assert "climb.py exists already" in refused("new", "climb")
    assert (tmp_path / "climb.py").read_text() == "mine"
    assert "must be a Python identifier" in refused("new", "my-game")


def test_new_refuses_the_name_of_a_module(refused, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("numpy", "random", "uctree"):
        assert f"{name}.py would hide the module {name}" in refused("new", name)
    assert not list(tmp_path.iterdir())


def test_check_has_exit_status_1_for_a_wrong_game(tmp_path, capsys):
    source = """
import numpy as np, uctree
State = np.dtype([("n", np.int8), ("to_play", np.int8)])
def legal(state, actions):
    actions[0] = 5
    return 1
def step(state, action, reward):
    state.to_play = uctree.OVER
game = uctree.Game(State, legal, step, num_players=1, num_actions=1, name="wrong")
"""
    (tmp_path / "wrong_game.py").write_text(source)
    assert cli.main(["check", str(tmp_path / "wrong_game.py")]) == 1
    assert "legal-range" in capsys.readouterr().out


# --- bench, cache --------------------------------------------------------------------------------


def test_bench_measures_a_game_and_says_whether_it_compiled(file, tmp_path):
    # In processes of their own: an earlier test of this one may have compiled the same rules.
    command = [sys.executable, "-m", "uctree", "bench", f"{file}:race", "--json"]
    environment = os.environ | {"UCTREE_CACHE_DIR": str(tmp_path / "cache")}
    rows = [
        json.loads(
            subprocess.run(
                [*command, "--num-simulations", "300"], env=environment, check=True,
                capture_output=True,
            ).stdout
        )[0]
        for _ in range(2)
    ]  # fmt: skip
    assert [row["machine_code"] for row in rows] == ["compiled", "from the cache"]
    for row in rows:
        assert row["simulations"] == 300
        assert row["simulations_per_second"] > 0
        assert row["bytes_per_edge"] > 8
        assert 1 <= row["mean_depth"] <= 4
        assert row["playouts_per_second"] > 0
        assert row["legal_ns"] > 0
        assert row["random_action_ns"] is None


def test_bench_without_a_game_measures_the_built_in_ones(run, monkeypatch):
    monkeypatch.setattr(uctree.games, "__all__", ["connect_four", "leap"])
    header, row, vectors = run("bench", "--seconds", "0.05").splitlines()
    assert re.sub(" +", " ", header) == (
        "game compile s machine code simulations/s bytes/edge depth playouts/s steps/s legal ns "
        "step ns random_action ns copy ns"
    )
    assert row.startswith("connect_four ")
    # Vectors are not listed, and this game has no random_action.
    assert re.match(r"leap .* - +[\d.]+ +- +[\d.]+$", vectors)


def test_cache_shows_its_entries_and_clears_them(run, monkeypatch, tmp_path):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    assert run("cache") == f"0 entries, 0 kB, in {tmp_path}\n"
    entry = tmp_path / "abc.kernel"
    entry.write_bytes(b'hash\n{"label": "chess: ucb1, playout"}\n' + bytes(5000))
    lines = run("cache").splitlines()
    assert lines[0].split() == ["entry", "size", "last", "used"]
    assert re.fullmatch(r"chess: ucb1, playout  5 kB  \d{4}-\d\d-\d\d \d\d:\d\d", lines[1])
    assert lines[2] == f"1 entry, 5 kB, in {tmp_path}"
    assert run("cache", "--clear") == f"1 entry deleted from {tmp_path}\n"
    assert run("cache", "--clear") == f"0 entries deleted from {tmp_path}\n"
    assert not entry.exists()
