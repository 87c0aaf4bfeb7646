"""The command `uctree`: its options, the games it names, and mistakes in one line."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import uctree
from uctree import choice, cli, specs, stopping
from uctree.cli.app import LEFT_OUT, Method
from uctree.engine.options import Options

pytestmark = pytest.mark.usefixtures("imports_are_undone")


COMMANDS = [
    "ablate", "advise", "bench", "cache", "check", "continuous", "diff", "export", "games", "info",
    "match", "new", "play", "principle", "report", "search", "solve", "studio", "train",
]  # fmt: skip


def test_the_page_on_the_command_line_has_every_command():
    text = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    assert sorted(re.findall(r"^\| \[`uctree (\w+)", text, re.M)) == COMMANDS


def test_version_is_that_of_the_package(run):
    assert run("--version") == f"uctree {uctree.__version__}\n"


@pytest.mark.quick
def test_help_explains_how_to_name_a_game(run):
    assert "my_game.py:name" in run("--help")


@pytest.mark.quick
def test_python_m_uctree_is_the_same_command():
    command = [sys.executable, "-m", "uctree", "play", "no_such_game"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("uctree: unknown game 'no_such_game'; ")


def test_a_closed_pipe_is_no_error():
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
        warnings.warn("the game is compiled again", stacklevel=1)
    assert capsys.readouterr().err == "uctree: warning: the game is compiled again\n"


# --- games by name -------------------------------------------------------------------------------


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
    assert "player 0 to move" in run("search", str(path), "--num-simulations", "10")


@pytest.mark.quick
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
def test_a_wrong_game_is_explained_in_one_line(refused, file, game, message):
    line = refused("search", game.format(file=file))
    assert re.match(rf"uctree: .*{message}", line)
    assert line.count("\n") == 1


def test_a_game_that_does_not_compile_says_where(refused, file):
    message = refused("search", f"{file}:uncompilable", "--num-simulations", "10")
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


@pytest.mark.quick
@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("search connect_four --num-simulations 0", "--num-simulations must be at least 1; got 0"),
        ("search connect_four --simulations 9", "Did you mean --num-simulations?"),
        ("continuous leap --simulations 9", "Did you mean --num-simulations?"),
        ("search connect_four --seconds 0", "--seconds must be above 0; got 0"),
        ("search connect_four --seconds nan", "--seconds must be above 0; got nan"),
        ("play connect_four --seconds -1", "--seconds must be above 0; got -1"),
        ("bench connect_four --num-simulations -5", "--num-simulations must be at least 1; got -5"),
        ("search connect_four --c -1", "--c must be a number of at least 0; got -1"),
        ("search connect_four --num-simulations many", 'unable to convert "many" into int'),
        ("search connect_four --actions 3,9", "--actions, number 2: '9' is not a legal action"),
        (
            "search connect_four --actions 1,2,1,2,1,2,1,6",
            "the episode is over after 7 actions; remove '6'",
        ),
        ("play connect_four --player 2", "--player must be 0 to 1, or none to watch; got 2"),
        ("play connect_four --player me", 'unable to convert "me" into int'),
        ("play connect_four --against nobody", "nobody"),
        ("play", "GAME requires an argument"),
        ("diff a.tree", "SECOND requires an argument"),
        ("serach connect_four", "unknown command 'serach'; did you mean search"),
        ("xyzzy", f"unknown command 'xyzzy'; commands: {', '.join(COMMANDS)}\n"),
        ("check connect_four --wise", "--wise is now called --heuristic"),
        ("search connect_four --foo 1", "Unknown option: --foo. See uctree search --help"),
    ],
)
def test_a_wrong_option_is_explained_in_one_line(refused, tokens, message):
    line = refused(*tokens.split())
    assert line.startswith("uctree: ")
    assert message in line
    assert line.count("\n") == 1


# --- options of a search -------------------------------------------------------------------------


@pytest.fixture
def options(run, monkeypatch):
    """The options that a command line passes to `uctree.search`, which is not run."""

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


@pytest.mark.quick
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


@pytest.mark.quick
def test_the_command_line_has_every_option_of_a_search():
    written = {each.name for each in dataclasses.fields(Method)} - {"c", "no_check"}
    assert written | LEFT_OUT.keys() == {each.name for each in dataclasses.fields(Options)}
    assert not written & LEFT_OUT.keys()


def test_the_page_on_the_command_line_has_every_option_of_a_search():
    page = (Path(__file__).parents[2] / "docs/command_line.md").read_text()
    table = page[page.index("Options of the search, also for `play`") :]
    for each in dataclasses.fields(Method):
        assert re.search(rf"`--{each.name.replace('_', '-')}( RULE)?`", table), each.name


def test_proposals_and_refinements_are_rules(options):
    assert options("--proposal", "quadratic()", "--refine", "best_replies(frequency=0.1)") == {
        "proposal": uctree.continuous.quadratic(),
        "refine": uctree.refine.best_replies(frequency=0.1),
    }
    assert "fitted" not in specs.rule_functions("refine")  # it takes a refinement


@pytest.mark.quick
def test_words_numbers_and_switches_reach_the_search(options):
    assert options(
        "--solver", "--transpositions", "--open-loop", "--threads", "2", "--parallel", "tree",
        "--max-memory", "500MB", "--opponents", "paranoid", "--ties", "random",
        "--chance", "proportional", "--choice", "robust_max", "--c", "0",
        "--in-flight", "unobserved",
    ) == {
        "solver": True, "transpositions": True, "open_loop": True, "threads": 2,
        "parallel": "tree", "max_memory": "500MB", "opponents": "paranoid", "ties": "random",
        "chance": "proportional", "choice": "robust_max", "in_flight": "unobserved",
        "selection": uctree.selection.ucb1(c=0),
    }  # fmt: skip


def test_every_choice_can_be_named():
    words = {*specs.RULES["choice"][2], *specs.makers(choice, "Choice")}
    for word in words - {"gumbel"}:
        assert choice.as_choice(word).name == word
    with pytest.raises(ValueError, match="choice is one of") as caught:
        choice.as_choice("no such")
    listed = re.search(r"one of (.*);", str(caught.value))[1].split(", ")
    assert set(listed) <= words


@pytest.mark.quick
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
        ("--choice best", r"unknown 'best'; .*possible: robust, max, .*lcb\([^)]*\)$"),
        ("--parallel leaf", "Choose from: .*auto.*root.*tree"),
        ("--opponents friendly", "Choose from: .*maxn.*paranoid"),
        ("--threads two", 'unable to convert "two" into int'),
        ("--c 1 --selection puct()", "give --c or --selection, not both"),
    ],
)
@pytest.mark.parametrize("command", ["search", "play"])
def test_a_wrong_rule_is_explained_in_one_line(refused, command, tokens, message):
    line = refused(command, "connect_four", *tokens.split(" "))
    assert re.match(rf"uctree: .*{message}", line)
    assert line.count("\n") == 1
