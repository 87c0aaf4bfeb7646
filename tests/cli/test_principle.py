"""The command `uctree principle`."""

from __future__ import annotations

import json

from uctree.cli import main


def test_the_command_prints_tables_json_and_a_page(capsys, tmp_path):
    page = tmp_path / "study.html"
    options = ["--num-simulations", "2000", "--nodes", "2", "--seed", "3", "--actions", "4"]
    assert main(["principle", "connect_four", *options, "--page", str(page)]) == 0
    printed = capsys.readouterr().out
    for word in ("edges of root", "classical", "validity", "free energy", "measured"):
        assert word in printed
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["principle", "connect_four", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["simulations"] == 2_000
    assert found["nodes"][0]["to_play"] == 1


def test_the_command_says_what_is_wrong_in_one_line(capsys, tmp_path):
    for options, message in (
        (["--least-share", "2"], "least must be a share from 0 to 1; got 2.0"),
        (["--rounds", "0"], "num_rounds must be at least 1; got 0"),
        (["--page", str(tmp_path)], "give the name of a file"),
    ):
        assert main(["principle", "tic_tac_toe", *options]) == 2
        assert message in capsys.readouterr().err
