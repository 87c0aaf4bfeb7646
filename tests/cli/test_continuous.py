"""The command `continuous`."""

from __future__ import annotations

import json

import pytest

from uctree import cli


def test_the_command_prints_a_table_and_writes_files(tmp_path, capsys):
    words = [
        "continuous",
        "loss_game",
        "--solvers",
        "search,ascent",
        "--num-simulations",
        "100,300",
    ]
    assert cli.main([*words, "--seeds", "2", "--output", str(tmp_path)]) == 0
    assert "ascent" in capsys.readouterr().out
    assert (tmp_path / "regret.svg").read_text().startswith("<svg")
    told = json.loads((tmp_path / "table.json").read_text())
    assert len(told["summaries"]) == 4
    assert cli.main([*words, "--seeds", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nim"], "vectors"),
        (["loss_game", "--solvers", "magic"], "no solver"),
        (["loss_game", "--num-simulations", "many"], "whole numbers"),
    ],
)
def test_the_command_says_what_is_wrong(words, message, capsys):
    assert cli.main(["continuous", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_files_of_a_folder_are_no_links_afterwards(tmp_path, capsys):
    folder, other = tmp_path / "study", tmp_path / "precious"
    folder.mkdir()
    other.write_text("mine")
    for name in ("table.json", "regret.svg"):
        (folder / name).symlink_to(other)
    words = ["continuous", "loss_game", "--solvers", "ascent", "--num-simulations", "50"]
    assert cli.main([*words, "--seeds", "1", "--output", str(folder)]) == 0
    assert other.read_text() == "mine"
    assert not any(path.is_symlink() for path in folder.iterdir())
