"""The games and agents of the scripts in benchmarks/ exist; the scripts themselves take hours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from uctree import games, specs
from uctree.arena.agents import SearchAgent, make_agent
from uctree.arena.grids import read_grid, read_vary
from uctree.cli.app import app

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """The commands that ablations.sh runs, recorded by a stand-in for `uctree`."""
    folder = tmp_path_factory.mktemp("studies")
    program, log = folder / "uctree", folder / "log"
    program.write_text(f'#!/bin/sh\nprintf "%s\\t" "$@" >> {log}\necho >> {log}\n')
    program.chmod(0o755)
    environment = os.environ | {"UCTREE": str(program), "RESULTS": str(folder)}
    subprocess.run(["sh", BENCHMARKS / "ablations.sh"], env=environment, check=True)
    return [line.split("\t")[:-1] for line in log.read_text().splitlines()]


def test_every_study_is_a_grid_of_agents(studies):
    assert len(studies) > 20
    for tokens in studies:
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        given = bound.arguments
        assert command.__name__ == "ablate"
        specs.read_game(given["game"])
        grid = read_grid(read_vary(given["vary"]), given.get("base", ""))
        budget = {} if grid.budget else {"num_simulations": 10}
        for setting in grid.settings:
            make_agent(setting.agent(budget))


def test_no_two_studies_share_a_folder(studies):
    folders = [tokens[tokens.index("--folder") + 1] for tokens in studies]
    assert len(set(folders)) == len(folders)


def test_an_unknown_part_is_named():
    command = ["sh", BENCHMARKS / "ablations.sh", "luck"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "unknown part luck; there are: one_loop" in ended.stderr


def test_every_step_towards_gnu_go_is_an_agent(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "gnugo", raising=False)
    import gnugo

    texts = {name: f"search(num_simulations=10, {how})" for name, (_, how) in gnugo.STEPS.items()}
    for playouts, _ in gnugo.STEPS.values():
        specs.read_game(f'go(size=9, komi=7.5, playouts="{playouts}")')
    agents = {name: make_agent(text) for name, text in texts.items()}
    assert all(isinstance(agent, SearchAgent) for agent in agents.values())
    assert len(set(texts.values())) == len(texts) - 2  # two steps change the playouts alone
    assert gnugo.CHOSEN in agents


def test_the_constants_of_ucb1_are_tried_in_every_game_of_numbers(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import exploration

    read = [specs.read_game(text) for text in exploration.GAMES]
    played = {re.match(r"\w+", game.name).group() for game in read}
    later = {"backgammon", "checkers", "chess", "kalah", "ultimate_tic_tac_toe"}
    assert played == set(games.__all__) - {"leap", "loss_game", "point_mass", "twenty48"} - later
    assert {game.num_players for game in read} == {2, 3}
    row = {"score": 0.64, "score_interval": [0.6, 0.68], "elo": 100.0, "game": "a"}
    both = exploration.pooled([row, row | {"score": 0.36, "score_interval": [0.32, 0.4]}])
    assert both["elo"] == pytest.approx(0.0)
    assert both["score_interval"] == pytest.approx([0.5 - 0.04 / 2**0.5, 0.5 + 0.04 / 2**0.5])
