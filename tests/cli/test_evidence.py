"""The command `uctree match`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import uctree
from uctree import cli, games
from uctree.cli.evidence import read_openings

ROOT = Path(__file__).parents[2]


def run(capsys, *tokens):
    """The exit status of the command and what it prints, on stdout and stderr."""
    status = cli.main([str(token) for token in tokens])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_match_prints_a_table(capsys):
    status, out, err = run(capsys, "match", "tic_tac_toe", "strong=greedy", "random", "--games", 6)
    assert (status, err) == (0, "")
    assert out.startswith("tic_tac_toe: 6 games, 3 openings, complete\n")
    assert "strong" in out
    assert "likelihood of superiority" in out


def test_a_match_prints_json(capsys):
    options = ["--games", 4, "--json", "--anchor", "random", "--seed", 3, "--openings", 1]
    status, out, _ = run(capsys, "match", "nim", "greedy", "random", *options)
    content = json.loads(out)
    assert status == 0
    assert content["games"] == 4
    assert content["settings"] == {"openings": 1, "seed": 3, "max_seconds": None}
    assert {each["agent"]: each["elo"] for each in content["standings"]}["random"] == 0


def test_a_match_is_stored_shown_and_resumed(capsys, tmp_path):
    path = tmp_path / "games.jsonl"
    _, first, _ = run(capsys, "match", "nim", "greedy", "random", "--games", 4, "-o", path)
    _, again, _ = run(capsys, "match", "nim", "greedy", "random", "--games", 4, "-o", path)
    assert first == again
    _, shown, _ = run(capsys, "match", "--show", path)
    assert shown == first.replace("complete", "stored")
    _, game, _ = run(capsys, "match", "--show", path, "--game-number", 3)
    assert game.startswith("game 3 of nim")
    assert "Returns: player 0" in game
    _, content, _ = run(capsys, "match", "--show", path, "--game-number", 3, "--json")
    assert json.loads(content)["number"] == 3


@pytest.mark.parametrize(
    "text", ["9" * 5000, "Infinity", "NaN", "1e400", "-1", "[" * 5000, "\x00", "0 " * 500]
)
def test_openings_that_are_no_actions_are_refused(text, tmp_path):
    path = tmp_path / "openings.txt"
    path.write_text(text + "\n")
    with pytest.raises(uctree.UctreeError, match="line 1"):
        read_openings(games.tic_tac_toe(), str(path))


@pytest.mark.parametrize("content", [b"\xff", b"0 1\n\xff\xfe\n", "4".encode("utf-16")])
def test_openings_that_are_no_text_are_refused(content, tmp_path):
    path = tmp_path / "openings.txt"
    path.write_bytes(content)
    with pytest.raises(uctree.UctreeError, match=r"openings.txt is not text in UTF-8: .*0xff"):
        read_openings(games.tic_tac_toe(), str(path))


def test_a_huge_number_of_plies_is_taken_for_a_file():
    with pytest.raises(uctree.UctreeError, match=r"."):
        read_openings(games.tic_tac_toe(), "9" * 5000)


def test_openings_may_be_written_with_spaces_and_commas_inside_an_action(capsys, tmp_path):
    path, openings = tmp_path / "games.jsonl", tmp_path / "openings.txt"
    openings.write_text("heap 1, take 1, heap 2, take 2\n")
    run(capsys, "match", "nim", "random", "random", "--openings", openings, "-o", path)
    game = games.nim()
    (opening,) = json.loads(path.read_text().splitlines()[0])["settings"]["openings"]
    first, second = opening
    state = game.start()
    assert game.show_action(state, first) == "heap 1, take 1"
    assert game.show_action(game.play([first]), second) == "heap 2, take 2"


def test_openings_come_from_a_file_as_the_game_shows_them_or_as_numbers(capsys, tmp_path):
    path, openings = tmp_path / "games.jsonl", tmp_path / "openings.txt"
    openings.write_text("# the middle\nb2 a1\n\n0, 8  # corners\n")
    size = "hex:size=3"
    run(capsys, "match", size, "random", "random", "--openings", openings, "-o", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["settings"]["openings"] == [[4, 0], [0, 8]]
    assert len(lines) == 5


def test_a_sequential_test_prints_its_decision(capsys):
    tokens = ["tic_tac_toe", "search(num_simulations=100)", "random", "--sprt", "0,100"]
    status, out, _ = run(capsys, "match", *tokens)
    assert status == 0
    assert "decided" in out.splitlines()[0]
    assert "test of search(num_simulations=100) - random: the larger difference is" in out


def test_agents_with_one_text_get_numbers(capsys):
    _, out, _ = run(capsys, "match", "nim", "random", "random", "--games", 2, "--json")
    assert set(json.loads(out)["agents"]) == {"random", "random (2)"}


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "give a GAME, or --show FILE"),
        (["nim"], "nim(1, 3, 5, 7) has 2 players; got 0 agents"),
        (["nim", "random", "serch"], "agent serch: unknown 'serch'; did you mean search?"),
        (["nim", "random", "random", "--sprt", "5"], "--sprt 5: expected two Elo differences"),
        (["nim", "random", "random", "--sprt", "5,0"], "sprt needs elo0 < elo1; got 5.0 and 0.0"),
        (["nim", "random", "random", "--openings", "no.txt"], "no.txt: No such file"),
        (["nim", "random", "random", "--game-number", "1"], "--game-number needs --show FILE"),
        (["nim", "random", "--show", "x"], "--show FILE plays nothing; omit the agents"),
        (["--show", "nothing.jsonl"], "nothing.jsonl: No such file"),
        (
            ["nim", "random", "greedy", "--anchor", "b"],
            "--anchor b: no such agent; agents are random",
        ),
        (["nim", "random", "random", "-o", "no/such"], "no/such: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(capsys, tokens, message):
    status, out, err = run(capsys, "match", *tokens)
    assert status == 2
    assert out == ""
    assert err.startswith("uctree: ")
    assert message in err
    assert err.count("\n") == 1


def test_an_opening_that_is_not_legal_is_named_by_its_line(capsys, tmp_path):
    openings = tmp_path / "openings.txt"
    openings.write_text("a1\na1 a1\n")
    _, _, err = run(
        capsys, "match", "hex:size=3", "random", "random", "--openings", openings
    )  # fmt: skip
    assert f"--openings {openings}, line 2, number 2: 'a1' is not a legal action here" in err


def test_a_missing_game_is_named(capsys, tmp_path):
    path = tmp_path / "games.jsonl"
    run(capsys, "match", "nim", "greedy", "random", "--games", 2, "-o", path)
    _, _, err = run(capsys, "match", "--show", path, "--game-number", 7)
    assert err == "uctree: --game-number 7: no such game; numbers are 0 to 1\n"


def test_ctrl_c_prints_the_table_so_far_and_how_to_resume(tmp_path):
    path = tmp_path / "games.jsonl"
    agent = "tests/arena/failing.py:Slow(0.02)"
    process = subprocess.Popen(
        [sys.executable, "-m", "uctree", "match", "tic_tac_toe", agent, "random", "-o", str(path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    until = time.monotonic() + 60
    while (not path.exists() or path.read_bytes().count(b"\n") < 3) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in out.splitlines()[0]
    assert f"the same command resumes {path}" in err
