"""The commands `uctree search`, `uctree solve` and `uctree diff`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import uctree
from uctree import cli

pytestmark = pytest.mark.usefixtures("imports_are_undone")


def test_search_prints_the_table_of_the_result(run):
    output = run("search", "connect_four", "--num-simulations", "500", "--seed", "3")
    game = uctree.games.connect_four()
    result = uctree.search(game, game.start(), num_simulations=500, seed=3)
    timeless = [
        re.sub(r" in .* s \(.*/s\)|^time: .*? s;", "", text, flags=re.MULTILINE)
        for text in (output, f"{result}\n")
    ]
    assert timeless[0] == timeless[1]


def test_search_gives_json_that_names_the_same_visits(run):
    options = ("--num-simulations", "500", "--seed", "3", "--c", "0.5", "--json")
    game = uctree.games.connect_four()
    shown = ",".join(game.show_action(game.start(), action) for action in (3, 3, 2))
    output = json.loads(run("search", "connect_four", "--actions", shown, *options))
    result = uctree.search(
        game, game.play([3, 3, 2]), num_simulations=500, seed=3,
        selection=uctree.selection.ucb1(c=0.5),
    )  # fmt: skip
    assert [edge["visits"] for edge in output["edges"]] == result.edges["visits"].tolist()
    assert (output["action"], output["status"]) == (result.action, "simulations")


@pytest.mark.parametrize("written", ["+2,+1", "+2 +1", "+2, +1", "1,0", "1 0"])
def test_actions_are_written_as_shown_or_as_numbers(run, file, written):
    output = run("search", f"{file}:race", "--actions", written, "--num-simulations", "10")
    assert output.startswith("total 3 of 4\n")


def test_actions_may_be_separate_words(run, file):
    output = run("search", f"{file}:race", "--actions", "+2", "+1", "--num-simulations", "10")
    assert output.startswith("total 3 of 4\n")


@pytest.mark.parametrize(
    "words",
    [
        ["stake 2, heads, stake 1"],
        ["stake 2", "heads", "stake 1"],
        ["stake", "2", "heads", "stake", "1"],
    ],
)
def test_actions_include_chance_outcomes_and_may_hold_spaces(run, file, words):
    output = run("search", f"{file}:coins", "--actions", *words, "--num-simulations", "50")
    assert "chance to move" in output
    assert "heads" in output


@pytest.mark.parametrize("written", [["--actions=-0.2,2.5"], ["--actions", "-0.2", "2.5"]])
def test_actions_that_are_vectors_are_written_as_numbers(run, written):
    output = run("search", "loss_game", *written, "--num-simulations", "50")
    assert output.startswith("x1: -0.2\nx2: 2.5\nx3: -\n")
    assert "player 2 to move" in output


def test_an_episode_that_is_over_is_not_searched(run, file):
    assert "The episode is over" in run("search", f"{file}:race", "--actions", "+2,+2")


def test_a_search_without_a_budget_takes_the_default_time(run, file, monkeypatch):
    monkeypatch.setattr(cli.app, "DEFAULT_SECONDS", 0.05)
    output = json.loads(run("search", f"{file}:race", "--json"))
    assert output["status"] == "seconds"
    assert 0.03 < output["seconds"] < 1.0


def test_ctrl_c_before_there_is_a_result_ends_with_status_130(capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(uctree, "search", interrupted)
    assert cli.main(["search", "connect_four"]) == 130
    assert capsys.readouterr().err == "uctree: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_prints_the_result_so_far():
    main_end, child_end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "uctree", "search", "connect_four", "--seconds", "60", "--json"],
        stdout=subprocess.PIPE,
        stderr=child_end,  # a terminal, so that a progress line shows when the search runs
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        # A test run in the background ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(child_end)
    seen = b""
    while b" simulations, " not in seen:
        piece = os.read(main_end, 4096)
        assert piece, seen
        seen += piece
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    os.close(main_end)
    result = json.loads(output)
    assert process.returncode == 0
    assert result["status"] == "interrupted"
    assert result["simulations"] > 0
    assert result["seconds"] < 20
    assert b"best so far" in seen


@pytest.mark.parametrize(
    "tokens",
    [
        ["--solver", "--selection", "puct(c=2)", "--choice", "lcb", "--ties", "random"],
        ["--transpositions", "--backup", "maximum(min_visits=2)", "--stop", "decided()"],
        ["--threads", "2", "--max-memory", "5MB", "--widening", "widening(k=2)"],
    ],
    ids=lambda tokens: tokens[0],
)
def test_a_search_follows_its_options(run, tokens):
    output = run("search", "tic_tac_toe", "--num-simulations", "500", "--json", *tokens)
    result = json.loads(output)
    assert result["action"] in range(9)
    assert result["simulations"] <= 500


BEYOND = """
import numpy as np
import uctree

Position = np.dtype([("cells", np.int8, 3), ("ply", np.int8), ("to_play", np.int8)])


def legal(state, actions):
    actions[0] = 0
    return 1


def step(state, action, reward):
    state.cells[state.ply] = 1
    state.ply += 1
    state.to_play = uctree.OVER if state.ply == 4 else 0


game = uctree.Game(Position, legal, step, num_players=1, num_actions=1, name="beyond")
"""


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "beyond: out-of-bounds: step raised IndexError: index 3 is out of bounds"),
        (("--no-check", "--debug"), "beyond: a rule or evaluator raised IndexError"),
    ],
    ids=["checked", "debug"],
)
def test_a_broken_game_is_named_with_its_line(refused, tmp_path, tokens, message):
    (tmp_path / "beyond.py").write_text(BEYOND)
    text = refused("search", str(tmp_path / "beyond.py"), "--num-simulations", "10", *tokens)
    assert message in text
    assert "state.cells[state.ply] = 1" in text


def test_messages_name_the_options_of_the_command(refused, tmp_path):
    (tmp_path / "beyond.py").write_text(BEYOND)
    file = str(tmp_path / "beyond.py")
    for command in ("search", "solve"):
        text = refused(command, file)
        assert "uctree check says more; --no-check goes on without this look" in text
    text = refused("match", file, "search(num_simulations=5)", "--games", "2")
    assert "uctree check says more\n" in text
    assert "check=False" not in text
    assert "beyond: a rule raised IndexError" in refused("solve", file, "--no-check", "--debug")
    assert "raise --max-states (" in refused("solve", "tic_tac_toe", "--max-states", "10")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("--max-memory lots", "lots"),
        ("--threads 0", "threads must be .*0"),
        ("--choice gumbel", 'choice="gumbel" needs a Gumbel root'),
        ("--tree a.tree --actions 4", "omit --actions"),
        ("--save-tree missing/a.tree", "there is no folder missing"),
        ("--save-page missing/a.html", "there is no folder missing"),
        ("--save-page a.txt", "must end in .html"),
        ("--save-tree .", "is a folder; give the name of a file"),
        ("--save-tree a.tree --threads 2", "add --parallel tree"),
        ("--tree missing.tree", "missing.tree: No such file"),
    ],
)
def test_options_that_exclude_each_other_are_explained_in_one_line(refused, tokens, message):
    line = refused("search", "connect_four", *tokens.split(" "))
    assert re.match(rf"uctree: .*{message}", line)
    assert line.count("\n") == 1


# --- solve ---------------------------------------------------------------------------------------


def test_solve_prints_the_value_per_player_and_the_best_actions(run):
    lines = run("solve", "tic_tac_toe", "--actions", "1,5,9").splitlines()
    assert lines[4:6] == [
        "tic_tac_toe, player 1 to move; best: 2, 4, 6, 8",
        "value +0 for player 0, +0 for player 1 (153 states)",
    ]


def test_solve_gives_json(run):
    output = json.loads(run("solve", "tic_tac_toe", "--json"))
    assert (output["value"], output["states"]) == ([0, 0], 4520)
    assert output["best_actions"] == list(range(9))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("leap", "the actions of leap are vectors, so its states cannot be listed"),
        ("tic_tac_toe --max-states 100", "tic_tac_toe has more than 100 states from here on"),
        ("tic_tac_toe --max-states 0", "max_states must be at least 1; got 0"),
        ("tic_tac_toe nim", "uctree solve does not take 'nim' as well. See uctree solve --help"),
        ("conect_four", "unknown game 'conect_four'; did you mean connect_four? Built in: "),
    ],
)
def test_what_cannot_be_solved_is_explained_in_one_line(refused, tokens, message):
    line = refused("solve", *tokens.split())
    assert line.startswith(f"uctree: {message}")
    assert line.count("\n") == 1


# --- trees as files, diff ------------------------------------------------------------------------


def test_a_saved_tree_can_be_continued(run, tmp_path):
    path = str(tmp_path / "a.tree")
    budget = ("--num-simulations", "300", "--seed", "3")
    run("search", "connect_four:rows=5", "--actions", "4,4", *budget, "--save-tree", path)
    output = run("search", "--tree", path, *budget, "--save-tree", path, "--json")
    game = uctree.games.connect_four(rows=5)
    first = uctree.search(game, game.play([3, 3]), num_simulations=300, seed=3)
    both = uctree.search(game, game.play([3, 3]), num_simulations=300, seed=3, tree=first.tree)
    visits = [edge["visits"] for edge in json.loads(output)["edges"]]
    assert visits == both.edges["visits"].tolist()
    assert uctree.Tree.load(path).simulations == 600


def test_a_page_is_saved(run, tmp_path):
    path = tmp_path / "a.html"
    run(
        "search",
        "tic_tac_toe",
        "--num-simulations",
        "300",
        "--threads",
        "2",
        "--save-page",
        str(path),
    )
    assert "A search of tic_tac_toe" in path.read_text("utf-8")


def test_a_tree_of_a_users_game_needs_the_game(run, refused, file, tmp_path):
    path = str(tmp_path / "race.tree")
    run("search", f"{file}:race", "--num-simulations", "50", "--save-tree", path)
    message = refused("search", "--tree", path)
    assert "the tree is of the game 'race'" in message
    assert "file.py:name" in message
    run("search", f"{file}:race", "--tree", path, "--num-simulations", "50")
    assert "player 0 to move" in run("diff", path, path, "--game", f"{file}:race")
    assert "differs: name is 'race'" in refused("search", "connect_four", "--tree", path)


def test_a_search_needs_a_game_or_a_tree(refused):
    assert "give a GAME, or --tree FILE" in refused("search")


def test_a_file_without_a_tree_is_explained_in_one_line(refused, file, tmp_path):
    for command in (["search", "--tree", file], ["diff", file, file]):
        line = refused(*command)
        assert f"{file} is not a tree of uctree" in line
        assert line.count("\n") == 1


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    game = uctree.games.connect_four()
    for name, actions, number in (("a", [3], 300), ("b", [3], 3000), ("c", [2], 300)):
        result = uctree.search(game, game.play(actions), num_simulations=number, seed=1)
        result.tree.save(folder / f"{name}.tree")
    return folder


def test_diff_shows_two_searches_side_by_side(run, monkeypatch, trees):
    monkeypatch.chdir(trees)
    output = run("diff", "a.tree", "b.tree")
    assert "connect_four, player 1 to move\n" in output
    assert re.search(r"^a  a\.tree, 300 simulations: \d   value [+-]0\.\d+$", output, re.MULTILINE)
    assert re.search(r"^b  b\.tree, 3,000 simulations: \d   value", output, re.MULTILINE)
    assert re.search(r"visits differ by 0\.\d+ \(total variation\), value by [+-]", output)
    header, *rows = output.splitlines()[-8:]
    assert re.split("  +", header.strip()) == [
        "action", "visits a", "visits b", "share a", "share b", "value a", "value b",
    ]  # fmt: skip
    visits = [int(row.split()[1].replace(",", "")) for row in rows]
    assert visits == sorted(visits, reverse=True)
    assert sum(visits) == 300


def test_diff_gives_json(run, monkeypatch, trees):
    monkeypatch.chdir(trees)
    output = json.loads(run("diff", "a.tree", "b.tree", "--json"))
    assert output["simulations"] == [300, 3000]
    assert output["names"] == ["a.tree", "b.tree"]
    assert 0 < output["total_variation"] < 1


def test_diff_refuses_searches_of_different_states(refused, monkeypatch, trees):
    monkeypatch.chdir(trees)
    line = refused("diff", "a.tree", "c.tree")
    assert line.startswith("uctree: a.tree and c.tree are searches of different states")
    assert line.count("\n") == 1
