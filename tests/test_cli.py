"""The command `uctree`: what it prints, what it refuses, and how it leaves."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import uctree
from uctree import choice, cli, specs, stopping

GAMES = '''
import numpy as np
import uctree

Position = np.dtype([("total", np.int16), ("to_play", np.int8)])


def race(goal=4) -> uctree.Game:
    """Add 1 or 2 in turn; who reaches the goal wins."""

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        player = state.to_play
        state.total += action + 1
        state.to_play = 1 - player
        if state.total >= goal:
            reward[player], reward[1 - player] = 1, -1
            state.to_play = uctree.OVER

    def show(state):
        return f"total {state.total} of {goal}"

    def show_action(state, action):
        return f"+{action + 1}"

    return uctree.Game(
        Position, legal, step, num_players=2, num_actions=2, name="race", payoff_range=(-1, 1),
        show=show, show_action=show_action,
    )


def coins(values=(1, 2)) -> uctree.Game:
    """Stake one of the values on a coin, three times; heads pay it."""
    stakes = np.array(values)

    def legal(state, actions):
        for i in range(len(stakes)):
            actions[i] = i
        return len(stakes)

    def chance(state, outcomes, probabilities):
        outcomes[0], outcomes[1] = 0, 1
        probabilities[0], probabilities[1] = 0.5, 0.5
        return 2

    def step(state, action, reward):
        if state.to_play == uctree.CHANCE:
            reward[0] = action * stakes[state.total % 10]
            state.to_play = uctree.OVER if state.total >= 30 else 0
        else:
            state.total += 10 + action - state.total % 10
            state.to_play = uctree.CHANCE

    def show_action(state, action):
        if state.to_play == uctree.CHANCE:
            return ("tails", "heads")[action]
        return f"stake {values[action]}"

    return uctree.Game(
        Position, legal, step, num_players=1, num_actions=len(values), name="coins",
        chance=chance, max_outcomes=2, payoff_range=(0, 3 * max(values)), show_action=show_action,
    )


def step(state, action, reward):
    state.to_play = uctree.OVER


def legal_that_does_not_compile(state, actions):
    if state.total > 100:
        actions = {}
    actions[0] = 0
    return 1


def legal_that_fails(state, actions):
    return 1 // int(state.total)


uncompilable = uctree.Game(
    Position, legal_that_does_not_compile, step, num_players=1, num_actions=1
)
failing = uctree.Game(Position, legal_that_fails, step, num_players=1, num_actions=1)
number = 7


def not_a_game():
    return 7
'''


@pytest.fixture(scope="module", autouse=True)
def machine_code(tmp_path_factory):
    """A cache of this file's own, so that nobody's entries are counted or deleted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UCTREE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("user") / "user_games.py"
    path.write_text(GAMES)
    return str(path)


@pytest.fixture(autouse=True)
def imports_are_undone():
    """User files that a test imports are forgotten after it."""
    path, modules = sys.path.copy(), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) in specs.user_files:
            del sys.modules[name]


@pytest.fixture
def run(capsys):
    """A successful command's output."""

    def run(*tokens: str) -> str:
        assert cli.main(tokens) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.fixture
def refused(capsys):
    """What a mistaken command says."""

    def refused(*tokens: str) -> str:
        assert cli.main(tokens) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        return captured.err

    return refused


@pytest.fixture
def play(run, monkeypatch):
    """The output of `uctree play` with these lines typed."""

    def play(game: str, *typed: str, options: tuple[str, ...] = ()) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        return run("play", game, "--simulations", "200", "--seed", "1", *options)

    return play


# --- games, version, start-up --------------------------------------------------------------------


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


def test_version_is_the_package_s(run):
    assert run("--version") == f"uctree {uctree.__version__}\n"


def test_help_explains_how_to_name_a_game(run):
    assert "my_game.py:name" in run("--help")


def test_python_m_uctree_is_the_same_command():
    command = [sys.executable, "-m", "uctree", "play", "no_such_game"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("uctree: unknown game 'no_such_game'; ")


def test_a_reader_who_leaves_early_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "uctree", "games"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_a_warning_is_one_line(capsys):
    with cli._short_warnings():
        warnings.simplefilter("always")
        warnings.warn("the game is compiled anew", stacklevel=1)
    assert capsys.readouterr().err == "uctree: warning: the game is compiled anew\n"


# --- search --------------------------------------------------------------------------------------


def test_search_prints_the_table_of_the_result(run):
    output = run("search", "connect_four", "--simulations", "500", "--seed", "3")
    game = uctree.games.connect_four()
    result = uctree.search(game, game.start(), num_simulations=500, seed=3)
    timeless = [
        re.sub(r" in .* s \(.*/s\)|^time: .*? s;", "", text, flags=re.MULTILINE)
        for text in (output, f"{result}\n")
    ]
    assert timeless[0] == timeless[1]


def test_search_gives_json_that_names_the_same_visits(run):
    options = ("--simulations", "500", "--seed", "3", "--c", "0.5", "--json")
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
    output = run("search", f"{file}:race", "--actions", written, "--simulations", "10")
    assert output.startswith("total 3 of 4\n")


def test_actions_may_be_separate_words(run, file):
    output = run("search", f"{file}:race", "--actions", "+2", "+1", "--simulations", "10")
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
    output = run("search", f"{file}:coins", "--actions", *words, "--simulations", "50")
    assert "chance to play" in output
    assert "heads" in output


@pytest.mark.parametrize("written", [["--actions=-0.2,2.5"], ["--actions", "-0.2", "2.5"]])
def test_actions_that_are_vectors_are_written_as_numbers(run, written):
    output = run("search", "loss_game", *written, "--simulations", "50")
    assert output.startswith("x1: -0.2\nx2: 2.5\nx3: -\n")
    assert "player 2 to play" in output


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
def test_ctrl_c_prints_what_was_found_so_far():
    main_end, child_end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "uctree", "search", "connect_four", "--seconds", "60", "--json"],
        stdout=subprocess.PIPE,
        stderr=child_end,  # a terminal, so a progress line says when the search is under way
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        # A test run that was started in the background hands down that the signal is ignored.
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


# --- how to search -------------------------------------------------------------------------------


@pytest.fixture
def options(run, monkeypatch):
    """What a command line hands to `uctree.search`, without the search."""

    def options(*tokens: str) -> dict[str, object]:
        given = {}

        def search(*_, **keywords):
            given.update(keywords)
            raise KeyboardInterrupt

        monkeypatch.setattr(uctree, "search", search)
        assert cli.main(["search", "connect_four", *tokens]) == 130
        every_time = {"num_simulations", "seconds", "seed", "progress", "tree"}
        return {name: value for name, value in given.items() if name not in every_time}

    return options


def test_options_that_are_not_given_are_left_to_the_search(options):
    assert options() == {}


def test_rules_are_written_as_in_python(options):
    assert options(
        "--selection", "puct(c=2, fpu='parent')", "--root-selection", "gumbel(8)",
        "--backup", "maximum(min_visits=2)", "--widening", "widening(k=3)",
        "--root-noise", "dirichlet(alpha=0.3)", "--chance", "outcome_widening(k=2)",
        "--choice", "lcb(z=3)", "--stop", "decided()", "--stop", "value_gap(z=4)",
    ) == {
        "selection": uctree.selection.puct(c=2, fpu="parent"),
        "root_selection": uctree.selection.gumbel(8),
        "backup": uctree.backup.maximum(min_visits=2),
        "widening": uctree.selection.widening(k=3),
        "root_noise": uctree.selection.dirichlet(alpha=0.3),
        "chance": uctree.selection.outcome_widening(k=2),
        "choice": choice.lcb(z=3),
        "stop": [stopping.decided(), stopping.value_gap(z=4)],
    }  # fmt: skip


def test_a_rule_may_take_another_rule(options):
    puct = uctree.selection.puct(c=1)
    assert options("--selection", "rave(base=puct(c=1), bias=0.2)") == {
        "selection": uctree.selection.rave(base=puct, bias=0.2)
    }


def test_words_numbers_and_switches_reach_the_search(options):
    assert options(
        "--solver", "--transpositions", "--open-loop", "--threads", "2", "--parallel", "tree",
        "--max-memory", "500MB", "--opponents", "paranoid", "--ties", "random",
        "--chance", "proportional", "--choice", "robust_max", "--c", "0",
    ) == {
        "solver": True, "transpositions": True, "open_loop": True, "threads": 2,
        "parallel": "tree", "max_memory": "500MB", "opponents": "paranoid", "ties": "random",
        "chance": "proportional", "choice": "robust_max",
        "selection": uctree.selection.ucb1(c=0),
    }  # fmt: skip


def test_every_choice_there_is_can_be_named():
    words = {*specs.RULES["choice"][2], *specs.makers(choice, "Choice")}
    for word in words - {"as_choice", "gumbel"}:
        assert choice.as_choice(word).name == word
    with pytest.raises(ValueError, match="choice is one of") as caught:
        choice.as_choice("no such")
    listed = re.search(r"one of (.*);", str(caught.value))[1].split(", ")
    assert set(listed) <= words


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (
            "--selection pukt",
            r"--selection pukt: unknown 'pukt'; did you mean puct\? possible: ucb1",
        ),
        ("--selection puct(c=-1)", r"c must be .*; got -1; the signature is puct\(c=1.25"),
        ("--selection puct(k=1)", r"unexpected keyword argument 'k'; the signature is puct\("),
        ("--selection puct(c=c)", r"--selection puct\(c=c\): cannot read the arguments 'c=c'"),
        ("--selection puct(c=1", r"cannot read 'puct\(c=1'"),
        ("--selection ucb1_score(1,2,3)", "unknown 'ucb1_score'"),
        ("--root-selection x()", r"--root-selection x\(\): unknown 'x'; possible: .*gumbel\("),
        ("--backup median", r"unknown 'median'; .*possible: mean\(\), maximum\("),
        (
            "--stop undecided()",
            r"unknown 'undecided'; did you mean decided\? possible: .*value_gap",
        ),
        ("--widening wide()", r"--widening wide\(\): unknown 'wide'; .*possible: widening\(k="),
        ("--chance always", "unknown 'always'; possible: sample, proportional, outcome_widening"),
        ("--choice best", r"unknown 'best'; .*possible: robust, max, .*lcb\("),
        ("--parallel leaf", "Choose from: .*auto.*root.*tree"),
        ("--opponents friendly", "Choose from: .*maxn.*paranoid"),
        ("--threads two", 'unable to convert "two" into int'),
        ("--c 1 --selection puct()", "give it or --selection, not both"),
    ],
)
@pytest.mark.parametrize("command", ["search", "play"])
def test_a_wrong_rule_is_explained_in_one_line(refused, command, tokens, message):
    line = refused(command, "connect_four", *tokens.split(" "))
    assert re.match(rf"uctree: .*{message}", line)
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("--max-memory lots", "lots"),
        ("--threads 0", "threads must be .*0"),
        ("--choice gumbel", 'choice="gumbel" is what a Gumbel root decides'),
        ("--tree a.tree --actions 4", "leave --actions away"),
        ("--save-tree missing/a.tree", "there is no folder missing"),
        ("--save-page missing/a.html", "there is no folder missing"),
        ("--save-page a.txt", "ends in .html"),
        ("--save-tree .", "is a folder; give the name of a file"),
        ("--save-tree a.tree --threads 2", "add --parallel tree"),
        ("--tree missing.tree", "missing.tree: No such file"),
    ],
)
def test_options_that_a_search_cannot_follow_are_explained_in_one_line(refused, tokens, message):
    line = refused("search", "connect_four", *tokens.split(" "))
    assert re.match(rf"uctree: .*{message}", line)
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    "tokens",
    [
        ["--solver", "--selection", "puct(c=2)", "--choice", "lcb", "--ties", "random"],
        ["--transpositions", "--backup", "maximum(min_visits=2)", "--stop", "decided()"],
        ["--threads", "2", "--max-memory", "5MB", "--widening", "widening(k=2)"],
    ],
    ids=lambda tokens: tokens[0],
)
def test_a_search_does_as_it_is_told(run, tokens):
    output = run("search", "tic_tac_toe", "--simulations", "500", "--json", *tokens)
    result = json.loads(output)
    assert result["action"] in range(9)
    assert result["simulations"] <= 500


def test_play_takes_the_same_options(play, file):
    options = ("--selection", "ucb1(c=1)", "--solver", "--player", "none")
    assert "Returns: player 0 +1, player 1 -1\n" in play(f"{file}:race", options=options)


# --- trees as files, diff ------------------------------------------------------------------------


def test_a_tree_is_saved_and_gone_on_from(run, tmp_path):
    path = str(tmp_path / "a.tree")
    budget = ("--simulations", "300", "--seed", "3")
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
    run("search", "tic_tac_toe", "--simulations", "300", "--threads", "2", "--save-page", str(path))
    assert "A search of tic_tac_toe" in path.read_text("utf-8")


def test_a_tree_of_a_user_s_game_needs_the_game(run, refused, file, tmp_path):
    path = str(tmp_path / "race.tree")
    run("search", f"{file}:race", "--simulations", "50", "--save-tree", path)
    message = refused("search", "--tree", path)
    assert "the tree is of the game 'race'" in message
    assert "file.py:name" in message
    run("search", f"{file}:race", "--tree", path, "--simulations", "50")
    assert "player 0 to play" in run("diff", path, path, "--game", f"{file}:race")
    assert "differs: name is 'race'" in refused("search", "connect_four", "--tree", path)


def test_a_search_needs_a_game_or_a_tree(refused):
    assert "say what to search: a GAME, or --tree FILE" in refused("search")


def test_what_is_no_tree_is_told_in_one_line(refused, file, tmp_path):
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
    assert "connect_four, player 1 to play\n" in output
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


# --- which game ----------------------------------------------------------------------------------


def test_arguments_reach_a_built_in_game(refused):
    message = refused("search", "connect_four:rows=4,cols=5", "--actions", "9")
    assert re.search(r"legal: (\d, ){4}\d\n", message)


def test_an_argument_may_be_a_tuple(refused, file):
    message = refused("search", f"{file}:coins:values=(5, 7,9)", "--actions", "stake 8")
    assert "legal: stake 5, stake 7, stake 9\n" in message


def test_arguments_may_be_positional(refused, file):
    assert "stake 5" in refused("search", f"{file}:coins:(5,)", "--actions", "x")


def test_the_only_game_of_a_file_needs_no_name(run, tmp_path):
    path = tmp_path / "one_game.py"
    path.write_text("import uctree\n\nstandard = uctree.games.connect_four()\n")
    assert "player 0 to play" in run("search", str(path), "--simulations", "10")


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (
            "conect_four",
            r"unknown game 'conect_four'; did you mean connect_four\? Built in: .*nnect",
        ),
        ("xyzzy", r"unknown game 'xyzzy'; Built in: .*connect_four.* file\.py:name"),
        ("connect_four:row=6", r"argument 'row'; the signature is connect_four\(rows=6, cols=7, "),
        ("connect_four:rows=99", r"must be at most 62; got rows=99, cols=7; the signature is"),
        ("connect_four:rows=six", r"cannot read the arguments 'rows=six'"),
        ("connect_four:rows=(6", r"cannot read the arguments 'rows=\(6'"),
        ("connect_four:1)+f(2", r"cannot read the arguments"),
        ("missing.py:race", r"there is no file missing\.py"),
        ("{file}:rcae", r"has no 'rcae'; its games: uncompilable, failing, race\(goal=4\), coins"),
        ("{file}", r"say which game of .*user_games\.py:name; its games: uncompilable, failing"),
        ("{file}:number", r"number is of type int; expected a uctree\.Game or a function"),
        ("{file}:not_a_game", r"not_a_game\(\) returned int; expected a uctree\.Game"),
        ("{file}:failing:rows=3", r"failing is a game, not a function"),
        ("{file}:failing", r"user_games\.py, line \d+, in legal_that_fails: ZeroDivisionError"),
    ],
)
def test_a_game_that_cannot_be_had_is_explained_in_one_line(refused, file, game, message):
    line = refused("search", game.format(file=file))
    assert re.match(rf"uctree: .*{message}", line)
    assert line.count("\n") == 1


def test_a_game_that_does_not_compile_says_where(refused, file):
    message = refused("search", f"{file}:uncompilable", "--simulations", "10")
    assert "does not compile" in message
    assert "user_games.py, line" in message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = (", r"broken_file\.py, line 1: '\(' was never closed"),
        ("\nimport no_such_module", r"broken_file\.py, line 2, in <module>: ModuleNotFoundError"),
    ],
)
def test_a_file_that_cannot_be_imported_says_where(refused, tmp_path, source, message):
    path = tmp_path / "broken_file.py"
    path.write_text(source)
    assert re.search(message, refused("search", f"{path}:game"))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("search connect_four --simulations 0", "--simulations must be at least 1; got 0"),
        ("search connect_four --seconds 0", "--seconds must be above 0; got 0"),
        ("search connect_four --seconds nan", "--seconds must be above 0; got nan"),
        ("play connect_four --seconds -1", "--seconds must be above 0; got -1"),
        ("bench connect_four --simulations -5", "--simulations must be at least 1; got -5"),
        ("search connect_four --c -1", "--c must be a number of at least 0; got -1"),
        ("search connect_four --simulations many", 'unable to convert "many" into int'),
        ("search connect_four --actions 3,9", "--actions, number 2: '9' is not a legal action"),
        (
            "search connect_four --actions 1,2,1,2,1,2,1,6",
            "the episode is over after 7; '6' is too much",
        ),
        ("play connect_four --player 2", "--player must be 0 to 1, or none to watch; got 2"),
        ("play connect_four --player me", 'unable to convert "me" into int'),
        ("play connect_four --against nobody", "nobody"),
        ("play", "GAME requires an argument"),
        ("diff a.tree", "SECOND requires an argument"),
        ("serach connect_four", 'Unknown command "serach". Did you mean "search"?'),
    ],
)
def test_a_wrong_option_is_explained_in_one_line(refused, tokens, message):
    line = refused(*tokens.split())
    assert line.startswith("uctree: ")
    assert message in line
    assert line.count("\n") == 1


# --- play ----------------------------------------------------------------------------------------


def test_play_goes_on_to_the_end_and_announces_the_returns(play, file):
    output = play(f"{file}:race", "+1", "+2")  # 3 of 4 are left, so player 0 wins
    assert "You are player 0." in output
    assert "player 0, your action (+1 +2): +1\n" in output
    assert re.search(r"player 1 plays \+[12]   \(expects -\d\.\d+ after 200 simulations\)", output)
    assert output.endswith(
        "The episode is over after 3 plies.\nReturns: player 0 (you) +1, player 1 -1\n"
    )


def test_play_lets_the_search_begin(play, file):
    output = play(f"{file}:race", "+1", options=("--player", "1"))
    assert output.index("player 0 plays +1") < output.index("player 1, your action")
    assert "Returns: player 0 +1, player 1 (you) -1\n" in output


def test_an_illegal_action_is_asked_for_again(play, file):
    output = play(f"{file}:race", "+3", "", "+1", "+2")
    assert "'+3' is not a legal action here; legal: +1, +2; or hint, undo, quit\n" in output
    assert "Returns: player 0 (you) +1" in output


def test_a_hint_is_the_table_of_a_search(play, file):
    output = play(f"{file}:race", "hint", "quit")
    assert "player 0 to play: +1" in output
    assert re.search(r"action +visits +share", output)


def test_undo_goes_back_to_the_previous_decision(play, file):
    output = play(f"{file}:race", "+1", "undo", "undo", "quit")
    boards = re.findall(r"total (\d) of 4", output)
    assert boards[2:] == [boards[0], boards[0]]
    assert output.count("There is nothing to undo.") == 1


def test_undo_can_be_repeated(play, file):
    output = play(f"{file}:coins", "stake 1", "stake 2", "undo", "undo", "quit")
    assert re.findall(r"^total: (\d+)", output, re.MULTILINE) == ["0", "10", "21", "10", "0"]


@pytest.mark.parametrize("typed", [("quit",), ()], ids=["quit", "end of input"])
def test_leaving_is_polite(play, file, typed):
    assert play(f"{file}:race", *typed).endswith("\nGood-bye.\n")


@pytest.mark.parametrize("where", ["input", "search"])
def test_ctrl_c_leaves_the_episode(play, file, monkeypatch, where):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    if where == "input":
        monkeypatch.setattr("builtins.input", interrupt)
    else:
        monkeypatch.setattr(uctree, "search", interrupt)
    assert play(f"{file}:race", "+1", "+2").endswith("\nGood-bye.\n")


def test_a_person_can_play_vectors(play):
    output = play("leap", "2", "0.25")
    assert "your action (-1 to 1): 2\n" in output
    assert "action [2.0] is not legal; expected [-1.0] to [1.0]; or hint, undo, quit" in output
    assert "The episode is over after 2 plies." in output


def test_agents_do_not_play_vectors(refused):
    message = refused("play", "leap", "--against", "random")
    assert "the actions of leap are vectors, and agents play games whose actions are numbers" in (
        message
    )


def test_play_can_be_watched(play, file):
    output = play(f"{file}:race", options=("--player", "none"))
    assert "your action" not in output
    assert "player 0 plays +1" in output
    assert "Returns: player 0 +1, player 1 -1\n" in output


AGENTS = """
class Careful:
    def begin(self, game, player, seed):
        self.player, self.total = player, 0

    def watch(self, state, action):
        self.total += action + 1

    def act(self, state):
        assert self.total == state["total"]  # it was told of everything
        return 1 if self.total % 3 == 2 else 0


class Failing(Careful):
    def act(self, state):
        raise OSError("no more paper")


class Cheating(Careful):
    def act(self, state):
        return 7


class Silent(Careful):
    def act(self, state):
        return None


class Wavering(Careful):
    def act(self, state):
        return 0.5


class Noting(Careful):
    def begin(self, game, player, seed):
        self.game = game
        with open(__file__ + ".seeds", "a") as notes:
            print(player, seed, file=notes)

    def watch(self, state, action):
        pass

    def act(self, state):
        return self.game.legal(state)[0]


class Scribbling(Noting):
    def watch(self, state, action):
        state["total"] = 90

    def act(self, state):
        action = self.game.legal(state)[0]
        state["total"] = 90
        return action
"""


@pytest.fixture
def agents(tmp_path):
    path = tmp_path / "agents_here.py"
    path.write_text(AGENTS)
    return path


def test_a_person_can_play_against_an_agent(play, file, agents):
    against = f"{agents}:Careful"
    output = play(f"{file}:race", "+2", "+1", options=("--against", against, "--player", "0"))
    assert f"You are player 0 against {against}." in output
    assert f"player 1 ({against}) plays +2" in output
    assert "Returns: player 0 (you) -1, player 1 +1\n" in output


def test_an_agent_learns_of_what_is_taken_back(play, file, agents):
    typed = ("+1", "undo", "+2", "+1")
    output = play(
        f"{file}:race", *typed, options=("--against", f"{agents}:Careful", "--player", "0")
    )
    assert "The episode is over" in output


def test_the_search_plays_against_an_agent(play, file):
    output = play(f"{file}:race", options=("--against", "random"))
    assert "The search is player 0 against random." in output
    assert re.search(r"player 0 plays \+1   \(expects", output)
    assert "player 1 (random) plays" in output


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("Failing", "Failing failed as player 1: OSError: no more paper"),
        ("Cheating", "Cheating failed as player 1: action 7 at ply 1 is not legal; legal: [0, 1]"),
        ("Silent", "Silent failed as player 1: None at ply 1 is not an action"),
        ("Wavering", "Wavering failed as player 1: 0.5 at ply 1 is not an action"),
    ],
)
def test_an_agent_that_fails_is_told(file, agents, capsys, against, message):
    tokens = ["play", f"{file}:race", "--against", f"{agents}:{against}", "--simulations", "50"]
    assert cli.main(tokens) == 2
    assert message in capsys.readouterr().err


def test_an_agent_cannot_change_the_episode_by_writing_into_a_state(play, file, agents):
    scribbled, plain = (
        play(f"{file}:race", options=("--against", f"{agents}:{name}"))
        for name in ("Scribbling", "Noting")
    )
    assert scribbled.replace("Scribbling", "Noting") == plain


def test_every_agent_has_a_seed_of_its_own(play, agents):
    play("n_in_a_row:3,3,3,3", options=("--against", f"{agents}:Noting"))
    notes = Path(f"{agents}.seeds").read_text().split()
    assert notes[::2] == ["1", "2"]
    assert len(set(notes[1::2])) == 2


def test_chance_is_drawn_with_the_seed_and_undo_does_not_draw_again(play, file):
    output = play(f"{file}:coins", "stake 2", "undo", "stake 2", "stake 1", "stake 1")
    first, again, second, third = re.findall(r"chance: (heads|tails)", output)
    assert first == again
    won = 2 * (first == "heads") + (second == "heads") + (third == "heads")
    assert f"Returns: player 0 (you) {won:+g}\n" in output


def test_play_draws_a_seed_and_says_it(run, file, monkeypatch):
    seeds = set()
    for _ in range(3):
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        seeds.add(re.search(r"seed (\d+)", run("play", f"{file}:race"))[1])
    assert len(seeds) > 1


# --- check, new ----------------------------------------------------------------------------------


def test_new_writes_a_game_that_is_right_and_a_test_that_passes(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run("new", "climb").splitlines()[:2] == ["wrote climb.py", "wrote test_climb.py"]
    report = json.loads(run("check", "climb.py", "--episodes", "20", "--json"))
    assert report["ok"]
    command = [sys.executable, "-m", "pytest", "-q", "test_climb.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "3 passed" in done.stdout


def test_new_never_overwrites_and_wants_a_name(refused, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "climb.py").write_text("mine")
    assert "climb.py is there already" in refused("new", "climb")
    assert (tmp_path / "climb.py").read_text() == "mine"
    assert "a name as Python allows it" in refused("new", "my-game")


def test_check_has_exit_status_1_where_a_game_is_wrong(tmp_path, capsys):
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


def test_bench_measures_a_game_and_says_whether_it_compiled(run, file, monkeypatch, tmp_path):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    rows = [
        json.loads(run("bench", f"{file}:race", "--simulations", "300", "--json"))[0]
        for _ in range(2)
    ]
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
    # Vectors are not listed, and this game draws none of its own.
    assert re.match(r"leap .* - +[\d.]+ +- +[\d.]+$", vectors)


def test_cache_shows_its_entries_and_clears_them(run, monkeypatch, tmp_path):
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path))
    assert run("cache") == f"0 entries, 0 kB, in {tmp_path}\n"
    entry = tmp_path / "abc"
    entry.mkdir()
    (entry / "entry.json").write_text('{"label": "chess: ucb1, playout"}')
    (entry / "code").write_bytes(bytes(5000))
    lines = run("cache").splitlines()
    assert lines[0].split() == ["entry", "size", "last", "used"]
    assert re.fullmatch(r"chess: ucb1, playout  5 kB  \d{4}-\d\d-\d\d \d\d:\d\d", lines[1])
    assert lines[2] == f"1 entry, 5 kB, in {tmp_path}"
    assert run("cache", "--clear") == f"1 entry deleted from {tmp_path}\n"
    assert run("cache", "--clear") == f"0 entries deleted from {tmp_path}\n"
    assert not entry.exists()
